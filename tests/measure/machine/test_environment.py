"""The facts of an environment: what changes what is measured, limits of control groups read right, nothing private; and
how the load of others is watched."""

import getpass
import json
import os
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import psutil
import pytest

from measure.machine import control_groups, environment, load
from measure.machine.control_groups import available_memory, ends_for_memory
from measure.machine.environment import collect, describe, public
from measure.run.encoding import decode
from tests.engine import ROOT

MIB = 2**20
KEYS = list(collect(start_method="fork"))


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with a processor and 4000 MiB of memory that can be had, without control groups."""
    memory = SimpleNamespace(total=8000 * MIB, available=4000 * MIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    return write(
        tmp_path,
        {
            "proc/cpuinfo": "flags\t\t: fpu avx2\nmodel name\t: Quick 9000\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue\n",
        },
    )


def test_facts_are_read_from_the_system_and_from_a_process_that_is_measured(tmp_path, machine, monkeypatch):
    reported = {"gpus": ["NVIDIA H200"], "cuda": "12.5", "onednn": True, "names": ["CPU:0", "GPU:0"]}
    monkeypatch.setenv("LD_PRELOAD", "/home/me/libjemalloc.so.2")
    facts = collect(start_method="fork", root=machine, threads=3, tensorflow=reported)
    expected = {
        "cpu_model": "Quick 9000", "cpu_governor": "powersave", "huge_pages": "madvise", "gpu_driver": "550.54.15",
        "memory_total_bytes": 8000 * MIB, "memory_limit_bytes": None, "allocator": "jemalloc (preloaded)",
        "threads_intra_used": 3, "start_method": "fork", "gpus": ["NVIDIA H200"], "cuda": "12.5", "onednn": True,
    }  # fmt: skip
    assert {key: facts[key] for key in expected} == expected and list(facts) == KEYS
    empty = collect(start_method="fresh", root=tmp_path / "nothing")
    assert list(empty) == KEYS and empty["cpu_model"] is None and json.dumps(empty, allow_nan=False), "not known"


def test_every_fact_has_a_label_and_a_text_those_of_earlier_runs_too():
    before = decode((ROOT / "tests/data/explained_1.json").read_bytes()).environment
    for facts in (before, dict.fromkeys(KEYS), {key: ["odd"] for key in KEYS}):
        assert len(describe(facts)) == len(facts) and all(label and text for label, text in describe(facts))
    facts = {"memory_total_bytes": 2**31, "cores_granted": 2, "gpus": [], "virtualised": False, "gpu_driver": None}
    assert list(map(tuple, describe(facts))) == [
        ("memory total", "2.00 GiB"), ("cores granted", "2 cores"), ("gpus", "none"), ("virtualised", "False"),
        ("gpu driver", "–"),
    ]  # fmt: skip
    assert environment.machine({**facts, "cpu_model": "Quick 9000"}) == "Quick 9000, 2 cores, 2.00 GiB"


def test_the_allocator_of_tensors_follows_from_onednn_and_variables(monkeypatch):
    system, bfc = "TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "TF_CPU_ALLOCATOR_USE_BFC"
    for variables, onednn, name in (
        ({}, True, environment.POOL),
        ({}, False, environment.C_LIBRARY),
        ({system: "1"}, True, environment.C_LIBRARY),
        ({system: "0"}, True, environment.POOL),
        ({bfc: "true", system: "1"}, True, environment.BFC),
    ):
        for variable in (system, bfc):
            monkeypatch.setenv(variable, variables.get(variable, ""))
        assert environment.tensor_allocator(onednn) == name


def grouped(root: Path, *groups: str, **files: object) -> Path:
    """The machine with a process in these groups, and files of theirs: ``apps__memory_max`` is apps/memory.max."""
    names = {name.replace("__", "/").replace("_", ".", 1): f"{content}\n" for name, content in files.items()}
    inside = {f"sys/fs/cgroup/{name}": content for name, content in names.items()}
    return write(root, {"proc/self/cgroup": "".join(f"{group}\n" for group in groups), **inside})


def test_control_groups_limit_memory_and_processor_time(machine):
    assert available_memory(machine) == 4000 * MIB
    assert control_groups.cores_granted(machine) == len(control_groups.processors()), (
        "without groups the machine decides"
    )
    above = {"memory_max": 1024 * MIB, "memory_current": 500 * MIB, "memory_stat": f"anon 1\ninactive_file {100 * MIB}"}
    own = {"memory_max": "max", "memory_current": 300 * MIB, "memory_stat": f"anon 1\ninactive_file {100 * MIB}"}
    files = {f"apps__{name}": value for name, value in above.items()}
    files |= {f"apps__mine__{name}": value for name, value in own.items()}
    grouped(machine, "0::/apps/mine", **files)
    assert available_memory(machine) == 624 * MIB  # the group above has the limit; its page cache can go
    assert collect(start_method="fork", root=machine)["memory_limit_bytes"] == 1024 * MIB
    grouped(machine, "0::/apps/mine", apps__mine__memory_max=256 * MIB)
    assert available_memory(machine) == 56 * MIB
    # Inside a container there is the topmost folder only, whatever path the kernel tells.
    files = {"memory_max": 512 * MIB, "memory_current": 112 * MIB, "memory_stat": "inactive_file 0"}
    grouped(machine, "0::/system.slice/docker-0123.scope", cpu_max="50000 100000", **files)
    assert available_memory(machine) == 400 * MIB and control_groups.cores_granted(machine) == 0.5


def test_the_kernels_count_of_processes_that_it_ended_for_want_of_memory_is_the_groups_own(machine):
    assert ends_for_memory(machine) == 0
    names = {"apps__memory_events": "oom_kill 9", "apps__mine__memory_events": "oom 4\noom_kill 3\noom_group_kill 0"}
    assert ends_for_memory(grouped(machine, "0::/apps/mine", **names)) == 3
    (machine / "sys/fs/cgroup/apps/mine/memory.events").unlink()
    assert ends_for_memory(machine) == 9, "the group above is the next one to ask"


def test_nothing_private_is_kept(machine, monkeypatch):
    for name, value in {
        "XLA_FLAGS": f"--xla_dump_to={Path.home()}/secret --xla_gpu_autotune_level=2",
        "LD_PRELOAD": f"{Path.home()}/lib/libtcmalloc.so",
        "TF_CONFIG": '{"cluster": "hunter2"}',
        "PASSWORD": "hunter2",
    }.items():
        monkeypatch.setenv(name, value)
    facts = collect(start_method="fork")
    document, values = json.dumps(facts), list(map(str, facts.values()))
    here = (socket.gethostname(), getpass.getuser(), str(Path.home()), os.getcwd())
    for private in (*here, "secret", "hunter2"):
        # A machine called "vm", or a user "root", may be part of a word: then the whole word is looked for.
        assert f'"{private}"' not in document and private not in values
        assert len(private) <= 4 or private not in document
    assert facts["flags"]["XLA_FLAGS"] == "<path> --xla_gpu_autotune_level=2"
    for value, expected in (
        ("--a=/home/me/x --b=3 --c=false", "<path> --b=3 --c=false"),
        # The name of a folder may say who works there without a slash.
        ("--xla_dump_to alice --b=0.5", "--xla_dump_to <path> --b=0.5"),
        *((hidden, "<path>") for hidden in ("relative/me", "alice.txt", "GPU-8f6a1c2e-1234,1")),
        *((same, same) for same in ("", "-1", "--xla_gpu_autotune_level=2", "granularity=fine,compact,1,0")),
    ):
        assert public(value) == expected


class Processors(NamedTuple):
    """Seconds of all processors since the start, as Linux counts them: ``guest`` is in ``user`` too."""

    user: float
    system: float = 0.0
    idle: float = 0.0
    iowait: float = 0.0
    guest: float = 0.0


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A machine with a clock of its own and two processors. From second 0 on this process keeps one core busy, a child
    of it another one, one that has ended a third one, and others a quarter of one beside them on the first processor;
    on the second they alone are at work, a half of the time."""
    busy = SimpleNamespace(now_s=10.0, slept=[])
    child = SimpleNamespace(cpu_times=lambda: (0.0, busy.now_s))
    gone = SimpleNamespace(cpu_times=lambda: (_ for _ in ()).throw(psutil.NoSuchProcess(1)))
    # User, system, both of children that have ended, and what Linux counts beside them.
    times = lambda: (busy.now_s, 0.0, busy.now_s / 2, busy.now_s / 2, 99.0)  # noqa: E731

    def sleep(seconds: float) -> None:
        busy.slept.append(seconds)
        busy.now_s += seconds

    def processors(percpu: bool) -> list[Processors]:
        now_s = busy.now_s
        ours = Processors(user=2.25 * now_s, system=now_s, idle=5 * now_s, iowait=now_s, guest=now_s / 4)
        return [ours, Processors(user=now_s / 2, idle=now_s / 2)]

    monkeypatch.setattr(time, "monotonic", lambda: busy.now_s)
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(psutil, "cpu_times", processors)
    own = SimpleNamespace(cpu_times=times, children=lambda recursive: [child, gone])
    monkeypatch.setattr(psutil, "Process", lambda: own)
    return busy


