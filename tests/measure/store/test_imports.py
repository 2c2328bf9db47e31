"""Run files from elsewhere: what is valid comes in whole, all else is refused with its reason, and nothing crashes."""

import contextlib
import functools
import json
import random
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from measure.claims import table
from measure.claims.spec import Compare
from measure.judge.findings import findings
from measure.output import export
from measure.run import decision
from measure.run.encoding import decode, encode
from measure.run.run import Code, Evidence, Run, ScriptEnd
from measure.store import entries, imports
from measure.store.store import Store
from tests import claims, synthetic
from tests.engine import ROOT
from tests.keeping import in_report
from tests.synthetic import HOSTILE

ID = "0123456789abcdef01234567"


@functools.cache
def small() -> Run:
    """A valid run with all that a run file can hold, and little of each."""
    return decode((ROOT / "tests/data/run_1.json").read_bytes())


@functools.cache
def small_sweep() -> Run:
    return decode((ROOT / "tests/data/sweep_1.json").read_bytes())


@functools.cache
def small_claims() -> Run:
    """A valid run of claims with a piece of evidence of each kind, and a claim that is not known here."""
    claim = claims.of_one_test(Compare)
    script = ScriptEnd(source="report(x=1)", figures={"x": 1, "s": [0.1, 0.2]}, error="", printed="so", seconds=0.5)
    evidence = [
        claims.evidence(claim.tests[0], True),
        Evidence(need="swept", run=small_sweep()),
        Evidence(need="script", script=script),
        Evidence(need="not measured", reason="it does not fit"),
    ]
    return replace(claims.run([claim]), claims=[claim.id, "strange"], evidence=evidence)


def said(data: bytes, most_bytes: int = imports.MOST_BYTES) -> str:
    with pytest.raises(ValueError) as caught:
        imports.read(data, most_bytes)
    return str(caught.value)


def test_nothing_of_a_file_from_elsewhere_is_executed(tmp_path: Path):
    """Its source is text, and its verdicts are computed from its figures."""
    hostile = f"open({str(tmp_path / 'executed')!r}, 'w').close()"
    run = small_claims()
    evidence = [*run.evidence[:2], replace(run.evidence[2], script=replace(run.evidence[2].script, source=hostile))]
    run = imports.read(encode(replace(run, evidence=evidence)))
    assert (kept := Store(tmp_path)).add(run) and kept.load(ID).evidence[2].script.source == hostile
    assert table.render(run) and export.markdown(run)
    assert list(export.table_csv(run)) and list(export.samples_csv(run))
    assert not (tmp_path / "executed").exists()


def test_a_verdict_that_looks_like_one_long_name_is_read_in_the_time_of_its_length():
    sweep = json.loads((ROOT / "tests/data/option_1.json").read_bytes())
    for point in sweep["points"]:
        point["verdict"] = "a?" * 9_999  # with a look from each sign on, this takes a minute
    assert imports.read(json.dumps(sweep).encode()).points[0].verdict == "a?" * 9_999


def test_a_run_file_with_only_what_is_needed_opens_and_is_shown():
    run = imports.read(
        b'{"id": "0123456789abcdef01234567", "created": "2025-01-15T09:30:00Z", "request": {"workload": "w", '
        b'"size": {}, "dtype": "float32", "device": "CPU:0", "strategies": [], "budget_s": 1}}'
    )
    assert run.measurements == [] and run.status == "interrupted"
    assert not findings(run).rows and entries.row(run) and export.markdown(run)


def test_texts_may_hold_anything_that_can_be_printed_and_code_may_be_as_long_as_a_script():
    hostile = replace(
        small(), verdict=HOSTILE, stop_reason="=1+1", environment={"cpu_model": HOSTILE, "flags": {"a": [1]}}
    )
    assert imports.read(encode(hostile)) == hostile
    for count, is_in in ((3_999_999, True), (4_000_001, False)):
        item = replace(small().measurements[0], code=Code(source="#" * count, sha256=""))
        refused = pytest.raises(ValueError, match=r"of length <= 4000000 - at `.*code")
        with contextlib.nullcontext() if is_in else refused:
            imports.read(encode(replace(small(), measurements=[item], ranking=[], control=None)))


def changed(*path: str | int, to: Any, run: Run | None = None) -> bytes:
    """The small run, or another one, with another value at a path; `...` removes it."""
    document = json.loads(encode(run or small()))
    inner = document
    for part in path[:-1]:
        inner = inner[part]
    if to is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = to
    return json.dumps(document).encode()


def refuses(run: Run, cases: list[tuple[tuple[str | int, ...], Any, str]]) -> None:
    """A valid run is refused with what `says` matches when what is at a path is changed. Where `says` begins with
    ``$``, it is the path of the fault."""
    assert imports.read(encode(run)) == run
    for path, to, says in cases:
        reason = said(changed(*path, to=to, run=run))
        expected = re.escape(f"at `{says}`") if says.startswith("$") else says
        assert re.search(expected, reason, re.DOTALL), (path, reason)
        assert len(reason) > 20 and "\n" not in reason


