"""The facts of an environment: always the same keys, control groups read right, nothing private."""

import ctypes
import getpass
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from measure.machine import allocator, environment, gpu, processor
from measure.machine.control_groups import ends_for_memory
from measure.machine.environment import available_memory, collect, describe
from measure.machine.flags import without_paths
from tests import warm

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


def test_the_keys_are_always_the_same(tmp_path, machine):
    assert list(collect(start_method="fork")) == KEYS
    assert list(collect(start_method="fresh", root=machine, variables={})) == KEYS
    empty = collect(start_method="fresh", root=tmp_path / "nothing", variables={})
    assert list(empty) == KEYS
    json.dumps(empty, allow_nan=False)


def test_every_key_is_told_where_the_list_is_documented():
    said = environment.__doc__.partition("- versions and system:")[2].partition("What is true of")[0]
    assert set(re.findall(r"``(\w+)``", said)) == set(KEYS)


def test_what_an_earlier_run_did_not_ask_for_is_not_known():
    earlier = {key: None for key in KEYS if key != "cores_cgroup"}
    assert dict(describe(earlier))["Cores by the control group"] == "not known"
    assert dict(describe(dict.fromkeys(KEYS)))["Cores by the control group"] == "no limit"


def test_every_fact_has_a_label_and_a_text(machine):
    for facts in (collect(start_method="fork"), {}, dict.fromkeys(KEYS), {key: ["odd"] for key in KEYS}):
        rows = describe(facts)
        assert len(rows) == len(KEYS)
        assert all(label and isinstance(text, str) and text for label, text in rows)
    rows = dict(describe(collect(start_method="fork", root=machine, variables={}, threads=4)))
    assert rows["Memory available"] == "3.91 GiB"
    assert rows["Threads within an op"] == "4"
    assert rows["GPUs"] == "not known"
    assert rows["Processes start"] == "as forks of one host"


