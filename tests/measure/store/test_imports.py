"""Run files from elsewhere: what is valid comes in whole, all else is refused with its reason, and nothing crashes."""

import copy
import functools
import hashlib
import itertools
import json
import re
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.claims import known, table
from measure.claims.spec import Compare, Script, Swept
from measure.judge import reasons, reproduction
from measure.model.run import SCHEMA, Code, Crossover, Evidence, Measurement, Point, Replica, Run
from measure.model.run_file import decode, encode
from measure.model.script_end import ScriptEnd
from measure.model.why import Why
from measure.output import export, rows, sweep_table
from measure.store import entries, imports
from measure.store.store import Store
from measure.sweep import cells, findings, repetition
from measure.sweep.request import MOST_CELLS, parse_sweep
from tests import claims, synthetic
from tests.engine import ROOT
from tests.pages import StoredRunner, calm
from tests.synthetic import HOSTILE
from views.charts import (
    base,
    failures,
    files,
    latency,
    memory,
    sweep_front,
    sweep_lines,
    sweep_map,
    timeline,
    totals,
)
from views.choices import compare, sweep
from views.result import correctness, problems, side_by_side, strategy_table
from views.result.sweep_point import point_run
from workloads import functions
from workloads.functions import Facts, OwnFunction

ID = "0123456789abcdef01234567"
FROZEN = Path(__file__).parents[2] / "data/run_1.json"


@functools.cache
def small() -> Run:
    """A valid run with all that a run file can hold, and little of each."""
    run = synthetic.run(ID)
    kept = [run.measurement(slug) for slug in ("batched.xla", "loop.eager", "batched.xla#twin", "dataset.graph")]
    short = []
    for item in (*kept, run.measurement("numpy_function.graph")):
        replicas = [
            replace(each, rounds=each.rounds[:3], at_s=each.at_s[:3], samples_s=each.samples_s[:3])
            for each in item.replicas[:2]
        ]
        short.append(replace(item, replicas=replicas))
    slugs = {item.strategy for item in short}
    ranking = [kept for group in run.ranking if (kept := [slug for slug in group if slug in slugs])]
    return replace(run, parent="f" * 24, measurements=short, ranking=ranking)


def _short(replica: Replica) -> Replica:
    return replace(replica, rounds=replica.rounds[:2], at_s=replica.at_s[:2], samples_s=replica.samples_s[:2])


@functools.cache
def small_sweep() -> Run:
    """A valid sweep with little of all that one can hold."""
    run = synthetic.sweep(ID)
    points = []
    for point in run.points:
        measurements = [
            replace(item, replicas=[_short(each) for each in item.replicas[:2]]) for item in point.measurements
        ]
        points.append(replace(point, measurements=measurements))
    return replace(run, points=points[1:])


@functools.cache
def small_map() -> Run:
    """A valid map of winners with little of all that one can hold."""
    run = synthetic.winners(ID)
    points = [
        replace(
            point,
            measurements=[
                replace(item, replicas=[_short(each) for each in item.replicas[:2]]) for item in point.measurements
            ],
        )
        for point in run.points
    ]
    return replace(run, points=points)


@functools.cache
def small_claims() -> Run:
    """A valid run of claims with a piece of evidence of each kind, and a claim that is not known here."""
    claim = next(claim for claim in known.all_claims() if [type(need) for need in claim.needs] == [Compare])
    (compared,) = claims.evidence(claim.tests, ["yes"] * len(claim.tests)).values()
    (run,) = [replace(each, measurements=[short_item(item) for item in each.measurements]) for each in [compared.run]]
    script = ScriptEnd(source="report(x=1)", figures={"x": 1, "s": [0.1, 0.2]}, error="", printed="so", seconds=0.5)
    whole = claims.run([claim], {})
    evidence = [
        replace(compared, run=run),
        Evidence(need="swept", run=small_sweep()),
        Evidence(need="script", script=script),
        Evidence(need="not measured", reason="it does not fit"),
    ]
    return replace(whole, claims=[claim.id, "strange"], evidence=evidence)


def short_item(item: Measurement) -> Measurement:
    return replace(item, replicas=[_short(each) for each in item.replicas[:2]])


def said(data: bytes) -> str:
    with pytest.raises(ValueError) as caught:
        imports.read(data)
    return str(caught.value)


def use(run: Run) -> None:
    """Everything that a page or an export makes of a run, once: charts are drawn with their data by `files`."""
    if run.kind == "claims":
        entries.row(run)
        table.render(run)
        export.table_csv(run)
        export.samples_csv(run)
        export.markdown(run, "http://localhost:8501/?run=1")
        return
    found = rows.make(run, rows.choose_baseline(run))
    latency.takeaway(found)
    memory.takeaway(found)
    base.revised(correctness.frame(found), 1)
    correctness.sentence(run.request, found)
    strategy_table.frame(found, run)
    problems.failures(found, run)
    problems.notes(found, run)
    latency.caption(found, run)
    memory.caption(found)
    totals.sentence(totals.cheapest(found))
    timeline.frame(timeline.known(run.measurements), share=False)
    reasons.sentences(run)
    for one, other in itertools.pairwise(run.measurements):
        side_by_side.sentence(run, one, other)
    if run.kind == "sweep":
        sweep_table.render(run)
        findings.close(run, "interrupted", "", run.created)
        for quantity in ("latency", "memory"):
            sweep_lines.takeaway(run, quantity)
        failures.did_not_work(run)
        if len(run.axes) == 2:
            sweep_lines.frame(run, "memory")
            sweep_map.legend_html(run)
            sweep_map.takeaway(run)
        sweep_front.takeaway(sweep_front.subject(run)[0])
        for point in run.points:
            case = point_run(run, point)
            rows.make(case, rows.choose_baseline(case))
        repetition.compare(run, small_sweep())
        repetition.compare(small_sweep(), run)
    for name in files.of(run):
        files.specification(run, name)
    for form in (compare.of_run(run), sweep.of_run(run)):
        assert form == {} or form["workload"] == run.request.workload
    entries.row(run)
    export.table_csv(run)
    export.samples_csv(run)
    export.markdown(run, "http://localhost:8501/?run=1")
    reproduction.compare(run, small())
    reproduction.compare(small(), run)


