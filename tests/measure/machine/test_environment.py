"""The facts of an environment: always the same keys, control groups read right, nothing private."""

import getpass
import json
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from measure.machine import allocator, environment, processor
from measure.machine.control_groups import ends_for_memory
from measure.machine.environment import available_memory, collect, describe
from measure.machine.flags import without_paths

MIB = 2**20

KEYS = [
    *("mapbench", "analysis", "python", "python_implementation", "os", "os_release", "tensorflow", "numpy", "keras"),
    *("cpu_model", "architecture", "cpu_features", "cache_l1d_bytes", "cache_l2_bytes", "cache_l3_bytes"),
    *("cores_machine", "cores_granted", "cores_affinity", "cores_cgroup", "cpu_governor", "virtualised"),
    *("memory_total_bytes", "memory_available_bytes", "memory_limit_bytes", "swap_total_bytes", "swap_used_bytes"),
    "huge_pages",
    *("gpus", "gpu_memory_bytes", "gpu_driver", "gpu_memory_growth", "gpu_allocator", "cuda", "cudnn"),
    *("threads_intra", "threads_inter", "threads_intra_used", "threads_inter_used", "openblas_threads"),
    *("onednn", "flags", "allocator", "tensorflow_allocator"),
    *("start_method", "load_of_others_cores", "load_average_1min"),
]


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


MEMINFO = "MemTotal: 8192000 kB\nMemFree: 1 kB\nMemAvailable: 4096000 kB\nSwapTotal: 2048 kB\nSwapFree: 1024 kB\n"


@pytest.fixture
def machine(tmp_path):
    """A machine with four caches and a processor, without control groups."""
    caches = {}
    for index, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K"), ("3", "Unified", "105M")]
    ):
        folder = f"sys/devices/system/cpu/cpu0/cache/index{index}"
        caches |= {f"{folder}/level": level, f"{folder}/type": kind, f"{folder}/size": size}
    return write(
        tmp_path,
        {
            **caches,
            "proc/meminfo": MEMINFO,
            "proc/cpuinfo": "model name\t: Quick 9000\nflags\t\t: fpu avx2 avx512f amx_tile hypervisor\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
            "sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "etc/os-release": 'NAME="Linux"\nPRETTY_NAME="Some Linux 12"\n',
            "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue\n",
        },
    )


def test_the_keys_are_always_the_same_and_documented_and_tensorflow_is_not_loaded(tmp_path, machine):
    here = collect(start_method="fork")
    assert list(here) == KEYS
    assert here["tensorflow"].startswith("2.") and here["numpy"] and available_memory() > 0
    assert list(collect(start_method="fresh", root=machine, variables={})) == KEYS
    empty = collect(start_method="fresh", root=tmp_path / "nothing", variables={})
    assert list(empty) == KEYS
    json.dumps(empty, allow_nan=False)
    said = environment.__doc__.partition("- versions and system:")[2].partition("What is true of")[0]
    assert set(re.findall(r"``(\w+)``", said)) == set(KEYS)


def test_every_fact_has_a_label_and_a_text(machine):
    here = collect(start_method="fork", root=machine, variables={}, threads=4)
    for facts in (here, {}, dict.fromkeys(KEYS), {key: ["odd"] for key in KEYS}):
        rows = describe(facts)
        assert len(rows) == len(KEYS)
        assert all(label and isinstance(text, str) and text for label, text in rows)
    rows = dict(describe(here))
    assert rows["Memory available"] == "3.91 GiB" and rows["Threads within an op"] == "4"
    assert rows["GPUs"] == "not known"
    # What an earlier run did not ask for is not known, in place of there being none.
    earlier = {key: None for key in KEYS if key != "cores_cgroup"}
    assert dict(describe(earlier))["Cores by the control group"] == "not known"
    assert dict(describe(dict.fromkeys(KEYS)))["Cores by the control group"] == "no limit"


