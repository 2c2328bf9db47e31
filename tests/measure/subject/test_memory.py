"""The memory of a call: against known sizes, in processes of their own with TensorFlow."""

import json
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

from measure.subject import memory
from tests.engine import ROOT, environment, run_python

MIB = 2**20
OUTER_BYTES = 100 * 256 * 256 * 4


def test_bytes_of_shared_memory_count_once(tf: Any):
    array = np.zeros(1000, np.float32)
    other = np.zeros(10, np.float64)
    assert memory.bytes_of({"a": (array, array[:500]), "b": [array, other]}) == 4080
    assert (memory.bytes_of(array[:100]), memory.bytes_of(())) == (400, 0)
    assert memory.bytes_of(np.array([b"a", b"bc"], object)) == 2 * 24  # of text: TensorFlow's, not NumPy's


def in_process(code: str) -> Any:
    """What ``code`` leaves in ``result``; it runs in a process of its own."""
    script = f"""
import os, tempfile
import msgspec, numpy as np
from measure.subject import memory
MIB = 2**20
{textwrap.dedent(code)}
print('RESULT', msgspec.json.encode(result).decode())
"""
    printed = run_python(script, folder=ROOT, env=environment(TF_CPP_MIN_LOG_LEVEL="3")).stdout
    return json.loads(printed.rpartition("RESULT ")[2])


@pytest.fixture(scope="module")
def events(live: None) -> dict[str, Any]:
    return in_process("""
        result = {}
        memory.prepare_events()
        tempfile.tempdir = tempfile.mkdtemp()
        import tensorflow as tf

        elems = tf.constant(np.random.default_rng(0).random((100, 256), np.float32))
        seed = tf.constant([1, 2])

        def outer(x):
            return x[:, None] * x[None, :]

        def reduced(seed):
            values = tf.random.stateless_uniform([64 * MIB], seed)
            return tf.reduce_sum(values)

        def sorted_outer(x):
            return tf.reduce_sum(tf.sort(x[:, :, None] * x[:, None, :]), 2)

        functions = {
            "reduced": (tf.function(reduced), seed),
            "batched": (tf.function(lambda x: x[:, :, None] * x[:, None, :]), elems),
            "mapped": (tf.function(lambda x: tf.map_fn(outer, x)), elems),
            "mapped_eager": (lambda x: tf.map_fn(outer, x), elems),
            "xla": (tf.function(sorted_outer, jit_compile=True), elems),
            "aliased": (lambda x: (x, tf.identity(x), {"x": x}), elems),
        }
        for name, (function, argument) in functions.items():
            function(argument)
            result[name] = memory.measure(lambda: function(argument), "events")
        result["allocator"] = memory.measure(lambda: functions["reduced"][0](seed), "allocator")
        result["left"] = os.listdir(tempfile.tempdir)
    """)


def test_a_known_temporary_is_measured_to_a_thousandth(events: dict[str, Any]):
    measured = events["reduced"]
    assert measured["peak_bytes"] == pytest.approx(256 * MIB, rel=1e-3)
    assert measured["temporary_bytes"] == measured["peak_bytes"] - measured["output_bytes"]
    assert (measured["method"], measured["output_bytes"]) == ("events", 4)
    assert measured["at_peak"][0]["bytes"] == 256 * MIB
    assert events["left"] == [], "the profile is removed"
    # The allocator's own counters are a second way, which counts whole chunks.
    assert events["allocator"]["method"] == "allocator" and events["allocator"]["peak_bytes"] >= 256 * MIB


def test_a_batch_needs_its_output_only_and_map_fn_twice_that_while_it_stacks(events: dict[str, Any]):
    batched, mapped = events["batched"], events["mapped"]
    assert batched["output_bytes"] == mapped["output_bytes"] == OUTER_BYTES
    assert batched["peak_bytes"] == pytest.approx(OUTER_BYTES, rel=1e-3)
    assert mapped["peak_bytes"] == pytest.approx(2 * OUTER_BYTES, rel=1e-3)
    assert events["mapped_eager"]["peak_bytes"] == pytest.approx(2 * OUTER_BYTES, rel=1e-3)
    held = {row["op"]: row["bytes"] for row in mapped["at_peak"]}
    assert sum(held.values()) == mapped["peak_bytes"]
    times, live = mapped["timeline"]["t_s"], mapped["timeline"]["live_bytes"]
    assert (times[0], live[0], max(live)) == (0, 0, mapped["peak_bytes"]) and times == sorted(times)
    assert live[-1] == pytest.approx(OUTER_BYTES, rel=1e-3), "it ends with the output"
    assert [size for op, size in held.items() if "TensorListStack" in op] == [OUTER_BYTES]


