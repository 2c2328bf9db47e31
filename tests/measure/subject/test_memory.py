"""The memory of a call: against known sizes, in fresh processes with TensorFlow."""

import ctypes
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from measure.subject import memory
from tests import warm

ROOT = Path(__file__).parents[3]
MIB = 2**20


# --- pure ------------------------------------------------------------------------------------------------------------


def test_bytes_of_shared_memory_count_once():
    array = np.zeros(1000, np.float32)
    other = np.zeros(10, np.float64)
    assert memory.bytes_of({"a": (array, array[500:]), "b": [array, other]}) == 4080
    assert memory.bytes_of(array[:100]) == 400
    assert memory.bytes_of(()) == 0
    assert memory.bytes_of(np.array([b"a", b"bc"], object)) == 2 * 24  # of text: TensorFlow's, not NumPy's


def test_importing_needs_no_tensorflow():
    modules = "measure.subject.memory, measure.subject.correctness, measure.machine.environment"
    code = f"import sys, {modules}; print('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "False\n"


# --- with TensorFlow, in a process of its own ------------------------------------------------------------------------


def in_process(code: str, heap: str = "") -> Any:
    """What ``code`` leaves in ``result``; it runs in a process of its own with TensorFlow, and in one that imports it
    by itself where the heap has to be ``new``."""
    script = "\n".join(
        [
            "import concurrent.futures, os, tempfile",
            "import msgspec, numpy as np",
            "from measure.subject import memory",
            "MIB = 2**20",
            textwrap.dedent(code),
            "print('RESULT', msgspec.json.encode(result).decode())",
        ]
    )
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)}
    if heap == "new":
        command = [sys.executable, "-c", script]
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    else:
        run = warm.run(script, folder=ROOT, environment=environment)
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, run.stderr[-3000:]
    return json.loads(lines[-1].removeprefix("RESULT "))


def test_numpy_allocations_are_measured_exactly():
    """In a process of its own: Python's allocator sees those of all threads."""
    measured = in_process("""
        def call():
            temporary = np.ones(4 * MIB, np.float32)
            return temporary[:MIB] + 1

        result = memory.measure_tracemalloc(call, input_bytes=7)
    """)
    assert measured["peak_bytes"] == pytest.approx(20 * MIB, rel=1e-3)
    assert measured["output_bytes"] == 4 * MIB
    assert measured["temporary_bytes"] == measured["peak_bytes"] - 4 * MIB
    assert (measured["method"], measured["input_bytes"]) == ("tracemalloc", 7)


@pytest.fixture(scope="module")
def events() -> dict[str, Any]:
    return in_process("""
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
            "reduced": lambda: reduced_graph(seed),
            "batched": lambda: batched_graph(elems),
            "mapped": lambda: mapped_graph(elems),
            "mapped_eager": lambda: tf.map_fn(outer, elems),
            "xla": lambda: batched_xla(elems),
            "xla_sorted": lambda: sorted_xla(elems),
            "aliased": lambda: (elems, tf.identity(elems), {"x": elems}),
            "bfloat16": lambda: tf.cast(elems, tf.bfloat16),
            "numpy": lambda: numpy_graph(elems),
        }

        def at(offset):
            # An outer product in NumPy whose memory starts `offset` bytes after a multiple of 64.
            def outer(y):
                raw = np.empty(100 * 256 * 256 * 4 + 128, np.uint8)
                start = -raw.ctypes.data % 64 + offset
                values = raw[start : start + 100 * 256 * 256 * 4].view(np.float32).reshape(100, 256, 256)
                return np.multiply(y[:, :, None], y[:, None, :], out=values)

            return tf.function(lambda x: tf.numpy_function(outer, [x], tf.float32))

        reduced_graph = tf.function(reduced)
        batched_graph = tf.function(lambda x: x[:, :, None] * x[:, None, :])
        mapped_graph = tf.function(lambda x: tf.map_fn(outer, x))
        batched_xla = tf.function(lambda x: x[:, :, None] * x[:, None, :], jit_compile=True)
        sorted_xla = tf.function(sorted_outer, jit_compile=True)
        numpy_graph, numpy_aliased = at(4), at(0)

        result = {}
        for name, function in functions.items():
            function()
            result[name] = memory.measure_events(function, input_bytes=5, captured_bytes=6)
        for name, function in {"numpy_copied": numpy_graph, "numpy_aliased": numpy_aliased}.items():
            function(elems)
            result[name] = memory.measure_events(lambda: function(elems), with_numpy=True)
        result["allocator"] = memory.measure_allocator(functions["reduced"])
        result["left"] = os.listdir(tempfile.tempdir)
    """)


