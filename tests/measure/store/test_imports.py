"""Run files from elsewhere: what is valid comes in whole, all else is refused with its reason, and nothing crashes."""

import functools
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from measure.claims.spec import Compare
from measure.output import export, rows
from measure.run.run import SCHEMA, Evidence, Run, ScriptEnd
from measure.run.run_file import decode, encode
from measure.store import entries, imports
from measure.store.store import Store
from tests import claims, synthetic
from tests.engine import ROOT
from tests.synthetic import HOSTILE
from workloads import functions
from workloads.functions import Facts, OwnFunction

ID = "0123456789abcdef01234567"
FROZEN = Path(__file__).parents[2] / "data"


def frozen(name: str) -> Run:
    return decode((FROZEN / f"{name}.json").read_bytes())


@functools.cache
def small() -> Run:
    """A valid run with all that a run file can hold, and little of each."""
    return frozen("run_1")


@functools.cache
def small_sweep() -> Run:
    return frozen("sweep_1")


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


# --- what is valid comes in ------------------------------------------------------------------------------------------


def test_export_import_export_is_identical(tmp_path: Path):
    runs = [synthetic.run(ID), synthetic.partial(3, "1" * 24), synthetic.sweep("2" * 24), synthetic.winners("3" * 24)]
    kept = Store(tmp_path)
    example = (ROOT / "views/example_run.json").read_bytes().rstrip(b"\n")
    for data in (*map(encode, runs), encode(replace(small_claims(), id="4" * 24)), example):
        run = imports.read(data)
        assert kept.add(run)
        assert encode(Store(tmp_path).load(run.id)) == data


def test_files_with_every_field_open_for_ever():
    """They are never written anew: what `mapbench.run/1` was when they were made, it is for good."""
    run, sweep, winners, explained = opened = [frozen(name) for name in ("run_1", "sweep_1", "map_1", "explained_1")]
    for each in opened:
        assert each.schema == SCHEMA and imports.read(encode(each)) == each
    assert run.parent == "f" * 24 and run.control.strategy == "batched.xla"
    assert run.measurement("batched.xla").replicas[1].samples_s[2] > 0
    assert run.measurement("dataset.graph").correctness.leaves[0].worst_index == [17, 3, 60, 2]
    assert sweep.crossovers[0].value == 20.0 and sweep.crossovers[1].none == "they do not cross"
    assert sweep.fits[0].strategy == "loop.eager" and sweep.points[0].control.resolution == 0.03
    assert [each.ranking for each in winners.points if not each.measurements] == [[["vectorized_map.graph"]]]
    assert encode(explained) == (FROZEN / "explained_1.json").read_bytes(), "former forms of reasons stay as they are"


def test_a_run_file_with_only_what_is_needed_opens_and_is_shown():
    run = imports.read(
        b'{"id": "0123456789abcdef01234567", "created": "2025-01-15T09:30:00Z", "request": {"workload": "w", '
        b'"size": {}, "dtype": "float32", "device": "CPU:0", "strategies": [], "budget_s": 1}}'
    )
    assert run.measurements == [] and run.status == "interrupted"
    assert rows.make(run, rows.choose_baseline(run)) == [] and entries.row(run) and export.markdown(run)


def test_texts_may_hold_anything_that_can_be_printed_and_code_may_be_as_long_as_a_script():
    facts = Facts(size={"batch": 2}, element=["leaf", {}], result=["leaf", {}], dtype="float32", reference="own")

    def of_code(code: str) -> Run:
        own = OwnFunction(given=functions.Given(code=code, function="x", elems="x"), facts=facts)
        return replace(small(), request=replace(small().request, own=own))

    for run in (
        replace(small(), verdict=HOSTILE, stop_reason="=1+1", environment={"cpu_model": HOSTILE, "flags": {"a": [1]}}),
        of_code("x = 1  # a comment\n" * 100_000),
    ):
        assert imports.read(encode(run)) == run
    assert "of length <= 4000000 - at `$.request.own.given.code`" in said(encode(of_code("#" * 4_000_001)))


# --- what is not valid is refused ------------------------------------------------------------------------------------


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


MANY = {f"n{number}": 1 for number in range(51)}
_FIRST = ("measurements", 0)
_REPLICA = (*_FIRST, "replicas", 0)