_FIRST = ("measurements", 0)
_REPLICA = (*_FIRST, "replicas", 0)


def test_what_is_not_valid_is_refused_with_the_path_of_the_fault():
    refuses(
        small(),
        [
            (("schema",), "mapbench.run/2", r"its schema is not mapbench\.run/1"),
            (("request",), ..., "missing required field `request`"),
            (("id",), "../../etc/passwd", r"of signs that are allowed there - at `\$\.id`"),
            (("finished",), "2025-13-45T09:24:59Z", r"is not a time of day .* - at `\$\.finished`"),
            (("request", "size"), dict.fromkeys(map(str, range(51)), 1), r"of length <= 50 - at `\$\.request\.size`"),
            (("analysis", "confidence"), 1.0, "$.analysis.confidence"),
            ((*_FIRST, "memory", "timeline", "t_s"), [0.0], "live_bytes, t_s are of different lengths"),
            ((*_FIRST, "strategy"), "a\nb", r"of signs that are allowed there - at `\$\.measurements\[0\]\.s"),
            ((*_REPLICA, "samples_s", 1), -1e-3, "$.measurements[0].replicas[0].samples_s[1]"),
            ((*_REPLICA, "samples_s"), [0.1], r"are of different lengths - at `\$\.measurements\[0\]`"),
            (("measurements", 1, "strategy"), "batched.xla", "there is another 'batched.xla'"),
            (("measurements",), json.loads(encode(small()))["measurements"][:1] * 1_001, "of length <= 1000"),
            ((*_FIRST, "warnings"), [{"code": "busy", "message": "so"}] * 201, r"more than 200 .* - at `\$\.warnings`"),
            (("ranking",), [["batched.xla", "batched.xla"]], r"is in it twice - at `\$\.ranking`"),
            (("ranking",), [["numpy_function.graph"]], "has no latency that could be ranked"),
            (("verdict",), "gpj.\u202eexe", r"allowed there - at `\$\.verdict`"),
            (("environment",), {"a": [[[1]]]}, "$.environment[...][0][0]"),
        ],
    )


def test_a_decision_holds_no_more_than_can_be_written():
    fields, bad = ("title", "decision", "note", "by"), ("x" * 2_001, "\x1b[31m", "\u202e")
    cases = [(("decision", field), text, f"$.decision.{field}") for field in fields for text in bad]
    decided = replace(small(), decision=decision.make(*fields))
    refuses(decided, [*cases, (("decision", "at"), "never", r"at `\$\.decision\.at`")])


