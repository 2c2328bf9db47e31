"""A comparison with simulated subjects: which stages it has, in which order, and what is kept however it ends."""

import tempfile
from collections.abc import Callable
from itertools import groupby, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from measure.engine import stages
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.record import View
from measure.machine import load
from measure.model import why
from measure.model.run import Run, Stage
from measure.subject.messages import Spec
from strategies import parse
from tests.engine import QUICK, small_request
from tests.subjects import LOST, RATES, SAMPLES_A_MESSAGE, Message, Subjects, error, measured

SLUGS = ("batched.eager", "batched.graph", "loop.eager")
ID = "0" * 24


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else uses the machine, and nobody waits to know that."""
    monkeypatch.setattr(
        load,
        "Watch",
        lambda: SimpleNamespace(cores_of_others=lambda least_s=0.0: 0.0, cores_of_pages=lambda: 0.0, held=lambda: 0.0),
    )


def compare(
    subjects: Subjects,
    *slugs: str,
    published: list[View] | None = None,
    keep: Any = lambda *_: True,
    settings: Settings | None = None,
    **changes: Any,
) -> Run:
    watch: Callable[[View], None] = (lambda view: None) if published is None else published.append
    settings = settings or Settings(rules=QUICK)
    asked = small_request(*slugs or SLUGS, **changes)
    return Comparison(ID, asked, subjects, watch, settings=settings, keep=keep).run()


def outcomes(run: Run) -> dict[str, str]:
    return {item.strategy: item.outcome for item in run.measurements if not item.twin_of}


# --- the stages ------------------------------------------------------------------------------------------------------


def test_stages_follow_each_other_and_each_looks_at_every_strategy():
    subjects = Subjects()
    run = compare(subjects)
    in_order = [(role, len(list(started))) for role, started in groupby(subjects.roles)]
    assert [role for role, _ in in_order] == ["reference", "memory", "timing", "probes", "process_peak", "why"]
    assert [count for role, count in in_order if role not in ("reference", "timing", "probes")] == [3, 3, 3]
    assert run.status == "complete" and run.verdict and run.environment
    assert run.limit is not None and run.limit.dispatch_s == RATES.op_s
    for slug in SLUGS:
        item = run.measurement(slug)
        assert item.outcome == "ok" and item.latency is not None and why.known(item.why) is not None
        assert item.memory is not None and item.memory.process_peak_bytes == 2**21


def test_a_strategy_stands_at_stages_that_have_a_name():
    published: list[View] = []
    ended = {item.stage for item in compare(Subjects(), published=published).measurements}
    ended |= {item.stage for item in compare(Subjects(answers={"timing": lambda spec: [error()]})).measurements}
    seen = {stage for view in published for stage in view.stages.values()}
    assert seen == {"waiting", "memory", "first call", "sampling", "explaining", "done"}
    assert ended == {"sampling", "first_call"}, "as run files have it"
    assert seen | ended <= set(get_args(Stage))


def test_what_a_call_took_beside_the_memory_is_shown_before_anything_is_timed():
    published: list[View] = []
    compare(Subjects(latencies_s={"loop.eager": 0.1}), published=published)
    before = next(view for view in published if "first call" in view.stages.values())
    assert before.rough_s == {slug: 0.2 if slug == "loop.eager" else 0.01 for slug in SLUGS}
    assert not any(item.latency for item in before.run.measurements)


def test_memory_is_published_when_it_is_known_and_not_with_the_call_after_it():
    published: list[View] = []
    compare(Subjects(), published=published)
    known = [{item.strategy for item in view.run.measurements if item.memory} for view in published]
    assert any(slugs > view.rough_s.keys() for slugs, view in zip(known, published, strict=True))
    assert all(len(after - before) <= 1 for before, after in pairwise(known)), "no two are lost with one server"


def test_what_comes_after_the_verdict_can_be_left_out():
    subjects = Subjects()
    run = compare(subjects, keep=None, settings=Settings(rules=QUICK, probes=False, process_peaks_s=0.0))
    assert set(subjects.roles) == {"reference", "memory", "timing"}
    assert run.status == "complete" and run.limit is None


def test_what_is_known_is_published_as_it_becomes_known():
    published: list[View] = []
    run = compare(Subjects(), published=published)
    assert all(before.version <= after.version for before, after in pairwise(published))
    messages = [message for message, _ in groupby(view.message for view in published)]
    assert messages[:2] == ["computing the reference", "measuring memory and correctness"]
    assert messages[2].startswith("timing ") and messages[-1] == "finished" and published[-1].run == run
    timing = [view for view in published if view.message.startswith("timing ")]
    rounds = [number for number, _ in groupby(view.round_number for view in timing)]
    assert rounds == list(range(1, len(rounds) + 1)) and len(rounds) > 1
    assert {view.round_number for view in published if not view.message.startswith("timing ")} == {None}
    assert set(published[-1].stages.values()) == {"done"}
    first = next(view for view in published if any(item.memory for item in view.run.measurements))
    assert first.message == "measuring memory and correctness" and first.run.verdict == ""


def test_nothing_lives_and_no_file_is_left_when_a_comparison_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen: list[bool] = []

    def reference(spec: Spec) -> list[Message]:
        seen.append((Path(spec.case_dir) / "expected.pickle").exists())
        return [{"event": "saved"}]

    subjects = Subjects(answers={"reference": reference, "process_peak": lambda spec: [LOST]})
    run = compare(subjects)
    assert run.status == "interrupted" and seen == [True]
    assert subjects.living == [] and list(tmp_path.iterdir()) == []


# --- what becomes of a strategy --------------------------------------------------------------------------------------


def test_without_a_reference_every_strategy_fails_and_says_why():
    subjects = Subjects(answers={"reference": lambda spec: [error("failed", "no NumPy here")]})
    run = compare(subjects)
    assert set(outcomes(run).values()) == {"failed"} and run.status == "complete"
    assert {item.error.message for item in run.measurements if item.error} == {
        "the reference could not be computed: no NumPy here"
    }
    assert subjects.roles == ["reference"]


def test_a_strategy_that_is_known_not_to_work_is_never_started(monkeypatch: pytest.MonkeyPatch):
    bad = parse("loop.eager")
    monkeypatch.setattr(stages.strategies, "unsupported", lambda one, workload: "it cannot" if one == bad else None)
    subjects = Subjects()
    run = compare(subjects)
    item = run.measurement("loop.eager")
    assert (item.outcome, item.stage) == ("unsupported", "request") and item.error and item.error.message == "it cannot"
    assert "loop.eager" not in {spec.name for spec in subjects.specs}
    assert outcomes(run)["batched.eager"] == "ok"


def test_what_is_wrong_is_timed_and_not_ranked_and_what_fails_costs_nobody_else(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")  # nothing else is to blame
    said = {"batched.graph": measured(right=False), "loop.eager": [error("out_of_memory", "too much")]}
    subjects = Subjects(answers={"memory": lambda spec: said.get(spec.name) or measured()})
    run = compare(subjects)
    assert outcomes(run) == {"batched.eager": "ok", "batched.graph": "wrong", "loop.eager": "out_of_memory"}
    wrong, failed = run.measurement("batched.graph"), run.measurement("loop.eager")
    assert wrong.latency is not None and wrong.error is not None and wrong.error.message == "other values"
    assert failed.latency is None and failed.error is not None and failed.error.message == "too much"
    assert run.ranking == [["batched.eager"]]
    assert {spec.name for spec in subjects.specs if spec.role == "timing"} == {"batched.eager", "batched.graph"}


def test_what_was_measured_before_a_failure_is_kept():
    run = compare(Subjects(failing=("loop.eager", 2)))
    item = run.measurement("loop.eager")
    assert (item.outcome, item.stage) == ("failed", "sampling")
    kept = [(len(replica.samples_s), replica.ended) for replica in item.replicas]
    assert item.memory is not None and kept == [(2 * SAMPLES_A_MESSAGE, "done"), (SAMPLES_A_MESSAGE, "failed")]


@pytest.mark.parametrize("role", ["probes", "process_peak", "why"])
def test_a_failure_after_the_verdict_costs_nothing_else(role: str):
    run = compare(Subjects(answers={role: lambda spec: [error(message="broken")]}))
    assert run.status == "complete" and set(outcomes(run).values()) == {"ok"} and run.ranking
    assert (run.limit is None) == (role == "probes")
    assert ["no_limit" in {warning.code for warning in run.warnings}] == [role == "probes"]
    peaks = [item.memory.process_peak_bytes for item in run.measurements if item.memory]
    assert peaks == [None if role == "process_peak" else 2**21] * 3
    notes = {item.why.note for item in run.measurements if not item.twin_of}
    assert notes == {"broken" if role == "why" else ""}


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("room_bytes", "at_once"), [(2**40, 2), (2**20, 1), (0, 1)])
def test_two_memory_subjects_live_at_a_time_and_one_where_two_do_not_fit(
    monkeypatch: pytest.MonkeyPatch, room_bytes: int, at_once: int
):
    monkeypatch.setattr("measure.machine.environment.available_memory", lambda *_: room_bytes)
    published: list[View] = []
    waiting: list[int] = []

    def memory(spec: Spec) -> list[Message]:
        done = sum(item.memory is not None for item in published[-1].run.measurements)
        waiting.append(subjects.roles.count("memory") - done)
        return measured()

    subjects = Subjects(answers={"memory": memory})
    compare(subjects, published=published)
    assert len(waiting) == len(SLUGS) and max(waiting) == at_once


def test_one_method_measures_the_memory_of_all_of_tensorflows_strategies():
    for most_events, method in ((50_000, "events"), (0, "allocator")):
        subjects = Subjects()
        settings = Settings(rules=QUICK, most_events=most_events)
        compare(subjects, "loop.eager", "map_fn.xla", "numpy.eager", settings=settings, workload="square", size={})
        methods = {spec.name: spec.memory_method for spec in subjects.specs if spec.role == "memory"}
        assert methods == {"loop.eager": method, "map_fn.xla": method, "numpy.eager": "tracemalloc"}


def test_the_memory_limit_of_the_request_holds_for_every_memory_subject():
    subjects = Subjects()
    compare(subjects, memory_limit_mib=48)
    assert {spec.memory_limit_mib for spec in subjects.specs if spec.role == "memory"} == {48}


@pytest.mark.parametrize(("room_bytes", "at_once"), [(2**40, 4), (0, 1)])
def test_what_may_run_into_the_limit_is_measured_last_and_together_as_far_as_there_is_memory(
    monkeypatch: pytest.MonkeyPatch, room_bytes: int, at_once: int
):
    monkeypatch.setattr("measure.machine.environment.available_memory", lambda *_: room_bytes)
    published: list[View] = []
    waiting: dict[str, int] = {}

    def memory(spec: Spec) -> list[Message]:
        done = sum(item.memory is not None for item in published[-1].run.measurements)
        waiting[spec.name] = subjects.roles.count("memory") - done
        return measured()

    subjects = Subjects(answers={"memory": memory})
    # 64 MiB of output, and as much again for what stacks it.
    tight = ("batched.eager", "batched.graph", "map_fn.eager", "map_fn.graph")
    changes = {"workload": "outer_product", "size": {"batch": 16_384, "side": 32}, "memory_limit_mib": 100}
    compare(subjects, *tight, published=published, **changes)
    assert max(waiting.values()) == at_once, "each of them waits for 10 s before it fails"


# --- oneDNN ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def without_onednn(monkeypatch: pytest.MonkeyPatch) -> Subjects:
    """The launcher that a comparison gets where it asks for one with oneDNN off; it says what is right."""
    fresh = Subjects(start_method="fresh")
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    monkeypatch.setattr(stages, "FreshLauncher", lambda environment, **_: fresh if environment == OFF else None)
    return fresh


OFF = {"TF_ENABLE_ONEDNN_OPTS": "0"}


def test_what_is_right_without_onednn_says_so(without_onednn: Subjects):
    wrong = {"batched.graph", "loop.eager"}
    without_onednn.answers = {"memory": lambda spec: measured(right=spec.name != "loop.eager")}
    run = compare(Subjects(answers={"memory": lambda spec: measured(right=spec.name not in wrong)}))
    assert {spec.name for spec in without_onednn.specs} == wrong
    blamed = {item.strategy for item in run.measurements if "onednn" in {warning.code for warning in item.warnings}}
    assert blamed == {"batched.graph"}
    assert without_onednn.living == []


def test_nothing_is_run_again_where_nothing_is_wrong_or_onednn_is_off_anyway(
    without_onednn: Subjects, monkeypatch: pytest.MonkeyPatch
):
    compare(Subjects())
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    compare(Subjects(answers={"memory": lambda spec: measured(right=False)}))
    assert without_onednn.specs == []


def test_a_cancel_ends_the_rerun_without_onednn_too(without_onednn: Subjects):
    def memory(spec: Spec) -> list[Message]:
        comparison.cancel()
        return []

    without_onednn.answers = {"memory": memory}
    subjects = Subjects(answers={"memory": lambda spec: measured(right=False)})
    comparison = Comparison(ID, small_request(*SLUGS), subjects, lambda view: None, settings=Settings(rules=QUICK))
    run = comparison.run()
    assert run.status == "cancelled" and without_onednn.living == [] and len(without_onednn.specs) <= 2
    assert "timing" not in subjects.roles


# --- how it ends -----------------------------------------------------------------------------------------------------


class Cancelling(Subjects):
    """Cancels the comparison as soon as a subject of this role is started."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self.role = role
        self.comparison: Comparison | None = None

    def start(self, spec: Spec, events: Any) -> int:
        if spec.role == self.role and self.comparison is not None:
            self.comparison.cancel()
        return super().start(spec, events)


