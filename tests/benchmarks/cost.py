"""What a verdict costs: the default comparison, against pyperf for the same strategies to ±3 % each.

``python -m tests.benchmarks.cost [--most-strategies N] [--most-processes 20]``; about 10 minutes for `image_sqrt`.

pyperf starts with five processes (and one to find the number of calls) and goes on by three, until the 95 % interval of
the mean over processes is within ±3 %. What it costs to start TensorFlow is in the time of both.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.benchmarks import common, others
from tests.benchmarks.common import Case, Figure, Milestones, say, whole_seconds

LIMIT, AIM = 1 / 3, 1 / 10
HALF_WIDTH = 0.03
_FIRST, _MORE = 5, 3


@dataclass(frozen=True)
class Cost:
    """What pyperf spent on one strategy, and the half width (relative) of the interval that it got for that."""

    strategy: str
    seconds: float
    processes: int
    half_width: float

    @property
    def reached(self) -> bool:
        return self.half_width <= HALF_WIDTH


def pyperf_cost(case: Case, slug: str, most_processes: int) -> Cost:
    script = case.script(slug)
    begun = time.perf_counter()
    result = others.pyperf(script, _FIRST)
    values = result.values_s
    while (width := others.relative_half_width(values)) > HALF_WIDTH and len(values) < most_processes:
        more = min(_MORE, most_processes - len(values))
        values = values + others.pyperf(script, more, result.loops).values_s
    return Cost(slug, time.perf_counter() - begun, len(values), width)


def spread_out(slugs: Sequence[str], most: int) -> list[str]:
    """At most so many of the strategies, evenly over the list."""
    count = min(most, len(slugs))
    return [slugs[number * len(slugs) // count] for number in range(count)]


def pyperf_total_s(costs: Sequence[Cost], strategies: int) -> float:
    """Seconds for all strategies: those that were measured, and their mean for each that was not."""
    return sum(cost.seconds for cost in costs) / len(costs) * strategies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", default="image_sqrt")
    parser.add_argument("--most-strategies", type=int, default=100, help="measure pyperf for at most so many of them")
    parser.add_argument("--most-processes", type=int, default=20, help="of pyperf for one strategy (20, its default)")
    arguments = parser.parse_args()
    case = Case(arguments.workload, {})
    request = case.request()
    common.start(f"What the default comparison of {case.workload} costs")
    with common.own_folders():
        begun = time.perf_counter()
        with common.engine() as runner:
            started_s = time.perf_counter() - begun
            mark = Milestones()
            run = common.compare(runner, request, mark.look)
    if mark.verdict_s is None or not run.ranking:
        raise RuntimeError(f"the comparison ended without a ranking: {run.status}, {run.stop_reason}")
    print(f"Mapbench: {run.verdict} ({run.status})\n")
    costs = []
    for slug in spread_out(request.strategies, arguments.most_strategies):
        costs.append(pyperf_cost(case, slug, arguments.most_processes))
        say(f"pyperf: {slug}: {costs[-1].seconds:.0f} s, ±{costs[-1].half_width:.1%}")
    rows = []
    for cost in costs:
        note = "" if cost.reached else "wider than asked for"
        rows.append((cost.strategy, whole_seconds(cost.seconds), cost.processes, f"±{cost.half_width:.1%}", note))
    print(common.table(("pyperf", "time", "processes", "95 % interval", ""), rows))
    total_s, count = pyperf_total_s(costs, len(request.strategies)), len(request.strategies)
    cold_s = started_s + mark.verdict_s

    def share(value: float) -> str:
        return f"{value:.3f}"

    figures = [
        Figure(f"pyperf, {count} strategies ({len(costs)} measured)", total_s, show=whole_seconds),
        Figure("Mapbench, from nothing to the verdict", cold_s, show=whole_seconds),
        Figure("Mapbench, host warm, to the verdict", mark.verdict_s, show=whole_seconds),
        Figure("Mapbench from nothing / pyperf", cold_s / total_s, LIMIT, AIM, share),
        Figure("Mapbench, host warm / pyperf", mark.verdict_s / total_s, LIMIT, AIM, share),
    ]
    print(f"\n{common.figures(figures)}")


if __name__ == "__main__":
    main()