def test_a_system_that_does_not_answer_leaves_a_fact_unknown(machine, monkeypatch):
    def silent(root):
        raise subprocess.TimeoutExpired("sysctl", 5)

    monkeypatch.setattr(processor, "model", silent)
    facts = collect(start_method="fork", root=machine, variables={"OMP_THREAD_LIMIT": "2", "ONEDNN_VERBOSE": "1"})
    assert facts["cpu_model"] is None and facts["cpu_governor"] == "powersave"
    assert facts["flags"] == {"OMP_THREAD_LIMIT": "2", "ONEDNN_VERBOSE": "1"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the files of Linux")
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


def test_gpus_are_those_that_tensorflow_reports(machine):
    gpu = {"name": "NVIDIA H200", "compute_capability": "9.0", "memory_bytes": 140 * 2**30}
    reported = {"gpus": [gpu, {"name": "Other"}], "gpu_driver": "1.2.3", "cuda": "12.5", "cudnn": "9", "onednn": True}
    facts = collect(start_method="fork", root=machine, tensorflow=reported)
    assert facts["gpus"] == ["NVIDIA H200, compute capability 9.0", "Other"]
    assert facts["gpu_memory_bytes"] == [140 * 2**30, None]
    assert dict(describe(facts))["Memory of each GPU"] == "140.0 GiB, not known"
    assert facts["gpu_driver"] == "550.54.15", "what the kernel says"
    (machine / "proc/driver/nvidia/version").unlink()
    assert collect(start_method="fork", root=machine, tensorflow=reported)["gpu_driver"] == "1.2.3"
    assert facts["onednn"] is True and dict(describe(facts))["oneDNN"] == "on"
    assert (facts["cuda"], facts["cudnn"]) == ("12.5", "9")
    grown = {"gpu_memory_growth": True, "gpu_allocator": "cuda_malloc_async"}
    told = collect(start_method="fork", tensorflow=reported | grown, variables={"TF_FORCE_GPU_ALLOW_GROWTH": "false"})
    assert {key: told[key] for key in grown} == grown and told["flags"] == {}, "Mapbench sets that variable itself"
    assert dict(describe(told))["Memory of GPUs grows"] == "yes"
    without = collect(start_method="fork", root=machine, tensorflow={**reported, "gpus": []})
    assert (without["gpus"], without["cuda"], without["cudnn"]) == ([], None, None)


class Driver:
    """A library of the driver, whose functions are called as through ctypes: one GPU of 140 GiB."""

    def __init__(self, refuses: str = "") -> None:
        self._refuses = refuses

    def __getattr__(self, name):
        def call(*arguments):
            if name == self._refuses:
                return 100
            if name == "cuDeviceGet":
                if arguments[1] != 0:
                    return 101
                arguments[0]._obj.value = 7
            elif name == "cuDeviceTotalMem_v2":
                assert arguments[1].value == 7
                arguments[0]._obj.value = 140 * 2**30
            elif name == "nvmlSystemGetDriverVersion":
                arguments[0].value = b"550.54.15"
            return 0

        return call


def test_the_memory_of_a_gpu_and_its_driver_are_what_the_driver_says(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver())
    assert (gpu.memory_bytes(0), gpu.memory_bytes(1), gpu.driver()) == (140 * 2**30, None, "550.54.15")
    for refuses in ("cuInit", "cuDeviceTotalMem_v2"):
        monkeypatch.setattr(ctypes, "CDLL", lambda name, refuses=refuses: Driver(refuses))
        assert gpu.memory_bytes(0) is None
    for refuses in ("nvmlInit_v2", "nvmlSystemGetDriverVersion"):
        monkeypatch.setattr(ctypes, "CDLL", lambda name, refuses=refuses: Driver(refuses))
        assert gpu.driver() is None


@pytest.mark.parametrize("there", [("libcuda.so.1", "libnvidia-ml.so.1"), ("nvcuda.dll", "nvml.dll"), ()])
def test_the_driver_has_a_name_of_each_system_or_is_missing(monkeypatch, there):
    def load_library(name):
        if name not in there:
            raise OSError(f"{name} cannot be opened")
        return Driver()

    monkeypatch.setattr(ctypes, "CDLL", load_library)
    assert (gpu.memory_bytes(0), gpu.driver()) == ((140 * 2**30, "550.54.15") if there else (None, None))


# --- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configured", "variables", "within", "across"),
    [
        (None, {}, 6, 6),
        (3, {"TF_NUM_INTRAOP_THREADS": "5"}, 3, 3),
        (None, {"TF_NUM_INTRAOP_THREADS": "5", "TF_NUM_INTEROP_THREADS": "2"}, 5, 2),
        (None, {"TF_NUM_INTRAOP_THREADS": "0", "TF_NUM_INTEROP_THREADS": "many"}, 6, 6),
    ],
)
def test_threads_in_effect_are_told_where_tensorflow_chooses(monkeypatch, configured, variables, within, across):
    monkeypatch.setattr(processor, "affinity", lambda: 6)
    facts = collect(start_method="fork", threads=configured, variables=variables)
    assert (facts["threads_intra"], facts["threads_inter"]) == (configured, configured)
    assert (facts["threads_intra_used"], facts["threads_inter_used"]) == (within, across)


