"""On a GPU: what is asked of TensorFlow, with simulated devices, and a comparison with simulated subjects."""

import pytest

from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.run.request import parse
from measure.run.run import Run
from tests.engine import QUICK
from tests.measure.subject.test_memory import in_process
from tests.subjects import RATES, Subjects, leave_the_machine

GIB = 2**30

_SIMULATED = """
    import pickle
    from pathlib import Path
    import msgspec
    import tensorflow as tf
    from tensorflow.core.framework.device_attributes_pb2 import DeviceAttributes
    from tensorflow.python.client import device_lib
    from measure.run.run import Correctness, Memory
    from measure.run.roofline import Rates
    from measure.subject import correctness, memory, probes, subject
    from measure.subject.messages import Command, Spec

    asked, said = [], []

    class Channel:
        def send(self, message): said.append(msgspec.to_builtins(message))
        def receive(self, kind): return commands.pop(0) if commands else None

    commands = []

    def serve(**spec):
        os.environ.pop("TF_FORCE_GPU_ALLOW_GROWTH", None)
        asked.clear(), said.clear()
        commands[:] = [Command("first_call"), Command("turn")]
        subject.serve(Spec(**spec), Channel())
        return {"asked": list(asked), "said": list(said), "growth": os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH")}

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

    def measure(call, method, device):
        call()
        asked.append([method, device])
        return Memory(
            peak_bytes=8, output_bytes=8, temporary_bytes=0, input_bytes=0, captured_bytes=0, method=method
        )

    memory.measure = measure
    correctness.check = lambda *arguments, **more: (Correctness(ok=True), None)
    folder = tempfile.mkdtemp()
    correctness.save_reference(Path(folder), [], None)
    with open(f"{folder}/expected.pickle", "wb") as file:
        pickle.dump({}, file)
    script = "elems = 1\\ndef strategy(elems): return elems"
    case = {"script": script, "name": "x", "case_dir": folder}
    probes.measure = lambda work, device, synchronise: asked.append(["probe", device]) or Rates(
        bytes_per_s=1, flops_per_s=1, op_s=1, call_s=1
    )
    result = {
        "room": serve(role="room", device="GPU:1"),
        "memory": serve(role="memory", device="GPU:1", memory_limit_mib=512, **case),
        "counters": serve(role="memory", device="GPU:1", memory_method="allocator", **case),
        "probes": serve(role="probes", device="GPU:1", work=probes.Work(read_bytes=1, written_bytes=1),
                        script="import tensorflow as tf\\nelems, strategy = tf.ones(9), tf.square"),
        "timing": serve(role="timing", device="GPU:1", **case),
        "timing_cpu": serve(role="timing", device="CPU:0", **case),
        "cpu": serve(role="memory", device="CPU:0", memory_limit_mib=512, **case),
    }
"""


@pytest.mark.usefixtures("live")
def test_what_a_subject_asks_of_tensorflow_on_a_gpu() -> None:
    simulated = in_process(_SIMULATED)
    growth = {role: served["growth"] for role, served in simulated.items()}
    on_gpu = dict.fromkeys(("room", "memory", "counters", "probes", "timing"), "true")
    assert growth == on_gpu | dict.fromkeys(("cpu", "timing_cpu"))
    assert simulated["room"]["said"] == [{"event": "room", "bytes": 140_000_000_000}]
    assert simulated["room"]["asked"] == [["open", "1", True]], "what TensorFlow may take of that one"
    # The script hides the other GPUs, and TensorFlow numbers those that are left, its allocators too.
    assert ["events", "GPU:0"] in simulated["memory"]["asked"]
    assert ["allocator", "GPU:0"] in simulated["counters"]["asked"]
    assert ["probe", "GPU:0"] in simulated["probes"]["asked"]
    assert ["events", "CPU:0"] in simulated["cpu"]["asked"]
    assert simulated["memory"]["asked"][0] == ["/physical_device:GPU:1", [512]], "a limit holds before anything runs"
    assert not any(isinstance(call, list) and "physical" in call[0] for call in simulated["counters"]["asked"])
    # A GPU is waited for: before and after the first call, each call on the way to its pace, and each sample.
    assert "sync" in simulated["memory"]["asked"] and "sync" not in simulated["cpu"]["asked"]
    samples = sum(len(message.get("seconds", ())) for message in simulated["timing"]["said"][2:])
    waits = simulated["timing"]["asked"]
    assert set(waits) == {"sync"} and len(waits) % 2 == 0 and len(waits) >= 2 * (1 + 1 + samples) >= 2 * (1 + 1 + 3)
    assert simulated["timing_cpu"]["asked"] == []


STRATEGIES = ["batched.eager", "batched.graph", "batched.xla", "vectorized_map.graph", "vectorized_map.xla"]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_the_machine(monkeypatch)


def compare(launcher: Subjects, device: str = "GPU:1") -> Run:
    asked = parse({"workload": "square", "size": {"batch": 8}, "strategies": STRATEGIES, "device": device})
    settings = Settings(most_processes=QUICK)
    return Comparison("0" * 24, asked, launcher, lambda view: None, settings=settings, keep=lambda *_: True).run()


def test_all_of_a_comparison_runs_on_the_gpu_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Subjects(room_bytes=4 * GIB)
    run = compare(launcher)
    assert launcher.roles[0] == "room" and launcher.roles.count("room") == 1, "before anything else lives there"
    on_gpu = ("room", "memory", "timing", "probes", "why")
    assert {(spec.role, spec.device) for spec in launcher.specs} == {
        ("reference", "CPU:0"),
        *((role, "GPU:1") for role in on_gpu),
    }
    # The scripts too: TensorFlow is shown this GPU alone, by the probes' and by all strategies'.
    scripts = [spec.script for spec in launcher.specs if spec.role in on_gpu and spec.role != "room"]
    assert all("set_visible_devices" in script and "[1]" in script for script in scripts) and len(scripts) > 10
    measuring = [(spec.memory_limit_mib, spec.memory_method) for spec in launcher.specs if spec.role == "memory"]
    assert set(measuring) == {(int(0.7 * 4 * GIB) // 2**20, "events")}, "its room is the limit where none was asked for"
    assert run.limit is not None and run.limit.dispatch_s == RATES.op_s
    assert "no_process_peak" in {warning.code for warning in run.warnings}
    monkeypatch.setenv("TF_GPU_ALLOCATOR", "cuda_malloc_async")
    compare(other := Subjects(room_bytes=4 * GIB))
    assert {spec.memory_method for spec in other.specs if spec.role == "memory"} == {"allocator"}
    compare(on_cpu := Subjects(room_bytes=4 * GIB), "CPU:0")
    assert not {"room"} & set(on_cpu.roles) and "process_peak" in on_cpu.roles
