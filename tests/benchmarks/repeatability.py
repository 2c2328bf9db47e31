"""The agreement of a comparison with itself: a strategy against itself, and reruns of the default comparisons.

``python -m tests.benchmarks.repeatability [--pairs 60] [--reruns 20] [--keep FOLDER]``; about 7 and 12 minutes.

A run that can tell little agrees with any other: it calls many the leaders. So the size of the leading groups and the
resolution stand beside how often they agree.
"""

import argparse
import dataclasses
import itertools
import math
import os
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from scipy import stats

import strategies
from measure.engine.bench import Settings
from measure.model import text
from measure.model.run import Run
from measure.model.run_file import encode
from measure.runner import Runner
from tests.benchmarks import common
from tests.benchmarks.common import Figure, Problem, say

CONFIDENCE = 0.95
# With this probability a rate is called higher than chance although it is not.
_SIGNIFICANT = 0.05
AGREE = 0.95
AGAIN = "_again"
_ALIAS = """\
import dataclasses

from strategies import {slug}

MAPPER = dataclasses.replace({slug}.MAPPER, slug="{slug}{again}", title={slug}.MAPPER.title + ", again")
"""
# Fast and slow, eager, graph and XLA: 10 µs to 60 ms a call.
PAIRS = (
    (Problem("image_sqrt", {"batch": 1, "height": 8, "width": 8, "channels": 1}), "batched.eager"),
    (Problem("image_sqrt", {"batch": 1, "height": 8, "width": 8, "channels": 1}), "batched.graph"),
    (Problem("image_sqrt", {"batch": 100}), "batched.xla"),
    (Problem("image_sqrt", {"batch": 100}), "map_fn.graph"),
    (Problem("image_sqrt", {"batch": 100}), "loop.eager"),
    (Problem("outer_product", {"batch": 100, "side": 16}), "vectorized_map.graph"),
    (Problem("outer_product", {"batch": 100, "side": 16}), "map_fn.xla"),
    (Problem("outer_product", {"batch": 100, "side": 16}), "map_fn.eager"),
    (Problem("per_example_gradients", {"batch": 64}), "vectorized_map.xla"),
    (Problem("per_example_gradients", {"batch": 64}), "vectorized_map.eager"),
    (Problem("per_example_gradients", {"batch": 64}), "loop.graph"),
    (Problem("per_example_gradients", {"batch": 64}), "loop.eager"),
)


# --- a strategy against itself ---------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Pair:
    """One comparison of a strategy with itself. ``ratio``: latency of the second entry over that of the first.
    ``control_holds``: whether the interval of the run's own twin holds 1; ``resolution``: the least difference that the
    run can tell, relative. Both are None where there is no timed twin."""

    name: str
    different: bool
    ratio: float
    control_holds: bool | None
    resolution: float | None


def write_aliases(folder: Path) -> None:
    """A file for each mapper that offers it again under another name."""
    folder.mkdir()
    for mapper in strategies.mappers():
        (folder / f"{mapper.slug}{AGAIN}.py").write_text(_ALIAS.format(slug=mapper.slug, again=AGAIN), encoding="utf-8")


def alias(slug: str) -> str:
    mapper, _, mode = slug.partition(".")
    return f"{mapper}{AGAIN}.{mode}"


def judge(name: str, run: Run) -> Pair:
    """Judge whether the run says that its two strategies differ."""
    if not run.ranking or sum(map(len, run.ranking)) != 2:
        raise RuntimeError(f"{name}: {[(item.strategy, item.outcome, item.error) for item in run.measurements]}")
    first, second = (run.measurement(slug).latency for slug in run.request.strategies)
    assert first is not None and second is not None
    control = run.control
    holds = None if control is None else control.low <= 1 <= control.high
    return Pair(name, len(run.ranking) > 1, second.median_s / first.median_s, holds, resolution(run))


def resolution(run: Run) -> float | None:
    return None if run.control is None else run.control.resolution


def median_resolution(name: str, resolutions: Sequence[float | None]) -> Figure:
    """One that is not known counts as endless: such a run can tell nothing."""
    known = [each for each in resolutions if each is not None]
    endless = [math.inf] * (len(resolutions) - len(known))
    name = f"{name} ({len(endless)} not known)" if endless else name
    return Figure(name, statistics.median([*known, *endless]), show=_share_or_none)


def _share_or_none(share: float) -> str:
    return text.percent(share) if math.isfinite(share) else "not known"


