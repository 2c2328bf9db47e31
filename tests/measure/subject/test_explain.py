"""An explanation: what it asks of TensorFlow, and when, of strategies made for it; what it reads of made-up events."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from measure.model import why
from measure.subject import explain
from measure.subject.profiler import CALL, Profile
from tests.synthetic import HOSTILE

Explain = Callable[..., tuple[why.Explained, list[str]]]


@pytest.fixture
def explained(tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Explain:
    """``explained(strategy, elems, slug)``: the reasons, and the order of the profiler's start and of calls."""
    happened: list[str] = []
    start = tf.profiler.experimental.start
    monkeypatch.setattr(
        tf.profiler.experimental, "start", lambda *of, **more: happened.append("profiler") or start(*of, **more)
    )

    def of(strategy: Any, elems: Any, slug: str, **more: Any) -> tuple[why.Explained, list[str]]:
        def called(values: Any) -> Any:
            happened.append("call")
            return strategy(values)

        module: Any = SimpleNamespace(strategy=called, elems=elems, **more)
        # However slow the machine: as many warm calls, and as many watched ones, as there can be.
        found = explain.explain(module, "eager", slug, tmp_path, lambda: None, on_gpu=False, repeated_s=1e9)
        return found, happened

    return of


def test_retraces_are_counted_in_every_call_and_not_rounded_away(tf: Any, explained: Explain):
    calls = 0

    @tf.function
    def traced(x, number):
        return x * number

    def retracing(x):
        nonlocal calls
        calls += 1
        return traced(x, {2: 7, 3: 8, 9: 9}.get(calls, 1))

    # The first call, five warm ones, five that are watched: it retraces in the second, the third and the ninth.
    found, order = explained(retracing, tf.ones([3]), "own.eager")
    assert (found.traces_first, found.traces_warm) == (1, 2)
    assert found.traces_per_call == pytest.approx(1 / 5)
    assert order[:2] == ["profiler", "call"] and not found.of_element


def test_an_element_function_that_xla_compiles_has_its_program_and_is_not_watched_while_it_compiles(
    tf: Any, explained: Explain, tmp_path: Path
):
    @tf.function(jit_compile=True)
    def sine(x):
        return tf.sin(x) * 2 + 1

    slug = "own.eager?chunk=2&jit_compile=true"
    found, order = explained(lambda x: [sine(x[0]), sine(x[1])], tf.ones([2, 5]), slug, fn=sine)
    assert found.of_element and found.loops == 0 and found.fusion_count
    assert found.kernel_count and why.op_count(found) >= 2
    assert order[:2] == ["call", "profiler"] and "fusion" in (tmp_path / why.HLO).read_text()
    without, _ = explained(lambda x: x, tf.ones([2, 5]), slug)
    assert without.of_element and without.loops is None


# --- events of one call ----------------------------------------------------------------------------------------------

Plane = tuple[str, list[tuple[str, list[tuple[Any, ...]]]]]


def space(*planes: Plane) -> Any:
    """An XSpace of planes with lines of events: name, start and length in microseconds, statistics."""
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    made = XSpace()
    for plane_name, lines in planes:
        plane = made.planes.add(name=plane_name)
        names: dict[str, int] = {}
        stats: dict[str, int] = {}
        for line_name, events in lines:
            line = plane.lines.add(name=line_name, timestamp_ns=1_000)
            for name, start, length, *more in events:
                key = names.setdefault(name, len(names) + 1)
                plane.event_metadata[key].name = name
                event = line.events.add(metadata_id=key, offset_ps=round(start * 1e6), duration_ps=round(length * 1e6))
                for stat, value in (more[0] if more else {}).items():
                    number = stats.setdefault(stat, len(stats) + 1)
                    plane.stat_metadata[number].name = stat
                    event.stats.add(metadata_id=number, str_value=value)
    return made


def figures(*planes: Plane) -> dict[str, Any]:
    return explain.figures(*explain.quickest_call(Profile(space(*planes))))


def counts(rows: list[why.Ran]) -> dict[str, int]:
    return {row.name: row.count for row in rows}


OP = "EagerLocalExecute: "


def test_eager_ops_last_as_long_as_their_kernels_and_the_rest_is_pythons_or_the_runtimes(tf: Any):
    found = figures(
        ("/host:CPU", [("python", [
            (CALL, 0, 100),
            ("convert_to_tensor", 1, 8),  # Python's own, but for the op in it
            ("EagerExecute", 2, 4), (f"{OP}_EagerConst", 2, 4), ("KernelAndDeviceFunc::Run", 3, 1),
            ("TFE_Py_FastPathExecute_C", 30, 20), (f"{OP}Mul", 32, 10), ("KernelAndDeviceFunc::Run", 35, 5),
            (f"{OP}__inference_f_7", 60, 10), ("KernelAndDeviceFunc::Run", 62, 3),
            (f"{OP}Late", 200, 10),
        ])]),
    )  # fmt: skip
    assert counts(found["ops"]) == {"Mul": 1, "EagerConst": 1} and found["op_count"] == 2
    assert found["in_ops_s"] == pytest.approx(6e-6) and found["python_s"] == pytest.approx(66e-6)