# --- what is valid comes in ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [encode(synthetic.run(ID)), encode(synthetic.partial(3)), (ROOT / "views/example_run.json").read_bytes()],
    ids=["whole", "partial", "example"],
)
def test_export_import_export_is_identical(data: bytes, tmp_path: Path):
    run = imports.read(data)
    kept = Store(tmp_path)
    kept.add(run)
    assert encode(Store(tmp_path).load(run.id)) == data.rstrip(b"\n")


def _holds(now, before):
    """Whether everything that was written before is still there: later fields may have come in."""
    match before:
        case dict():
            return all(key in now and _holds(now[key], value) for key, value in before.items())
        case list():
            return len(now) == len(before) and all(map(_holds, now, before))
    return now == before


def test_a_run_file_with_every_field_opens_for_ever():
    """This file is never written anew: what `mapbench.run/1` was when it was made, it is for good."""
    data = FROZEN.read_bytes()
    run = decode(data)
    assert imports.read(data) == run and decode(encode(run)) == run
    assert _holds(json.loads(encode(run)), json.loads(data)), "what was in the file is lost when it is written again"
    assert run.schema == SCHEMA and run.parent == "f" * 24 and run.control.strategy == "batched.xla"
    assert run.measurement("batched.xla").replicas[1].samples_s[2] > 0
    assert run.measurement("dataset.graph").correctness.leaves[0].worst_index == [17, 3, 60, 2]
    use(run)


@pytest.mark.parametrize(("name", "axes"), [("sweep_1", 1), ("map_1", 2)])
def test_a_sweep_with_every_field_opens_for_ever(name: str, axes: int):
    """These files are never written anew either."""
    data = FROZEN.with_name(f"{name}.json").read_bytes()
    run = decode(data)
    assert imports.read(data) == run and decode(encode(run)) == run
    assert _holds(json.loads(encode(run)), json.loads(data)), "what was in the file is lost when it is written again"
    assert (run.schema, run.kind, len(run.axes)) == (SCHEMA, "sweep", axes)
    assert any(not point.measurements for point in run.points), "inferred, or too large"
    measured = [item for point in run.points for item in point.measurements]
    assert all(item.replicas[1].samples_s[1] > 0 for item in measured if item.outcome == "ok")
    if axes == 1:
        assert run.crossovers[0].value == 20.0 and run.crossovers[1].none == "they do not cross"
        assert run.fits[0].strategy == "loop.eager" and run.points[0].control.resolution == 0.03
    else:
        assert [each.ranking for each in run.points if not each.measurements] == [[["vectorized_map.graph"]]]
    use(run)


def test_an_explanation_of_a_former_form_comes_back_as_it_is_written():
    """Its first strategy has the keys of the first explanations, its second those of the next form."""
    data = FROZEN.with_name("explained_1.json").read_bytes()
    run = imports.read(data)
    assert encode(run) == data
    assert reasons.sentence(run.measurements[1], 1_000, None, None).startswith("`batched.graph` runs 1 op of 2.12 µs")
    use(run)


def test_a_run_file_with_only_what_is_needed_opens_for_ever():
    run = imports.read(
        b'{"id": "0123456789abcdef01234567", "created": "2025-01-15T09:30:00Z", "request": {"workload": "w", '
        b'"size": {}, "dtype": "float32", "device": "CPU:0", "strategies": [], "budget_s": 1}}'
    )
    assert run.measurements == [] and run.status == "interrupted"
    use(run)


def test_code_of_a_persons_own_may_be_as_long_as_a_script():
    facts = Facts(size={"batch": 2}, element=["leaf", {}], result=["leaf", {}], dtype="float32", reference="own")

    def of_code(code: str) -> Run:
        own = OwnFunction(given=functions.Given(code=code, function="x", elems="x"), facts=facts)
        return replace(small(), request=replace(small().request, own=own))

    long = of_code("x = 1  # a comment\n" * 100_000)
    assert imports.read(encode(long)) == long
    assert "a text of 4,000,001 signs is too long" in said(encode(of_code("#" * 4_000_001)))


def test_texts_may_hold_anything_that_can_be_printed():
    run = replace(small(), verdict=HOSTILE, stop_reason="=1+1", environment={"cpu_model": HOSTILE, "flags": {"a": [1]}})
    assert imports.read(encode(run)) == run


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


