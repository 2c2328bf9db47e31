"""The memory of a call: against known sizes, in processes of their own with TensorFlow."""

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from measure.model.run import AtPeak
from measure.subject import memory
from measure.subject.memory import Allocation, live_memory
from tests import warm

ROOT = Path(__file__).parents[3]
MIB = 2**20
OUTER_BYTES = 100 * 256 * 256 * 4


def test_bytes_of_shared_memory_count_once(tf: Any):
    array = np.zeros(1000, np.float32)
    other = np.zeros(10, np.float64)
    assert memory.bytes_of({"a": (array, array[500:]), "b": [array, other]}) == 4080
    assert memory.bytes_of(array[:100]) == 400
    assert memory.bytes_of(()) == 0
    assert memory.bytes_of(np.array([b"a", b"bc"], object)) == 2 * 24  # of text: TensorFlow's, not NumPy's


def in_process(code: str) -> Any:
    """What ``code`` leaves in ``result``; it runs in a process of its own with TensorFlow."""
    script = "\n".join(
        [
            "import os, tempfile",
            "import msgspec, numpy as np",
            "from measure.subject import memory",
            "MIB = 2**20",
            textwrap.dedent(code),
            "print('RESULT', msgspec.json.encode(result).decode())",
        ]
    )
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)}
    run = warm.run(script, folder=ROOT, environment=environment)
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, run.stderr[-3000:]
    return json.loads(lines[-1].removeprefix("RESULT "))


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
            result[name] = memory.measure_events(lambda: function(argument))
        result["allocator"] = memory.measure_allocator(lambda: functions["reduced"][0](seed))
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
    assert [size for op, size in held.items() if "TensorListStack" in op] == [OUTER_BYTES]


def test_timelines_begin_at_nothing_rise_to_the_peak_and_end_with_the_output(events: dict[str, Any]):
    for name in ("batched", "mapped", "mapped_eager"):
        measured = events[name]
        times, live = measured["timeline"]["t_s"], measured["timeline"]["live_bytes"]
        assert (times[0], live[0]) == (0, 0) and times == sorted(times)
        assert len(times) == len(live) <= 500
        assert max(live) == measured["peak_bytes"] and live[-1] == pytest.approx(OUTER_BYTES, rel=1e-3)


def test_buffers_of_xla_are_measured_and_an_output_that_is_an_input_needs_nothing(events: dict[str, Any]):
    measured, aliased = events["xla"], events["aliased"]
    assert measured["output_bytes"] == aliased["output_bytes"] == 100 * 256 * 4
    assert measured["temporary_bytes"] >= OUTER_BYTES
    assert measured["at_peak"][0]["op"] == "XLA temporary buffer (cluster sorted_outer)"
    assert (aliased["peak_bytes"], aliased["temporary_bytes"], aliased["at_peak"]) == (0, 0, [])


@pytest.mark.usefixtures("live")
def test_an_allocator_that_reports_nothing_is_an_error_not_a_zero():
    message = in_process("""
        os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "false"
        import tensorflow as tf

        try:
            memory.measure_events(lambda: tf.random.stateless_uniform([1000], [1, 2]))
            result = None
        except RuntimeError as error:
            result = str(error)
    """)
    assert message is not None and "prepare_events must come before the first op" in message


@pytest.mark.usefixtures("live")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells the peak of a process")
def test_the_process_peak_is_that_of_the_call_and_not_of_those_before():
    result = in_process("""
        result = {"prepared": memory.prepare_process_peak()}
        import tensorflow as tf

        reduced = tf.function(lambda size: tf.reduce_sum(tf.fill([size], 1.0)))
        for mib in (512, 256):
            call = lambda: reduced(tf.constant(mib * MIB // 4))
            call()
            result[str(mib)] = memory.measure_process_peak(call)
    """)
    assert result["prepared"] is True
    # The kernel counts pages, and the runtime may take some of its own.
    assert 500 * MIB < result["512"] < 640 * MIB and 250 * MIB < result["256"] < 320 * MIB


