"""Forecasts against what happened: memory, first call and latency, over the whole grid at three sizes.

``python -m tests.benchmarks.forecasts [--budget 40]``; about 5 minutes. Each strategy has one process, since a
forecast is to be right within a factor of 3.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from measure.engine.bench import Settings
from measure.engine.race import Rules
from measure.model import text
from measure.model.run import Run
from strategies.spec import Estimate
from tests.benchmarks import common
from tests.benchmarks.common import Figure, Milestones, Problem, say

# How far a forecast may be off, as a factor to either side.
PEAK_FACTOR = 1.5
TIME_FACTOR = 3.0
SHARE = 0.90
FOUR = "loop,map_fn,vectorized_map,batched"
BUDGET_S = 40.0
# Beside the defaults, sizes that the forecasts' constants were not fitted to.
CASES = (
    Problem("image_sqrt", {"batch": 40, "height": 24, "width": 24, "channels": 3}),
    Problem("image_sqrt", {"batch": 100, "height": 64, "width": 64, "channels": 3}),
    Problem("image_sqrt", {"batch": 64, "height": 256, "width": 256, "channels": 3}),
    Problem("outer_product", {"batch": 20, "side": 10}),
    Problem("outer_product", {"batch": 100, "side": 16}),
    Problem("outer_product", {"batch": 60, "side": 30}),
    Problem("per_example_gradients", {"batch": 20, "features": 64}),
    Problem("per_example_gradients", {"batch": 64, "features": 32}),
    Problem("per_example_gradients", {"batch": 48, "features": 8_192}),
)
SETTINGS = Settings(
    rules=Rules(contender=1, most=1, most_per_s=0.0, doubted=1, behind=1),
    probes=False,
    process_peaks_s=0.0,
)


@dataclass(frozen=True)
class Cell:
    """One strategy of one case: forecast over measured; None where it was not measured."""

    case: str
    strategy: str
    outcome: str
    peak: float | None
    first_call: float | None
    latency: float | None

    @property
    def measured(self) -> bool:
        return None not in (self.peak, self.first_call, self.latency)

    def good(self) -> bool:
        return within(self.peak, PEAK_FACTOR) and all(
            within(each, TIME_FACTOR) for each in (self.first_call, self.latency)
        )


def ratio(forecast: float, measured: float | None) -> float | None:
    """Forecast over measured; an output that needs no memory of its own and is forecast so is right."""
    if measured is None:
        return None
    if measured == 0:
        return 1.0 if forecast == 0 else float("inf")
    return forecast / measured


def within(value: float | None, factor: float) -> bool:
    return value is not None and 1 / factor <= value <= factor


def cells(case: str, run: Run, estimates: dict[str, Estimate]) -> list[Cell]:
    compared = []
    for item in run.measurements:
        if item.twin_of:
            continue
        estimate = estimates[item.strategy]
        compared.append(
            Cell(
                case,
                item.strategy,
                item.outcome,
                ratio(estimate.peak_bytes, item.memory.peak_bytes if item.memory else None),
                ratio(estimate.first_call_s, item.first_call_s),
                ratio(estimate.latency_s, item.latency.median_s if item.latency else None),
            )
        )
    return compared


def shares(compared: Sequence[Cell]) -> list[Figure]:
    """Shares of the cells that were measured whose forecasts are within their factors."""
    measured = [cell for cell in compared if cell.measured]

    def share(name: str, good: Iterable[bool], limit: float | None = SHARE) -> Figure:
        each = list(good)
        return Figure(f"{name} ({sum(each)} of {len(each)})", sum(each) / len(each), limit, None, text.percent, True)

    times = [(cell.first_call, cell.latency) for cell in measured]
    return [
        share("peak memory within 1.5 ×", (within(cell.peak, PEAK_FACTOR) for cell in measured)),
        share("first call within 3 ×", (within(first, TIME_FACTOR) for first, _ in times)),
        share("latency within 3 ×", (within(latency, TIME_FACTOR) for _, latency in times)),
        share("first call and latency within 3 ×", (all(within(x, TIME_FACTOR) for x in pair) for pair in times)),
        share("all three", (cell.good() for cell in measured), None),
        share("strategies that were measured at all", (cell.measured for cell in compared), None),
    ]


def measure(
    strategies: str = FOUR, budget_s: float = BUDGET_S, cases: Sequence[Problem] = CASES
) -> tuple[str, list[Figure]]:
    """Run the cases, and say for each strategy how far off its forecasts were, as tables; with the figures of all."""
    compared: list[Cell] = []
    totals = []
    with common.engine(SETTINGS) as runner:
        for case in cases:
            request = case.request(strategies, budget_s=budget_s)
            forecast = common.forecast_of(request)
            mark = Milestones()
            say(f"{case}: about {forecast.seconds:.0f} s")
            run = common.compare(runner, request, mark.look)
            compared += cells(str(case), run, forecast.per_strategy)
            totals.append((case, forecast.seconds, mark.verdict_s or mark.end_s or 0.0, run.status))
    rows = [
        (cell.case, cell.strategy, *map(_factor, (cell.peak, cell.first_call, cell.latency)), _note(cell))
        for cell in compared
    ]
    cells_table = common.table(("case", "forecast / measured", "peak", "first call", "latency", ""), rows)
    rows = [(*each[:1], *map(common.whole_seconds, each[1:3]), f"{each[1] / each[2]:.2f}", each[3]) for each in totals]
    whole = common.table(("whole run, one process each", "forecast", "to verdict", "ratio", "ended"), rows)
    return f"{cells_table}\n\n{whole}", shares(compared)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--budget", type=float, default=BUDGET_S, help=f"seconds for the timing of each comparison ({BUDGET_S:g})"
    )
    parser.add_argument("--strategies", default=FOUR, help="as on the command line of measure; or all")
    parser.add_argument("--cases", type=int, nargs="+", default=range(len(CASES)), help="numbers of the cases to run")
    arguments = parser.parse_args()
    common.start("What was forecast against what happened")
    with common.own_folders():
        tables, figures = measure(arguments.strategies, arguments.budget, [CASES[number] for number in arguments.cases])
    print(f"{tables}\n\n{common.figures(figures)}")


def _factor(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _note(cell: Cell) -> str:
    if not cell.measured:
        return f"not measured: {cell.outcome}"
    return "" if cell.good() else "off"


if __name__ == "__main__":
    main()
