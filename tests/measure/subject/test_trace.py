"""What is read out of the profiler's trace, from made-up ones."""

import gzip
import json
from typing import Any

import pytest

from measure.subject import profile, trace
from measure.subject.profiler import CALL
from tests.synthetic import HOSTILE

pytestmark = pytest.mark.usefixtures("tf")
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


def profiled(*planes: Plane) -> profile.Profile:
    return profile.profile(trace.read(space(*planes)))


def counts(shares: tuple[profile.Share, ...]) -> dict[str, int]:
    return {share.name: share.count for share in shares}


def test_eager_ops_last_as_long_as_their_kernels_and_the_rest_is_pythons_or_the_runtimes():
    op = "EagerLocalExecute: "
    found = profiled(
        ("/host:CPU", [("python", [
            (CALL, 0, 100),
            ("convert_to_tensor", 1, 8),  # Python's own, but for the op in it
            ("EagerExecute", 2, 4), (f"{op}_EagerConst", 2, 4), ("KernelAndDeviceFunc::Run", 3, 1),
            ("TFE_Py_FastPathExecute_C", 30, 20), (f"{op}Mul", 32, 10), ("KernelAndDeviceFunc::Run", 35, 5),
            (f"{op}__inference_f_7", 60, 10), ("KernelAndDeviceFunc::Run", 62, 3),
            (f"{op}Late", 200, 10),
        ])]),
    )  # fmt: skip
    assert counts(found.ops) == {"Mul": 1, "EagerConst": 1}
    assert found.in_ops_s == pytest.approx(6e-6)
    assert found.runtime_s == pytest.approx(34e-6) and found.python_s == pytest.approx(66e-6)
    assert found.threads == 1


def test_ops_of_a_graph_are_counted_on_all_threads_and_overlaps_once():
    found = profiled(
        ("/host:CPU", [
            ("python", [(CALL, 0, 100), ("TFE_Py_ExecuteCancelable", 10, 80),
                        ("tf.function-graph_building", 2, 6)]),
            ("a", [("ExecutorState::Process", 20, 30), ("map/while/body/_1/map/while/mul:Mul", 20, 10),
                   ("x:While", 20, 70), ("plain: text", 20, 1), ("name::Other", 20, 1), ("c:PyFunc", 95, 5)]),
            ("b", [("y:Mul", 25, 10), ("ExecutorState::ProcessAsync::Start", 40, 5, {"kernel_type": "Iterate"})]),
        ]),
    )  # fmt: skip
    assert counts(found.ops) == {"Mul": 2, "PyFunc": 1, "Iterate": 1}, "a loop is no op beside those that it runs"
    assert found.in_ops_s == pytest.approx((15 + 5 + 5) * 1e-6), "a loop's time is that of its ops"
    assert found.building_s == pytest.approx(6e-6) and found.python_s == pytest.approx(14e-6)
    assert found.threads == 2


def test_kernels_are_the_innermost_of_xla_and_the_streams_of_a_gpu_and_waiting_is_no_op():
    hlo, op = {"hlo_op": "x"}, "EagerLocalExecute: "
    found = profiled(
        ("/host:CPU", [("python", [(CALL, 0, 100), ("while", 10, 50, hlo), ("fusion", 12, 5, hlo),
                                   ("end: fusion", 17, 1), ("fusion", 20, 5, hlo)])]),
        ("/device:GPU:0", [("Stream #7(Compute)", [("gemm", 30, 10, hlo), ("gemm", 90, 20), ("MemcpyH2D", 60, 5),
                                                      ("Memset", 70, 5)]),
                           ("XLA Ops", [("dot", 30, 10, hlo)])]),
    )  # fmt: skip
    assert counts(found.kernels) == {"fusion": 2, "gemm": 2} and not found.ops
    assert found.in_kernels_s == pytest.approx(40e-6) and found.in_streams_s == pytest.approx(30e-6)
    assert found.threads == 1, "a stream is not a thread"
    found = profiled(
        ("/host:CPU", [("python", [
            (CALL, 0, 100),
            ("TFE_Py_FastPathExecute_C", 10, 20), (f"{op}MatMul", 12, 10), ("KernelAndDeviceFunc::Run", 13, 5),
            ("TFE_Py_FastPathExecute_C", 40, 55), (f"{op}SyncDevice", 41, 53), ("KernelAndDeviceFunc::Run", 42, 50),
        ])]),
        ("/device:GPU:0", [("Stream #7(Compute)", [("gemm", 20, 70)])]),
    )  # fmt: skip
    assert counts(found.ops) == {"MatMul": 1} and found.in_ops_s == pytest.approx(5e-6)
    assert found.waiting_s == pytest.approx(50e-6) and found.in_streams_s == pytest.approx(70e-6)
    assert found.python_s == pytest.approx(25e-6)


def test_of_several_marked_calls_the_quickest_counts_and_without_one_there_is_nothing():
    made = space(("/host:CPU", [("python", [(CALL, 0, 50), ("a:Mul", 5, 1), (CALL, 100, 40), ("b:Add", 105, 1)])]))
    assert counts(profile.profile(trace.read(made)).ops) == {"Add": 1}
    with pytest.raises(ValueError, match="did not see the call"):
        trace.read(space(("/host:CPU", [("python", [("a:Mul", 5, 1)])])))


def test_the_trace_opens_in_perfetto():
    made = trace.read(
        space(
            ("/host:CPU", [("python", [(CALL, 0, 50), ("a:Mul", 5, 2, {"shape": HOSTILE}), ("b:Add", 9, 1)])]),
            ("/device:GPU:0", [("Stream #1", [("gemm", 10, 3)])]),
        )
    )
    document = json.loads(gzip.decompress(trace.chrome(made, "map_fn.graph")))
    spans = {event["name"]: event for event in document["traceEvents"] if event["ph"] == "X"}
    assert spans["a:Mul"]["ts"] == 5.0 and spans["a:Mul"]["dur"] == 2.0 and spans["a:Mul"]["args"] == {"shape": HOSTILE}
    assert spans["gemm"]["pid"] != spans["a:Mul"]["pid"]
    cut = json.loads(gzip.decompress(trace.chrome(made, "x", most=2)))
    assert cut["otherData"] == {"events left out": 2}
