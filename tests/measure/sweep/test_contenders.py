"""Which strategies get further processes, and at which points."""

import numpy as np
from msgspec.structs import replace

from measure.model.run import Analysis, Axis
from measure.sweep import contenders
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
