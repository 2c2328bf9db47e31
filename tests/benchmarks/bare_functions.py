"""The leaders of every built-in workload, as it is and given as a bare function, of which nothing is declared.

``python -m tests.benchmarks.bare_functions [--only WORKLOAD …] [--budget 3]``; about seven minutes.

Both are measured with the same strategies, budget and number of elements, one after the other; which of them comes
first changes from workload to workload. A run's leaders are the fastest strategy and those that tie with it. They are
the same where the two runs have a leader in common: a strategy that leads one run may tie with others in the next. In
other cases the least is printed by which a leader of one run is behind those of the other run, as a ratio: of a
difference that is within what the runs can tell apart (the larger of their resolutions), chance may be the reason.
Where the budget did not suffice for timing every strategy once, in either run, both are measured again with 20 s.
"""

import argparse
import dataclasses
from collections.abc import Iterable, Sequence

import workloads
from measure.engine.bench import Settings
from measure.model import text
from measure.model.request import RequestError, case_of
from measure.model.run import Run
from measure.runner import Runner
from tests import bare
from tests.benchmarks import common
from tests.benchmarks.common import Problem, say

STRATEGIES = ("loop.eager", "loop.graph", "map_fn.graph", "vectorized_map.graph", "map_fn.xla", "vectorized_map.xla")
BATCH = 32
LONG_BUDGET_S = 20.0
SAME, OTHERS = "same", "others"
# Workloads whose file measures something else than its element function alone.
REASONS = {
    "gradient_through_map": "the file takes a gradient through the mapped function",
    "variable_shape": "the file pads its results, which no mapper of the function does",
}


@dataclasses.dataclass(frozen=True)
class Pair:
    """The runs of a workload and of its bare function; None where that was refused, and why."""

    workload: str
    declared: Run
    bare: Run | None
    refusal: str = ""

    @property
    def verdict(self) -> str:
        if self.bare is None:
            return f"refused: {self.refusal}"
        if leaders(self.declared) & leaders(self.bare):
            return SAME
        if self.workload in REASONS:
            return f"{OTHERS}: {REASONS[self.workload]}"
        return f"{OTHERS}, {behind(self.declared, self.bare):.2f} × apart, {text.percent(self.resolution)} resolved"

    @property
    def resolution(self) -> float:
        """The larger of the smallest differences that the runs can tell."""
        runs = [run for run in (self.declared, self.bare) if run is not None]
        return max((run.control.resolution for run in runs if run.control), default=0.0)


def leaders(run: Run) -> frozenset[str]:
    return frozenset(run.ranking[0]) if run.ranking else frozenset()


def behind(one: Run, other: Run) -> float:
    """The least ratio by which a leader of one run is behind the fastest of the other run, in that run."""
    ratios = []
    for run, of in ((one, other), (other, one)):
        known_s = {item.strategy: item.latency.median_s for item in run.measurements if item.latency}
        theirs_s = [known_s[slug] for slug in leaders(of) if slug in known_s]
        if theirs_s:
            ratios.append(min(theirs_s) / min(known_s.values()))
    return min(ratios, default=float("inf"))


def measured(runner: Runner, problem: Problem, budget_s: float, bare_first: bool) -> Pair:
    request = problem.request(STRATEGIES, budget_s=budget_s)
    try:
        slug = runner.give(bare.given(case_of(request)))
    except RequestError as error:
        return Pair(problem.workload, common.compare(runner, request), None, str(error))
    of_bare = Problem(slug, {}).request(STRATEGIES, budget_s=budget_s)
    first, second = (of_bare, request) if bare_first else (request, of_bare)
    runs = {asked.workload: common.compare(runner, asked) for asked in (first, second)}
    if budget_s < LONG_BUDGET_S and any(map(is_cut_short, runs.values())):
        return measured(runner, problem, LONG_BUDGET_S, bare_first)
    return Pair(problem.workload, runs[problem.workload], runs[slug])


def is_cut_short(run: Run) -> bool:
    """True if a strategy that works, as far as its memory was measured, was not timed."""
    works = [item for item in run.measurements if item.outcome in ("ok", "not_run") and item.memory is not None]
    return any(item.latency is None for item in works if item.twin_of is None)


def rows(pairs: Iterable[Pair]) -> list[tuple[str, ...]]:
    return [
        (
            pair.workload,
            " = ".join(sorted(leaders(pair.declared))),
            " = ".join(sorted(leaders(pair.bare))) if pair.bare else "",
            pair.verdict,
        )
        for pair in pairs
    ]


def summary(pairs: Sequence[Pair]) -> str:
    same = [pair for pair in pairs if pair.verdict == SAME]
    explained = [pair for pair in pairs if pair.verdict != SAME and pair.workload in REASONS]
    return (
        f"{len(same)} of {len(pairs)} workloads have the same leaders as bare functions, {len(explained)} have others "
        f"for a known reason, and {len(pairs) - len(same) - len(explained)} have others"
    )


def main() -> None:
    slugs = [workload.slug for workload in workloads.all()]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--only", nargs="+", choices=slugs, default=slugs, metavar="WORKLOAD", help="these workloads")
    parser.add_argument("--budget", type=float, default=3.0, help="seconds of timing in each run")
    arguments = parser.parse_args()
    common.start("Leaders of built-in workloads and of their bare functions")
    pairs = []
    with common.own_folders(), common.engine(Settings(probes=False, process_peaks_s=0.0)) as runner:
        for number, slug in enumerate(arguments.only):
            problem = Problem(slug, {"batch": BATCH})
            pairs.append(measured(runner, problem, arguments.budget, bare_first=number % 2 == 1))
            say(f"{slug}: {pairs[-1].verdict}")
    print(common.table(("workload", "leaders as it is", "leaders as a bare function", ""), rows(pairs)))
    print(f"\n{summary(pairs)}")


if __name__ == "__main__":
    main()