@pytest.mark.parametrize("role", ["reference", "memory", "timing", "probes", "process_peak", "why"])
def test_what_was_measured_before_a_cancel_is_kept_and_the_verdict_stands(role: str):
    subjects = Cancelling(role)
    comparison = Comparison(
        ID, small_request(*SLUGS), subjects, lambda view: None, settings=Settings(rules=QUICK), keep=lambda *_: True
    )
    subjects.comparison = comparison
    run = comparison.run()
    assert subjects.living == [] and subjects.roles[-1] == role, "nothing is started after a cancel"
    if role == "why":  # all that was asked for is measured
        assert run.status == "complete"
    else:
        assert (run.status, run.stop_reason) == ("cancelled", "cancelled by a person")
    done = ["reference", "memory", "timing", "probes", "process_peak", "why"].index(role)
    assert all((item.memory is not None) == (done > 1) for item in run.measurements if not item.twin_of)
    assert all((item.latency is not None) == (done > 2) for item in run.measurements if not item.twin_of)
    assert bool(run.ranking) == (done > 2) and (run.limit is not None) == (done > 3)


@pytest.mark.parametrize("role", ["reference", "memory", "timing", "probes", "process_peak", "why"])
def test_the_loss_of_the_host_interrupts_the_run_and_keeps_what_is_known(role: str):
    run = compare(Subjects(answers={role: lambda spec: [LOST]}))
    assert run.status == "interrupted" and "ended unexpectedly" in run.stop_reason
    assert bool(run.ranking) == (role in ("probes", "process_peak", "why"))
    assert set(outcomes(run).values()) == {"ok" if run.ranking else "not_run"}


def test_nobody_is_explained_after_the_run_is_gone():
    subjects = Subjects()
    run = compare(subjects, keep=lambda *_: False)
    assert subjects.roles.count("why") == 1 and run.status == "complete"
