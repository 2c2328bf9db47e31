"""A comparison with simulated subjects: which stages it has, on which device, what is kept however it ends, and that it
ends when it was said to, whatever its subjects do."""

import tempfile
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from measure.engine import comparison
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.machine import load
from measure.run import deadline, why
from measure.run.request import forecast_of
from measure.run.run import TIME_OVER, Run
from tests.engine import QUICK, small_request
from tests.hanging import Clock, Slow
from tests.subjects import LOST, RATES, Message, Subjects, error, leave_the_machine, measured

SLUGS = ("batched.eager", "batched.graph", "loop.eager")
STAGES = ["reference", "memory", "timing", "probes", "process_peak", "why"]
ID = "0" * 24
GIB = 2**30


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_the_machine(monkeypatch)


def made(
    subjects: Subjects, *slugs: str, settings: Any = None, keep: Any = lambda *_: True, **asked: Any
) -> Comparison:
    settings = settings or Settings(most_processes=QUICK)
    request = small_request(*slugs or SLUGS, **asked)
    return Comparison(ID, request, subjects, lambda view: None, settings=settings, keep=keep)


def compare(subjects: Subjects, *slugs: str, **more: Any) -> Run:
    return made(subjects, *slugs, **more).run()


def outcomes(run: Run) -> dict[str, str]:
    return {item.strategy: item.outcome for item in run.measurements if not item.twin_of}


def codes(run: Run) -> set[str]:
    return {warning.code for warning in run.warnings}


def ranked(run: Run) -> list[str]:
    return sorted(slug for group in run.ranking for slug in group)


def test_stages_follow_each_other_and_each_looks_at_every_strategy():
    subjects = Subjects()
    run = compare(subjects)
    in_order = [(role, len(list(started))) for role, started in groupby(subjects.roles)]
    assert [role for role, _ in in_order] == STAGES
    assert [count for role, count in in_order if role not in ("reference", "timing", "probes")] == [3, 3, 3]
    assert run.status == "complete" and run.verdict and run.environment
    assert run.limit is not None and run.limit.dispatch_s == RATES.op_s
    assert run.limit.bytes == 4 * (4 * 8 + 4) + 4 * (8 + 1) + 4 * 4 * (8 + 1), "inputs, variables, gradients"
    for slug in SLUGS:
        item = run.measurement(slug)
        assert item.outcome == "ok" and item.latency is not None and why.explained(item.why) is not None
        assert item.why.times_limit or item.why.limit_note
        assert item.memory is not None and item.memory.process_peak_bytes == 2**21