MANY = {f"n{number}": 1 for number in range(51)}
_REPLICA = ("measurements", 0, "replicas", 0)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "truncated"),
        (b"not json", "malformed"),
        (b"null", "Expected `object`, got `null`"),
        (b"\xff\xfe{}", "not a valid run file"),
        (b"[" * 100_000, "not a valid run file"),
        (changed("schema", to="mapbench.run/2"), "schema 'mapbench.run/2' is not known: 'mapbench.run/1' is"),
        (changed("schema", to="mapbench.run/0"), "schema 'mapbench.run/0' is not known: 'mapbench.run/1' is"),
        (changed("schema", to=7), r"got `int` - at `\$\.schema`"),
        (changed("request", to=...), "missing required field `request`"),
        (changed("surprise", to=1), r"there is no such field - at `\$\.surprise`"),
        (changed("measurements", 1, "memory", "extra", to=1), r"at `\$\.measurements\[1\]\.memory\.extra`"),
        (changed("id", to="../../etc/passwd"), r"'\.\./\.\./etc/passwd' is not an id.* - at `\$\.id`"),
        (changed("parent", to="x"), r"is not an id.* - at `\$\.parent`"),
        (changed("created", to="yesterday"), r"'yesterday' is not a time of day.* - at `\$\.created`"),
        (changed("finished", to="2025-01-15T09:30:00"), r"with its zone.* - at `\$\.finished`"),
        (changed("status", to="fine"), r"'fine' - at `\$\.status`"),
        (changed("request", "size", "batch", to=-1), r"-1 is not valid.* - at `\$\.request\.size\.batch`"),
        (changed("request", "size", "batch", to=2**70), r"\$\.request\.size"),
        (changed("request", "budget_s", to="long"), r"got `str` - at `\$\.request\.budget_s`"),
        (changed("measurements", 0, "latency", "median_s", to=0), r"at `\$\.measurements\[0\]\.latency\.median_s`"),
        (changed("measurements", 0, "latency", "low_s", to=5.0), r"not in ascending order - at"),
        (changed("measurements", 0, "memory", "peak_bytes", to=-4), r"-4 is not valid.*memory\.peak_bytes"),
        (changed(*_REPLICA, "samples_s", 1, to=-1e-3), r"replicas\[0\]\.samples_s\[1\]"),
        (changed(*_REPLICA, "samples_s", to=[0.1]), r"3, 3 and 1 values - at `\$\.measurements\[0\]\.replicas\[0\]`"),
        (changed(*_REPLICA, "rounds", to=[1, 2, 1]), "they do not ascend"),
        (changed("measurements", 0, "replicas", 1, "id", to=0), r"0 occurs a second time"),
        (changed("measurements", 0, "memory", "timeline", "t_s", to=[0.0]), "t_s and live_bytes have 1 and 41 values"),
        (changed("measurements", 1, "strategy", to="batched.xla"), "'batched.xla' occurs a second time"),
        (changed("measurements", 2, "twin_of", to="nobody"), "there is no strategy 'nobody'"),
        (changed("ranking", to=[["nobody"]]), r"there is no strategy 'nobody' - at `\$\.ranking\[0\]\[0\]`"),
        (changed("ranking", to=[["batched.xla"], ["batched.xla"]]), r"a second time - at `\$\.ranking\[1\]\[0\]`"),
        (changed("ranking", to=[["numpy_function.graph"]]), "has no latency that could be ranked"),
        (changed("ranking", to=[[]]), "it is empty"),
        (changed("analysis", "confidence", to=1.0), r"\$\.analysis\.confidence"),
        (changed("measurements", 0, "strategy", to="a\nb"), "cannot be printed"),
        (changed("verdict", to="a\0b"), "cannot be shown"),
        (changed("measurements", 0, "why", to={"fusions": [{"name": "f", "ops": ["add", "a\0b"]}]}),
         r"cannot be shown - at `\$\.measurements\[0\]\.why\.fusions\[0\]\.ops\[1\]`"),
        (changed("measurements", 0, "code", "sha256", to="1" * 64), r"not the hash.*measurements\[0\]\.code\.sha256`"),
        (changed("verdict", to="x" * 30_000), r"30,000 signs is too long: 20,000 are allowed - at `\$\.verdict`"),
        (changed("environment", to={"a": [[[[[[[[[[[[[1]]]]]]]]]]]]]}), "nested too deeply"),
        (encode(small()).replace(b'"budget_s": 30.0', b'"budget_s": NaN'), "malformed"),
        (encode(small()).replace(b'"budget_s": 30.0', b'"budget_s": 1e999'), "out of range"),
        (encode(small()).replace(b'"cores": 2', b'"cores": -Infinity'), "malformed"),
        (encode(small()).replace(b'"cores": 2', b'"cores": "\\ud800"'), "not a valid run file"),
        (encode(small()).replace(b'"cores": 2', b'"cores": ' + b"[" * 5_000 + b"]" * 5_000), "nested too deeply"),
        (b" " * (imports.MOST_BYTES + 1), "too large: it has 80.0 MiB, and 80 MiB are allowed"),
        (b'{"id": [' + b"0," * 5_100_000 + b"0]}", "too many values"),
        (b'{"id": ' + b"[" * 600_000 + b"{" * 300_000, "too many values"),
        (encode(small()).replace(b'"seed"', b'"threads"', 1), r"occurs a second time - at `\$\.request\.threads`"),
        (encode(small()).replace(b'"cores"', b'"\\u0063pu"'), r"occurs a second time - at `\$\.environment\.cpu`"),
        (changed("finished", to="2025-01-15T09:24:59Z"), r"it is before `started` - at `\$\.finished`"),
        (changed("started", to="2025-01-15T09:24:59Z"), r"it is before `created` - at `\$\.started`"),
        (changed("created", to="2025-W03-3T09:30:00Z"), r"is not a time of day.* - at `\$\.created`"),
        (changed("created", to="9999-01-15T09:30:00Z"), r"is not a time of day.* - at `\$\.created`"),
        (changed("created", to="2025-02-30T09:30:00Z"), r"is not a time of day.* - at `\$\.created`"),
        (changed("analysis", "version", to=4), r"4 is not known: 3 is - at `\$\.analysis\.version`"),
        (changed("control", "strategy", to="nobody"), r"no strategy 'nobody' - at `\$\.control\.strategy`"),
        (changed("measurements", 0, "break_even", 0, "against", to="nobody"), r"break_even\[0\]\.against`"),
        (changed("measurements", 0, "memory", "timeline", to={"t_s": [0] * 501, "live_bytes": [0] * 501}), "than 500"),
        (changed("request", "size", to=MANY), r"more than 50 - at `\$\.request\.size`"),
        (changed("request", "workload_options", to=MANY), r"more than 50 - at `\$\.request\.workload_options`"),
        (changed("request", "strategies", to=["x"] * 1_001), r"more than 1,000 - at `\$\.request\.strategies`"),
        (changed("environment", "gpus", to=["x" * 20_000] * 6), r"120,\d\d\d signs.* - at `\$\.environment`"),
        (changed("environment", "gpus", to=[1] * 6_000), r"6,\d\d\d facts.* - at `\$\.environment`"),
        (changed("verdict", to="\x1b]0;x\x07"), r"cannot be shown - at `\$\.verdict`"),
        (changed("verdict", to="gpj.\u202eexe"), r"cannot be shown - at `\$\.verdict`"),
    ],
)  # fmt: skip
def test_what_is_not_valid_is_refused_with_the_path_of_the_fault(data: bytes, says: str):
    assert re.search(says, said(data), re.DOTALL), said(data)


