"""On a GPU: what is asked of TensorFlow, with simulated devices, and a comparison with simulated subjects."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.record import View
from measure.machine import environment
from measure.model import why
from measure.model.request import parse
from measure.model.run import Run
from measure.subject import memory, probes, timing
from measure.subject.messages import Spec
from tests.engine import QUICK
from tests.measure.subject.test_memory import in_process
from tests.subjects import RATES, Message, Subjects, measured

GIB = 2**30

# --- one subject, where TensorFlow lists two GPUs ---------------------------------------------------------------------

_SIMULATED = """
    import pickle, sys
    import msgspec
    import tensorflow as tf
    from tensorflow.core.framework.device_attributes_pb2 import DeviceAttributes
    from tensorflow.python.client import device_lib
    from measure.machine import gpu
    from measure.model.run import Correctness, Memory
    from measure.model.roofline import Rates
    from measure.subject import allocations, correctness, memory, probes, subject, trace
    from measure.subject.messages import CallFirst, Spec, TakeSamples

    asked, said = [], []

    class Channel:
        def send(self, message): said.append(msgspec.to_builtins(message))
        def receive(self, kind): return commands.pop(0) if commands else None

    commands = []

    def serve(**spec):
        os.environ.pop("TF_FORCE_GPU_ALLOW_GROWTH", None)
        asked.clear(), said.clear()
        subject.serve(Spec(**spec), Channel())
        return {"asked": list(asked), "said": list(said), "growth": os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH")}

    def timed(device):
        commands[:] = [CallFirst(), TakeSamples()]
        return serve(role="timing", device=device, **case)

    gpus = [tf.config.PhysicalDevice(f"/physical_device:GPU:{index}", "GPU") for index in range(2)]
    tf.config.list_physical_devices = lambda kind=None: gpus
    tf.config.set_logical_device_configuration = lambda gpu, configurations: asked.append(
        [gpu.name, [configuration.memory_limit for configuration in configurations]]
    )
    tf.test.experimental.sync_devices = lambda: asked.append("sync")

    def list_local_devices(config):
        asked.append(["open", config.gpu_options.visible_device_list, config.gpu_options.allow_growth])
        return [
            DeviceAttributes(name="/device:CPU:0", device_type="CPU", memory_limit=268_435_456),
            DeviceAttributes(name="/device:GPU:0", device_type="GPU", memory_limit=140_000_000_000),
        ]

    device_lib.list_local_devices = list_local_devices

    def measured(method):
        def measure(call, *, device, **more):
            call()
            asked.append([method, device])
            return Memory(
                peak_bytes=8, output_bytes=8, temporary_bytes=0, input_bytes=0, captured_bytes=0, method=method
            )
        return measure

    memory.measure_events, memory.measure_allocator = measured("events"), measured("allocator")
    correctness.check = lambda *arguments, **more: (Correctness(ok=True), None)
    folder = tempfile.mkdtemp()
    for name in ("reference", "expected"):
        with open(f"{folder}/{name}.pickle", "wb") as file:
            pickle.dump([], file)
    script = "elems = 1\\ndef strategy(elems): return elems"
    case = {"script": script, "name": "x", "case_dir": folder}
    probes.measure = lambda work, device, synchronise: asked.append(["probe", device]) or Rates(
        copy_bytes_per_s=1, flops_per_s=1, op_s=1, call_s=1
    )
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    space = XSpace()
    plane = space.planes.add(name="/host:CPU")
    names = {1: "mapbench call", 2: "MemoryAllocation", 3: "MemoryDeallocation"}
    for key, name in names.items():
        plane.event_metadata[key].name = name
    stats = {1: "allocator_name", 2: "addr", 3: "requested_bytes", 4: "tf_op"}
    for key, name in stats.items():
        plane.stat_metadata[key].name = name
    line = plane.lines.add(timestamp_ns=1)
    line.events.add(metadata_id=1, offset_ps=0, duration_ps=1000)

    def event(offset, kind, allocator, address, count, op=""):
        added = line.events.add(metadata_id=kind, offset_ps=offset)
        added.stats.add(metadata_id=1, str_value=allocator)
        added.stats.add(metadata_id=2, uint64_value=address)
        added.stats.add(metadata_id=3, int64_value=count)
        if op:
            added.stats.add(metadata_id=4, str_value=op)

    event(10, 2, "GPU_0_bfc", 1, 100, "Conv2D")
    event(20, 2, "gpu_host_bfc", 2, 7, "pinned")
    event(30, 2, "cpu", 3, 5, "Shape")
    event(40, 2, "GPU_1_bfc", 4, 1000, "elsewhere")
    event(50, 2, "GPU_0_bfc", 5, 50, "Add")
    event(60, 3, "GPU_0_bfc", 1, 100)
    allocators = {}
    for device in ("GPU:0", "GPU:1", "GPU:2", "CPU:0"):
        seen = trace.allocations(space, device)
        live = allocations.live_bytes(seen.events)
        allocators[device] = [live.peak_bytes, [holder.op for holder in live.holders], seen.reported]
    details = {"device_name": "NVIDIA H200", "compute_capability": (9, 0)}
    tf.config.experimental.get_device_details = lambda device: details
    gpu.memory_bytes = lambda index: (index + 1) * 2**30
    gpu.driver = lambda: "550.54.15"
    result = {
        "devices": serve(role="devices"),
        "room": serve(role="room", device="GPU:1"),
        "memory": serve(role="memory", device="GPU:1", memory_limit_mib=512, **case),
        "counters": serve(role="memory", device="GPU:1", memory_method="allocator", **case),
        "probes": serve(role="probes", device="GPU:1", script="", work=probes.Work(
            read_bytes=1, written_bytes=1, flops=1
        )),
        "timing": timed("GPU:1"),
        "timing_cpu": timed("CPU:0"),
        "cpu": serve(role="memory", device="CPU:0", memory_limit_mib=512, **case),
        "allocators": allocators,
    }
"""


@pytest.fixture(scope="module")
def simulated() -> dict[str, Any]:
    return in_process(_SIMULATED)


def test_every_subject_on_a_gpu_takes_its_memory_as_it_needs_it(simulated: dict[str, Any]) -> None:
    growth = {role: served["growth"] for role, served in simulated.items() if role != "allocators"}
    on_gpu = dict.fromkeys(("room", "memory", "counters", "probes", "timing"), "true")
    assert growth == on_gpu | dict.fromkeys(("cpu", "timing_cpu", "devices"))


def test_what_a_run_says_of_gpus_is_what_a_process_has_found(simulated: dict[str, Any], tmp_path: Path) -> None:
    (devices,) = simulated["devices"]["said"]
    assert devices["names"] == ["GPU:0", "GPU:1"] and devices["onednn"] in (True, False)
    facts = environment.collect(start_method="fork", tensorflow=devices, root=tmp_path)
    assert facts["gpus"] == ["NVIDIA H200, compute capability 9.0"] * 2
    assert facts["gpu_memory_bytes"] == [2**30, 2**31] and facts["gpu_driver"] == "550.54.15"
    assert facts["onednn"] is devices["onednn"]
    assert (facts["gpu_memory_growth"], facts["gpu_allocator"]) == (True, "BFC")
    assert facts["tensorflow_allocator"] == devices["tensorflow_allocator"] is not None
    assert facts["openblas_threads"] == devices["openblas_threads"]


def test_the_room_on_a_gpu_is_what_tensorflow_may_take_of_that_one(simulated: dict[str, Any]) -> None:
    assert simulated["room"]["said"] == [{"event": "room", "bytes": 140_000_000_000}]
    assert simulated["room"]["asked"] == [["open", "1", True]]


def test_a_subject_sees_its_gpu_as_the_first_one(simulated: dict[str, Any]) -> None:
    # The script hides the others, and TensorFlow numbers those that are left, its allocators too.
    assert ["events", "GPU:0"] in simulated["memory"]["asked"]
    assert ["allocator", "GPU:0"] in simulated["counters"]["asked"]
    assert ["probe", "GPU:0"] in simulated["probes"]["asked"]
    assert ["events", "CPU:0"] in simulated["cpu"]["asked"]


def test_a_memory_limit_holds_for_the_gpu_before_anything_runs_on_it(simulated: dict[str, Any]) -> None:
    assert simulated["memory"]["asked"][0] == ["/physical_device:GPU:1", [512]]
    assert not any(isinstance(call, list) and "physical" in call[0] for call in simulated["counters"]["asked"])


def test_a_gpu_is_waited_for_and_a_cpu_is_not(simulated: dict[str, Any]) -> None:
    assert "sync" in simulated["memory"]["asked"] and "sync" not in simulated["cpu"]["asked"]
    kinds = [message["event"] for message in simulated["timing"]["said"]]
    samples = sum(len(message["seconds"]) for message in simulated["timing"]["said"] if message["event"] == "sampled")
    assert kinds[:2] == ["ready", "first_call"] and set(kinds[2:]) == {"sampled"} and samples >= 3
    # Before and after the first call, each call on the way to its pace, and each sample.
    waits = simulated["timing"]["asked"]
    assert set(waits) == {"sync"} and len(waits) % 2 == 0 and len(waits) >= 2 * (1 + 1 + samples)
    assert simulated["timing_cpu"]["asked"] == []


# --- the allocator's events -------------------------------------------------------------------------------------------


def test_of_the_allocators_events_those_of_the_gpu_count_and_pinned_memory_does_not(simulated: dict[str, Any]) -> None:
    assert simulated["allocators"] == {
        "GPU:0": [150, ["Conv2D", "Add"], True],
        "GPU:1": [1000, ["elsewhere"], True],
        "GPU:2": [0, [], False],
        "CPU:0": [5, ["Shape"], True],
    }


def test_growth_is_set_by_the_name_that_tensorflow_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "false")
    memory.prepare_gpu()
    assert memory.os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"


# --- probes -----------------------------------------------------------------------------------------------------------


class Gpu:
    """A GPU with a clock of its own: launching takes the host ``launch_s``; each kernel then takes ``fixed_s`` beside
    its bytes, one after another; a wait takes ``wait_s`` from the end of the last. Up to ``cache_bytes`` are fast."""

    launch_s, fixed_s, wait_s = 8e-6, 2.5e-6, 20e-6
    cache_bytes, in_cache, in_memory = 40e6, 6e12, 4e12

    def __init__(self) -> None:
        self.now_s = self._busy_until_s = 0.0

    def perf_counter(self) -> float:
        return self.now_s

    def pass_over(self, count: int) -> None:
        self.now_s += self.launch_s
        bandwidth = self.in_cache if count <= self.cache_bytes else self.in_memory
        self._busy_until_s = max(self._busy_until_s, self.now_s) + self.fixed_s + count / bandwidth

    def wait(self) -> None:
        self.now_s = max(self.now_s, self._busy_until_s) + self.wait_s


def test_a_sample_on_a_gpu_begins_when_earlier_work_is_done_and_ends_with_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = Gpu()
    monkeypatch.setattr(timing, "time", device)
    clock = timing.Clock(lambda elems: device.pass_over(elems), 100_000_000, device.wait)
    device.pass_over(4_000_000_000)  # a millisecond
    kernel_s = device.fixed_s + 25e-6
    assert clock.mean(10) == pytest.approx((device.launch_s + 10 * kernel_s + device.wait_s) / 10)


@pytest.mark.parametrize(
    ("moved", "bandwidth"),
    [
        (250_000_000, Gpu.in_memory),
        (100_000_000, Gpu.in_memory),
        (2**13, Gpu.in_memory),  # what takes no longer than a launch: as larger ones
        (4_000_000, Gpu.in_memory),
    ],
)
def test_bandwidth_of_a_gpu_is_that_of_its_memory_and_not_of_launches(
    monkeypatch: pytest.MonkeyPatch, moved: int, bandwidth: float
) -> None:
    device = Gpu()
    monkeypatch.setattr(probes, "time", device)
    clock = probes.Stopwatch(device.wait, probes.SAMPLE_OF_GPU_S)

    def pass_s(count: int) -> float:
        return clock.least_s([lambda: device.pass_over(count)], 0.03)

    assert pass_s(moved) > 1.04 * moved / bandwidth, "it takes longer than its bytes do"
    assert probes.beyond_launches(pass_s, moved) == pytest.approx(bandwidth, rel=0.03)


def test_a_working_set_that_stays_in_a_cache_has_its_bandwidth() -> None:
    large = 2**28

    def pass_s(count: int) -> float:
        return max(8e-6, 2.5e-6 + count / (6e12 if count <= large else 1e12))

    assert probes.beyond_launches(pass_s, large) == pytest.approx(6e12, rel=1e-6)
    # Half of it fits and the whole does not: no faster than what was seen of the whole.
    assert probes.beyond_launches(pass_s, 2 * large) == pytest.approx(1e12, rel=0.01)


@pytest.mark.parametrize(("noise", "pass_without_launch_s"), [(0.75, 20.625e-6 - 8e-6), (1.4, 38.5e-6)])
def test_noise_cannot_take_a_rate_beyond_what_was_seen(noise: float, pass_without_launch_s: float) -> None:
    """The difference of two times has more noise than either: no more than a launch can be in one of them."""

    def pass_s(count: int) -> float:
        return max(8e-6, (2.5e-6 + count / 4e12) * (noise if count == 10**8 else 1.0))

    assert probes.beyond_launches(pass_s, 10**8) == pytest.approx(10**8 / pass_without_launch_s)


def test_where_launches_are_all_that_is_seen_they_are_not_taken_off() -> None:
    assert probes.beyond_launches(lambda count: 8e-6, 2**20) == 2**30 / 8e-6


_PROBED = """
    import tensorflow as tf
    from measure.subject import probes

    asked, waited, places = [], [], []
    device = tf.device
    tf.device = lambda name: asked.append(name) or device("CPU:0")
    probes.SIDES, probes.NUMBERS_OF_GPU = (64,), 2**10
    probes.ThreadPoolExecutor = None  # of the machine's own memory nothing is probed
    rates = {}
    for name, (read, written) in {"both": (2**20, 2**20), "reads": (2**20, 4), "writes": (4, 2**20)}.items():
        work = probes.Work(read_bytes=read, written_bytes=written, flops=10, functions={"sin": 5}, dtype="float64")
        rates[name] = probes.measure(work, "GPU:0", lambda: waited.append(1))
    result = {"rates": rates, "asked": asked, "waited": len(waited)}
"""


def test_on_a_gpu_all_probes_run_there_and_are_waited_for() -> None:
    result = in_process(_PROBED)
    assert set(result["asked"]) == {"GPU:0"} and result["waited"] > 100
    both, reads, writes = (result["rates"][name] for name in ("both", "reads", "writes"))
    assert both["read_bytes_per_s"] is None and both["write_bytes_per_s"] is None
    assert reads["read_bytes_per_s"] > 1e6 and reads["write_bytes_per_s"] is None
    assert writes["write_bytes_per_s"] > 1e6 and writes["read_bytes_per_s"] is None
    for rates in (both, reads, writes):
        assert rates["copy_bytes_per_s"] > 1e6 and rates["flops_per_s"] > 1e6 and rates["functions_per_s"]["sin"] > 1e3
        assert 0 < rates["op_s"] < 1 and 0 < rates["call_s"] < 1


# --- the reasons ------------------------------------------------------------------------------------------------------

_EXPLAINED = """
    import msgspec
    import tensorflow as tf
    from measure.subject import profiler, subject
    from measure.subject.messages import Spec

    asked, said = [], []

    class Channel:
        def send(self, message): said.append(msgspec.to_builtins(message))

    tf.test.experimental.sync_devices = lambda: asked.append("sync")
    start = tf.profiler.experimental.start
    def starting(folder, options):
        asked.append(["profile", options.device_tracer_level])
        start(folder, options)
    tf.profiler.experimental.start = starting
    space_of = profiler.space

    def with_kernels(folder):
        # As CUPTI adds them: each stream is a line of the GPU's plane, on the clock of the host.
        space = space_of(folder)
        calls = [
            (line.timestamp_ns, event.offset_ps)
            for plane in space.planes
            for line in plane.lines
            for event in line.events
            if plane.event_metadata[event.metadata_id].name == profiler.CALL
        ]
        plane = space.planes.add(name="/device:GPU:0")
        for key, name in {1: "gemm", 2: "MemcpyH2D"}.items():
            plane.event_metadata[key].name = name
        for timestamp_ns, offset_ps in calls:
            line = plane.lines.add(name="Stream #13(Compute)", timestamp_ns=timestamp_ns)
            for place, key in enumerate((1, 2, 1)):
                line.events.add(metadata_id=key, offset_ps=offset_ps + 10 * place, duration_ps=7)
        return space

    profiler.space = with_kernels
    script = "import tensorflow as tf\\nelems = tf.ones([8])\\n@tf.function\\ndef strategy(elems): return elems + 1.0"
    result = {}
    for device in ("GPU:1", "CPU:0"):
        os.environ.pop("TF_FORCE_GPU_ALLOW_GROWTH", None)
        asked.clear(), said.clear()
        spec = Spec(
            role="why", script=script, name="x", mode="graph", device=device, artifacts=tempfile.mkdtemp()
        )
        subject.serve(spec, Channel())
        result[device] = {
            "profiles": [call for call in asked if call != "sync"], "waited": asked.count("sync"),
            "growth": os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH"), "said": said[-1],
        }
"""


def test_a_strategy_on_a_gpu_is_explained_with_the_kernels_of_its_streams() -> None:
    result = in_process(_EXPLAINED)
    gpu, cpu = result["GPU:1"], result["CPU:0"]
    # The profiler asks the device for its kernels, and each call is waited for, so that they are within it.
    assert gpu["profiles"] == [["profile", 1]] and gpu["waited"] >= 3 and gpu["growth"] == "true"
    assert cpu["profiles"] == [["profile", 0]] and cpu["waited"] == 0 and cpu["growth"] is None
    assert gpu["said"]["event"] == "why", gpu["said"]
    told = gpu["said"]["why"]
    assert told["kernel_count"] == 2 and [kernel["name"] for kernel in told["kernels"]] == ["gemm"]
    assert told["in_kernels_s"] == pytest.approx(14e-12)
    assert [op["name"] for op in told["ops"]] == ["AddV2"], "ops are those of the host"


# --- a comparison -----------------------------------------------------------------------------------------------------


STRATEGIES = ["batched.eager", "batched.graph", "batched.xla", "vectorized_map.graph", "vectorized_map.xla"]


def compare(launcher: Subjects, device: str = "GPU:1", publish: Callable[[View], None] = lambda view: None) -> Run:
    asked = parse({"workload": "square", "size": {"batch": 8}, "strategies": STRATEGIES, "device": device})
    settings = Settings(rules=QUICK)
    keep = lambda slug, said, artifacts: True  # noqa: E731
    return Comparison("0" * 24, asked, launcher, publish, settings=settings, keep=keep).run()


@pytest.mark.parametrize(("room_bytes", "at_once"), [(2 * GIB, 2), (GIB, 1)])
def test_two_subjects_live_at_once_where_the_gpu_has_room_for_both(room_bytes: int, at_once: int) -> None:
    """Each takes its context beside its tensors; the machine's own memory is not what decides."""
    views: list[View] = []
    measuring: list[int] = []

    def memory(spec: Spec) -> list[Message]:
        known = sum(item.memory is not None for item in views[-1].run.measurements)
        measuring.append(launcher.roles.count("memory") - known)
        return measured()

    launcher = Subjects(room_bytes=room_bytes, answers={"memory": memory})
    run = compare(launcher, publish=views.append)
    assert max(measuring) == at_once, "while memory is measured"
    assert launcher.most_alive == at_once, "while latencies are timed"
    assert all(item.latency is not None for item in run.measurements)


def test_the_room_is_asked_for_before_anything_else_lives_on_the_gpu() -> None:
    launcher = Subjects(room_bytes=8 * GIB, peak_bytes=2**20)
    compare(launcher)
    assert launcher.specs[0].role == "room" and [spec.role for spec in launcher.specs].count("room") == 1
    on_cpu = Subjects(room_bytes=8 * GIB, peak_bytes=2**20)
    compare(on_cpu, "CPU:0")
    assert "room" not in {spec.role for spec in on_cpu.specs}


def test_all_that_looks_at_a_strategy_or_at_the_device_runs_on_the_gpu_that_was_asked_for() -> None:
    launcher = Subjects(room_bytes=8 * GIB, peak_bytes=2**20)
    run = compare(launcher)
    on_gpu = ("room", "memory", "timing", "probes", "why")
    assert {(spec.role, spec.device) for spec in launcher.specs} == {
        ("reference", "CPU:0"),
        *((role, "GPU:1") for role in on_gpu),
    }
    # The scripts too: TensorFlow is shown this GPU alone, by the probes' and by all strategies'.
    scripts = [spec.script for spec in launcher.specs if spec.role in on_gpu and spec.role != "room"]
    assert all("set_visible_devices" in script and "[1]" in script for script in scripts) and len(scripts) > 10
    assert run.limit is not None and run.limit.dispatch_s == RATES.op_s
    assert all(why.known(item.why) for item in run.measurements if not item.twin_of)


def test_the_room_of_a_gpu_is_the_memory_limit_where_none_was_asked_for() -> None:
    launcher = Subjects(room_bytes=4 * GIB, peak_bytes=2**20)
    compare(launcher)
    limits = {spec.memory_limit_mib for spec in launcher.specs if spec.role == "memory"}
    assert limits == {int(0.7 * 4 * GIB) // 2**20}


def test_the_process_peak_is_not_measured_on_a_gpu_and_that_is_said() -> None:
    launcher = Subjects(room_bytes=8 * GIB, peak_bytes=2**20)
    run = compare(launcher)
    assert "process_peak" not in {spec.role for spec in launcher.specs}
    assert "not measured on a GPU" in next(
        warning.message for warning in run.warnings if warning.code == "no_process_peak"
    )
    assert all(item.memory and item.memory.process_peak_bytes is None for item in run.measurements if not item.twin_of)


def test_with_another_allocator_its_counters_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Subjects(room_bytes=8 * GIB, peak_bytes=2**20)
    compare(launcher)
    monkeypatch.setenv("TF_GPU_ALLOCATOR", "cuda_malloc_async")
    other = Subjects(room_bytes=8 * GIB, peak_bytes=2**20)
    compare(other)
    on_cpu = Subjects(room_bytes=None, peak_bytes=2**20)
    compare(on_cpu, "CPU:0")
    methods = [
        {spec.memory_method for spec in subjects.specs if spec.role == "memory"}
        for subjects in (launcher, other, on_cpu)
    ]
    assert methods == [{"events"}, {"allocator"}, {"events"}]