def test_arithmetic_of_some_elements_is_that_of_all_in_proportion_and_none_where_an_op_is_not_known():
    rates = msgspec.to_builtins(RATES)
    for unknown, flops in (([], 16 * 20 // 8), (["EagerPyFunc"], 0)):
        answer = {"event": "rates", "rates": rates, "flops": 16, "unknown": unknown}
        run = compare(Subjects(answers={"probes": lambda spec, answer=answer: [answer]}), size={"batch": 20})
        assert run.limit is not None and run.limit.flops == flops


def test_the_pool_is_a_line_of_the_script_that_runs_and_the_systems_view_of_a_call_is_without_it():
    pool = 'os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"'
    for allocator in ("pool", "default"):
        subjects = Subjects()
        run = compare(subjects, allocator=allocator)
        roles = {spec.role: pool in spec.script for spec in subjects.specs if spec.name in SLUGS}
        assert roles == {**dict.fromkeys(("memory", "timing", "why"), allocator == "pool"), "process_peak": False}
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
    warned = {item.strategy: [warning.code for warning in item.warnings] for item in run.measurements}
    assert [slug for slug in warned if "compiled_values" in warned[slug]] == ["batched.graph"] == run.ranking[0]


def test_what_cannot_work_is_not_started():
    subjects = Subjects()
    run = compare(subjects, "dataset.xla", "numpy_function.xla", workload="square", size={"batch": 4})
    for item in run.measurements:
        assert (item.outcome, item.stage, item.memory) == ("unsupported", "request", None)
        assert item.error is not None and item.error.message.startswith("XLA ")
    assert "memory" not in subjects.roles


def test_what_others_and_a_limit_take_before_and_while_latencies_are_sampled_is_named(monkeypatch: pytest.MonkeyPatch):
    looked_s: list[float] = []
    watch = SimpleNamespace(cores_of_others=lambda least_s=0.0: looked_s.append(least_s) or 0.51, held=lambda: 0.06)
    monkeypatch.setattr(load, "Watch", lambda: watch)
    run = compare(Subjects())
    assert {"busy_during", "held"} <= codes(run) and run.environment["load_of_others_cores"] == 0.51
    assert set(looked_s) == {0.0, comparison.LOAD_WINDOW_S}, "long enough for the ticks of the system to add up"


# --- on a GPU ---------------------------------------------------------------------------------------------------------


def test_all_of_a_comparison_runs_on_the_gpu_that_was_asked_for(monkeypatch: pytest.MonkeyPatch):
    launcher = Subjects(room_bytes=4 * GIB)
    run = compare(launcher, device="GPU:1")
    assert launcher.roles[0] == "room" and launcher.roles.count("room") == 1, "before anything else lives there"
    on_gpu = ("room", "memory", "timing", "probes", "why")
    devices = {(spec.role, spec.device) for spec in launcher.specs}
    assert devices == {("reference", "CPU:0"), *((role, "GPU:1") for role in on_gpu)}
    # The scripts too: TensorFlow is shown this GPU alone, by the probes' and by all strategies'.
    scripts = [spec.script for spec in launcher.specs if spec.role in on_gpu and spec.role != "room"]
    assert all("set_visible_devices" in script and "[1]" in script for script in scripts) and len(scripts) > 10
    measuring = [(spec.memory_limit_mib, spec.memory_method) for spec in launcher.specs if spec.role == "memory"]
    assert set(measuring) == {(int(0.7 * 4 * GIB) // 2**20, "events")}, "its room is the limit where none was asked for"
    assert run.limit is not None and run.limit.dispatch_s == RATES.op_s and "no_process_peak" in codes(run)
    monkeypatch.setenv("TF_GPU_ALLOCATOR", "cuda_malloc_async")
    compare(other := Subjects(room_bytes=4 * GIB), device="GPU:1")
    assert {spec.memory_method for spec in other.specs if spec.role == "memory"} == {"allocator"}
    compare(on_cpu := Subjects(room_bytes=4 * GIB))
    assert not {"room"} & set(on_cpu.roles) and "process_peak" in on_cpu.roles


# --- ends before its end ----------------------------------------------------------------------------------------------


def test_failures_after_the_verdict_cost_nothing_else():
    fails = dict.fromkeys(("probes", "process_peak", "why"), lambda spec: [error(message="broken")])
    run = compare(Subjects(answers=fails))
    assert run.status == "complete" and set(outcomes(run).values()) == {"ok"} and run.ranking
    (no_limit,) = [warning.message for warning in run.warnings if warning.code == "no_limit"]
    assert run.limit is None and "its probes failed: broken" in no_limit
    assert [item.memory.process_peak_bytes for item in run.measurements if item.memory] == [None] * 3
    assert {item.why.note for item in run.measurements if not item.twin_of} == {"broken"}


@pytest.mark.parametrize("role", ["memory", "timing", "probes", "why"])
def test_what_was_measured_before_a_cancel_is_kept_and_the_verdict_stands(role: str):
    subjects = Subjects()
    subjects.answers = {role: lambda spec: running.cancel() or subjects._usual(spec)}
    running = made(subjects)
    run = running.run()
    assert subjects.living == [] and subjects.roles[-1] == role, "nothing is started after a cancel"
    # At the last stage all that was asked for is measured.
    assert run.status == ("complete" if role == "why" else "cancelled")
    assert role == "why" or run.stop_reason == "cancelled by a person"
    done = STAGES.index(role)
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


# --- ends in time -----------------------------------------------------------------------------------------------------

FIVE = ("batched.eager", "batched.graph", "loop.eager", "map_fn.graph", "vectorized_map.graph")
HANGS = "map_fn.graph"
# The last figure: how late it may be noticed that a step has lasted too long.
IN_TIME, LOOK_S = {"budget_s": 12.0, "workload": "square", "size": {}}, 0.5


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def compare_in_time(subjects: Slow, *slugs: str, keep: Any = None) -> Run:
    asked = made(subjects, *slugs or FIVE, settings=Settings(), keep=keep, **IN_TIME)
    run = asked.run()
    most_s = forecast_of(asked.request).max_seconds
    assert subjects.clock.now_s <= deadline.of_comparison(asked.request) + LOOK_S == 1.5 * most_s + LOOK_S
    for item in run.measurements:
        if not item.twin_of and item.latency is None and item.outcome == "not_run":
            assert item.error is not None and item.error.type == TIME_OVER, "it is said why"
    return run


@pytest.mark.parametrize(("times", "least"), [(1, 5), (5, 2), (20, 0)])
def test_on_a_machine_that_is_slower_than_forecast_nothing_that_works_is_failed(clock: Clock, times: float, least: int):
    run = compare_in_time(Slow(clock=clock, times=times))
    assert {*outcomes(run).values()} <= {"ok", "not_run"}
    timed = [item.strategy for item in run.measurements if item.latency and not item.twin_of]
    assert len(timed) >= least and ranked(run) == sorted(timed)


# The first slice of all is that of a usual choice: nothing tells yet how long one takes.
@pytest.mark.parametrize(("times", "words"), [(1, {"timeout"}), (3, {"timeout", "not_run"})])
@pytest.mark.parametrize("step", ["memory", "first_call"])
def test_one_that_hangs_where_the_others_do_not_costs_them_nothing(
    clock: Clock, step: str, times: float, words: set[str]
):
    run = compare_in_time(Slow(clock=clock, times=times, hangs=lambda at, slug: (at, slug) == (step, HANGS)))
    others = outcomes(run)
    assert others.pop(HANGS) in words and {*others.values()} == {"ok"} and ranked(run) == sorted(others)


def test_one_that_goes_on_when_others_are_done_has_the_time_that_these_show_to_be_usual(clock: Clock):
    class Slower(Slow):
        def _answer(self, subject: int, step: str, messages: list[Message]) -> None:
            if step == "memory" and self.numbered[subject].name == FIVE[1]:
                self.busy_until_s[subject] = clock.now_s + 2.0
            super()._answer(subject, step, messages)

    item = compare_in_time(Slower(clock=clock, times=8)).measurement(FIVE[1])
    assert item.memory is not None, item.error


@pytest.mark.parametrize("slugs", [FIVE, (HANGS,)])
@pytest.mark.parametrize("step", ["reference", "memory", "first_call", "turn"])
def test_where_everything_hangs_nothing_is_a_timeout(clock: Clock, step: str, slugs: tuple[str, ...]):
    run = compare_in_time(subjects := Slow(clock=clock, hangs=lambda at, slug: at == step), *slugs)
    assert outcomes(run) == dict.fromkeys(slugs, "not_run") and not run.ranking and subjects.living == []
    is_waited_for = clock.now_s > deadline.of_comparison(small_request(*slugs, **IN_TIME)) - LOOK_S
    assert is_waited_for or len(slugs) > 1, "one by itself is waited for until the end"


@pytest.mark.parametrize(
    ("at", "words"), [("probes", "cut_short"), ("process_peak", "no_time_for_peaks"), ("why", "cut_short")]
)
def test_after_the_verdict_it_costs_what_is_shown_beside_it_alone_and_is_said(clock: Clock, at: str, words: str):
    run = compare_in_time(Slow(clock=clock, hangs=lambda step, slug: step == at), keep=lambda *_: True)
    assert run.status in ("complete", "budget") and run.ranking and {*outcomes(run).values()} == {"ok"}
    assert words in codes(run) and (run.limit is None) == (at == "probes")
