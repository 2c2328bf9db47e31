"""The load of others on the processors, and waits for one: how they are watched, and that a run whose machine was busy
says so."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import psutil
import pytest

from measure.engine import comparison
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.machine import load
from measure.run.request import parse
from tests.engine import QUICK
from tests.measure.machine.test_environment import write
from tests.subjects import Subjects


class Processors(NamedTuple):
    """Seconds of all processors since the start, as Linux counts them: ``guest`` is in ``user`` too."""

    user: float
    system: float = 0.0
    idle: float = 0.0
    iowait: float = 0.0
    guest: float = 0.0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A machine with a clock of its own and two processors. From second 0 on this process keeps one core busy, a child
    of it another one, one that has ended a third one, and others a quarter of one beside them on the first processor;
    on the second they alone are at work, a half of the time."""
    machine = SimpleNamespace(now_s=10.0, slept=[])
    child = SimpleNamespace(cpu_times=lambda: (0.0, machine.now_s))
    gone = SimpleNamespace(cpu_times=lambda: (_ for _ in ()).throw(psutil.NoSuchProcess(1)))
    # User, system, both of children that have ended, and what Linux counts beside them.
    times = lambda: (machine.now_s, 0.0, machine.now_s / 2, machine.now_s / 2, 99.0)  # noqa: E731

    def sleep(seconds: float) -> None:
        machine.slept.append(seconds)
        machine.now_s += seconds

    def processors(percpu: bool) -> list[Processors]:
        now_s = machine.now_s
        ours = Processors(user=2.25 * now_s, system=now_s, idle=5 * now_s, iowait=now_s, guest=now_s / 4)
        return [ours, Processors(user=now_s / 2, idle=now_s / 2)]

    monkeypatch.setattr(time, "monotonic", lambda: machine.now_s)
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(psutil, "cpu_times", processors)
    own = SimpleNamespace(cpu_times=times, children=lambda recursive: [child, gone])
    monkeypatch.setattr(psutil, "Process", lambda: own)
    return machine


def test_what_others_use_of_our_processors_is_watched_for_as_long_as_is_wanted(
    machine: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for ours, cores in (({0}, 0.25), ({0, 1}, 0.75)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, ours=ours: ours)
        watch = load.Watch(tmp_path)
        machine.now_s += 0.125
        machine.slept.clear()
        for _ in range(2):  # once is long enough
            assert watch.cores_of_others(least_s=0.5) == pytest.approx(cores)
            assert machine.slept == [0.375]
    moment = load.Watch(tmp_path)
    machine.now_s += 0.01
    assert moment.cores_of_others() == 0.0, "a tick of the system would count for cores"


def test_in_a_container_with_a_limit_only_what_is_in_it_counts_and_how_often_the_limit_held_it(
    machine: SimpleNamespace, tmp_path: Path
) -> None:
    """In 2 s our three cores have used 6 s, and a program beside us in the container 0.5 s."""
    write(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"})
    write(tmp_path, {"sys/fs/cgroup/cpu.stat": "usage_usec 100000000\nnr_periods 1000\nnr_throttled 400\n"})
    watch = load.Watch(tmp_path)
    machine.now_s += 2.0
    write(tmp_path, {"sys/fs/cgroup/cpu.stat": "usage_usec 106500000\nnr_periods 1020\nnr_throttled 405\n"})
    assert watch.cores_of_others() == pytest.approx(0.25) and watch.held() == 0.25


# --- the warnings are given ------------------------------------------------------------------------------------------


def test_what_others_and_a_limit_take_before_and_while_latencies_are_sampled_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []
    watch = SimpleNamespace(cores_of_others=lambda least_s=0.0: asked.append(least_s) or 0.51, held=lambda: 0.06)
    monkeypatch.setattr(load, "Watch", lambda: watch)
    request = parse({"workload": "square", "strategies": ["batched.graph"]})
    settings = Settings(most_processes=QUICK, probes=False, process_peaks=False)
    run = Comparison("0" * 24, request, Subjects(), lambda view: None, settings=settings).run()
    assert {"busy_during", "held"} <= {warning.code for warning in run.warnings}
    assert run.environment["load_of_others_cores"] == 0.51
    assert set(asked) == {0.0, comparison.LOAD_WINDOW_S}, "long enough for the ticks of the system to add up"