class Keeper:
    """Writes each run's file into a folder, if there is one."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def keep(self, name: str, run: Run) -> None:
        if self._folder is not None:
            (self._folder / f"{name}.json").write_bytes(encode(run))


def same_with_itself(runner: Runner, count: int, budget_s: float, keeper: Keeper) -> list[Pair]:
    pairs = []
    for number, (case, slug) in enumerate(itertools.islice(itertools.cycle(PAIRS), count), 1):
        # Which of the two comes first changes from turn to turn.
        slugs = [slug, alias(slug)][:: 1 if (number // len(PAIRS)) % 2 else -1]
        run = common.compare(runner, case.request(slugs, budget_s=budget_s))
        keeper.keep(f"pair_{number:02}_{case.workload}_{slug}", run)
        pair = judge(f"{case}: {slug}", run)
        pairs.append(pair)
        say(f"{number} of {count}: {pair.name}: ratio {pair.ratio:.3f}{', DECLARED DIFFERENT' * pair.different}")
    return pairs


def above_chance(declared: int, count: int) -> float:
    """The probability that at least so many differences are declared where each is with 5 % (exact binomial)."""
    return float(stats.binom.sf(declared - 1, count, 1 - CONFIDENCE))


def same_rows(pairs: Sequence[Pair]) -> list[tuple[object, ...]]:
    rows = []
    for name in dict.fromkeys(pair.name for pair in pairs):
        own = [pair for pair in pairs if pair.name == name]
        ratios = sorted(pair.ratio for pair in own)
        rows.append((name, len(own), sum(pair.different for pair in own), f"{min(ratios):.3f} to {max(ratios):.3f}"))
    return rows


def same_figures(pairs: Sequence[Pair]) -> list[Figure]:
    declared = sum(pair.different for pair in pairs)
    controls = [pair.control_holds for pair in pairs if pair.control_holds is not None]
    p = above_chance(declared, len(pairs))
    figures = [
        Figure(f"declared differences ({declared} of {len(pairs)})", declared / len(pairs), show=text.percent),
        Figure("p of so many or more, were the rate 5 %", p, _SIGNIFICANT, show=text.number, at_least=True),
    ]
    if controls:
        share = sum(controls) / len(controls)
        figures.append(Figure("intervals of the run's own twin that hold 1", share, show=text.percent))
    return [*figures, median_resolution("median resolution", [pair.resolution for pair in pairs])]


# --- reruns ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Agreement:
    """Of reruns' leading groups: the one named most often, the share of runs that name it, the share that name one
    that overlaps it, and the share of all pairs of runs that overlap."""

    group: frozenset[str]
    equal: float
    overlapping: float
    pairs: float


def agreement(groups: Sequence[frozenset[str]]) -> Agreement:
    named = Counter(group for group in groups if group)
    majority = named.most_common(1)[0][0] if named else frozenset()
    pairs = [bool(a & b) for a, b in itertools.combinations(groups, 2)]
    return Agreement(
        majority,
        named[majority] / len(groups),
        sum(bool(group & majority) for group in groups) / len(groups),
        sum(pairs) / len(pairs) if pairs else 1.0,
    )


@dataclasses.dataclass(frozen=True)
class Rerun:
    """``group``: the leading group, empty where the run names none; ``resolution``: the least difference that the run
    can tell, relative, None where there is no timed twin."""

    group: frozenset[str]
    resolution: float | None


def reruns(runner: Runner, count: int, keeper: Keeper) -> dict[str, list[Rerun]]:
    """``count`` reruns of each default comparison, in alternation."""
    by_workload: dict[str, list[Rerun]] = {case.workload: [] for case in common.defaults()}
    for number in range(1, count + 1):
        for case in common.defaults():
            run = common.compare(runner, case.request())
            keeper.keep(f"rerun_{number:02}_{case.workload}", run)
            leaders = run.ranking[0] if run.ranking else []  # names nobody: agrees with no other run
            by_workload[case.workload].append(Rerun(frozenset(leaders), resolution(run)))
            say(f"{number} of {count}: {case.workload} ({run.status}): {', '.join(leaders) or run.verdict}")
    return by_workload


def rerun_figures(workload: str, reruns: Sequence[Rerun]) -> list[Figure]:
    groups = [each.group for each in reruns]
    result = agreement(groups)
    return [
        Figure(f"{workload}: same leading group", result.equal, show=text.percent),
        Figure(f"{workload}: overlapping it", result.overlapping, AGREE, None, text.percent, True),
        Figure(f"{workload}: pairs of runs that overlap", result.pairs, AGREE, None, text.percent, True),
        Figure(f"{workload}: median size of the leading group", statistics.median(map(len, groups)), show=text.number),
        median_resolution(f"{workload}: median resolution", [each.resolution for each in reruns]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=60, help="comparisons of a strategy with itself (60)")
    parser.add_argument("--reruns", type=int, default=20, help="reruns of each default comparison (20)")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds for each strategy with itself (20)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the file of each run into this folder")
    arguments = parser.parse_args()
    keeper = Keeper(arguments.keep)
    common.start("Whether a comparison says the same again")
    with common.own_folders() as folder, common.engine(Settings(probes=False, process_peaks_s=0.0)) as runner:
        if arguments.pairs:
            write_aliases(folder / "mappers")
            os.environ["MAPBENCH_MAPPERS"] = str(folder / "mappers")
            pairs = same_with_itself(runner, arguments.pairs, arguments.budget, keeper)
            del os.environ["MAPBENCH_MAPPERS"]  # reruns are of the project's own strategies
            print(common.table(("a strategy with itself", "runs", "declared different", "ratios"), same_rows(pairs)))
            print(f"\n{common.figures(same_figures(pairs))}\n")
        if arguments.reruns:
            figures = []
            for workload, again in reruns(runner, arguments.reruns, keeper).items():
                print(f"{workload}: most often {', '.join(sorted(agreement([each.group for each in again]).group))}")
                figures += rerun_figures(workload, again)
            print(f"\n{common.figures(figures)}")


if __name__ == "__main__":
    main()