OUTER_BYTES = 100 * 256 * 256 * 4


def test_a_known_temporary_is_measured_to_a_thousandth(events):
    measured = events["reduced"]
    assert measured["peak_bytes"] == pytest.approx(256 * MIB, rel=1e-3)
    assert measured["output_bytes"] == 4
    assert measured["temporary_bytes"] == measured["peak_bytes"] - 4
    assert measured["method"] == "events"
    assert (measured["input_bytes"], measured["captured_bytes"]) == (5, 6)
    assert measured["at_peak"][0]["bytes"] == 256 * MIB


def test_a_batched_outer_product_needs_its_output_only(events):
    measured = events["batched"]
    assert measured["output_bytes"] == OUTER_BYTES
    assert measured["peak_bytes"] == pytest.approx(OUTER_BYTES, rel=1e-3)
    assert measured["at_peak"][0] == {"op": "mul", "bytes": OUTER_BYTES}


def test_map_fn_needs_its_output_twice_while_it_stacks(events):
    measured = events["mapped"]
    assert measured["peak_bytes"] == pytest.approx(2 * OUTER_BYTES, rel=1e-3)
    assert measured["temporary_bytes"] == pytest.approx(OUTER_BYTES, rel=2e-3)
    stacked = [row for row in measured["at_peak"] if "TensorListStack" in row["op"]]
    assert stacked and stacked[0]["bytes"] == OUTER_BYTES
    assert sum(row["bytes"] for row in measured["at_peak"]) == measured["peak_bytes"]
    assert events["mapped_eager"]["peak_bytes"] == pytest.approx(2 * OUTER_BYTES, rel=1e-3)


def test_timelines_begin_at_nothing_rise_to_the_peak_and_end_with_the_output(events):
    for name in ("batched", "mapped", "mapped_eager", "xla"):
        measured = events[name]
        times, live = measured["timeline"]["t_s"], measured["timeline"]["live_bytes"]
        assert (times[0], live[0]) == (0, 0)
        assert times == sorted(times)
        assert len(times) == len(live) <= 500
        assert max(live) == measured["peak_bytes"]
        assert live[-1] == pytest.approx(OUTER_BYTES, rel=1e-3)


def test_buffers_of_xla_are_measured(events):
    assert events["xla"]["peak_bytes"] == pytest.approx(OUTER_BYTES, rel=1e-3)
    assert [row["op"] for row in events["xla"]["at_peak"]] == ["XLA output buffer (cluster <lambda>)"]
    measured = events["xla_sorted"]
    assert measured["output_bytes"] == 100 * 256 * 4
    assert measured["temporary_bytes"] >= OUTER_BYTES
    assert measured["at_peak"][0]["op"] == "XLA temporary buffer (cluster sorted_outer)"


def test_an_output_that_is_an_input_needs_nothing(events):
    measured = events["aliased"]
    assert (measured["peak_bytes"], measured["temporary_bytes"]) == (0, 0)
    assert measured["output_bytes"] == 100 * 256 * 4
    assert measured["at_peak"] == []


def test_outputs_that_numpy_does_not_know(events):
    assert events["bfloat16"]["output_bytes"] == events["bfloat16"]["peak_bytes"] == 100 * 256 * 2


def test_an_allocation_without_a_name_gets_that_of_the_op_that_ran(events):
    assert events["numpy"]["at_peak"][0] == {"op": "PyFunc", "bytes": OUTER_BYTES}


