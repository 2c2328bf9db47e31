"""What others use of the processors: how it is watched, and that a run whose machine was busy says so."""

import pytest

from measure.engine import stages
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.judge import rules
from measure.machine import load
from measure.model.request import parse
from measure.model.run import Run
from tests.engine import QUICK
from tests.subjects import LOST, Subjects


class Busy:
    """A watch that sees others use ``cores``; ``asked``: for how long it was to watch at the least, each time."""

    cores = 0.0
    asked: list[float] = []

    def cores_of_others(self, least_s: float = 0.0) -> float:
        self.asked.append(least_s)
        return self.cores


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> type[Busy]:
    class Here(Busy):
        asked: list[float] = []

    monkeypatch.setattr(load, "Watch", Here)
    return Here


def test_others_are_watched_for_as_long_as_is_wanted_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    now = [10.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(load, "_busy_s", lambda: now[0])  # others keep a core busy
    monkeypatch.setattr(load, "_own_s", lambda: 0.0)
    monkeypatch.setattr(load.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(load.time, "sleep", sleep)
    watch = load.Watch()
    now[0] += 0.125
    assert watch.cores_of_others(least_s=0.5) == pytest.approx(1.0)
    assert slept == [0.375]
    assert watch.cores_of_others(least_s=0.5) == pytest.approx(1.0)
    assert slept == [0.375]


def test_two_ticks_of_the_system_do_not_trip_the_rule() -> None:
    """Nor do those that our own share is uncertain by, in the shortest time that is watched."""
    assert rules.BusyBefore.threshold_cores / 2 > 4 * 0.01 / stages.LOAD_WINDOW_S


# --- the warnings are given ------------------------------------------------------------------------------------------


def compared(subjects: Subjects) -> Run:
    request = parse({"workload": "square", "strategies": ["batched.graph"]})
    settings = Settings(rules=QUICK, probes=False, process_peaks_s=0.0)
    return Comparison("0" * 24, request, subjects, lambda view: None, settings=settings).run()


def codes(run: Run) -> set[str]:
    return {warning.code for warning in run.warnings}


@pytest.mark.parametrize("role", ["timing", "probes"])
@pytest.mark.parametrize(("cores", "expected"), [(0.51, {"busy_during"}), (0.50, set())])
def test_others_at_work_while_latencies_are_sampled_are_named_in_the_run(
    busy: type[Busy], cores: float, expected: set[str], role: str
) -> None:
    """Also where sampling ends by the loss of the host."""
    busy.cores = cores
    run = compared(Subjects(answers={role: lambda spec: [LOST]}))
    assert codes(run) & {"busy_during"} == expected
    assert run.status == ("interrupted" if role == "timing" else "complete")


@pytest.mark.parametrize(("cores", "expected"), [(0.21, {"busy_before"}), (0.20, set())])
def test_others_at_work_before_latencies_are_timed_are_named_in_the_run(
    busy: type[Busy], cores: float, expected: set[str]
) -> None:
    busy.cores = cores
    run = compared(Subjects())
    assert codes(run) & {"busy_before"} == expected
    assert run.environment["load_of_others_cores"] == cores
    assert busy.asked == [stages.LOAD_WINDOW_S, 0.0], "long enough for the ticks of the system to add up"