_AXIS = {"kind": "size", "name": "batch", "values": [1, 10_000], "scale": "log"}


@pytest.mark.parametrize(
    ("path", "to", "says"),
    [
        (("kind",), "compare", r"a run of kind compare has none - at `\$\.axes`"),
        (("ranking",), [["loop.eager"]], r"a run of kind sweep has none - at `\$\.ranking`"),
        (("axes",), [], r"there are 0, and a sweep has one or two - at `\$\.axes`"),
        (("axes",), [_AXIS, _AXIS], r"'batch' occurs a second time - at `\$\.axes\[1\]\.name`"),
        (("axes", 0, "values"), [1], r"there are 1, and an axis has from 2 to 64 - at `\$\.axes\[0\]\.values`"),
        (("axes", 0, "values"), [1, 100, 10], r"they do not ascend - at `\$\.axes\[0\]\.values`"),
        (("axes", 0, "values"), [0, 10_000], r"whole numbers from 1 to .* - at `\$\.axes\[0\]\.values`"),
        (("axes", 0, "values"), [1, 1e300], r"got `float` - at `\$\.axes\[0\]\.values"),
        (("points", 0, "at"), {}, r"a value of batch is needed.* - at `\$\.points\[0\]\.at`"),
        (("points", 0, "at", "batch"), 99_999, r"99999 is not on the axis - at `\$\.points\[0\]\.at\.batch`"),
        (("points", 0, "at", "batch"), 100, r"this point occurs a second time - at `\$\.points\[1\]\.at`"),
        (("points", 0, "ranking"), [["nobody"]], r"'nobody' - at `\$\.points\[0\]\.ranking\[0\]\[0\]`"),
        (("points", 3, "ranking"), [["nobody"]], r"there is no strategy 'nobody' - at `\$\.points\[3\]\.ranking`"),
        (("points", 0, "measurements", 1, "strategy"), "loop.eager", r"points\[0\]\.measurements\[1\]\.strategy`"),
        (("points", 0, "measurements", 0, "replicas", 0, "samples_s", 0), -1, r"points\[0\].*samples_s\[0\]`"),
        (("crossovers", 0, "a"), "nobody", r"there is no strategy 'nobody' at any point - at `\$\.crossovers\[0\]`"),
        (("crossovers", 0, "axis"), "side", r"there is no axis 'side' - at `\$\.crossovers\[0\]\.axis`"),
        (("crossovers", 0, "low"), 1e9, r"not in ascending order - at `\$\.crossovers\[0\]`"),
        (("crossovers", 0, "value"), None, r"or none, the reason.* - at `\$\.crossovers\[0\]`"),
        (("fits", 0, "strategy"), "nobody", r"there is no strategy 'nobody' at any point - at `\$\.fits\[0\]`"),
        (("fits", 0, "fixed_high_s"), 0.0, r"not in ascending order - at `\$\.fits\[0\]`"),
        (("fits", 0, "per_element_s"), -1.0, r"-1\.0 is not valid.* - at `\$\.fits\[0\]\.per_element_s`"),
    ],
)  # fmt: skip
def test_a_sweep_that_is_not_valid_is_refused_with_the_path_of_the_fault(path: tuple[Any, ...], to: Any, says: str):
    crossover = Crossover(a="loop.eager", b="batched.graph", axis="batch", value=20.0, low=15.0, high=30.0)
    sweep = replace(small_sweep(), crossovers=[crossover])
    assert imports.read(encode(sweep)) == sweep
    assert re.search(says, said(changed(*path, to=to, run=sweep)), re.DOTALL), said(changed(*path, to=to, run=sweep))


