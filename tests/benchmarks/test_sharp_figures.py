"""What `sharpness` makes of its runs."""

import math

import pytest
from msgspec.structs import replace

from measure.judge.levels import Ratio
from measure.run.run import Latency
from tests.benchmarks import sharp_figures
from tests.benchmarks.checkouts import Rerun
from tests.benchmarks.common import Figure
from tests.samples import measurement, run_of


def rerun(pace: float, half: float = 0.1, end_s: float = 9.0, **times: float) -> Rerun:
    """A run of a machine that takes ``pace`` times as long: latencies of the leader, ``lead``, and of others."""
    run = run_of(
        *(
            replace(measurement(slug, []), latency=Latency(median_s=pace * factor, low_s=1.0, high_s=1.0))
            for slug, factor in {"lead": 1.0, **times}.items()
        )
    )
    ratios = {slug: Ratio(factor, factor / (1 + half), factor * (1 + half)) for slug, factor in times.items()}
    return Rerun(replace(run, ranking=[["lead"], [*times]]), [1.0, 5.0, end_s], ratios)


def value(figures: list[Figure], name: str) -> float:
    return next(figure.value for figure in figures if name in figure.name)


def test_reruns_are_held_against_each_other() -> None:
    """The pace of the machine is in latencies and not in ratios; an interval is held to the median of the other runs:
    of 1.2, 1.2 and 1.4 the last one's does not reach to 1.2, the others' hold the median of 1.2 and 1.4."""
    figures = sharp_figures.of_runs({"w": [rerun(1.0, a=2.0), rerun(math.e, a=2.0)]})
    assert value(figures, "ratios between runs: sd, median") == 0
    assert value(figures, "latencies themselves") == pytest.approx(math.sqrt(0.5))
    runs = [rerun(1.0, near=near, slow=3.0, end_s=near) for near in (1.2, 1.2, 1.4)]
    figures = sharp_figures.of_runs({"w": runs})
    assert value(figures, "up to 1.5") == pytest.approx(2 / 3) and value(figures, "slower strategies") == 1
    assert value(figures, "half of an interval") == pytest.approx(0.1) and value(figures, "until the end") == 1.4
    assert value(figures, "in common") == value(figures, "leaders of a run") == 1
    figures = sharp_figures.of_alone([([1.0, 1.1], [1.05, 1.3]), ([2.0, 2.0], [2.0, 2.0])])
    assert [figure.value for figure in figures] == [6 / 8, 1 / 2]