# --- what an allocator reported, made up -----------------------------------------------------------------------------


def allocate(time_ps: int, address: int, count: int, op: str = "op") -> Allocation:
    return Allocation(time_ps=time_ps, address=address, freed=False, bytes=count, op=op)


def free(time_ps: int, address: int) -> Allocation:
    return Allocation(time_ps=time_ps, address=address, freed=True)


def test_peak_is_the_first_time_that_most_bytes_are_alive():
    live = live_memory(
        [
            allocate(1, 10, 100, "a"),
            allocate(2, 20, 50, "b"),  # 150: the peak
            free(3, 10),
            allocate(4, 30, 100, "c"),  # 150 again
            free(5, 20),
        ]
    )
    assert live.peak_bytes == 150 and live.live_bytes == [100, 150, 50, 150, 100] and live.times_ps == [1, 2, 3, 4, 5]
    assert [(buffer.op, buffer.bytes) for buffer in live.at_peak] == [("a", 100), ("b", 50)]
    nothing = live_memory([])
    assert (nothing.peak_bytes, nothing.live_bytes, nothing.at_peak) == (0, [], [])


def test_live_bytes_of_events_in_any_order_and_of_addresses_in_any_use():
    for what, events, live in (
        (
            "events of several threads are merged by time",
            [allocate(5, 3, 7), free(6, 1), allocate(1, 1, 100), free(3, 2), allocate(2, 2, 10)],
            [100, 110, 100, 107, 7],
        ),
        (
            "what was allocated before is ignored",
            [free(1, 99), allocate(2, 10, 8), free(3, 99), free(4, 10), free(5, 10)],
            [8, 0],
        ),
        ("an address is used again", [allocate(1, 10, 8), free(2, 10), allocate(3, 10, 24)], [8, 0, 24]),
        ("without a free, the second one holds", [allocate(1, 10, 8), allocate(2, 10, 24), free(3, 10)], [8, 24, 0]),
        ("a free comes first", [allocate(1, 10, 100), allocate(2, 10, 60), free(2, 10)], [100, 0, 60]),
        ("what is freed at once does not stay", [free(2, 10), allocate(2, 10, 100)], [100, 0]),
    ):
        assert live_memory(events).live_bytes == live, what


def test_a_timeline_keeps_ends_and_extremes():
    values = np.random.default_rng(0).integers(1_000, 2_000, 20_000)
    values[12_345], values[6_789], values[0], values[-1] = 9_999, 1, 1_234, 1_500
    indices = memory.downsample(values.tolist(), most=500)
    assert len(indices) <= 500 and indices == sorted(set(indices)) and {0, 19_999, 12_345, 6_789} <= set(indices)
    assert memory.downsample([5, 6, 7], most=500) == [0, 1, 2]


def test_ops_of_one_kind_are_one_row_and_xlas_buffers_are_told_apart_by_what_stays():
    events = [allocate(i, i, 10, name) for i, name in enumerate(["mul", "mul_1", "mul_2", "", "stack"])]
    assert memory.ops_at_peak(live_memory(events).at_peak) == [
        AtPeak(op="mul (3 ops)", bytes=30),
        AtPeak(op="not named by TensorFlow", bytes=10),
        AtPeak(op="stack", bytes=10),
    ]
    assert memory.readable_op("map/while/body/_1/map/while/mul_7") == "map/while/mul"
    name = "__inference_strategy_62"
    events = [allocate(1, 1, 100, name), allocate(2, 2, 30, name), allocate(3, 3, 10, "cluster_0"), free(4, 2)]
    assert memory.ops_at_peak(live_memory(events).at_peak) == [
        AtPeak(op="XLA output buffer (cluster strategy)", bytes=100),
        AtPeak(op="XLA temporary buffer (cluster strategy)", bytes=30),
        AtPeak(op="XLA output buffer (cluster cluster_0)", bytes=10),
    ]
