"""An allocator's events, made up: live bytes, their peak and who held it are exact."""

import numpy as np

from measure.model.run import AtPeak
from measure.subject import allocations
from measure.subject.allocations import AllocationEvent, live_bytes


def allocate(time_ps: int, address: int, count: int, op: str = "op") -> AllocationEvent:
    return AllocationEvent(time_ps=time_ps, address=address, freed=False, bytes=count, op=op)


def free(time_ps: int, address: int) -> AllocationEvent:
    return AllocationEvent(time_ps=time_ps, address=address, freed=True)


def test_peak_is_the_first_time_that_most_bytes_are_alive():
    live = live_bytes(
        [
            allocate(1, 10, 100, "a"),
            allocate(2, 20, 50, "b"),  # 150: the peak
            free(3, 10),
            allocate(4, 30, 100, "c"),  # 150 again
            free(5, 20),
        ]
    )
    assert (live.peak_bytes, live.peak_time_ps) == (150, 2)
    assert live.live_bytes == (100, 150, 50, 150, 100)
    assert live.times_ps == (1, 2, 3, 4, 5)
    assert [(event.op, event.bytes) for event in live.holders] == [("a", 100), ("b", 50)]
    assert live.survivors == {30}


def test_events_of_several_threads_are_merged_by_time():
    events = [allocate(5, 3, 7), free(6, 1), allocate(1, 1, 100), free(3, 2), allocate(2, 2, 10)]
    assert live_bytes(events).live_bytes == (100, 110, 100, 107, 7)


def test_frees_of_what_was_allocated_before_are_ignored():
    live = live_bytes([free(1, 99), allocate(2, 10, 8), free(3, 99), free(4, 10), free(5, 10)])
    assert (live.peak_bytes, live.live_bytes) == (8, (8, 0))


def test_an_address_may_be_used_again():
    live = live_bytes([allocate(1, 10, 8, "a"), free(2, 10), allocate(3, 10, 24, "b")])
    assert live.live_bytes == (8, 0, 24)
    assert [(event.op, event.bytes) for event in live.holders] == [("b", 24)]


def test_an_address_allocated_twice_without_a_free_holds_the_second_buffer_only():
    live = live_bytes([allocate(1, 10, 8, "a"), allocate(2, 10, 24, "b"), free(3, 10)])
    assert live.live_bytes == (8, 24, 0)
    assert [event.op for event in live.holders] == ["b"]


def test_at_one_time_a_free_comes_before_an_allocation():
    live = live_bytes([allocate(1, 10, 100), allocate(2, 20, 100), free(2, 10)])
    assert live.peak_bytes == 100
    reused = live_bytes([allocate(1, 10, 100), allocate(2, 10, 60), free(2, 10)])
    assert reused.live_bytes == (100, 0, 60)


def test_a_buffer_allocated_and_freed_at_one_time_does_not_stay():
    assert live_bytes([free(2, 10), allocate(2, 10, 100)]).live_bytes == (100, 0)


def test_no_events():
    live = live_bytes([])
    assert (live.peak_bytes, live.live_bytes, live.holders) == (0, (), ())


def test_a_timeline_keeps_ends_and_extremes():
    random = np.random.default_rng(0)
    values = random.integers(1_000, 2_000, 20_000)
    values[12_345], values[6_789], values[0], values[-1] = 9_999, 1, 1_234, 1_500
    kept = allocations.downsample(range(20_000), values.tolist(), most=500)
    assert len(kept) <= 500
    assert kept == sorted(set(kept))
    assert {0, 19_999, 12_345, 6_789} <= set(kept)
    for stretch in range(249):
        indices = range(20_000 * stretch // 249, 20_000 * (stretch + 1) // 249)
        assert max(values[i] for i in indices) == max(values[i] for i in kept if i in indices)
    assert allocations.downsample([1, 2, 3], [5, 6, 7], most=500) == [0, 1, 2]


def test_ops_at_the_peak_add_up_and_the_many_small_ones_become_one_row():
    events = [allocate(i, i, 1000 - i, f"op{i}x") for i in range(30)]
    rows = allocations.ops_at_peak(live_bytes(events), most=20)
    assert rows[0] == AtPeak(op="op0x", bytes=1000)
    assert rows[-1] == AtPeak(op="other ops", bytes=sum(1000 - i for i in range(19, 30)))
    assert len(rows) == 20
    assert sum(row.bytes for row in rows) == live_bytes(events).peak_bytes


def test_ops_of_one_kind_are_one_row():
    events = [allocate(i, i, 10, name) for i, name in enumerate(["mul", "mul_1", "mul_2", "", "stack"])]
    assert allocations.ops_at_peak(live_bytes(events)) == [
        AtPeak(op="mul (3 ops)", bytes=30),
        AtPeak(op="not named by TensorFlow", bytes=10),
        AtPeak(op="stack", bytes=10),
    ]
    assert allocations.readable_op("map/while/body/_1/map/while/mul_7") == "map/while/mul"


def test_buffers_of_a_compiled_function_are_told_apart_by_what_stays():
    name = "__inference_strategy_62"
    events = [allocate(1, 1, 100, name), allocate(2, 2, 30, name), allocate(3, 3, 10, "cluster_0"), free(4, 2)]
    assert allocations.ops_at_peak(live_bytes(events)) == [
        AtPeak(op="XLA output buffer (cluster strategy)", bytes=100),
        AtPeak(op="XLA temporary buffer (cluster strategy)", bytes=30),
        AtPeak(op="XLA output buffer (cluster cluster_0)", bytes=10),
    ]
