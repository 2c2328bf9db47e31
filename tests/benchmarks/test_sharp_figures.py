"""What `sharpness` makes of its runs."""

import math
from dataclasses import replace as replaced
from pathlib import Path

import pytest
from msgspec.structs import replace

from measure.model import text
from measure.model.run import Latency
from tests.benchmarks import sharp_figures
from tests.benchmarks.checkouts import Ratio, Rerun
from tests.benchmarks.common import Figure
from tests.benchmarks.pairs import pairs
from tests.samples import measurement, run_of


def rerun(pace: float, half: float = 0.1, end_s: float = 9.0, **times: float) -> Rerun:
    """A run of a machine that takes ``pace`` times as long: latencies of the leader, ``lead``, and of others."""
    run = run_of(
        *(
            replace(measurement(slug, []), latency=Latency(median_s=pace * each, low_s=1.0, high_s=1.0))
            for slug, each in {"lead": 1.0, **times}.items()
        )
    )
    ratios = {slug: Ratio(each, each / (1 + half), each * (1 + half)) for slug, each in times.items()}
    return Rerun(replace(run, ranking=[["lead"], [*times]]), Path(), [1.0, 5.0, end_s], ratios)


def value(figures: list[Figure], name: str) -> float:
    return next(figure.value for figure in figures if name in figure.name)


def test_the_pace_of_the_machine_is_in_latencies_and_not_in_ratios() -> None:
    figures = sharp_figures.of_runs({"w": [rerun(1.0, a=2.0), rerun(math.e, a=2.0)]})
    assert value(figures, "ratios between runs: sd, median") == 0
    assert value(figures, "latencies themselves") == pytest.approx(math.sqrt(0.5))


def test_an_interval_is_held_to_the_median_of_the_other_runs() -> None:
    # Of 1.2, 1.2 and 1.4 the last one's interval does not reach to 1.2; the others' hold the median of 1.2 and 1.4.
    runs = [rerun(1.0, near=near, slow=3.0, end_s=near) for near in (1.2, 1.2, 1.4)]
    figures = sharp_figures.of_runs({"w": runs})
    assert value(figures, "up to 1.5") == pytest.approx(2 / 3)
    assert value(figures, "slower strategies") == 1
    assert value(figures, "half of an interval") == pytest.approx(0.1)
    assert value(figures, "until the end") == 1.4


def test_leaders_of_each_two_runs_of_one_workload_are_compared() -> None:
    first, second, third = (rerun(1.0, a=2.0) for _ in range(3))
    other = replaced(third, run=replace(third.run, ranking=[["a", "b"], ["lead"]]))
    figures = sharp_figures.of_runs({"w": [first, second, other], "another": [first, second]})
    assert value(figures, "in common") == 2 / 4
    assert value(figures, "leaders of a run") == 1


def test_the_reference_leads_most_often_and_of_several_is_the_fastest() -> None:
    runs = [replace(rerun(1.0, a=0.9, b=0.5).run, ranking=ranking) for ranking in ([["a", "lead"]], [["lead", "a"]])]
    assert sharp_figures.reference(runs) == "a"
    assert sharp_figures.reference([*runs, replace(runs[0], ranking=[["lead"]])]) == "lead"


def test_scripts_alone_are_beside_runs_and_beside_each_other() -> None:
    figures = sharp_figures.of_alone([([1.0, 1.1], [1.05, 1.3]), ([2.0, 2.0], [2.0, 2.0])])
    assert value(figures, "a script alone and a run: within") == 6 / 8
    assert value(figures, "two scripts alone: within") == 1 / 2
    assert value(figures, "medians of scripts and of runs: within") == 1


def test_the_last_checkout_is_judged_and_by_the_first_too() -> None:
    half = Figure(sharp_figures.HALF, 0.30, 0.15, None, text.percent)
    _, (row,) = sharp_figures.side_by_side({"before": [half], "now": [replaced(half, value=0.12)]})
    assert row == (half.name, "30 %", "12 %", "≤ 10.0 %", "", "OUTSIDE THE LIMIT")
    head, (row,) = sharp_figures.side_by_side({"now": [half]})
    assert len(head) == len(row) and row[1:3] == ("30 %", "≤ 15 %")


def test_pairs_of_a_kind_change_their_order_from_turn_to_turn() -> None:
    asked = [(number, slugs) for (_, number), (_, _, _, slugs) in pairs(apart=3)]
    assert asked[0] == (1, ["loop.eager", "loop_and_more.eager"])
    assert asked[2] == (3, ["loop_and_more.eager", "loop.eager"])
