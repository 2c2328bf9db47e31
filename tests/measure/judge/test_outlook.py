"""What is said of a comparison's sharpness before it is run."""

import pytest
from msgspec.structs import replace

from measure.judge import outlook
from measure.model.forecast import RunForecast
from measure.model.run import Control, Run
from measure.statistics.intervals import ASSUMED_SPREAD, Spread
from strategies.spec import Estimate
from tests.samples import measurement, run_of


def needs(strategies: int, latency_s: float = 1e-3) -> RunForecast:
    each = Estimate(peak_bytes=1, first_call_s=0.1, latency_s=latency_s, events=1)
    return RunForecast(
        seconds=1.0, peak_bytes=1, per_strategy={f"s{number}.eager": each for number in range(strategies)}
    )


def shown(scatter: float) -> Run:
    """A run whose processes differ by so much, up and down."""
    processes = [[1e-3 * (1 + sign * scatter)] * 5 for sign in (-1, 1) * 6]
    control = Control(strategy="a", ratio=1.0, low=0.9, high=1.1, resolution=0.1)
    return replace(run_of(measurement("a", processes), measurement("b", processes)), control=control)


def test_more_time_and_fewer_strategies_tell_more_apart_up_to_the_processes_of_a_contender() -> None:
    spread = Spread(0.05, 0.3)
    by_budget = [outlook.resolution(needs(12), budget_s, spread) for budget_s in (1.0, 5.0, 7.0, 30.0, 300.0)]
    assert by_budget == sorted(by_budget, reverse=True)
    assert by_budget[0] > 2 * by_budget[-1] and by_budget[-2] == by_budget[-1]
    assert outlook.resolution(needs(3), 5.0, spread) < outlook.resolution(needs(12), 5.0, spread)
    assert outlook.resolution(needs(3, latency_s=2.0), 15.0, spread) > outlook.resolution(needs(3), 15.0, spread)


def test_the_spread_is_that_of_earlier_runs_and_where_there_is_none_what_is_assumed() -> None:
    assert outlook.spread([]).deviation == pytest.approx(ASSUMED_SPREAD)
    quiet, usual, noisy = shown(0.01), shown(0.05), shown(0.3)
    alone = [outlook.spread([run]).deviation for run in (quiet, usual, noisy)]
    assert alone == sorted(alone) and alone[2] > 5 * alone[1]
    assert outlook.spread([noisy, quiet, usual]).deviation == alone[1]
    # A run without a control was not run to its end.
    assert outlook.spread([replace(noisy, control=None), usual]).deviation == alone[1]
