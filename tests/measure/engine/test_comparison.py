"""A comparison with simulated subjects: which stages it has, in which order, and what is kept however it ends."""

import tempfile
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.record import View
from measure.run import why
from measure.run.run import Run
from measure.subject.messages import Spec
from tests.engine import QUICK, small_request
from tests.subjects import LOST, RATES, Subjects, error, leave_the_machine, measured

SLUGS = ("batched.eager", "batched.graph", "loop.eager")
ID = "0" * 24


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_the_machine(monkeypatch)


def compare(
    subjects: Subjects,
    *slugs: str,
    published: list[View] | None = None,
    keep: Any = lambda *_: True,
    settings: Settings | None = None,
    **changes: Any,
) -> Run:
    watch: Callable[[View], None] = (lambda view: None) if published is None else published.append
    settings = settings or Settings(most_processes=QUICK)
    asked = small_request(*slugs or SLUGS, **changes)
    return Comparison(ID, asked, subjects, watch, settings=settings, keep=keep).run()


def outcomes(run: Run) -> dict[str, str]:
    return {item.strategy: item.outcome for item in run.measurements if not item.twin_of}


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
        assert item.outcome == "ok" and item.latency is not None and why.explained(item.why) is not None
        assert item.memory is not None and item.memory.process_peak_bytes == 2**21


def test_the_pool_is_a_line_of_the_script_that_runs_and_the_systems_view_of_a_call_is_without_it():
    pool = 'os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"'
    for allocator in ("pool", "default"):
        subjects = Subjects()
        run = compare(subjects, allocator=allocator)
        roles = {spec.role: pool in spec.script for spec in subjects.specs if spec.name in SLUGS}
        assert roles == {**dict.fromkeys(("memory", "timing", "why"), allocator == "pool"), "process_peak": False}
        assert run.request.allocator == allocator
        assert all((pool in item.code.source) == (allocator == "pool") for item in run.measurements if item.code)


def test_what_is_wrong_is_timed_and_not_ranked_and_what_fails_costs_nobody_else():
    answers = {"batched.graph": measured(right=False), "loop.eager": [error("out_of_memory", "too much")]}
    subjects = Subjects(answers={"memory": lambda spec: answers.get(spec.name) or measured()})
    run = compare(subjects)
    assert outcomes(run) == {"batched.eager": "ok", "batched.graph": "wrong", "loop.eager": "out_of_memory"}
    wrong, failed = run.measurement("batched.graph"), run.measurement("loop.eager")
    assert wrong.latency is not None and wrong.error is not None and wrong.error.message == "other values"
    assert failed.latency is None and failed.error is not None and failed.error.message == "too much"
    assert run.ranking == [["batched.eager"]]
    assert {spec.name for spec in subjects.specs if spec.role == "timing"} == {"batched.eager", "batched.graph"}


def test_what_is_traced_for_its_values_is_warned_of_and_keeps_its_rank():
    run = compare(Subjects(latencies_s={"batched.graph": 0.001}, for_values=["batched.graph"]))
    codes = {item.strategy: [warning.code for warning in item.warnings] for item in run.measurements}
    assert [slug for slug in codes if "compiled_values" in codes[slug]] == ["batched.graph"]
    assert run.ranking[0] == ["batched.graph"]


def test_failures_after_the_verdict_cost_nothing_else():
    fails = dict.fromkeys(("probes", "process_peak", "why"), lambda spec: [error(message="broken")])
    run = compare(Subjects(answers=fails))
    assert run.status == "complete" and set(outcomes(run).values()) == {"ok"} and run.ranking
    assert run.limit is None and "no_limit" in {warning.code for warning in run.warnings}
    assert [item.memory.process_peak_bytes for item in run.measurements if item.memory] == [None] * 3
    assert {item.why.note for item in run.measurements if not item.twin_of} == {"broken"}


@pytest.mark.parametrize("role", ["memory", "timing", "probes", "why"])
def test_what_was_measured_before_a_cancel_is_kept_and_the_verdict_stands(role: str):
    class Cancelling(Subjects):
        def start(self, spec: Spec, events: Any) -> int:
            if spec.role == role:
                running.cancel()
            return super().start(spec, events)

    subjects, settings = Cancelling(), Settings(most_processes=QUICK)
    running = Comparison(
        ID, small_request(*SLUGS), subjects, lambda view: None, settings=settings, keep=lambda *_: True
    )
    run = running.run()
    assert subjects.living == [] and subjects.roles[-1] == role, "nothing is started after a cancel"
    if role == "why":  # all that was asked for is measured
        assert run.status == "complete"
    else:
        assert (run.status, run.stop_reason) == ("cancelled", "cancelled by a person")
    done = ["reference", "memory", "timing", "probes", "process_peak", "why"].index(role)
    assert all((item.memory is not None) == (done > 1) for item in run.measurements if not item.twin_of)
    assert all((item.latency is not None) == (done > 2) for item in run.measurements if not item.twin_of)
    assert bool(run.ranking) == (done > 2) and (run.limit is not None) == (done > 3)


@pytest.mark.parametrize("role", ["reference", "timing", "process_peak"])
def test_the_loss_of_the_host_interrupts_the_run_which_keeps_what_is_known_and_leaves_no_file(
    role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = compare(subjects := Subjects(answers={role: lambda spec: [LOST]}))
    assert run.status == "interrupted" and "ended unexpectedly" in run.stop_reason
    assert bool(run.ranking) == (role == "process_peak")
    assert set(outcomes(run).values()) == {"ok" if run.ranking else "not_run"}
    (folder,) = {spec.case_dir for spec in subjects.specs if spec.case_dir}
    assert Path(folder).parent == tmp_path and list(tmp_path.iterdir()) == [] and subjects.living == []
