"""The load of others on the processors, and waits for one: how they are watched, and that a run whose machine was busy
says so."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import psutil
import pytest

from measure.engine import stages
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.machine import load
from measure.model.request import parse
from measure.model.run import Run
from tests.engine import QUICK
from tests.measure.machine.test_environment import write
from tests.subjects import LOST, Subjects


class Busy:
    """A watch that sees others use ``cores``; ``asked``: for how long it was to watch at the least, each time."""

    cores = 0.0
    share = 0.0
    asked: list[float] = []

    def cores_of_others(self, least_s: float = 0.0) -> float:
        self.asked.append(least_s)
        return self.cores

    def held(self) -> float:
        return self.share


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> type[Busy]:
    here = type("Here", (Busy,), {"asked": []})
    monkeypatch.setattr(load, "Watch", here)
    return here


class Processors(NamedTuple):
    """Seconds of all processors since the start, as Linux counts them: ``guest`` is in ``user`` too."""

    user: float
    system: float
    idle: float
    iowait: float
    guest: float


class Machine:
    """A machine with a clock of its own. From second 0 on others keep ``others`` cores busy, this process one, a child
    of it another one; a child that has ended has kept a third one busy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s, self.others, self.slept = 10.0, 0.0, list[float]()
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(time, "sleep", self._sleep)
        monkeypatch.setattr(psutil, "cpu_times", self._all)
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
        child = SimpleNamespace(cpu_times=lambda: (0.0, self.now_s))
        ended = SimpleNamespace(cpu_times=self._gone)
        own = SimpleNamespace(cpu_times=self._own, children=lambda recursive: [child, ended])
        monkeypatch.setattr(psutil, "Process", lambda: own)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds

    def _all(self, percpu: bool) -> list[Processors]:
        """On the first one are we; the second one is kept busy by others alone, a half of the time."""
        now_s = self.now_s
        ours = Processors(now_s * (2 + self.others), now_s, idle=5 * now_s, iowait=now_s, guest=now_s / 4)
        return [ours, Processors(now_s / 2, 0.0, idle=now_s / 2, iowait=0.0, guest=0.0)]

    def _own(self) -> tuple[float, ...]:
        """User, system, both of children that have ended, and what Linux counts beside them."""
        return self.now_s, 0.0, self.now_s / 2, self.now_s / 2, 99.0

    def _gone(self) -> None:
        raise psutil.NoSuchProcess(1)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_what_others_use_is_watched_for_as_long_as_is_wanted_without_this_process_or_any_below_it(
    machine: Machine, tmp_path: Path
) -> None:
    machine.others = 0.35
    watch = load.Watch(tmp_path)
    machine.now_s += 0.125
    for _ in range(2):  # once is long enough
        assert watch.cores_of_others(least_s=0.5) == pytest.approx(0.35)
        assert machine.slept == [0.375]


def test_what_others_do_on_processors_that_are_not_ours_does_not_count(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine.others = 0.25
    for ours, cores in (({0}, 0.25), ({0, 1}, 0.75)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, ours=ours: ours)
        watch = load.Watch(tmp_path)
        machine.now_s += 2.0
        assert watch.cores_of_others() == pytest.approx(cores)


def test_in_a_container_with_a_limit_only_what_is_in_it_counts_and_how_often_the_limit_held_it(
    machine: Machine, tmp_path: Path
) -> None:
    """Neighbours keep nine cores of the machine busy; in 2 s our three have used 6 s, and a program beside us 0.5 s."""
    machine.others = 9.0
    write(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"})
    write(tmp_path, {"sys/fs/cgroup/cpu.stat": "usage_usec 100000000\nnr_periods 1000\nnr_throttled 400\n"})
    watch = load.Watch(tmp_path)
    assert watch.held() == 0.0
    machine.now_s += 2.0
    write(tmp_path, {"sys/fs/cgroup/cpu.stat": "usage_usec 106500000\nnr_periods 1020\nnr_throttled 405\n"})
    assert watch.cores_of_others() == pytest.approx(0.25) and watch.held() == 0.25
    (tmp_path / "sys/fs/cgroup/cpu.stat").unlink()
    assert (watch.cores_of_others(), watch.held()) == (0.0, 0.0), "what is not told any more is not guessed"


# --- the warnings are given ------------------------------------------------------------------------------------------


def compared(subjects: Subjects) -> Run:
    request = parse({"workload": "square", "strategies": ["batched.graph"]})
    settings = Settings(most_processes=QUICK, probes=False, process_peaks=False)
    return Comparison("0" * 24, request, subjects, lambda view: None, settings=settings).run()


def codes(run: Run) -> set[str]:
    return {warning.code for warning in run.warnings}


def test_what_others_and_a_limit_take_while_latencies_are_sampled_is_named_from_a_bound_on(
    busy: type[Busy],
) -> None:
    assert not codes(compared(Subjects())) & {"busy_before", "busy_during", "held"}
    for name, bound, code in (("cores", 0.5, "busy_during"), ("share", 0.05, "held")):
        for figure, expected in ((bound, set()), (bound + 0.01, {code})):
            setattr(busy, name, figure)
            assert codes(compared(Subjects())) & {code} == expected, (name, figure)
        setattr(busy, name, 0.0)
    busy.cores = 0.51
    run = compared(Subjects(answers={"timing": lambda spec: [LOST]}))
    assert "busy_during" in codes(run) and run.status == "interrupted", "also where the host is lost"


def test_others_at_work_before_latencies_are_timed_are_named_in_the_run(busy: type[Busy]) -> None:
    for cores, expected in ((0.21, {"busy_before"}), (0.20, set())):
        busy.cores = cores
        run = compared(Subjects())
        assert codes(run) & {"busy_before"} == expected
        assert run.environment["load_of_others_cores"] == cores
    assert set(busy.asked) == {0.0, stages.LOAD_WINDOW_S}, "long enough for the ticks of the system to add up"
