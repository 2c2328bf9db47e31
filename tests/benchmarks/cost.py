"""The cost of a verdict: the default comparison, against pyperf for the same strategies to ±3 % each.

``python -m tests.benchmarks.cost [--most-strategies N] [--most-processes 20]``; about 10 minutes for `image_sqrt`, 5
with ``--most-strategies 4 --most-processes 14``.

pyperf starts with five processes (and one to find the number of calls) and goes on by three, until the 95 % interval of
the mean over processes is within ±3 %: a stop at the first chance, in pyperf's favour. What it costs to start
TensorFlow is in the time of both.

A strategy that is still wider after ``--most-processes`` has not reached what was asked for. The time that it took is a
lower bound; beside it stands what the whole would take, were the processes to come to scatter as those seen did. The
comparison is run before pyperf and again after it, since the machine may change in between; against the lower bound,
and by the slower of the two runs, it has to hold.
"""

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from measure.statistics.intervals import student_quantile
from tests.benchmarks import common, others
from tests.benchmarks.common import Figure, Milestones, Problem, say, whole_seconds

LIMIT, AIM = 1 / 3, 1 / 10
HALF_WIDTH = 0.03
_FIRST, _MORE = 5, 3


@dataclass(frozen=True)
class Cost:
    """The time that pyperf spent on one strategy, and the half width (relative) of the interval that it gave."""

    strategy: str
    seconds: float
    processes: int
    half_width: float

    @property
    def reached(self) -> bool:
        return self.half_width <= HALF_WIDTH

    @property
    def needed(self) -> int:
        """Processes for the half width that was asked for: those spent where it was reached."""
        return self.processes if self.reached else processes_needed(self.processes, self.half_width, HALF_WIDTH)

    @property
    def whole_s(self) -> float:
        """Seconds for as many processes as are needed, each at the price of those spent."""
        return self.seconds * self.needed / self.processes


def processes_needed(processes: int, half_width: float, wanted: float, confidence: float = 0.95) -> int:
    """The number of processes that narrow an interval of ``half_width``, which is of ``processes`` of them, to
    ``wanted``, if they scatter alike: the width is t · s / √n, where Student's t falls with n too."""
    deviation = half_width * math.sqrt(processes) / student_quantile(confidence, processes - 1)
    # With the normal distribution's quantile, which t comes down to, none fewer are enough.
    count = max(2, math.floor((student_quantile(confidence, 1e9) * deviation / wanted) ** 2))
    while student_quantile(confidence, count - 1) * deviation / math.sqrt(count) > wanted:
        count += 1
    return count


def pyperf_cost(case: Problem, slug: str, most_processes: int) -> Cost:
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


def pyperf_total_s(seconds: Sequence[float], strategies: int) -> float:
    """Seconds for all strategies: those that were measured, and their mean for each that was not."""
    return sum(seconds) / len(seconds) * strategies


@dataclass(frozen=True)
class Verdict:
    """Seconds to the verdict of one comparison: from nothing, TensorFlow's start included, and with the host warm."""

    said: str
    cold_s: float
    warm_s: float


def mapbench_cost(case: Problem) -> Verdict:
    begun = time.perf_counter()
    with common.engine() as runner:
        started_s = time.perf_counter() - begun
        mark = Milestones()
        run = common.compare(runner, case.request(), mark.look)
    if mark.verdict_s is None or not run.ranking:
        raise RuntimeError(f"the comparison ended without a ranking: {run.status}, {run.stop_reason}")
    say(f"Mapbench: {mark.verdict_s:.1f} s: {run.verdict}")
    return Verdict(f"{run.verdict} ({run.status})", started_s + mark.verdict_s, mark.verdict_s)


def cost_figures(verdicts: Sequence[Verdict], costs: Sequence[Cost], strategies: int) -> list[Figure]:
    """``verdicts``: before pyperf and after it."""
    least_s = pyperf_total_s([cost.seconds for cost in costs], strategies)
    whole_s = pyperf_total_s([cost.whole_s for cost in costs], strategies)
    measured = f"{strategies} strategies ({len(costs)} measured)"
    figures = [
        Figure(f"pyperf, {measured}: as far as it went, at least", least_s, show=whole_seconds),
        Figure(f"pyperf, {measured}: extrapolated to ±{HALF_WIDTH:.0%}", whole_s, show=whole_seconds),
    ]
    for when, verdict in zip(("before", "after"), verdicts, strict=True):
        figures += [
            Figure(f"Mapbench {when} it, from nothing to the verdict", verdict.cold_s, show=whole_seconds),
            Figure(f"Mapbench {when} it, host warm, to the verdict", verdict.warm_s, show=whole_seconds),
        ]
    cold_s, warm_s = max(each.cold_s for each in verdicts), max(each.warm_s for each in verdicts)
    for name, total_s, bounds in (
        ("pyperf as far as it went", least_s, (LIMIT, AIM)),
        ("pyperf extrapolated", whole_s, (None, None)),
    ):
        figures += [
            Figure(f"slower Mapbench from nothing / {name}", cold_s / total_s, *bounds, _share),
            Figure(f"slower Mapbench, host warm / {name}", warm_s / total_s, *bounds, _share),
        ]
    return figures


def _share(value: float) -> str:
    return f"{value:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", default="image_sqrt")
    parser.add_argument("--most-strategies", type=int, default=100, help="measure pyperf for at most so many of them")
    parser.add_argument("--most-processes", type=int, default=20, help="of pyperf for one strategy (20, its default)")
    arguments = parser.parse_args()
    case = Problem(arguments.workload, {})
    request = case.request()
    common.start(f"What the default comparison of {case.workload} costs")
    with common.own_folders():
        verdicts = [mapbench_cost(case)]
        costs = []
        for slug in spread_out(request.strategies, arguments.most_strategies):
            costs.append(pyperf_cost(case, slug, arguments.most_processes))
            say(f"pyperf: {slug}: {costs[-1].seconds:.0f} s, ±{costs[-1].half_width:.1%}")
        verdicts.append(mapbench_cost(case))
    for when, verdict in zip(("before", "after"), verdicts, strict=True):
        print(f"Mapbench, {when} pyperf: {verdict.said}")
    rows = []
    for cost in costs:
        note = "" if cost.reached else f"{cost.needed} processes, {whole_seconds(cost.whole_s)}"
        spent = (cost.strategy, whole_seconds(cost.seconds), cost.processes, f"±{cost.half_width:.1%}")
        rows.append((*spent, note))
    head = ("pyperf", "time", "processes", "95 % interval", f"±{HALF_WIDTH:.0%} would take")
    print(f"\n{common.table(head, rows)}")
    print(f"\n{common.figures(cost_figures(verdicts, costs, len(request.strategies)))}")


if __name__ == "__main__":
    main()