def test_memory_of_numpy_counts_whether_tensorflow_copies_it_or_not(events):
    copied, aliased = events["numpy_copied"], events["numpy_aliased"]
    assert copied["peak_bytes"] == pytest.approx(2 * OUTER_BYTES, abs=MIB // 4)
    assert aliased["peak_bytes"] == pytest.approx(OUTER_BYTES, abs=MIB // 4)
    for measured in (copied, aliased):
        assert measured["output_bytes"] == OUTER_BYTES
        held = {row["op"]: row["bytes"] for row in measured["at_peak"]}
        assert held["NumPy and Python"] == pytest.approx(OUTER_BYTES, abs=MIB // 4)
        assert sum(held.values()) == measured["peak_bytes"]


def test_the_counters_of_the_allocator_are_a_second_way(events):
    measured = events["allocator"]
    assert measured["method"] == "allocator"
    assert 256 * MIB <= measured["peak_bytes"] <= 1.3 * 256 * MIB


def test_the_profile_is_removed(events):
    assert events["left"] == []


def test_an_allocator_that_reports_nothing_is_an_error_not_a_zero():
    message = in_process("""
        import tensorflow as tf

        try:
            memory.measure_events(lambda: tf.random.stateless_uniform([1000], [1, 2]))
            result = None
        except RuntimeError as error:
            result = str(error)
    """)
    assert message == "the allocator of CPU:0 reports no events: prepare_events must come before the first op"


def test_a_limit_fails_with_an_error_that_python_can_catch():
    result = in_process("""
        memory.prepare_events(limit_mib=256)
        import tensorflow as tf

        def too_much(x):
            return tf.sort(tf.sort(x[:, None] * x[None, :]), 0)

        x = tf.random.stateless_uniform([8192], [1, 2])
        small = tf.random.stateless_uniform([512], [1, 2])
        functions = {
            "eager": too_much,
            "graph": tf.function(too_much),
            "xla": tf.function(too_much, jit_compile=True),
        }

        def fail(function):
            try:
                function(x)
            except tf.errors.ResourceExhaustedError as error:
                return type(error).__name__

        # The allocator waits 10 s for memory before it gives up: all three wait at once.
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            result = dict(zip(functions, pool.map(fail, functions.values())))
        result |= {name + " small": function(small).shape[0] for name, function in functions.items()}
    """)
    assert result == {
        **dict.fromkeys(("eager", "graph", "xla"), "ResourceExhaustedError"),
        **dict.fromkeys(("eager small", "graph small", "xla small"), 512),
    }


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells the peak of a process")
def test_the_process_peak_is_right_for_large_and_for_many_small_buffers():
    result = in_process(
        """
        prepared = memory.prepare_process_peak()
        import tensorflow as tf

        sizes = [4 + 4 * (i % 12) for i in range(6000)]  # KiB: 4 to 48
        large = tf.function(lambda seed: tf.reduce_sum(tf.random.stateless_uniform([64 * MIB], seed)))
        seed = tf.constant([1, 2])
        mapped = tf.function(lambda x: tf.map_fn(lambda y: tf.fill([2048], y), x))
        ones = tf.ones([8_000])

        calls = {
            "large": lambda: large(seed),
            "held": lambda: tf.fill([64 * MIB], 1.0),
            "many": lambda: [tf.fill([size * 256], 1.0) for size in sizes],
            "mapped": lambda: mapped(ones),
        }
        result = {"prepared": prepared, "many_expected": sum(sizes) * 1024}
        for name, call in calls.items():
            call()
            call()
            result[name] = memory.measure_process_peak(call)
    """,
        heap="new",
    )
    assert result["prepared"] is True
    assert result["large"] == pytest.approx(256 * MIB, rel=0.01)
    assert result["held"] == pytest.approx(256 * MIB, rel=0.01)
    assert result["many"] == pytest.approx(result["many_expected"], rel=0.05)
    # A map holds the list of its elements and their stack: 8 KiB each, 8 000 times, twice.
    assert result["mapped"] == pytest.approx(2 * 8_000 * 8192, rel=0.05)


def test_the_process_peak_is_not_measured_where_the_c_library_is_another(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(malloc_trim=None))
    assert memory.prepare_process_peak() is False
    assert memory.measure_process_peak(lambda: None) is None