# Forks of a process that has imported TensorFlow, one for each set of variables.
_THREADS = """
import json, os, sys
from collections import Counter
from pathlib import Path
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import tensorflow as tf
from measure.machine import processor

for variables in json.loads(sys.argv[1]):
    if not os.fork():
        os.environ.update(variables)
        break
    os.wait()
else:
    sys.exit()

def count():
    return Counter(path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm"))

before = count()
tf.constant(1.0) + 1
new = count() - before
across = new.pop("tf_Compute", 0)
# The name of those within ops is too long for the system, so that they keep the one of the process.
within = new.pop(Path("/proc/self/comm").read_text().strip(), 0)
print(within, across, *(processor.tensorflow_threads(None, os.environ, across_ops=each) for each in (False, True)))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads by the files of Linux")
def test_tensorflow_starts_as_many_threads_as_are_told():
    own = {name: value for name, value in os.environ.items() if not name.startswith("TF_NUM_")}
    own |= {"TF_CPP_MIN_LOG_LEVEL": "3", "OPENBLAS_NUM_THREADS": "1"}
    variables = json.dumps([{}, {"TF_NUM_INTRAOP_THREADS": "3", "TF_NUM_INTEROP_THREADS": "5"}])
    root = Path(__file__).parents[3]
    run = warm.run(_THREADS, variables, folder=root, environment=own)
    assert run.stdout.split() == ["1"] * 4 + ["3", "5"] * 2, run.stderr[-2_000:]


# --- allocators, as the processes that are measured have them ---------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "onednn", "name"),
    [
        ({}, True, allocator.POOL),
        ({}, False, allocator.C_LIBRARY),
        ({"TF_ONEDNN_USE_SYSTEM_ALLOCATOR": "1"}, True, allocator.C_LIBRARY),
        ({"TF_ONEDNN_USE_SYSTEM_ALLOCATOR": "0"}, True, allocator.POOL),
        ({"TF_CPU_ALLOCATOR_USE_BFC": "True"}, False, allocator.BFC),
        ({"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_ONEDNN_USE_SYSTEM_ALLOCATOR": "1"}, True, allocator.BFC),
    ],
)
def test_the_allocator_of_tensors_follows_from_onednn_and_variables(variables, onednn, name):
    assert allocator.of_processor(variables, onednn) == name


def test_the_allocator_of_gpus_is_bfc_or_what_a_variable_names():
    assert allocator.of_gpus({}) == allocator.of_gpus({"TF_GPU_ALLOCATOR": "/home/me"}) == "BFC"
    assert allocator.of_gpus({"TF_GPU_ALLOCATOR": "cuda_malloc_async"}) == "cuda_malloc_async"


_FAULTS = """
import json, os, resource, sys
import msgspec
import tensorflow as tf
from measure.subject import subject
from measure.subject.messages import Spec

for variables in json.loads(sys.argv[1]):
    if not os.fork():
        os.environ.update(variables)
        break
    os.wait()
else:
    sys.exit()

class Channel:
    def send(self, message): said.append(msgspec.to_builtins(message))

said = []
subject.serve(Spec(role="devices"), Channel())

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

# Larger than the largest block that the C library keeps, of pages of which each is a fault where it is new.
numbers = tf.zeros([40 * 2**18])
for _ in range(3):
    tf.negative(numbers)
