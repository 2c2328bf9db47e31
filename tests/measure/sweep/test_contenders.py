"""Which strategies get further processes, and at which points."""

import numpy as np
import pytest
from msgspec.structs import replace

from measure.judge import advice
from measure.model.run import Analysis, Axis, Point
from measure.sweep import contenders, values
from measure.sweep.crossovers import crossovers
from measure.sweep.evidence import evidence
from tests import costs


def test_more_processes_go_to_what_ties_over_all_values_and_to_what_is_odd_on_its_line():
    rng = np.random.default_rng(1)
    chunks = {1: 12e-3, 2: 20e-3, 4: 6e-3, 8: 5e-3, 16: 5.2e-3, 32: 9e-3}
    axis = Axis(kind="option", name="chunk", values=list(chunks), scale="log")
    points = [
        costs.point(
            n, {f"chunked.graph?chunk={n}": seconds, **({"map_fn.graph": 10e-3} if n == 1 else {})}, rng,
            processes=1, name="chunk",
        )
        for n, seconds in chunks.items()
    ]  # fmt: skip
    leading = contenders.leading(evidence(points, [axis]), Analysis())
    # 6 ms, by one process each, is not beyond what the verdict would call a tie with 5 ms.
    assert [(timed.place, timed.measurement.strategy) for timed in leading[2:]] == [(2, "chunked.graph?chunk=4")]
    assert {timed.place for timed in leading[:2]} == {3, 4}
    [odd] = contenders.doubtful(evidence(points, [axis]))
    assert (odd.place, odd.value, odd.processes) == (1, 2, 1)
    item = points[4].measurements[0]
    odder = replace(item.replicas[0], samples_s=[9 * sample_s for sample_s in item.replicas[0].samples_s])
    points[4] = replace(points[4], measurements=[replace(item, replicas=[odder])])
    assert [timed.place for timed in contenders.doubtful(evidence(points, [axis]))] == [4, 1], "the worst comes first"
    rising = [costs.point(n, {"loop.eager": 1e-4 * n}, rng, processes=1) for n in (1, 2, 4, 8)]
    assert contenders.doubtful(evidence(rising, [costs.axis([1, 2, 4, 8])])) == []
    assert contenders.leading(evidence([], [axis]), Analysis()) == []


ONCE, ALWAYS = "batched.xla", "batched.graph"


def quick_once(points: list[Point], at: int) -> list[Point]:
    """The points, where at one of them the first strategy takes 500 ms with other values than those that are timed."""
    first, *others = points[at].measurements
    assert first.latency is not None
    warning = advice.compiled_values(first.latency.median_s, 0.5)
    assert warning is not None
    changed = replace(points[at], measurements=[replace(first, warnings=[warning]), *others])
    return [*points[:at], changed, *points[at + 1 :]]


def test_what_is_quick_with_the_timed_values_only_leads_no_option_and_overtakes_nobody():
    rng = np.random.default_rng(0)
    axis = Axis(kind="option", name="chunk", values=[1, 2, 4], scale="log")
    points = [
        costs.point(n, {f"chunked.graph?chunk={n}": seconds}, rng, processes=3, name="chunk")
        for n, seconds in {1: 8e-3, 2: 1e-3, 4: 5e-3}.items()
    ]
    assert values.sentence(evidence(points, [axis]), Analysis()).startswith("chunked.graph is fastest with chunk 2: ")
    known = evidence(quick_once(points, 1), [axis])
    assert values.sentence(known, Analysis()).startswith("chunked.graph is fastest with chunk 4: ")
    assert [timed.value for timed in contenders.leading(known, Analysis())] == [4]
    everywhere = evidence(quick_once(quick_once(quick_once(points, 0), 1), 2), [axis])
    assert values.sentence(everywhere, Analysis()).startswith("chunked.graph is fastest with chunk 2: "), "all alike"


@pytest.mark.parametrize("is_quick_once", [False, True])
def test_a_crossing_is_not_of_what_is_quick_with_the_timed_values_only(is_quick_once: bool):
    rng = np.random.default_rng(0)
    points = costs.points([1, 10, 100], {ONCE: (1e-3, 1e-6), ALWAYS: (1e-4, 1e-4)}, rng, costs.QUIET)
    if is_quick_once:
        points = quick_once(quick_once(points, 1), 2)
    [crossing] = crossovers(evidence(points, [costs.axis([1, 10, 100])]), Analysis())
    assert (crossing.value is None) == is_quick_once