def test_what_is_not_valid_is_refused_with_the_path_of_the_fault():
    refuses(
        small(),
        [
            (("schema",), "mapbench.run/2", "schema 'mapbench.run/2' is not known: 'mapbench.run/1' is"),
            (("request",), ..., "missing required field `request`"),
            (("surprise",), 1, "unknown field `surprise`"),
            (("measurements", 1, "memory", "extra"), 1, "$.measurements[1].memory"),
            (("id",), "../../etc/passwd", r"of signs that are allowed there - at `\$\.id`"),
            (("finished",), "2025-13-45T09:24:59Z", r"is not a time of day .* - at `\$\.finished`"),
            (("status",), "fine", r"'fine' - at `\$\.status`"),
            (("request", "size", "batch"), -1, r"Expected `int` >= 0 - at `\$\.request\.size"),
            (("request", "size"), MANY, r"of length <= 50 - at `\$\.request\.size`"),
            (("request", "budget_s"), "long", r"got `str` - at `\$\.request\.budget_s`"),
            (("analysis", "confidence"), 1.0, "$.analysis.confidence"),
            (("analysis", "version"), 99, r"Expected `int` <= 5 - at `\$\.analysis\.version`"),
            ((*_FIRST, "latency", "low_s"), 5.0, r"not in ascending order - at `\$\.measurements\[0\]\.latency`"),
            ((*_FIRST, "memory", "timeline", "t_s"), [0.0], "t_s, live_bytes have 1, 41 values"),
            ((*_FIRST, "code", "sha256"), "1" * 64, "not the hash of the source"),
            ((*_FIRST, "strategy"), "a\nb", r"of signs that are allowed there - at `\$\.measurements\[0\]\.s"),
            ((*_FIRST, "break_even", 0, "against"), "nobody", "$.measurements[0].break_even"),
            ((*_REPLICA, "samples_s", 1), -1e-3, "$.measurements[0].replicas[0].samples_s[1]"),
            ((*_REPLICA, "samples_s"), [0.1], r"3, 3, 1.* values - at `\$\.measurements\[0\]\.replicas\[0\]`"),
            ((*_REPLICA, "faults"), [0.1], r"samples_s, faults have 3, 3, 3, 1 values"),
            (("measurements", 1, "strategy"), "batched.xla", "'batched.xla' occurs a second time"),
            (("measurements", 2, "twin_of"), "nobody", "there is no 'nobody'"),
            (("measurements",), json.loads(encode(small()))["measurements"][:1] * 1_001, "of length <= 1000"),
            (("ranking",), [["nobody"]], r"there is no 'nobody' - at `\$\.ranking`"),
            (("ranking",), [["batched.xla"], ["batched.xla"]], r"a second time - at `\$\.ranking`"),
            (("ranking",), [["numpy_function.graph"]], "has no latency that could be ranked"),
            (("verdict",), "gpj.\u202eexe", r"allowed there - at `\$\.verdict`"),
            (("verdict",), "\0", "the sign NUL, which cannot be shown"),
            (("environment",), {"a": [[[1]]]}, "$.environment[...][0][0]"),
            (("environment",), {f"n{number}": 1 for number in range(101)}, r"of length <= 100 - at `\$\.environment`"),
        ],
    )


def test_what_is_no_document_is_refused():
    data = encode(small())
    for broken, says in (
        (b"", "truncated"),
        (b"null", "Expected `object`, got `null`"),
        (b"\xff\xfe{}", "not a valid run file"),
        (b"[" * 100_000, "not a valid run file"),
        (data[:-100], "not a valid run file"),
        (data.replace(b'"budget_s": 30.0', b'"budget_s": NaN'), "malformed"),
        (data.replace(b'"budget_s": 30.0', b'"budget_s": 1e999'), "out of range"),
        (data.replace(b'"cores": 2', b'"cores": ' + b"[" * 5_000 + b"]" * 5_000), "nested too deeply|Expected"),
        (b"{" * (imports.MOST_BYTES + 1), "too large: it has 80.0 MiB, and 80 MiB are allowed"),
        (b'{"id": [' + b"0," * 8_500_000 + b"0]}", "too many values"),
        (b'{"id": ' + b"[" * 600_000 + b"{" * 300_000, "too many values"),
    ):
        assert re.search(says, said(broken)), (broken[:20], said(broken))