def test_what_others_use_of_our_processors_is_watched_for_as_long_as_is_wanted(
    busy: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for ours, cores in (({0}, 0.25), ({0, 1}, 0.75)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, ours=ours: ours)
        watch = load.Watch(tmp_path)
        busy.now_s += 0.125
        busy.slept.clear()
        for _ in range(2):  # once is long enough
            assert watch.cores_of_others(least_s=0.5) == pytest.approx(cores)
            assert busy.slept == [0.375]
    moment = load.Watch(tmp_path)
    busy.now_s += 0.01
    assert moment.cores_of_others() == 0.0, "a tick of the system would count for cores"


def test_in_a_container_only_what_is_in_it_counts_and_how_often_a_limit_held_it(
    busy: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 2 s our three cores have used 6 s, a program in the container 0.5 s, and neighbours on our processors 1 s."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    for number, (group, name, most, cores, held) in enumerate(
        (
            ("/", "cgroup.type", "200000", 0.25, 0.25),
            ("/", "cgroup.type", "max", 0.25, 0.0),
            ("/", "of no container", "200000", 0.25, 0.25),
            ("/", "of no container", "max", 0.75, 0.0),
            ("/a.service", "of no container", "max", 0.75, 0.0),
        )
    ):
        files = {f"sys/fs/cgroup/{name}": "domain\n", "sys/fs/cgroup/cpu.max": f"{most} 100000\n"}
        root = write(tmp_path / str(number), {"proc/self/cgroup": f"0::{group}\n", **files})
        stat = "usage_usec {}\nnr_periods {}\nnr_throttled {}\n"
        write(root, {"sys/fs/cgroup/cpu.stat": stat.format(100_000_000, 1_000, 400)})
        watch = load.Watch(root)
        busy.now_s += 2.0
        write(root, {"sys/fs/cgroup/cpu.stat": stat.format(106_500_000, 1_020, 400 + int(20 * held))})
        assert watch.cores_of_others() == pytest.approx(cores) and watch.held() == held


def test_the_load_of_the_moment_is_that_since_the_last_look_and_not_that_of_an_hour(monkeypatch: pytest.MonkeyPatch):
    waited_s: list[float] = []

    def watch(age_s: float = 0.1, cores: float = 9.0) -> SimpleNamespace:
        return SimpleNamespace(age_s=age_s, cores_of_others=lambda least_s=0.0: waited_s.append(least_s) or cores)

    monkeypatch.setattr(load, "Watch", watch)
    monkeypatch.setattr(control_groups, "cores_granted", lambda: 2.0)
    moment = load.Moment()
    assert moment.cores_of_others() == 0.0 and not waited_s, "too short to tell"
    moment._watch = watch(5.0, 1.4)
    assert moment.slowdown() == pytest.approx(1.7) and moment.cores_of_others() == 1.4 and waited_s == [0.0]
    moment._watch = watch(3_600.0, 1.4)
    assert moment.slowdown() == 2.0 and waited_s[-1] > 0.0, "a fresh look; others use all cores at most"
