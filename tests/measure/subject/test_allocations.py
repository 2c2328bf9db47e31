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
    live = live_bytes([])
    assert (live.peak_bytes, live.live_bytes, live.holders) == (0, (), ())


def test_live_bytes_of_events_in_any_order_and_of_addresses_in_any_use():
    for what, events, live in (
        (
            "events of several threads are merged by time",
            [allocate(5, 3, 7), free(6, 1), allocate(1, 1, 100), free(3, 2), allocate(2, 2, 10)],
            (100, 110, 100, 107, 7),
        ),
        (
            "what was allocated before is ignored",
            [free(1, 99), allocate(2, 10, 8), free(3, 99), free(4, 10), free(5, 10)],
            (8, 0),
        ),
        ("an address is used again", [allocate(1, 10, 8), free(2, 10), allocate(3, 10, 24)], (8, 0, 24)),
        ("without a free, the second one holds", [allocate(1, 10, 8), allocate(2, 10, 24), free(3, 10)], (8, 24, 0)),
        ("a free comes first", [allocate(1, 10, 100), allocate(2, 10, 60), free(2, 10)], (100, 0, 60)),
        ("what is freed at once does not stay", [free(2, 10), allocate(2, 10, 100)], (100, 0)),
    ):
        assert live_bytes(events).live_bytes == live, what


def test_a_timeline_keeps_ends_and_extremes():
    random = np.random.default_rng(0)
    values = random.integers(1_000, 2_000, 20_000)
    values[12_345], values[6_789], values[0], values[-1] = 9_999, 1, 1_234, 1_500
    kept = allocations.downsample(range(20_000), values.tolist(), most=500)
    assert len(kept) <= 500
    assert kept == sorted(set(kept))
    assert {0, 19_999, 12_345, 6_789} <= set(kept)
    assert allocations.downsample([1, 2, 3], [5, 6, 7], most=500) == [0, 1, 2]


def test_ops_of_one_kind_are_one_row_and_xlas_buffers_are_told_apart_by_what_stays():
    events = [allocate(i, i, 10, name) for i, name in enumerate(["mul", "mul_1", "mul_2", "", "stack"])]
    assert allocations.ops_at_peak(live_bytes(events)) == [
        AtPeak(op="mul (3 ops)", bytes=30),
        AtPeak(op="not named by TensorFlow", bytes=10),
        AtPeak(op="stack", bytes=10),
    ]
    assert allocations.readable_op("map/while/body/_1/map/while/mul_7") == "map/while/mul"
    name = "__inference_strategy_62"
    events = [allocate(1, 1, 100, name), allocate(2, 2, 30, name), allocate(3, 3, 10, "cluster_0"), free(4, 2)]
    assert allocations.ops_at_peak(live_bytes(events)) == [
        AtPeak(op="XLA output buffer (cluster strategy)", bytes=100),
        AtPeak(op="XLA temporary buffer (cluster strategy)", bytes=30),
        AtPeak(op="XLA output buffer (cluster cluster_0)", bytes=10),
    ]