def test_facts_are_read_from_the_system(machine):
    facts = collect(start_method="fork", root=machine, variables={"LD_PRELOAD": "/home/me/libjemalloc.so.2"}, threads=3)
    assert facts["cpu_model"] == "Quick 9000"
    assert facts["cpu_governor"] == "powersave"
    assert facts["huge_pages"] == "madvise"
    assert facts["os"] == "Some Linux 12"
    assert facts["gpu_driver"] == "550.54.15"
    assert (facts["cache_l1d_bytes"], facts["cache_l2_bytes"], facts["cache_l3_bytes"]) == (
        48 * 1024,
        2 * MIB,
        105 * MIB,
    )
    assert (facts["memory_total_bytes"], facts["memory_available_bytes"]) == (8_192_000 * 1024, 4_096_000 * 1024)
    assert (facts["swap_total_bytes"], facts["swap_used_bytes"]) == (2 * MIB, MIB)
    assert facts["memory_limit_bytes"] is None
    assert facts["allocator"] == "jemalloc (preloaded)"
    assert (facts["threads_intra"], facts["threads_inter"], facts["start_method"]) == (3, 3, "fork")
    assert facts["cpu_features"] == ["avx2", "avx512f", "amx_tile"]


def test_a_system_that_does_not_answer_leaves_a_fact_unknown(machine, monkeypatch):
    def silent(root):
        raise subprocess.TimeoutExpired("sysctl", 5)

    monkeypatch.setattr(processor, "model", silent)
    facts = collect(start_method="fork", root=machine, variables={})
    assert facts["cpu_model"] is None and facts["cpu_governor"] == "powersave"


def test_gpus_are_those_that_tensorflow_reports(machine):
    gpu = {"name": "NVIDIA H200", "compute_capability": "9.0", "memory_bytes": 140 * 2**30}
    reported = {"gpus": [gpu, {"name": "Other"}], "gpu_driver": "1.2.3", "cuda": "12.5", "cudnn": "9", "onednn": True}
    reported |= {"gpu_memory_growth": True, "gpu_allocator": "cuda_malloc_async"}
    facts = collect(start_method="fork", root=machine, tensorflow=reported)
    assert facts["gpus"] == ["NVIDIA H200, compute capability 9.0", "Other"]
    assert facts["gpu_memory_bytes"] == [140 * 2**30, None]
    assert facts["gpu_driver"] == "550.54.15", "what the kernel says"
    names = ("cuda", "cudnn", "onednn", "gpu_memory_growth", "gpu_allocator")
    assert {name: facts[name] for name in names} == {name: reported[name] for name in names}
    without = collect(start_method="fork", root=machine, tensorflow={**reported, "gpus": []})
    assert (without["gpus"], without["cuda"], without["cudnn"]) == ([], None, None)


# --- threads and allocators ------------------------------------------------------------------------------------------


def test_threads_in_effect_are_told_where_tensorflow_chooses(monkeypatch):
    monkeypatch.setattr(processor, "affinity", lambda: 6)
    within, across = "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"
    for configured, variables, used in (
        (None, {}, (6, 6)),
        (3, {within: "5"}, (3, 3)),
        (None, {within: "5", across: "2"}, (5, 2)),
        (None, {within: "0", across: "many"}, (6, 6)),
    ):
        facts = collect(start_method="fork", threads=configured, variables=variables)
        assert (facts["threads_intra"], facts["threads_inter"]) == (configured, configured)
        assert (facts["threads_intra_used"], facts["threads_inter_used"]) == used


def test_the_allocator_of_tensors_follows_from_onednn_and_variables():
    system, bfc = "TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "TF_CPU_ALLOCATOR_USE_BFC"
    for variables, onednn, name in (
        ({}, True, allocator.POOL),
        ({}, False, allocator.C_LIBRARY),
        ({system: "1"}, True, allocator.C_LIBRARY),
        ({system: "0"}, True, allocator.POOL),
        ({bfc: "True"}, False, allocator.BFC),
        ({bfc: "true", system: "1"}, True, allocator.BFC),
    ):
        assert allocator.of_processor(variables, onednn) == name
    assert allocator.of_gpus({}) == allocator.of_gpus({"TF_GPU_ALLOCATOR": "/home/me"}) == "BFC"
    assert allocator.of_gpus({"TF_GPU_ALLOCATOR": "cuda_malloc_async"}) == "cuda_malloc_async"