_WITHIN = ("evidence", 0, "run")
_FIGURES = ("evidence", 2, "script", "figures")


@pytest.mark.parametrize(
    ("path", "to", "says"),
    [
        (("kind",), "compare", r"a run of kind compare has none - at `\$\.claims`"),
        (("kind",), "sweep", r"a run of kind sweep has none - at `\$\.claims`"),
        (("claims",), ..., r"a run of kind claims has a list of them - at `\$\.claims`"),
        (("evidence",), ..., r"a run of kind claims has a list of them - at `\$\.evidence`"),
        (("points",), [{"at": {}}], r"a run of kind claims has none - at `\$\.points`"),
        (("claims",), ["a", "b", "a"], r"'a' occurs a second time - at `\$\.claims\[2\]`"),
        (("claims",), [f"c{number}" for number in range(301)], r"there are more than 300 - at `\$\.claims`"),
        (("claims",), ["x" * 201], r"201 signs is too long: 200 are allowed - at `\$\.claims\[0\]`"),
        (("claims",), ["a\nb"], r"a name holds a sign that cannot be printed - at `\$\.claims\[0\]`"),
        (("evidence",), [{"need": f"{number}"} for number in range(301)], r"more than 300 - at `\$\.evidence`"),
        (("evidence", 1, "need"), "script", r"'script' occurs a second time - at `\$\.evidence\[2\]\.need`"),
        (("evidence", 2, "extra"), 1, r"there is no such field - at `\$\.evidence\[2\]\.extra`"),
        (("evidence", 2, "run"), json.loads(encode(small())), r"not both - at `\$\.evidence\[2\]`"),
        ((*_WITHIN, "kind"), "claims", r"there are comparisons and sweeps - at `\$\.evidence\[0\]\.run\.kind`"),
        ((*_WITHIN, "evidence"), [{"need": "x"}], r"kind compare has none - at `\$\.evidence\[0\]\.run\.evidence`"),
        ((*_WITHIN, "surprise"), 1, r"there is no such field - at `\$\.evidence\[0\]\.run\.surprise`"),
        ((*_WITHIN, "id"), "x", r"'x' is not an id.* - at `\$\.evidence\[0\]\.run\.id`"),
        ((*_WITHIN, "created"), "x", r"is not a time of day.* - at `\$\.evidence\[0\]\.run\.created`"),
        ((*_WITHIN, "request", "size"), MANY, r"more than 50 - at `\$\.evidence\[0\]\.run\.request\.size`"),
        ((*_WITHIN, "environment"), {"a": [1] * 6_000}, r"- at `\$\.evidence\[0\]\.run\.environment`"),
        ((*_WITHIN, "ranking"), [["nobody"]], r"'nobody' - at `\$\.evidence\[0\]\.run\.ranking\[0\]\[0\]`"),
        ((*_WITHIN, *_REPLICA, "samples_s", 0), -1.0, r"- at `\$\.evidence\[0\]\.run\.measurements.*samples_s\[0\]`"),
        (("evidence", 1, "run", "axes"), [], r"there are 0.* - at `\$\.evidence\[1\]\.run\.axes`"),
        (("evidence", 1, "run", "points", 0, "at"), {}, r"- at `\$\.evidence\[1\]\.run\.points\[0\]\.at`"),
        (_FIGURES, {"x": "y" * 20_001}, r"a text has up to 20,000 signs.* - at `\$\.evidence\[2\]\.script\.figures`"),
        (_FIGURES, {"x": "a\0"}, r"a text has up to .* - at `\$\.evidence\[2\]\.script\.figures`"),
        (_FIGURES, {"x" * 201: 1}, r"a name has up to 200 signs.* - at `\$\.evidence\[2\]\.script\.figures`"),
        (_FIGURES, {"x": 2**70}, r"larger than 64 bits - at `\$\.evidence\[2\]\.script\.figures`"),
        (_FIGURES, {"x": [[[[[1]]]]]}, r"nested more than 4 deep - at `\$\.evidence\[2\]\.script\.figures`"),
        (_FIGURES, {"x": [0.123456789] * 100_000}, r"there are 1,171 KiB of figures, and 1,024 KiB are allowed"),
        (("evidence", 2, "script", "source"), "#" * 4_000_001, r"too long.* - at `\$\.evidence\[2\]\.script\.source`"),
        (("evidence", 2, "script", "error"), "a\0", r"cannot be shown - at `\$\.evidence\[2\]\.script\.error`"),
        (("evidence", 2, "script", "seconds"), -1.0, r"-1.0 is not valid.* - at `\$\.evidence\[2\]\.script\.seconds`"),
    ],
)  # fmt: skip
def test_a_run_of_claims_that_is_not_valid_is_refused_with_the_path_of_the_fault(
    path: tuple[Any, ...], to: Any, says: str
):
    assert imports.read(encode(small_claims())) == small_claims()
    data = changed(*path, to=to, run=small_claims())
    assert re.search(says, said(data), re.DOTALL), said(data)


def test_runs_of_claims_within_runs_of_claims_are_refused_however_deep():
    request = {"workload": "w", "size": {}, "dtype": "", "device": "", "strategies": [], "budget_s": 1}
    least = {"id": ID, "created": "2025-01-15T09:30:00Z", "request": request}
    start = json.dumps(least | {"kind": "claims", "claims": []})[:-1] + ', "evidence": [{"need": "n", "run": '

    def within(deep: int) -> bytes:
        return (start * deep + json.dumps(least) + "}]}" * deep).encode()

    assert imports.read(within(1)).evidence[0].run.kind == "compare"
    assert "within a run of claims there are comparisons and sweeps" in said(within(2))
    for deep in (30, *range(260, 340), 2_000):  # parsers give up one after the other
        assert "nested too deeply" in said(within(deep)), deep