before = faults()
tf.negative(numbers)
print(json.dumps([said[0], faults() - before]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts page faults as Linux does")
@pytest.mark.parametrize(
    ("imported_with", "later"),
    [
        ({}, {"TF_ONEDNN_USE_SYSTEM_ALLOCATOR": "1"}),
        ({"TF_ENABLE_ONEDNN_OPTS": "0", "OPENBLAS_NUM_THREADS": "1"}, {"TF_CPU_ALLOCATOR_USE_BFC": "true"}),
    ],
)
def test_a_process_tells_its_allocator_and_pages_are_fresh_where_that_is_the_c_library(imported_with, later):
    others = ("TF_", "OPENBLAS", "OMP_", "MALLOC")
    own = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    own |= {"TF_CPP_MIN_LOG_LEVEL": "3", **imported_with}
    command = [sys.executable, "-c", _FAULTS, json.dumps([{}, later])]
    root = Path(__file__).parents[3]
    if imported_with:  # as the nursery has imported it
        run = warm.run(*command[2:], folder=root, environment=own)
    else:
        run = subprocess.run(command, cwd=root, env=own, capture_output=True, text=True, check=True)
    for variables, line in zip((imported_with, imported_with | later), run.stdout.splitlines(), strict=True):
        told, faults = json.loads(line)
        expected = allocator.of_processor(variables, told["onednn"])
        assert told["tensorflow_allocator"] == expected
        # 40 MiB are 20 large pages, or 10 240 small ones.
        assert (faults >= 20) == (expected == allocator.C_LIBRARY)
        # NumPy's wheels have an OpenBLAS of at most 64.
        most = 1 if "OPENBLAS_NUM_THREADS" in variables else 64
        assert told["openblas_threads"] == min(most, processor.affinity())
        assert told["gpu_allocator"] is None and told["gpu_memory_growth"] is None


# --- control groups ---------------------------------------------------------------------------------------------------


def test_without_control_groups_the_machine_decides(machine):
    assert available_memory(machine) == 4_096_000 * 1024
    assert processor.granted(machine) == processor.affinity()


def test_version_2_limits_memory(machine):
    folder = "sys/fs/cgroup/apps/mine"
    write(
        machine,
        {
            "proc/self/cgroup": "0::/apps/mine\n",
            f"{folder}/memory.max": "max\n",
            f"{folder}/memory.current": f"{300 * MIB}\n",
            f"{folder}/memory.stat": f"anon 1\ninactive_file {100 * MIB}\n",
            "sys/fs/cgroup/apps/memory.max": f"{1024 * MIB}\n",
            "sys/fs/cgroup/apps/memory.current": f"{500 * MIB}\n",
            "sys/fs/cgroup/apps/memory.stat": f"anon 1\ninactive_file {100 * MIB}\n",
        },
    )
    assert available_memory(machine) == 624 * MIB  # the group above has the limit; its page cache can go
    assert collect(start_method="fork", root=machine)["memory_limit_bytes"] == 1024 * MIB
    write(machine, {f"{folder}/memory.max": f"{256 * MIB}\n"})
    assert available_memory(machine) == 56 * MIB
    assert collect(start_method="fork", root=machine)["memory_limit_bytes"] == 256 * MIB
    write(machine, {f"{folder}/memory.current": f"{900 * MIB}\n"})
    assert available_memory(machine) == 0


def test_version_2_inside_a_container_has_the_topmost_folder_only(machine):
    write(
        machine,
        {
            "proc/self/cgroup": "0::/system.slice/docker-0123.scope\n",
            "sys/fs/cgroup/memory.max": f"{512 * MIB}\n",
            "sys/fs/cgroup/memory.current": f"{112 * MIB}\n",
            "sys/fs/cgroup/memory.stat": "inactive_file 0\n",
            "sys/fs/cgroup/cpu.max": "50000 100000\n",
        },
    )
    assert available_memory(machine) == 400 * MIB
    facts = collect(start_method="fork", root=machine)
    assert (facts["cores_granted"], facts["cores_cgroup"], facts["cores_affinity"]) == (0.5, 0.5, processor.affinity())


def test_version_1_limits_memory_and_processor_time(machine, monkeypatch):
    monkeypatch.setattr(processor, "affinity", lambda: 8)
    write(
        machine,
        {
            "proc/self/cgroup": "4:memory:/mine\n3:cpu,cpuacct:/mine\n1:name=systemd:/\n0::/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
            "sys/fs/cgroup/memory/memory.stat": "cache 1\n",
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
    version_1 = {
        "proc/self/cgroup": "4:memory:/mine\n",
        "sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 9\n",
        "sys/fs/cgroup/memory/mine/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    }
    assert ends_for_memory(write(machine, version_1)) == 2
    version_2 = {
        "proc/self/cgroup": "0::/apps/mine\n",
        "sys/fs/cgroup/apps/memory.events": "oom_kill 9\n",
        "sys/fs/cgroup/apps/mine/memory.events": "low 0\nhigh 0\nmax 7\noom 4\noom_kill 3\noom_group_kill 0\n",
    }
    assert ends_for_memory(write(machine, version_2)) == 3
    write(machine, {"sys/fs/cgroup/apps/mine/memory.events": "nonsense\n"})
    assert ends_for_memory(machine) == 9, "the group above is the next one to ask"


def test_a_limit_beyond_the_machine_is_none(machine):
    write(
        machine,
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": f"{2**45}\n",
            "sys/fs/cgroup/memory.current": "0\n",
            "sys/fs/cgroup/memory.stat": "inactive_file 0\n",
        },
    )
    assert available_memory(machine) == 4_096_000 * 1024
    assert collect(start_method="fork", root=machine)["memory_limit_bytes"] is None


def test_files_that_hold_nonsense_are_not_known(machine):
    write(
        machine,
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "lots\n",
            "sys/fs/cgroup/memory.current": "some\n",
            "sys/fs/cgroup/memory.stat": "",
            "sys/fs/cgroup/cpu.max": "",
            "sys/devices/system/cpu/cpu0/cache/index0/size": "big",
        },
    )
    assert available_memory(machine) == 4_096_000 * 1024
    assert collect(start_method="fork", root=machine)["cache_l1d_bytes"] is None


# --- private, load ----------------------------------------------------------------------------------------------------


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
    document = json.dumps(facts)
    for private in (
        socket.gethostname(),
        getpass.getuser(),
        str(Path.home()),
        os.getcwd(),
        "secret",
        "8f6a",
        "hunter2",
    ):
        # A machine called "vm", or a user "root", may be part of a word: then the whole word is looked for.
        values = [str(value) for value in facts.values()]
        assert f'"{private}"' not in document and not any(private == value for value in values)
        if len(private) > 4:
            assert private not in document
    assert facts["flags"]["XLA_FLAGS"] == "--xla_dump_to=<path> --xla_gpu_autotune_level=2"
    assert facts["flags"]["TF_XLA_FLAGS"] == "--tf_xla_auto_jit=2"
    assert facts["flags"]["CUDA_VISIBLE_DEVICES"] == "GPU-<id>,1"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("1", "1"),
        ("--a=/home/me/x --b=3", "--a=<path> --b=3"),
        ("--a=~/x,--b", "--a=<path>,--b"),
        # The name of a folder may say who works there without a slash.
        ("--xla_dump_to=alice --xla_b=3", "--xla_dump_to=<path> --xla_b=3"),
        ("--xla_gpu_cuda_data_dir=alice", "--xla_gpu_cuda_data_dir=<path>"),
        ("--xla_gpu_autotune_level=2", "--xla_gpu_autotune_level=2"),
        (r"--a=C:\Users\me", "--a=<path>"),
        ("relative/me", "<path>"),
        ("--tf_xla_persistent_cache_directory=alice", "--tf_xla_persistent_cache_directory=<path>"),
        ("--xla_gpu_override_gemm_autotuner=alice.txt", "--xla_gpu_override_gemm_autotuner=<path>"),
        ("--a=alice.txt --b=0.5", "--a=<path> --b=0.5"),
        ("--xla_dump_to alice --b 3", "--xla_dump_to <path> --b 3"),
        ('"--xla_dump_to=alice" --b', '"--xla_dump_to=<path> --b'),
        ("--a='/home/me/Alice Smith' --b=3", "--a=<path> --b=3"),
        ('--a="/home/me/Alice, --x Smith" --b=3', "--a=<path> --b=3"),
        ("--a=/home/me/Alice Smith --b", "--a=<path> <path> --b"),
        ("--a=/data/a,alice --b", "--a=<path> --b"),
        ("--a='/home/me/Alice Smith", "--a=<path>"),
        ("-1", "-1"),
        ("glibc.malloc.check=1:glibc.cpu.x86_ibt=off", "glibc.malloc.check=1:glibc.cpu.x86_ibt=off"),
        ("granularity=fine,compact,1,0", "granularity=fine,compact,1,0"),
        ("file:///home/me", "<path>"),
        ("", ""),
    ],
)
def test_paths_are_taken_out_of_flags(value, kept):
    assert without_paths(value) == kept


def test_the_load_is_measured_only_when_asked(machine):
    assert collect(start_method="fork", root=machine)["load_of_others_cores"] is None
    assert collect(start_method="fork", root=machine, load_window_s=0.05)["load_of_others_cores"] >= 0


def test_this_machine_is_described_without_tensorflow():
    code = """
import sys
from measure.machine import environment
facts = environment.collect(start_method="fork")
print(facts["tensorflow"], facts["numpy"], "tensorflow" in sys.modules, environment.available_memory() > 0)
"""
    root = Path(__file__).parents[3]
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    tensorflow, numpy, is_imported, has_memory = run.stdout.split()
    assert tensorflow.startswith("2.") and numpy[0].isdigit()
    assert (is_imported, has_memory) == ("False", "True")