def test_buffers_of_xla_are_measured_and_an_output_that_is_an_input_needs_nothing(events: dict[str, Any]):
    measured, aliased = events["xla"], events["aliased"]
    assert measured["output_bytes"] == aliased["output_bytes"] == 100 * 256 * 4
    assert measured["temporary_bytes"] >= OUTER_BYTES
    assert measured["at_peak"] == [{"op": "XLA program sorted_outer", "bytes": measured["peak_bytes"]}]
    assert (aliased["peak_bytes"], aliased["temporary_bytes"], aliased["at_peak"]) == (0, 0, [])


def test_an_allocator_that_reports_nothing_is_an_error_not_a_zero(tf: Any):
    with pytest.raises(RuntimeError, match="prepare_events must come before the first op"):
        memory.measure(lambda: tf.random.stateless_uniform([1000], [1, 2]), "events")


@pytest.mark.usefixtures("live")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells the peak of a process")
def test_the_process_peak_is_that_of_the_call_and_not_of_those_before():
    result = in_process("""
        result = {}
        memory.prepare_process_peak()
        import tensorflow as tf

        reduced = tf.function(lambda size: tf.reduce_sum(tf.fill([size], 1.0)))
        for mib in (512, 256):
            call = lambda: reduced(tf.constant(mib * MIB // 4))
            call()
            result[str(mib)] = memory.measure_process_peak(call)
    """)
    # The kernel counts pages, and the runtime may take some of its own.
    assert 500 * MIB < result["512"] < 640 * MIB and 250 * MIB < result["256"] < 320 * MIB


def test_a_timeline_keeps_its_ends_and_its_peak():
    values = np.random.default_rng(0).integers(1_000, 2_000, 20_000)
    values[12_345] = 9_999
    points = memory.shown_points(values.tolist())
    assert len(points) <= 500 and points == sorted(set(points)) and {0, 19_999, 12_345} <= set(points)
    assert memory.shown_points([5, 6, 7]) == [0, 1, 2]


def test_ops_of_one_kind_are_one_row():
    for name, shown in (
        ("mul_2", "mul"),
        ("map/while/body/_1/map/while/mul_7", "map/while/mul"),
        ("", "not named by TensorFlow"),
        ("__inference_f_62", "XLA program f"),
    ):
        assert memory.readable_op(name) == shown


_SIMULATED = """
    import pickle
    from pathlib import Path
    import msgspec
    import tensorflow as tf
    from tensorflow.core.framework.device_attributes_pb2 import DeviceAttributes
    from tensorflow.python.client import device_lib
    from measure.run.run import Correctness
    from measure.run.roofline import Rates
    from measure.subject import correctness, memory, probes, subject
    from measure.subject.messages import Command, Spec
    from tests import samples

    asked, said, commands = [], [], []

    class Channel:
        def send(self, message): said.append(msgspec.to_builtins(message))
        def receive(self, kind): return commands.pop(0) if commands else None

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
        return samples.memory(8, 8)

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
    assert ["probe", "GPU:0"] in simulated["probes"]["asked"] and simulated["probes"]["said"][0]["flops"] == 9
    assert ["events", "CPU:0"] in simulated["cpu"]["asked"]
    assert simulated["memory"]["asked"][0] == ["/physical_device:GPU:1", [512]], "a limit holds before anything runs"
    assert not any(isinstance(call, list) and "physical" in call[0] for call in simulated["counters"]["asked"])
    # A GPU is waited for: before and after the first call, each call on the way to its pace, and each sample.
    assert "sync" in simulated["memory"]["asked"] and "sync" not in simulated["cpu"]["asked"]
    samples = sum(len(message.get("seconds", ())) for message in simulated["timing"]["said"][2:])
    waits = simulated["timing"]["asked"]
    assert set(waits) == {"sync"} and len(waits) % 2 == 0 and len(waits) >= 2 * (1 + 1 + samples) >= 2 * (1 + 1 + 3)
    assert simulated["timing_cpu"]["asked"] == []
