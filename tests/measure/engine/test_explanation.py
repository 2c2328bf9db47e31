"""The job that explains a run: what it counts, what it leaves alone, and what it refuses."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from measure import runner
from measure.engine import explanation
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.host_launcher import HostLauncher
from measure.judge import reasons
from measure.judge.advice import COMPILED_VALUES
from measure.model import why
from measure.model.request import RequestError
from measure.model.run import Run
from measure.model.why import Why
from tests.benchmarks.why import explained
from tests.engine import DEADLINE_S, QUICK, measure, running, small_request
from tests.subjects import Subjects, error

ID = "0123456789abcdef01234567"


@pytest.fixture(scope="module")
def own(host: HostLauncher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[runner.Runner]:
    with running(host, tmp_path_factory.mktemp("why")) as own:
        yield own


SLUGS = ("loop.eager", "map_fn.graph", "batched.xla")


@pytest.fixture(scope="module")
def measured(own: runner.Runner) -> Run:
    return measure(own, small_request(*SLUGS, size={"batch": 100, "features": 2}))


def test_an_explanation_counts_what_ran_and_leaves_the_run_as_it_was(own: runner.Runner, measured: Run):
    assert all(why.known(item.why) is None for item in measured.measurements), "nothing is explained unless asked for"
    job = own.explain(measured.id)
    assert own.explain(measured.id) == job and own.snapshot(measured.id).state == "finished"
    assert own.wait(job, DEADLINE_S) and own.queue() == ()
    run = own.snapshot(measured.id).run
    assert replace(run, measurements=[]) == replace(measured, measurements=[])
    for item, before in zip(run.measurements, measured.measurements, strict=True):
        assert replace(item, why=before.why) == before
        assert item.why.runtime_start_s == before.why.runtime_start_s > 0
    eager, graph, xla = (why.known(run.measurement(slug).why) for slug in SLUGS)
    of = {row.name: row.count for row in graph.ops}
    # By the loop's own arithmetic: its condition is asked once more than its body runs. The executor would leave a
    # quick op out of a trace after some 90 runs.
    assert of["TensorListGetItem"] == 200 and of["LogicalAnd"] == 101 and of["TensorListSetItem"] == 200
    assert graph.tracing_count == 1 and graph.traces_per_call == 0 and graph.graph.functions >= 2
    assert {row.name for row in eager.ops} >= {"StridedSlice", "Pack"} and eager.graph is None
    assert eager.op_count > 1_000 and 0 < eager.in_ops_s < eager.profiled_s and eager.python_s > 0
    assert xla.kernel_count >= 1 and xla.fusion_count >= 1 and xla.loops == 0 and not xla.op_count
    assert not xla.compiled_in, "variables are inputs of a program too"
    assert own.store.artifacts(run.id, "loop.eager") == [why.TRACE]
    assert own.store.artifacts(run.id, "batched.xla") == [why.GRAPH, why.HLO, why.TRACE]
    assert "fusion" in own.store.artifact(run.id, "batched.xla", why.HLO).decode()
    assert "= While(" in own.store.artifact(run.id, "map_fn.graph", why.GRAPH).decode()
    assert json.loads(gzip.decompress(own.store.artifact(run.id, "map_fn.graph", why.TRACE)))["traceEvents"]
    assert len(reasons.sentences(run)) == 3 and "yet" not in " ".join(reasons.sentences(run).values())


def test_with_why_a_comparison_explains_in_the_end(own: runner.Runner):
    run_id = own.submit(small_request("batched.graph"), why=True)
    assert own.wait(run_id, DEADLINE_S)
    run = own.snapshot(run_id).run
    assert run.status == "complete" and run.verdict and why.known(run.measurement("batched.graph").why).op_count
    assert why.TRACE in own.store.artifacts(run_id, "batched.graph")


def test_an_input_that_xla_has_to_know_when_it_compiles_is_seen(own: runner.Runner):
    # What goes where, once both branches are computed, depends on the values; XLA needs such indices as constants.
    asked = {"workload": "branch", "size": {"batch": 5, "width": 4}}
    run = measure(own, small_request("vectorized_map.xla", "batched.xla", **asked))
    own.wait(own.explain(run.id), DEADLINE_S)
    run = own.snapshot(run.id).run
    strategies = [item for item in run.measurements if not item.twin_of]
    warned = [item.strategy for item in strategies if COMPILED_VALUES in {warning.code for warning in item.warnings}]
    assert warned == ["vectorized_map.xla"]
    compiled_in = {item.strategy: why.known(item.why).compiled_in for item in strategies}
    assert compiled_in == {"vectorized_map.xla": 1, "batched.xla": 0}
    assert "the program serves no others" in reasons.sentences(run)["vectorized_map.xla"]


def test_what_cannot_be_explained_here_is_said(own: runner.Runner, measured: Run):
    details = own.host().details
    assert explanation.refusal(measured, details, imported=False) is None
    assert "comes from elsewhere" in explanation.refusal(measured, details, imported=True)
    elsewhere = replace(measured, environment={"cpu_model": "another"})
    assert "another machine" in explanation.refusal(elsewhere, details, imported=False)
    with pytest.raises(RequestError, match="when it has ended"):
        own.explain("f" * 24)
    other = replace(
        measured,
        id="e" * 24,
        measurements=[replace(item, code=replace(item.code, source="print(1)")) for item in measured.measurements],
    )
    own.store.save(other)
    with pytest.raises(RequestError, match=r"the code of loop\.eager has changed"):
        own.explain(other.id)


@pytest.mark.parametrize(
    ("key", "was", "says"),
    [
        ("tensorflow", "2.20.0", "(TensorFlow: 2.20.0 then, "),
        ("numpy", "1.26.4", "(NumPy: 1.26.4 then, "),
        ("python", "3.10.0", "(Python: 3.10.0 then, "),
        ("onednn", "the other", "(oneDNN: the other then, "),
        ("flags", {"XLA_FLAGS": "--xla_x"}, "(Flags: XLA_FLAGS=--xla_x then, "),
        ("threads_intra_used", 999, "(Threads within an op, in effect: 999 then, "),
        ("threads_inter_used", 999, "(Threads across ops, in effect: 999 then, "),
    ],
)
def test_a_run_of_another_tensorflow_is_not_explained_by_this_one(
    own: runner.Runner, measured: Run, key: str, was: Any, says: str
):
    details = own.host().details
    before = replace(measured, environment=measured.environment | {key: was})
    refusal = explanation.refusal(before, details, imported=False)
    assert refusal is not None and says in refusal and "«Measure again here»" in refusal
    for unknown in (None, measured.environment[key]):
        same = replace(measured, environment=measured.environment | {key: unknown})
        assert explanation.refusal(same, details, imported=False) is None
    on_gpu = replace(measured, environment=measured.environment | {"cuda": "11.0"})
    assert explanation.refusal(on_gpu, details, imported=False) is None, "which CUDA there is matters on a GPU alone"


def test_the_threads_that_were_asked_for_are_those_of_the_explanation(own: runner.Runner, measured: Run):
    asked = replace(measured, request=replace(measured.request, threads=1), environment=measured.environment | {
        "threads_intra_used": 1, "threads_inter_used": 1})  # fmt: skip
    assert explanation.refusal(asked, own.host().details, imported=False) is None


def test_a_failure_longer_than_a_note_leaves_a_reason_that_can_be_read():
    kept: list[Why] = []

    def keep(slug: str, known: Why, artifacts: dict[str, bytes]) -> bool:
        kept.append(known)
        return True

    subjects = Subjects(answers={"why": lambda spec: [error(message="x" * 5_000)]})
    settings = Settings(rules=QUICK, probes=False, process_peaks_s=0.0)
    Comparison(ID, small_request("batched.graph"), subjects, lambda view: None, settings=settings, keep=keep).run()
    assert [known.note for known in kept] == ["x" * why.MOST_NOTE]


def test_a_run_that_is_deleted_meanwhile_does_not_come_back(own: runner.Runner):
    run = measure(own, small_request("batched.eager"))
    job = own.explain(run.id)
    own.delete([run.id])
    assert own.wait(job, DEADLINE_S)
    assert own.snapshot(run.id) is None and not own.snapshot(job).fault


def test_the_benchmark_of_the_reasons_measures_what_it_explains():
    subjects = Subjects()
    run = explained(subjects, msgspec.to_builtins(small_request(*SLUGS).record()))
    assert sorted(spec.name for spec in subjects.specs if spec.role == "why") == sorted(SLUGS)
    assert all(item.memory is not None and why.known(item.why) for item in run.measurements)
