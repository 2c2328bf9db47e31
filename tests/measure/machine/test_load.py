"""What others use of the processors: how it is watched, and that a run whose machine was busy says so."""

import queue
from typing import Any

import pytest
from msgspec.structs import replace

from measure.engine import comparison
from measure.engine.comparison import Comparison, Settings
from measure.engine.dialogue import Dialogues
from measure.engine.launchers import Event, HostState
from measure.engine.record import Record, View
from measure.engine.sampling import Sampling
from measure.judge import advice
from measure.machine import load
from measure.model.request import parse
from measure.model.run import Run
from measure.subject.subject import Spec
from tests import synthetic
from tests.measure.engine.test_sampling import RULES, SLUGS, Subjects


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
    assert advice.BusyBefore.threshold_cores / 2 > 4 * 0.01 / comparison._LOAD_WINDOW_S


# --- the warnings are given ------------------------------------------------------------------------------------------


class Timing(Sampling):
    """Without a race: what is timed is of no interest here. ``fails``: whether it ends by an error."""

    fails = False

    def _time(self, slugs: Any) -> Any:
        if self.fails:
            raise RuntimeError("cancelled")
        return "complete", ""


def timed(kind: type[Sampling]) -> Record:
    record = Record(replace(synthetic.run(unhappy=False), measurements=[], warnings=[]), dict.fromkeys(SLUGS, ""))
    timing = kind(
        parse({"workload": "square", "strategies": list(SLUGS)}),
        RULES,
        record,
        Dialogues(Subjects()),  # type: ignore[arg-type]
        lambda *_, **__: None,
        spec=lambda slug: Spec(role="timing", name=slug),
        timeout_s=lambda slug: 10.0,
        live_bytes=lambda slug: 1,
        room_bytes=lambda: 100,
        started_s=0.0,
        sample_timeout_floor_s=10.0,
    )
    try:
        timing.run(SLUGS)
    except RuntimeError:
        assert kind.fails
    return record


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(("cores", "expected"), [(0.51, ["busy_during"]), (0.50, [])])
def test_others_at_work_while_latencies_are_sampled_are_named_in_the_run(
    busy: type[Busy], cores: float, expected: list[str], fails: bool
) -> None:
    busy.cores = cores
    record = timed(type("Made", (Timing,), {"fails": fails}))
    assert [warning.code for warning in record.run.warnings] == expected


class Nothing:
    """A launcher that starts nothing."""

    start_method = "fork"

    def state(self) -> HostState:
        return HostState("ready", "")

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        raise AssertionError("nothing is to be started")

    def forget(self, events: "queue.Queue[Event]") -> None:
        pass


class Prepared(Comparison):
    """Memory and correctness are known at once, and nothing is timed: what others use is asked for in between."""

    def _reference(self) -> None:
        pass

    def _memory_stage(self, slugs: list[str]) -> None:
        for slug in slugs:
            self._record.update(slug, outcome="ok")

    def _without_onednn(self) -> None:
        pass

    def _time(self, *_: Any, **__: Any) -> Any:
        assert advice.BusyBefore.code not in {warning.code for warning in self._record.run.warnings}
        return "complete", ""

    def _process_peaks(self) -> None:
        pass


def compared() -> Run:
    published: list[View] = []
    request = parse({"workload": "square", "strategies": ["batched.graph"]})
    settings = Settings(probes=False)
    return Prepared("0" * 24, request, Nothing(), published.append, settings=settings).run()  # type: ignore[arg-type]


@pytest.mark.parametrize(("cores", "expected"), [(0.21, ["busy_before"]), (0.20, [])])
def test_others_at_work_before_latencies_are_timed_are_named_in_the_run(
    busy: type[Busy], cores: float, expected: list[str]
) -> None:
    busy.cores = cores
    run = compared()
    assert [warning.code for warning in run.warnings] == expected
    assert run.environment["load_of_others_cores"] == cores
    assert busy.asked == [comparison._LOAD_WINDOW_S], "long enough for the ticks of the system to add up"
