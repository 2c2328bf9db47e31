"""An explanation: what it asks of TensorFlow, and when, of strategies made for it; what it reads of made-up events."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from measure.run import why
from measure.subject import explain, memory
from measure.subject.messages import Spec
from measure.subject.tracing import CALL, Profile


def test_retraces_are_counted_in_every_call_and_not_rounded_away(
    tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # However slow the machine: as many calls as there can be are watched.
    monkeypatch.setattr(explain, "REPEATED_S", 1e9)
    calls = 0

    @tf.function
    def traced(x, number):
        return x * number

    def retracing(x):
        nonlocal calls
        calls += 1
        return traced(x, {3: 8, 9: 9}.get(calls, 1))

    # The first call and ten that are watched: it retraces in the third and the ninth.
    module: Any = SimpleNamespace(strategy=retracing, elems=tf.ones([3]))
    spec = Spec(role="why", name="own.eager", artifacts=str(tmp_path))
    found = explain.explain(module, lambda: retracing(module.elems), spec)
    assert found.traces_per_call == pytest.approx(2 / 10)
    assert not found.of_element and found.graph is None


Plane = tuple[str, list[tuple[str, list[tuple[Any, ...]]]]]


def space(*planes: Plane) -> Any:
    """An XSpace of planes with lines of events: name, start and length in microseconds, statistics."""
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    made = XSpace()
    for plane_name, lines in planes:
        plane = made.planes.add(name=plane_name)
        for line_name, events in lines:
            line = plane.lines.add(name=line_name, timestamp_ns=1_000)
            for name, start, length, *more in events:
                key = len(plane.event_metadata) + 1
                plane.event_metadata[key].name = name
                event = line.events.add(metadata_id=key, offset_ps=round(start * 1e6), duration_ps=round(length * 1e6))
                for stat, value in (more[0] if more else {}).items():
                    number = len(plane.stat_metadata) + 1
                    plane.stat_metadata[number].name = stat
                    kind = "str_value" if isinstance(value, str) else "int64_value"
                    event.stats.add(metadata_id=number, **{kind: value})
    return made


def figures(*planes: Plane) -> dict[str, Any]:
    profile = Profile(space(*planes))
    called = profile.quickest_call()
    return explain.figures(called, profile.events(lambda _, start_ps: called.start_ps <= start_ps <= called.end_ps))


def counts(rows: list[why.Ran]) -> dict[str, int]:
    return {row.name: row.count for row in rows}


OP = "EagerLocalExecute: "


def test_eager_ops_last_as_long_as_their_kernels_and_the_rest_is_pythons_or_the_runtimes(tf: Any):
    found = figures(
        ("/host:CPU", [("python", [
            (CALL, 300, 200), (CALL, 0, 100),  # of several calls the quickest counts
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


def test_of_the_allocators_events_those_of_the_device_count(tf: Any):
    reports = [
        (name, 10 + place, 0, {"allocator_name": allocator, "addr": address, "requested_bytes": size, "tf_op": op})
        for place, (name, allocator, address, size, op) in enumerate((
            ("MemoryAllocation", "GPU_0_bfc", 1, 100, "Conv2D"),
            ("MemoryAllocation", "gpu_host_bfc", 2, 7, "pinned"),
            ("MemoryAllocation", "GPU_1_bfc", 4, 1000, "elsewhere"),
            ("MemoryAllocation", "GPU_0_bfc", 5, 50, "Add_1"),
            ("MemoryAllocation", "GPU_0_bfc", 6, 50, "Add_2"),
            ("MemoryDeallocation", "GPU_0_bfc", 1, 100, ""),
        ))
    ]  # fmt: skip
    profile = Profile(space(("/host:CPU", [("python", [(CALL, 0, 100), *reports])])))
    for device, live, held in (
        ("GPU:0", [100, 150, 200, 100], {"Add": 100}),
        ("GPU:1", [1000], {"elsewhere": 1000}),
        ("GPU:2", [], {}),
    ):
        assert memory.replayed(memory.allocations(profile, device)) == (live, held)


def test_no_path_of_a_machine_is_in_a_program():
    program = (
        'HloModule m\n\nFileNames\n1 "/home/somebody/x.py"\n\n%f (p: f32[5]) -> f32[5] {\n'
        '  ROOT %a = f32[5]{0} add(%p, %p), metadata={op_name="add" source_file="/home/x.py" source_line=7}\n}\n'
    )
    clean = explain.without_paths(program)
    assert "/home" not in clean and 'op_name="add"' in clean