def test_a_process_that_has_tensorflow_tells_what_only_that_knows(host):
    facts = collect(start_method="fork", tensorflow=host.state().details)
    assert facts["onednn"] in (True, False) and isinstance(facts["gpus"], list)
    assert facts["tensorflow_allocator"] == allocator.of_processor(os.environ, facts["onednn"])


# --- control groups ---------------------------------------------------------------------------------------------------


def grouped(root: Path, *groups: str, **files: object) -> Path:
    """The machine with a process in these groups, and files of theirs: ``apps__memory_max`` is apps/memory.max."""
    names = {name.replace("__", "/").replace("_", ".", 1): f"{content}\n" for name, content in files.items()}
    inside = {f"sys/fs/cgroup/{name}": content for name, content in names.items()}
    return write(root, {"proc/self/cgroup": "".join(f"{group}\n" for group in groups), **inside})


def test_version_2_limits_memory_and_processor_time(machine):
    assert available_memory(machine) == 4_096_000 * 1024
    assert processor.granted(machine) == processor.affinity(), "without groups the machine decides"
    above = {"memory_max": 1024 * MIB, "memory_current": 500 * MIB, "memory_stat": f"anon 1\ninactive_file {100 * MIB}"}
    own = {"memory_max": "max", "memory_current": 300 * MIB, "memory_stat": f"anon 1\ninactive_file {100 * MIB}"}
    files = {f"apps__{name}": value for name, value in above.items()}
    files |= {f"apps__mine__{name}": value for name, value in own.items()}
    grouped(machine, "0::/apps/mine", **files)
    assert available_memory(machine) == 624 * MIB  # the group above has the limit; its page cache can go
    assert collect(start_method="fork", root=machine)["memory_limit_bytes"] == 1024 * MIB
    grouped(machine, "0::/apps/mine", apps__mine__memory_max=256 * MIB)
    assert available_memory(machine) == 56 * MIB
    grouped(machine, "0::/apps/mine", apps__mine__memory_current=900 * MIB)
    assert available_memory(machine) == 0


def test_version_2_inside_a_container_has_the_topmost_folder_only(machine):
    files = {"memory_max": 512 * MIB, "memory_current": 112 * MIB, "memory_stat": "inactive_file 0"}
    grouped(machine, "0::/system.slice/docker-0123.scope", cpu_max="50000 100000", **files)
    assert available_memory(machine) == 400 * MIB
    facts = collect(start_method="fork", root=machine)
    assert (facts["cores_granted"], facts["cores_cgroup"], facts["cores_affinity"]) == (0.5, 0.5, processor.affinity())


def test_version_1_limits_memory_and_processor_time(machine, monkeypatch):
    monkeypatch.setattr(processor, "affinity", lambda: 8)
    write(
        machine,
        {
            "proc/self/cgroup": "4:memory:/mine\n3:cpu,cpuacct:/mine\n1:name=systemd:/\n0::/\n",
            "sys/fs/cgroup/memory/mine/memory.limit_in_bytes": f"{2048 * MIB}\n",
            "sys/fs/cgroup/memory/mine/memory.usage_in_bytes": f"{1000 * MIB}\n",
            "sys/fs/cgroup/memory/mine/memory.stat": f"inactive_file 7\ntotal_inactive_file {200 * MIB}\n",
            "sys/fs/cgroup/cpu,cpuacct/mine/cpu.cfs_quota_us": "250000\n",
            "sys/fs/cgroup/cpu,cpuacct/mine/cpu.cfs_period_us": "100000\n",
        },
    )
    assert available_memory(machine) == 1248 * MIB
    facts = collect(start_method="fork", root=machine)
    # Which of the two binds can be seen.
    assert (facts["cores_granted"], facts["cores_cgroup"], facts["cores_affinity"]) == (2.5, 2.5, 8)
    write(machine, {"sys/fs/cgroup/cpu,cpuacct/mine/cpu.cfs_quota_us": "-1\n"})
    assert processor.granted(machine) == 8
    assert collect(start_method="fork", root=machine)["cores_cgroup"] is None


