"""The conclusions of `tests.benchmarks.sharpness` from runs: pure functions, with numbers worked by hand."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from measure.model.run import Control, Run
from tests.benchmarks import sharp_figures
from tests.benchmarks.common import Figure
from tests.benchmarks.sharp_figures import Alone, Timed, Truth
from tests.samples import constant, measurement, run_of
from tests.synthetic import latency

LEADER, OTHER = "batched.graph", "loop.eager"


def run(latencies_s: Mapping[str, float], half: float = 0.02, processes: int = 2, resolution: float = 0.0) -> Run:
    """A run of strategies with these latencies, whose intervals reach ``half`` to either side; the first one leads."""
    items = [
        replace(measurement(slug, constant(seconds, [1.0] * processes)), latency=latency(seconds, half))
        for slug, seconds in latencies_s.items()
    ]
    control = Control(strategy=LEADER, ratio=1.0, low=0.9, high=1.1, resolution=resolution) if resolution else None
    return replace(run_of(*items), ranking=[[slug] for slug in latencies_s], control=control)


def value(figures: Sequence[Figure], begins: str) -> float:
    (figure,) = [figure for figure in figures if figure.name.startswith(begins)]
    return figure.value


def test_the_scatter_is_that_of_logarithms_over_all_strategies_that_three_runs_have() -> None:
    runs = [run({LEADER: math.exp(place), OTHER: math.exp(3 * place)}) for place in (-0.01, 0.0, 0.01)]
    runs[0] = replace(runs[0], measurements=[*runs[0].measurements, run({"map_fn.xla": 1.0}).measurements[0]])
    figures = sharp_figures.scatter([runs])
    assert value(figures, "scatter between runs, median") == pytest.approx((0.01 + 0.03) / 2)
    assert value(figures, "scatter between runs, 90 %") == pytest.approx(np.quantile([0.01, 0.03], 0.9))


def test_intervals_are_held_against_the_median_of_the_other_runs() -> None:
    runs = [run({LEADER: 1.0, OTHER: seconds}) for seconds in (2.0, 2.0, 2.02, 2.4)]
    figures = sharp_figures.calibration([runs])
    assert value(figures, "intervals of leaders") == 1.0
    assert value(figures, "intervals of the others") == 3 / 4, "the run that is 20 % off holds no other"
    assert value(figures, "half of an interval, median, leaders") == pytest.approx(math.sqrt(1.02 / 0.98) - 1)
    alone = [run({LEADER: 1.0, OTHER: seconds}, processes=1) for seconds in (2.0, 2.0, 9.0)]
    assert sharp_figures.calibration([alone]) == [], "one process has no interval of its own"


def test_a_run_without_a_control_has_no_resolution_at_all() -> None:
    runs = [run({LEADER: 1.0}, resolution=resolution) for resolution in (0.02, 0.04, 0.06)]
    assert value(sharp_figures.resolution(runs), "resolution, median") == pytest.approx(0.04)
    figures = sharp_figures.resolution([*runs, *[run({LEADER: 1.0})] * 4])
    assert [figure.row()[1] for figure in figures] == ["not known"] * 2


def test_times_are_medians() -> None:
    found = [Timed(run({LEADER: 1.0}), order_s / 2, order_s, 2 * order_s, 3 * order_s) for order_s in (1.0, 2.0, 9.0)]
    figures = sharp_figures.times(found)
    assert [figure.value for figure in figures] == [1.0, 2.0, 4.0, 6.0]


def test_headlines_are_held_against_what_scripts_take_alone() -> None:
    one, several = Alone(1.0, 1.0), Alone(1.25, 1.9)
    figures = sharp_figures.truth(
        [
            Truth("w", "a.eager", [1.0, 1.1, 3.0], [one, Alone(9.0, 1.0), one]),
            Truth("w", "b.eager", [1.1], [one]),
            Truth("w", "c.graph?chunk=2", [1.0], [several]),
        ]
    )
    assert value(figures, "headline over alone: farthest") == pytest.approx(0.2)
    assert value(figures, "bias of eager") == value(figures, "bias of one thread") == pytest.approx(0.1)
    assert value(figures, "bias of graph") == value(figures, "bias of several threads") == pytest.approx(0.2)
    assert not [figure for figure in figures if figure.name == "bias of XLA"]
    assert value(figures, "scatter of scripts alone, median") == pytest.approx(np.std(np.log([1, 9, 1]), ddof=1))


def test_the_pace_of_a_machine_is_told_by_how_often_it_was_slower_than_at_its_best() -> None:
    paces_s = [1.0] * 50 + [1.2] * 30 + [1.4] * 15 + [2.0] * 5
    assert sharp_figures.slower(paces_s) == {1.1: 0.5, 1.3: 0.2, 1.5: 0.05}