@pytest.mark.parametrize("name", ["\x1b[31m\nX", "\x1b]0;x\x07", "\u202e", "a\x08"])
def test_a_refusal_holds_no_sign_that_a_terminal_obeys(name: str):
    for data in (
        changed(name, to=1),
        changed("measurements", 0, "why", to={name: 1}),
        changed("status", to=name),
        changed("schema", to=name),
        changed("request", "size", name, to=1),
    ):
        reason = said(data)
        assert reason.isprintable() and name.encode("unicode_escape").decode()[:4] in reason, reason


def test_a_refusal_of_a_very_long_value_quotes_a_part_of_it_and_says_where_it_is():
    for data, where in (
        (changed("schema", to="x" * 10_000), "'mapbench.run/1' is"),
        (changed("measurements", 0, "outcome", to="\u202e" * 10_000), "at `$.measurements[0].outcome`"),
    ):
        reason = said(data)
        assert len(reason) < 1_000 and reason.endswith(where), reason[-200:]


def test_what_is_larger_than_any_run_is_refused_before_each_of_its_values_is_looked_at(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(imports.values, "check", lambda run: pytest.fail("its values are looked at"))
    assert "more than any machine has" in said(changed("environment", "many", to=list(range(6_000))))
    many = json.loads(encode(small()))["measurements"][:1] * 1_001
    assert "more than 1,000 - at `$.measurements`" in said(changed("measurements", to=many))


def large_sweep(points: int) -> Run:
    """A sweep of so many points and all strategies, each with a dozen rounds in five processes."""
    request = parse_sweep(
        {
            "workload": "outer_product",
            "strategies": "all",
            "axes": [
                {"name": "batch", "values": list(range(1, points // 20 + 1))},
                {"name": "side", "values": list(range(1, 21))},
            ],
        }
    )
    first = synthetic.run(ID).measurement("batched.xla")
    source = "x" * 1_300  # as long as scripts are
    code = Code(source=source, sha256=hashlib.sha256(source.encode()).hexdigest())
    item = replace(
        first, break_even=[], code=code, memory=replace(first.memory, timeline=None), latency=synthetic.latency(1e-3)
    )  # fmt: skip
    slugs = request.base.strategies
    measurements = [replace(item, strategy=slug) for slug in slugs]
    ranking = [[slug] for slug in slugs]
    found = [Point(at=at, status="complete", measurements=measurements, ranking=ranking) for at in request.points()]
    return Run(
        id=ID, kind="sweep", created="2025-01-15T09:30:00Z", status="complete", request=request.base.record(),
        axes=list(request.axes), points=found,
    )  # fmt: skip


def test_what_the_largest_sweep_weighs_is_allowed():
    whole = large_sweep(MOST_CELLS)
    assert len(whole.points) == MOST_CELLS
    data = encode(whole)
    assert len(data) > 50 * 2**20
    imports.check_weight(data, "it")


def test_a_large_sweep_comes_back_as_it_went_and_becomes_a_picture(tmp_path: Path):
    whole = large_sweep(40)
    data = encode(whole)
    assert len(data) > 2**22 and b"\n" not in data, "nobody reads it: it is not indented"
    kept = Store(tmp_path)
    assert kept.add(imports.read(data))
    assert encode(kept.load(ID)) == data
    with tempfile.TemporaryFile() as file:
        files.render(whole, "map", "svg", file)
        file.seek(0)
        assert file.read(4) == b"<svg"


def test_what_is_small_only_since_it_leaves_out_what_it_says_is_refused(monkeypatch: pytest.MonkeyPatch):
    names = [f"n{number}" for number in range(900)]
    document = json.loads(encode(small())) | {
        "measurements": [{"strategy": name, "mapper": "m", "mode": "m"} for name in names],
        "ranking": [], "control": None,
    }  # fmt: skip
    data = json.dumps(document).encode()
    imports.read(data)
    with pytest.raises(ValueError, match="this file, written in full, is too large"):
        imports.read(data, 2 * len(data))


def test_where_strangers_use_the_server_less_is_allowed():
    most = 16 * 2**20
    data = b" " * (most + 1)
    assert "truncated" in said(data)
    with pytest.raises(ValueError, match=r"is too large: it has 16\.0 MiB, and 16 MiB are allowed on this server"):
        imports.read(data, most)
    with pytest.raises(ValueError, match="holds too many values"):
        imports.read(b"1," * (most // 8 + 1), most)
    with pytest.raises(ValueError, match="holds too many values"):
        imports.read(b"[" * (most // 80 + 1), most)
    assert imports.read(encode(small()), most) == small()


def test_a_clock_that_was_set_back_a_little_while_it_measured_hinders_nothing():
    assert imports.read(changed("finished", to="2025-01-15T09:29:00Z")).finished == "2025-01-15T09:29:00Z"


def test_the_server_takes_as_large_an_upload_as_an_import():
    config = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())
    assert config["server"]["maxUploadSize"] * 2**20 == imports.MOST_BYTES


def test_pairs_of_processes_that_would_not_fit_into_memory_are_refused():
    item = small().measurement("batched.xla")
    replicas = [replace(item.replicas[0], id=number) for number in range(3_200)]
    run = replace(small(), measurements=[replace(item, replicas=replicas)], ranking=[])
    assert "there are too many processes" in said(encode(run))


def test_a_file_is_measured_before_it_is_parsed():
    assert "too large" in said(b"{" * (imports.MOST_BYTES + 1)), "a parser would say that it is malformed"


# --- fuzzing ---------------------------------------------------------------------------------------------------------

_ODD = st.one_of(
    st.sampled_from(
        [None, True, -1, 0, 1, 2**31, 2**63, -(2**64), 1e-300, 1e300, -0.0, "", "x", "0" * 24, HOSTILE, "=1+cmd|'!A0",
         "\u202egpj.exe", "\ud7ff", "a\nb", "\0", [], {}, [[]], [0], ["a", "a"], {"a": {"b": [1]}}, {HOSTILE: HOSTILE},
         "2025-01-15T09:30:00Z", "batched.xla", "ok", "complete", "events"]
    ),
    st.integers(), st.floats(allow_nan=True), st.text(max_size=20),
)  # fmt: skip


def _places(node: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every container of a document with every key or index in it."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, inner in items:
        found.append((node, key))
        _places(inner, found)
    return found


def _mutate(document: Any, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    places = _places(document, [])
    if not places:
        return
    # Hypothesis' own integers are often 0, the first field: a refusal nearly always.
    chance = draw(st.randoms(use_true_random=True))
    node, key = chance.choice(places)
    kind = draw(st.sampled_from(("alike", "alike", "alike", "alike", "set", "remove", "double", "swap", "add")))
    if kind == "alike" and isinstance(node[key], str):
        node[key] = draw(st.one_of(st.sampled_from((HOSTILE, "=1+1", "", "|")), st.text(max_size=20)))
    elif kind == "alike" and isinstance(node[key], int) and not isinstance(node[key], bool):
        node[key] *= draw(st.sampled_from((-1, 0, 1, 2, 1_000_000)))
    elif kind == "alike" and isinstance(node[key], float):
        node[key] = node[key] * draw(st.sampled_from((-1, 0, 1.0, 2, 0.5, 1e6, 1e-6)))
    elif kind == "remove":
        del node[key]
    elif kind == "double" and isinstance(node, list):
        node.insert(key, copy.deepcopy(node[key]))
    elif kind == "swap":
        other, its_key = chance.choice(places)
        node[key] = copy.deepcopy(other[its_key])
    elif kind == "add" and isinstance(node, dict):
        node[draw(st.sampled_from(("surprise", "id", "code", HOSTILE)))] = draw(_ODD)
    else:
        node[key] = draw(_ODD)


@st.composite
def _documents(draw: Callable[[st.SearchStrategy[Any]], Any]) -> bytes:
    """A valid document with a few changes, and now and then bytes of it broken."""
    whole = draw(st.sampled_from((small_sweep, small_map, small_claims, small, small, small)))()
    document = json.loads(encode(whole))
    for _ in range(draw(st.integers(1, 2))):
        _mutate(document, draw)
    data = json.dumps(document).encode()
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=4)) + data[at + draw(st.integers(0, 4)) :]
    return data


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("fuzz"))


_counts = {"accepted": 0, "refused": 0}
# Of those that were let in, some for the pages.
_EVERY = 3
_for_pages: list[bytes] = []
_TABS_OF_FUZZED = 3


@settings(max_examples=300, deadline=None, database=None, derandomize=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(data=_documents())
def test_documents_derived_from_valid_ones_are_used_or_refused_and_never_crash(data: bytes, kept: Store):
    reason = ""
    try:
        run = imports.read(data)
    except ValueError as error:
        reason = str(error)
    if reason:
        _counts["refused"] += 1
        assert len(reason) > 20 and "\n" not in reason, reason
        return
    _counts["accepted"] += 1
    if _counts["accepted"] % _EVERY == 0:
        _for_pages.append(data)
    assert imports.read(encode(run)) == run, "what was let in would be let in again"
    assert kept.add(run)
    assert kept.load(run.id) == run and encode(kept.load(run.id)) == encode(run)
    assert len(kept.entries()) == 1
    kept.delete([run.id])
    use(run)


def test_the_fuzzing_has_seen_both_sides():
    assert sum(_counts.values()) >= 300
    assert min(_counts.values()) >= 60, _counts


# --- on the pages ----------------------------------------------------------------------------------------------------

TABS = ("Break even", "Why", "Samples", "Memory over one call", "Side by side", "Code", "Environment")


def evil(run: Run) -> Run:
    """The run with a text everywhere that is no text to a page, but a name that differs from another in signs only."""
    names = {item.strategy: f"{HOSTILE}{sign}" for item, sign in zip(run.measurements, ".-/ _+:", strict=False)}
    data = encode(run)
    for slug, name in sorted(names.items(), key=lambda each: -len(each[0])):
        data = data.replace(json.dumps(slug).encode(), json.dumps(name).encode())
    found = imports.read(data)
    return replace(
        found,
        verdict=HOSTILE,
        stop_reason=HOSTILE,
        environment={"cpu_model": HOSTILE, "gpus": [HOSTILE], "flags": {HOSTILE: HOSTILE}},
        request=replace(found.request, workload=HOSTILE, dtype=HOSTILE, device=HOSTILE),
        measurements=[
            replace(item, mapper=HOSTILE, mode=HOSTILE, error=item.error and replace(item.error, message=HOSTILE))
            for item in found.measurements
        ],
    )


def evil_claims() -> Run:
    """A run of a claim on a comparison, one on a sweep and one on a script, with hostile texts wherever one can be."""
    tried = [
        next(claim for claim in known.all_claims() if [type(need) for need in claim.needs] == [kind])
        for kind in (Compare, Swept, Script)
    ]
    tests = [test for claim in tried for test in claim.tests]
    evidence = [
        replace(
            item,
            run=item.run and evil(item.run),
            script=item.script and replace(
                item.script, source=HOSTILE, error=HOSTILE, printed=HOSTILE, figures={HOSTILE: [HOSTILE]}
            ),
        )
        for item in claims.evidence(tests, ["yes"] * len(tests)).values()
    ]  # fmt: skip
    run = claims.run(tried, {})
    return replace(
        run, claims=[*run.claims, HOSTILE], evidence=evidence, environment={"cpu_model": HOSTILE}, stop_reason=HOSTILE,
        status="interrupted", request=replace(run.request, workload=HOSTILE),
    )  # fmt: skip


def by_hand() -> list[bytes]:
    """Hostile documents that are let in."""
    item = small().measurements[0]
    bare = {"strategy": "a", "mapper": "b", "mode": "c"}
    return [
        encode(evil(small())),
        encode(evil_claims()),
        encode(
            replace(small(), environment={name: [[[1]]] for name in ("gpus", "flags", "cpu_features", "cpu_model")})
        ),
        encode(replace(small(), measurements=[], ranking=[], control=None)),
        encode(replace(small(), measurements=[replace(item, why=Why(note=HOSTILE))], ranking=[], limit=None)),
        changed("measurements", to=[bare | {"outcome": "ok"}], run=replace(small(), ranking=[])),
        changed("points", to=[], run=replace(small_sweep(), crossovers=[], fits=[])),
        changed("points", 0, "measurements", to=[], run=replace(small_map(), crossovers=[], fits=[])),
        encode(replace(small_sweep(), verdict=HOSTILE, stop_reason=HOSTILE, warnings=small().warnings)),
    ]


def test_documents_that_were_let_in_are_shown_in_every_tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Those that were made by hand in every tab, and some that fuzzing has found in three each, in turn: no page says
    that it has a fault."""
    assert len(_for_pages) >= 15
    fake = StoredRunner(tmp_path)
    monkeypatch.setattr(runner, "shared", lambda: fake)
    in_turn = itertools.cycle(TABS)
    some = [(data, [next(in_turn) for _ in range(_TABS_OF_FUZZED)]) for data in _for_pages[:15]]
    kinds = set()
    for number, (data, tabs) in enumerate([*some, *((data, list(TABS)) for data in by_hand())]):
        run = replace(imports.read(data), id=f"{number:024x}")
        assert fake.store.add(run)
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params["run"] = run.id
        app.query_params["tab"] = tabs[0]
        if run.kind == "sweep":
            app = calm(app.switch_page("views/pages/sweep.py").run())
            kinds.add(f"{len(run.axes)} axes")
            point = next((each for each in run.points if each.status != "waiting"), None)
            if point is None:
                continue
            app = calm(app.selectbox(key="sweep_point").select(cells.place(point)).run())
        elif run.kind == "claims":
            app = calm(app.switch_page("views/pages/claims.py").run())
            kinds.add("claims")
            for claim_id in filter(known.get, run.claims):
                app.query_params["claim"] = claim_id
                assert calm(app.run()).button(key="claims_back").label, "its evidence is open"
            continue
        else:
            app = calm(app.run())
        kinds |= {run.kind, tabs[0]}
        for tab in tabs[1:]:
            app.session_state["tab"] = tab
            calm(app.run())
            kinds.add(tab)
    assert kinds == {"compare", "sweep", "claims", "1 axes", "2 axes", *TABS}
    calm(app.switch_page("views/pages/runs.py").run())


class _Counted(str):
    """A name that counts how often it is compared with another."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        _Counted.compared += 1
        return str.__eq__(self, other)


def test_a_name_that_occurs_twice_is_found_in_as_many_steps_as_there_are_names():
    names = [_Counted(number) for number in range(2_000)]
    assert imports.first_twice([*names, _Counted(1_999)]) == "1999"
    # Two in a row may share a place in a table of hashes.
    assert _Counted.compared < 10 * len(names)


@pytest.mark.parametrize("twice", [False, True])
def test_an_environment_of_very_many_keys_is_refused_at_once(twice: bool):
    many = [f'"k{number}": 1' for number in range(200_000)]
    keys = ", ".join([*many, many[-1]] if twice else many).encode()
    data = encode(replace(small(), environment={"here": 1})).replace(b'"here": 1', keys)
    assert ("occurs a second time" if twice else "more than any machine has") in said(data)


def test_points_that_name_very_many_strategies_are_looked_up_in_as_many_steps():
    slugs = [f"s{number}.eager" for number in range(1_000)]
    run = small_map()
    inferred = replace(run.points[0], at={axis.name: axis.values[0] for axis in run.axes}, measurements=[])
    inferred = replace(inferred, ranking=[[slugs[-1]] * 300_000], control=None)
    data = encode(
        replace(run, request=replace(run.request, strategies=slugs), points=[inferred], crossovers=[], fits=[])
    )
    imports.read(data)