def test_ops_of_a_graph_are_counted_on_all_threads_and_overlaps_once(tf: Any):
    found = figures(
        ("/host:CPU", [
            ("python", [(CALL, 0, 100), ("TFE_Py_ExecuteCancelable", 10, 80),
                        ("tf.function-graph_building", 2, 6)]),
            ("a", [("ExecutorState::Process", 20, 30), ("map/while/body/_1/map/while/mul:Mul", 20, 10),
                   ("x:While", 20, 70), ("plain: text", 20, 1), ("name::Other", 20, 1), ("c:PyFunc", 95, 5)]),
            ("b", [("y:Mul", 25, 10), ("ExecutorState::ProcessAsync::Start", 40, 5, {"kernel_type": "Iterate"})]),
        ]),
    )  # fmt: skip
    assert counts(found["ops"]) == {"Mul": 2, "PyFunc": 1, "Iterate": 1}, "a loop is no op beside those that it runs"
    assert found["in_ops_s"] == pytest.approx((15 + 5 + 5) * 1e-6), "a loop's time is that of its ops"
    assert found["building_s"] == pytest.approx(6e-6) and found["python_s"] == pytest.approx(14e-6)


def test_kernels_are_the_innermost_of_xla_and_the_streams_of_a_gpu_and_waiting_is_no_op(tf: Any):
    hlo = {"hlo_op": "x"}
    found = figures(
        ("/host:CPU", [("python", [(CALL, 0, 100), ("while", 10, 50, hlo), ("fusion", 12, 5, hlo),
                                   ("end: fusion", 17, 1), ("fusion", 20, 5, hlo)])]),
        ("/device:GPU:0", [("Stream #7(Compute)", [("gemm", 30, 10, hlo), ("gemm", 90, 20), ("MemcpyH2D", 60, 5),
                                                      ("Memset", 70, 5)]),
                           ("XLA Ops", [("dot", 30, 10, hlo)])]),
    )  # fmt: skip
    assert counts(found["kernels"]) == {"fusion": 2, "gemm": 2} and not found["ops"]
    assert found["in_kernels_s"] == pytest.approx(40e-6) and found["in_streams_s"] == pytest.approx(30e-6)
    found = figures(
        ("/host:CPU", [("python", [
            (CALL, 0, 100),
            ("TFE_Py_FastPathExecute_C", 10, 20), (f"{OP}MatMul", 12, 10), ("KernelAndDeviceFunc::Run", 13, 5),
            ("TFE_Py_FastPathExecute_C", 40, 55), (f"{OP}SyncDevice", 41, 53), ("KernelAndDeviceFunc::Run", 42, 50),
        ])]),
        ("/device:GPU:0", [("Stream #7(Compute)", [("gemm", 20, 70)])]),
    )  # fmt: skip
    assert counts(found["ops"]) == {"MatMul": 1} and found["in_ops_s"] == pytest.approx(5e-6)
    assert found["waiting_s"] == pytest.approx(50e-6) and found["in_streams_s"] == pytest.approx(70e-6)
    assert found["python_s"] == pytest.approx(25e-6)


def test_of_several_marked_calls_the_quickest_counts_and_without_one_there_is_nothing(tf: Any):
    calls = [(CALL, 0, 50), ("a:Mul", 5, 1), (CALL, 100, 40), ("b:Add", 105, 1)]
    assert counts(figures(("/host:CPU", [("python", calls)]))["ops"]) == {"Add": 1}
    with pytest.raises(ValueError, match="did not see the call"):
        figures(("/host:CPU", [("python", [("a:Mul", 5, 1)])]))


def test_the_trace_opens_in_perfetto(tf: Any):
    made = space(
        ("/host:CPU", [("python", [(CALL, 0, 50), ("a:Mul", 5, 2, {"shape": HOSTILE}), ("b:Add", 9, 1)])]),
        ("/device:GPU:0", [("Stream #1", [("gemm", 10, 3)])]),
    )
    called, events = explain.quickest_call(Profile(made))
    document = json.loads(gzip.decompress(explain.chrome(called, events, "map_fn.graph")))
    spans = {event["name"]: event for event in document["traceEvents"] if event["ph"] == "X"}
    assert spans["a:Mul"]["ts"] == 5.0 and spans["a:Mul"]["dur"] == 2.0 and spans["a:Mul"]["args"] == {"shape": HOSTILE}
    assert spans["gemm"]["pid"] != spans["a:Mul"]["pid"]
    cut = json.loads(gzip.decompress(explain.chrome(called, events, "x", most=2)))
    assert cut["otherData"] == {"events left out": 2}


def test_no_path_of_a_machine_is_in_a_program():
    program = (
        'HloModule m\n\nFileNames\n1 "/home/somebody/x.py"\n\n%f (p: f32[5]) -> f32[5] {\n'
        '  ROOT %a = f32[5]{0} add(%p, %p), metadata={op_name="add" source_file="/home/x.py" source_line=7}\n}\n'
    )
    clean = explain.without_paths(program)
    assert "/home" not in clean and 'op_name="add"' in clean
