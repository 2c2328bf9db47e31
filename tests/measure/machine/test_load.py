"""The load of others on the processors: how it is watched, and that a run whose machine was busy says so."""

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
from measure.judge import rules
from measure.machine import load
from measure.model.request import parse
from measure.model.run import Run
from tests.engine import QUICK
from tests.measure.machine.test_environment import write
from tests.subjects import LOST, Subjects


class Busy:
    """A watch that sees others use ``cores``; ``asked``: for how long it was to watch at the least, each time."""

    cores = 0.0
    pages = 0.0
    share = 0.0
    asked: list[float] = []

    def cores_of_others(self, least_s: float = 0.0) -> float:
        self.asked.append(least_s)
        return self.cores

    def cores_of_pages(self) -> float:
        return self.pages

    def held(self) -> float:
        return self.share


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> type[Busy]:
    class Here(Busy):
        asked: list[float] = []

    monkeypatch.setattr(load, "Watch", Here)
    return Here


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

    def __init__(self, monkeypatch: pytest.MonkeyPatch, others: float) -> None:
        self.now_s, self.slept = 10.0, list[float]()
        self._others = others
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(time, "sleep", self._sleep)
        monkeypatch.setattr(psutil, "cpu_times", self._all)
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(os.cpu_count() or 1)))
        child = SimpleNamespace(cpu_times=lambda: SimpleNamespace(user=0.0, system=self.now_s))
        ended = SimpleNamespace(cpu_times=self._gone)
        own = SimpleNamespace(cpu_times=self._own, children=lambda recursive: [child, ended])
        monkeypatch.setattr(psutil, "Process", lambda: own)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds

    def _all(self, percpu: bool = False) -> Processors | list[Processors]:
        """Of single processors, the second one is kept busy by others alone, a half of the time."""
        now_s = self.now_s
        if percpu:
            ours = Processors(now_s * 2, now_s, idle=0.0, iowait=0.0, guest=0.0)
            return [ours, Processors(now_s / 2, 0.0, idle=now_s / 2, iowait=0.0, guest=0.0)]
        return Processors(now_s * (1 + self._others), now_s * 2, idle=5 * now_s, iowait=now_s, guest=now_s / 4)

    def _own(self) -> SimpleNamespace:
        return SimpleNamespace(
            user=self.now_s, system=0.0, children_user=self.now_s / 2, children_system=self.now_s / 2
        )

    def _gone(self) -> None:
        raise psutil.NoSuchProcess(1)


def test_what_others_use_does_not_count_this_process_nor_any_below_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = Machine(monkeypatch, others=0.35)
    watch = load.Watch(tmp_path)
    machine.now_s += 2.0
    assert watch.cores_of_others() == pytest.approx(0.35) and not machine.slept


def test_others_are_watched_for_as_long_as_is_wanted_and_no_longer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = Machine(monkeypatch, others=1.0)
    watch = load.Watch(tmp_path)
    machine.now_s += 0.125
    assert watch.cores_of_others(least_s=0.5) == pytest.approx(1.0)
    assert machine.slept == [0.375]
    assert watch.cores_of_others(least_s=0.5) == pytest.approx(1.0)
    assert machine.slept == [0.375]


def test_the_pages_are_watched_apart_from_the_thread_that_measures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From second 10 on the process keeps two cores busy, of which a half is the measuring thread's."""
    machine = Machine(monkeypatch, others=0.0)
    monkeypatch.setattr(time, "process_time", lambda: 2.0 * machine.now_s)
    monkeypatch.setattr(time, "thread_time", lambda: 0.5 * machine.now_s)
    watch = load.Watch(tmp_path)
    machine.now_s += 2.0
    assert watch.cores_of_pages() == pytest.approx(1.5) and watch.cores_of_others() == 0.0


def test_what_others_do_on_processors_that_are_not_ours_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = Machine(monkeypatch, others=9.0)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    for ours, cores in (({0}, 0.0), ({0, 1}, 0.5)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, ours=ours: ours)
        watch = load.Watch(tmp_path)
        machine.now_s += 2.0
        assert watch.cores_of_others() == pytest.approx(cores)