def test_what_is_no_document_is_refused():
    data, less = encode(small()), 16 * 2**20  # is allowed where strangers use the server
    for broken, says, *most in (
        (b"", "truncated"),
        (b"null", "Expected `object`, got `null`"),
        (data.replace(b'"budget_s": 30.0', b'"budget_s": 1e999'), "out of range"),
        (data.replace(b'"cores": 2', b'"cores": ' + b"[" * 5_000 + b"]" * 5_000), "nested too deeply|Expected"),
        (b"{" * (imports.MOST_BYTES + 1), "too large: it has 80.0 MiB, and 80 MiB are allowed"),
        (b'{"id": [' + b"0," * 8_500_000 + b"0]}", "too many values"),
        (b'{"id": ' + b"[" * 600_000 + b"{" * 300_000, "too many values"),
        (b" " * (less + 1), "too large: it has 16.0 MiB, and 16 MiB are allowed on this server", less),
        (b"1," * (less // 10 + 1), "too many values", less),
    ):
        assert re.search(says, reason := said(broken, *most)), (broken[:20], reason)
    config = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())
    assert config["server"]["maxUploadSize"] * 2**20 == imports.MOST_BYTES and imports.read(data, less) == small()


def test_a_report_is_taken_in_with_all_its_runs_or_not_at_all():
    runs = [replace(small(), verdict=HOSTILE), replace(small_sweep(), id="a" * 24)]
    assert imports.read_all(encode(small())) == [small()]
    assert imports.read_all(in_report(*map(encode, runs))) == runs
    least = encode(small())
    for data, says in (
        (b"<!doctype html><p>nothing</p>", "it holds no run"),
        (in_report(*[b"{}"] * (imports.MOST_RUNS + 1)), "it holds more than 100 runs"),
        (in_report(least, b"{}"), "this is not a valid run file"),
        (in_report(least, encode(replace(small(), verdict="other"))), "it holds a run twice"),
        (in_report(least[:-9]), "truncated"),
        (b"<" + b" " * imports.MOST_BYTES, "too large"),
        (b"<" + b"[" * (imports.MOST_BYTES // 50), "too many values"),
    ):
        with pytest.raises(ValueError, match=says):
            imports.read_all(data)


def test_a_sweep_or_a_run_of_claims_that_is_not_valid_is_refused_with_the_path_of_the_fault():
    within, script = ("evidence", 0, "run"), ("evidence", 2, "script")
    refuses(
        small_sweep(),
        [
            (("axes",), [], r"a sweep has one or two - at `\$\.axes`"),
            (("axes", 0, "values"), [1, 100, 10], r"they have to ascend.* - at `\$\.axes\[0\]\.values`"),
            (("axes", 0, "values"), [0, 10_000], "from 1 on"),
            (("points", 0, "at"), {}, r"a value of each axis is needed.* - at `\$\.points\[0\]\.at`"),
            (("points", 0, "at", "batch"), 100, r"there is another point at this place - at `\$\.points\[1\]\.at`"),
            (("points", 0, "at", "batch"), 2**62, r"it is not on the axes - at `\$\.points\[0\]\.at`"),
            (("points", 0, "ranking"), [["nobody"]], "$.points[0].ranking"),
        ],
    )
    refuses(
        small_claims(),
        [
            ((*within, "kind"), "claims", r"there are comparisons and sweeps - at `\$\.evidence\[0\]\.run\.kind`"),
            ((*within, *_REPLICA, "samples_s", 0), -1.0, "$.evidence[0].run.measurements[0].replicas[0].samples_s[0]"),
            ((*script, "figures"), {"x": 2**70}, "$.evidence[2].script.figures[...]"),
        ],
    )


def test_runs_of_claims_within_runs_of_claims_are_refused_however_deep():
    request = '{"workload": "w", "size": {}, "dtype": "", "device": "", "strategies": [], "budget_s": 1}'
    start = f'{{"id": "{ID}", "created": "2025-01-15T09:30:00Z", "request": {request}, "kind": "claims"'
    for deep in (2, 30, *range(150, 340, 10), 2_000):  # where the parser gives up, and where it does not
        nested = (start + ', "evidence": [{"need": "n", "run": ') * deep + start + "}" + "}]}" * deep
        assert re.search("nested too deeply|there are comparisons and sweeps", said(nested.encode())), deep


def test_there_are_no_more_measurements_than_a_page_can_compare(monkeypatch: pytest.MonkeyPatch):
    for run, axes in ((synthetic.sweep(), 1), (synthetic.winners(), 2), (small_claims(), 2)):
        bodies = [run, *(item.run for item in run.evidence or () if item.run)]
        count = sum(len(part.measurements) for body in bodies for part in (body, *body.points))
        monkeypatch.setitem(imports.MOST_MEASUREMENTS, axes, count)
        assert imports.read(encode(run)) == run
        monkeypatch.setitem(imports.MOST_MEASUREMENTS, axes, count - 1)
        assert f"{count} measurements, and {count - 1} are allowed - at `$`" in said(encode(run))


def test_a_refusal_quotes_no_sign_that_a_terminal_obeys_and_of_what_is_long_a_part():
    for path, to in (("\x1b[31m\nX",), 1), (("status",), "\u202e"):
        assert said(changed(*path, to=to)).isprintable()
    reason = said(changed(*_FIRST, "outcome", to="\u202e" * 10_000))
    assert len(reason) < 1_000 and reason.endswith("at `$.measurements[0].outcome`")


def written(run: Run) -> bytes:
    """A file of former times as it would be written today."""
    return encode(replace(run, digest={}))


def places(run: Run) -> list[str]:
    """The paths of what is not as it was written."""
    return [path for warning in run.warnings if warning.code == "changed" for path in warning.values["paths"]]


def test_every_bit_that_is_flipped_is_refused_or_noticed():
    data = written(small())
    whole, chosen = imports.read(data), random.Random(0)
    passed = []
    for _ in range(100):
        place, bit = chosen.randrange(len(data)), 1 << chosen.randrange(8)
        flipped = data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]
        try:
            run = imports.read(flipped)
        except ValueError:
            continue
        # The last of 17 digits may make no other number, and E is e.
        if run != whole and not places(run):
            passed.append((place, bit))
    assert passed == []


def test_it_is_said_which_part_is_not_as_it_was_written_wherever_the_run_goes():
    for whole, change, where in (
        (small(), lambda raw: None, []),  # another program has written it anew
        (small(), lambda raw: raw.update(verdict="loop.eager is fastest"), ["$.verdict"]),
        (small(), lambda raw: raw["measurements"][1].update(first_call_s=0.25), ["$.measurements[1]"]),
        (small_sweep(), lambda raw: raw["points"][2].update(reason="so"), ["$.points[2]"]),
        (small_sweep(), lambda raw: raw["points"].pop(), [f"$.points[{len(small_sweep().points) - 1}]"]),
        (small(), lambda raw: raw["digest"].update(verdict="0" * 16), ["$.verdict"]),
    ):
        change(raw := json.loads(written(whole)))
        run = imports.read(json.dumps(raw).encode())
        assert places(run) == where == places(decode(encode(run)))
        assert ("its checksums no longer fit" in export.markdown(run)) == bool(where)