def test_the_kernels_count_of_processes_that_it_ended_for_want_of_memory_is_the_groups_own(machine):
    assert ends_for_memory(machine) == 0
    names = {"memory__memory_oom_control": "oom_kill 9", "memory__mine__memory_oom_control": "under_oom 0\noom_kill 2"}
    assert ends_for_memory(grouped(machine, "4:memory:/mine", **names)) == 2
    names = {"apps__memory_events": "oom_kill 9", "apps__mine__memory_events": "oom 4\noom_kill 3\noom_group_kill 0"}
    assert ends_for_memory(grouped(machine, "0::/apps/mine", **names)) == 3
    grouped(machine, "0::/apps/mine", apps__mine__memory_events="nonsense")
    assert ends_for_memory(machine) == 9, "the group above is the next one to ask"


def test_limits_that_bind_nothing_or_make_no_sense_are_none(machine):
    whole = {"memory_max": 2**45, "memory_current": 0, "memory_stat": "inactive_file 0"}
    nonsense = {"memory_max": "lots", "memory_current": "some", "memory_stat": "", "cpu_max": ""}
    for files in (whole, nonsense):
        grouped(machine, "0::/", **files)
        assert available_memory(machine) == 4_096_000 * 1024
        assert collect(start_method="fork", root=machine)["memory_limit_bytes"] is None


# --- nothing private -------------------------------------------------------------------------------------------------


def test_nothing_private_is_kept(machine):
    variables = {
        **os.environ,
        "XLA_FLAGS": f"--xla_dump_to={Path.home()}/secret --xla_gpu_autotune_level=2",
        "TF_XLA_FLAGS": "--tf_xla_auto_jit=2",
        "CUDA_VISIBLE_DEVICES": "GPU-8f6a1c2e-1234,1",
        "LD_PRELOAD": f"{Path.home()}/lib/libtcmalloc.so",
        "PASSWORD": "hunter2",
    }
    facts = collect(start_method="fork", variables=variables)
    document, values = json.dumps(facts), list(map(str, facts.values()))
    here = (socket.gethostname(), getpass.getuser(), str(Path.home()), os.getcwd())
    for private in (*here, "secret", "8f6a", "hunter2"):
        # A machine called "vm", or a user "root", may be part of a word: then the whole word is looked for.
        assert f'"{private}"' not in document and private not in values
        assert len(private) <= 4 or private not in document
    assert facts["flags"]["XLA_FLAGS"] == "--xla_dump_to=<path> --xla_gpu_autotune_level=2"
    assert facts["flags"]["TF_XLA_FLAGS"] == "--tf_xla_auto_jit=2"
    assert facts["flags"]["CUDA_VISIBLE_DEVICES"] == "GPU-<id>,1"


def test_paths_are_taken_out_of_flags():
    for value, kept in (
        ("--a=/home/me/x --b=3", "--a=<path> --b=3"),
        # The name of a folder may say who works there without a slash.
        ("--xla_dump_to=alice --xla_b=3", "--xla_dump_to=<path> --xla_b=3"),
        ("--xla_dump_to alice --b 3", "--xla_dump_to <path> --b 3"),
        ("--a=alice.txt --b=0.5", "--a=<path> --b=0.5"),
        (r"--a=C:\Users\me", "--a=<path>"),
        ("relative/me", "<path>"),
        ("--a='/home/me/Alice Smith' --b=3", "--a=<path> --b=3"),
        ('--a="/home/me/Alice, --x Smith" --b=3', "--a=<path> --b=3"),
        *((same, same) for same in ("", "1", "-1", "--xla_gpu_autotune_level=2", "granularity=fine,compact,1,0")),
    ):
        assert without_paths(value) == kept