VERSION_2 = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}
VERSION_1 = {
    "proc/self/cgroup": "3:cpu:/pod\n2:cpuacct:/pod\n",
    "sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us": "200000\n",
    "sys/fs/cgroup/cpu/pod/cpu.cfs_period_us": "100000\n",
}


def used(version: int, seconds: float, periods: int, held: int) -> dict[str, str]:
    """The files of the group's use, as the kernel writes them."""
    counts = f"nr_periods {periods}\nnr_throttled {held}\n"
    if version == 2:
        return {"sys/fs/cgroup/cpu.stat": f"usage_usec {seconds * 1e6:.0f}\nuser_usec 1\n{counts}throttled_usec 5\n"}
    usage = {"sys/fs/cgroup/cpuacct/pod/cpuacct.usage": f"{seconds * 1e9:.0f}\n"}
    return {"sys/fs/cgroup/cpu/pod/cpu.stat": f"{counts}throttled_time 5000\n", **usage}


@pytest.mark.parametrize(("version", "files"), [(2, VERSION_2), (1, VERSION_1)])
def test_in_a_container_with_a_limit_only_what_is_in_it_counts_and_how_often_the_limit_held_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: int, files: dict[str, str]
) -> None:
    """Neighbours keep nine cores of the machine busy; in 2 s our three have used 6 s, and a program beside us 0.5 s."""
    machine = Machine(monkeypatch, others=9.0)
    write(tmp_path, {**files, **used(version, 100.0, periods=1_000, held=400)})
    watch = load.Watch(tmp_path)
    assert watch.held() == 0.0
    machine.now_s += 2.0
    write(tmp_path, used(version, 106.5, periods=1_020, held=405))
    assert watch.cores_of_others() == pytest.approx(0.25) and watch.held() == 0.25
    for file in tmp_path.rglob("cpu.stat"):
        file.unlink()
    assert (watch.cores_of_others(), watch.held()) == (0.0, 0.0), "what is not told any more is not guessed"


def test_two_ticks_of_the_system_do_not_trip_the_rule() -> None:
    """Nor do those that our own share is uncertain by, in the shortest time that is watched."""
    assert rules.BUSY_CORES / 2 > 4 * 0.01 / stages.LOAD_WINDOW_S


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


def test_pages_at_work_while_latencies_are_sampled_are_named_in_the_run(busy: type[Busy]) -> None:
    busy.pages = 0.7
    (warning,) = (each for each in compared(Subjects()).warnings if each.code == "busy_during")
    assert "Mapbench's pages used 0.7 cores" in warning.message


@pytest.mark.parametrize(("share", "expected"), [(0.06, {"held"}), (0.05, set())])
def test_a_limit_that_held_the_run_while_latencies_were_sampled_is_named(
    busy: type[Busy], share: float, expected: set[str]
) -> None:
    busy.share = share
    assert codes(compared(Subjects())) & {"held"} == expected


@pytest.mark.parametrize(("cores", "expected"), [(0.21, {"busy_before"}), (0.20, set())])
def test_others_at_work_before_latencies_are_timed_are_named_in_the_run(
    busy: type[Busy], cores: float, expected: set[str]
) -> None:
    busy.cores = cores
    run = compared(Subjects())
    assert codes(run) & {"busy_before"} == expected
    assert run.environment["load_of_others_cores"] == cores
    assert set(busy.asked[:-1]) == {stages.LOAD_WINDOW_S}, "long enough for the ticks of the system to add up"


def test_a_burst_that_ends_before_latencies_are_timed_is_waited_for_and_not_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As of a browser that draws the page of the run."""
    seen = iter([0.9, 0.6, 0.1])

    class Calms(Busy):
        def cores_of_others(self, least_s: float = 0.0) -> float:
            return next(seen) if least_s else 0.0

    monkeypatch.setattr(load, "Watch", Calms)
    run = compared(Subjects())
    assert run.environment["load_of_others_cores"] == 0.1 and not codes(run) & {"busy_before", "busy_during"}
    assert next(seen, None) is None, "and as soon as it is calm, nobody waits"