def test_a_sweep_that_is_not_valid_is_refused_with_the_path_of_the_fault():
    axis = {"kind": "size", "name": "batch", "values": [1, 10_000], "scale": "log"}
    refuses(
        small_sweep(),
        [
            (("kind",), "compare", r"a run of kind compare has none - at `\$\.axes`"),
            (("axes",), [], r"a sweep has one or two - at `\$\.axes`"),
            (("axes",), [axis, axis], r"'batch' occurs a second time - at `\$\.axes\[1\]\.name`"),
            (("axes", 0, "values"), [1, 100, 10], r"they do not ascend - at `\$\.axes\[0\]\.values`"),
            (("axes", 0, "values"), [0, 10_000], "from 1 on"),
            (("points", 0, "at"), {}, r"a value of batch is needed.* - at `\$\.points\[0\]\.at`"),
            (("points", 0, "at", "batch"), 99_999, r"99999 is not on the axis - at `\$\.points\[0\]\.at\.batch`"),
            (("points", 0, "at", "batch"), 100, r"occurs a second time - at `\$\.points\[1\]\.at`"),
            (("points", 3, "ranking"), [["nobody"]], "$.points[3].ranking"),
            (("points", 0, *_REPLICA, "samples_s", 0), -1, "$.points[0].measurements[0].replicas[0].samples_s[0]"),
            (("crossovers", 0, "a"), "nobody", r"there is no 'nobody' - at `\$\.crossovers\[0\]`"),
            (("crossovers", 0, "low"), 1e9, r"not in ascending order - at `\$\.crossovers\[0\]`"),
            (("crossovers", 0, "value"), None, r"or none, the reason.* - at `\$\.crossovers\[0\]`"),
            (("fits", 0, "axis"), "nobody", "$.fits[0].axis"),
        ],
    )


def test_a_run_of_claims_that_is_not_valid_is_refused_with_the_path_of_the_fault():
    within, script = ("evidence", 0, "run"), ("evidence", 2, "script")
    refuses(
        small_claims(),
        [
            (("kind",), "sweep", r"a run of kind sweep has none - at `\$\.claims`"),
            (("points",), [{"at": {}}], r"a run of kind claims has none - at `\$\.points`"),
            ((*within, "kind"), "claims", r"there are comparisons and sweeps - at `\$\.evidence\[0\]\.run\.kind`"),
            ((*within, "surprise"), 1, "$.evidence[0].run"),
            ((*within, *_REPLICA, "samples_s", 0), -1.0, "$.evidence[0].run.measurements[0].replicas[0].samples_s[0]"),
            ((*script, "figures"), {"x": 2**70}, "$.evidence[2].script.figures[...]"),
        ],
    )


def test_runs_of_claims_within_runs_of_claims_are_refused_however_deep():
    request = {"workload": "w", "size": {}, "dtype": "", "device": "", "strategies": [], "budget_s": 1}
    least = {"id": ID, "created": "2025-01-15T09:30:00Z", "request": request}
    start = json.dumps(least | {"kind": "claims", "claims": []})[:-1] + ', "evidence": [{"need": "n", "run": '

    def within(deep: int) -> bytes:
        return (start * deep + json.dumps(least) + "}]}" * deep).encode()

    assert imports.read(within(1)).evidence[0].run.kind == "compare"
    assert "within a run of claims there are comparisons and sweeps" in said(within(2))
    for deep in (30, *range(150, 340, 10), 2_000):  # where the parser gives up, and where it does not
        assert re.search("nested too deeply|there are comparisons and sweeps", said(within(deep))), deep


def test_a_refusal_quotes_no_sign_that_a_terminal_obeys_and_of_what_is_long_a_part():
    for name in ("\x1b[31m\nX", "\u202e"):
        for path, to in ((name,), 1), (("status",), name):
            reason = said(changed(*path, to=to))
            assert reason.isprintable() and name.encode("unicode_escape").decode()[:4] in reason, reason
    reason = said(changed(*_FIRST, "outcome", to="\u202e" * 10_000))
    assert len(reason) < 1_000 and reason.endswith("at `$.measurements[0].outcome`")


def test_where_strangers_use_the_server_less_is_allowed():
    most = 16 * 2**20
    assert "too large: it has 16.0 MiB, and 16 MiB are allowed on this server" in said(b" " * (most + 1), most)
    for pieces in (b"1," * (most // 10 + 1), b"[" * (most // 100 + 1)):
        assert "holds too many values" in said(pieces, most)
    assert imports.read(encode(small()), most) == small()
    config = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())
    assert config["server"]["maxUploadSize"] * 2**20 == imports.MOST_BYTES
