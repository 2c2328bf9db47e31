"""The order of two strategies where a load starts midway: of processes in turns, and of one after the other.

``python -m tests.benchmarks.drift [--repeats 3]``; about 4 minutes.

The order of a pair is known by construction: a mapper, and the same mapper that does a fifth of the elements twice.
One pair is a Python loop, the other a `tf.while_loop` in a graph. One after the other has to go wrong where the slower
one comes first, or the load would prove nothing; that it is right the other way round is luck.
"""

import argparse
import contextlib
import math
import os
import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from measure.engine.bench import Settings
from measure.engine.race import Rules
from measure.model.run import Run
from measure.runner import Runner, Snapshot
from tests.benchmarks import common, others
from tests.benchmarks.common import Figure, Problem, say

# A run that ends when its order is clear makes more visits beside a load than without one, so that no number of them
# is midway. Here both strategies get the most that a default run may make, whatever they show.
_RULES = Rules(doubted=Rules().most, most_per_s=0.0)
# The load begins when a run has this share of the visits that were made without it.
_BEFORE_LOAD = 0.45
# Of the visits, between these shares were made before a load that began midway.
MIDWAY = (0.25, 0.75)
_BUDGET_S = 60.0
RIGHT, WRONG, TIE, NO_LOAD = "right", "wrong", "tie", "load not midway"
_LOOP = '''\
"""The Python loop, with a fifth of the elements done twice."""

from strategies import loop
from strategies.spec import Mapper


def map_with_loop_and_a_fifth(fn, elems):
    def one(index):
        return fn(tf.nest.map_structure(lambda leaf: leaf[index], elems))

    batch = tf.nest.flatten(elems)[0].shape[0]
    for index in range(batch // 5):
        one(index)
    outputs = [one(index) for index in range(batch)]
    return tf.nest.map_structure(lambda *leaves: tf.stack(leaves), *outputs)


MAPPER = Mapper(
    slug="loop_and_a_fifth",
    title="Python loop and a fifth",
    summary="a loop that does a fifth of its elements twice",
    apply=map_with_loop_and_a_fifth,
    estimate=loop.MAPPER.estimate,
    modes=("eager",),
)
'''
_MAP_FN = '''\
"""tf.map_fn, with a fifth of the elements done twice: they stand at the front once more."""

from strategies import map_fn
from strategies.spec import Mapper


def map_with_map_fn_and_a_fifth(fn, elems, signature):
    fifth = tf.nest.flatten(elems)[0].shape[0] // 5
    longer = tf.nest.map_structure(lambda leaf: tf.concat([leaf[:fifth], leaf], axis=0), elems)
    outputs = tf.map_fn(fn, longer, fn_output_signature=signature)
    return tf.nest.map_structure(lambda leaf: leaf[fifth:], outputs)


MAPPER = Mapper(
    slug="map_fn_and_a_fifth",
    title="tf.map_fn and a fifth",
    summary="tf.map_fn that does a fifth of its elements twice",
    apply=map_with_map_fn_and_a_fifth,
    estimate=map_fn.MAPPER.estimate,
    options=map_fn.MAPPER.options,
    modes=("graph",),
)
'''
# Mapper → the file that makes it.
_SLOWER = {"loop_and_a_fifth": _LOOP, "map_fn_and_a_fifth": _MAP_FN}


@dataclass(frozen=True)
class Pair:
    """Two strategies of a case whose order is known."""

    case: Problem
    fast: str
    slow: str


PAIRS = (
    Pair(
        Problem("image_sqrt", {"batch": 100, "height": 16, "width": 16, "channels": 3}),
        "loop.eager",
        "loop_and_a_fifth.eager",
    ),
    Pair(Problem("per_example_gradients", {"batch": 400}), "map_fn.graph", "map_fn_and_a_fifth.graph"),
)


class LoadMidway:
    """Starts a busy process on each core when a run has made ``least`` visits."""

    def __init__(self, stack: contextlib.ExitStack, least: int) -> None:
        self._stack, self._least = stack, least
        self.visits_before: int | None = None

    def look(self, at_s: float, snapshot: Snapshot) -> None:
        count = visits(snapshot.run)
        if self.visits_before is None and snapshot.state != "finished" and count >= self._least:
            self.visits_before = count
            self._stack.enter_context(common.busy(common.cores()))


def visits(run: Run) -> int:
    """The number of processes of the pair that have been sampled; those of a twin say nothing of the order."""
    return sum(bool(replica.samples_s) for item in run.measurements if not item.twin_of for replica in item.replicas)


def order(pair: Pair, ranking: Sequence[Sequence[str]]) -> str:
    """Return what a ranking says of the pair."""
    if len(ranking) < 2:
        return TIE
    return RIGHT if pair.fast in ranking[0] else WRONG


def is_midway(share: float) -> bool:
    """True if a load began midway, before which this share of the visits was made."""
    return MIDWAY[0] <= share <= MIDWAY[1]


def together(runner: Runner, pair: Pair, least: int) -> tuple[str, Run, float]:
    """Return what Mapbench says where the load starts after ``least`` visits, its run, and the share that were before
    it."""
    with contextlib.ExitStack() as stack:
        load = LoadMidway(stack, least)
        run = common.compare(runner, pair.case.request([pair.fast, pair.slow], budget_s=_BUDGET_S), load.look)
    before = 1.0 if load.visits_before is None else load.visits_before / visits(run)
    return order(pair, run.ranking) if is_midway(before) else NO_LOAD, run, before


def one_after_the_other(pair: Pair, slower_first: bool) -> tuple[str, float]:
    """Return what two medians of `timeit` say, with the load starting between them, and the slower one's over the
    faster one's."""
    first, second = (pair.slow, pair.fast) if slower_first else (pair.fast, pair.slow)
    seconds = {first: statistics.median(others.timeit(pair.case.script(first)))}
    with common.busy(common.cores()):
        seconds[second] = statistics.median(others.timeit(pair.case.script(second)))
    ratio = seconds[pair.slow] / seconds[pair.fast]
    return RIGHT if ratio > 1 else WRONG, ratio


MAPBENCH, SLOWER_FIRST, FASTER_FIRST = (
    "Mapbench, processes in turns",
    "timeit, the slower one first, then load",
    "timeit, the faster one first, then load",
)


def figures(said: Mapping[str, Sequence[str]]) -> list[Figure]:
    """The shares that are held to a limit. ``said``: what each way of measuring said, every time."""

    def share(way: str, words: Collection[str]) -> float:
        return sum(word in words for word in said[way]) / len(said[way])

    return [
        Figure("loads that began midway", share(MAPBENCH, (RIGHT, TIE, WRONG)), 1.0, None, _percent, True),
        Figure("Mapbench gets the order right", share(MAPBENCH, (RIGHT,)), 1.0, None, _percent, True),
        Figure("timeit gets it wrong, the slower one first", share(SLOWER_FIRST, (WRONG,)), 1.0, None, _percent, True),
    ]


def _percent(share: float) -> str:
    return f"{share:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="of each pair and way of measuring (3)")
    repeats = parser.parse_args().repeats
    common.start("Whether an order survives a load that starts midway")
    said: dict[str, list[str]] = {MAPBENCH: [], SLOWER_FIRST: [], FASTER_FIRST: []}
    with common.own_folders() as folder:
        mappers = folder / "mappers"
        mappers.mkdir()
        for name, code in _SLOWER.items():
            (mappers / f"{name}.py").write_text(code, encoding="utf-8")
        os.environ["MAPBENCH_MAPPERS"] = str(mappers)
        with common.engine(Settings(rules=_RULES, probes=False, process_peaks_s=0.0)) as runner:
            for pair in PAIRS:
                idle = common.compare(runner, pair.case.request([pair.fast, pair.slow], budget_s=_BUDGET_S))
                print(f"Idle: {idle.verdict} ({visits(idle)} visits)")
                for number in range(repeats):
                    judgement, run, before = together(runner, pair, math.ceil(_BEFORE_LOAD * visits(idle)))
                    said[MAPBENCH].append(judgement)
                    met = f"{before:.0%} of visits before the load"
                    say(f"{pair.fast}, {number + 1} of {repeats}: {judgement}, {met}: {run.verdict}")
        for way in (SLOWER_FIRST, FASTER_FIRST):
            for pair in PAIRS:
                for number in range(repeats if way == SLOWER_FIRST else 1):
                    judgement, ratio = one_after_the_other(pair, way == SLOWER_FIRST)
                    said[way].append(judgement)
                    say(f"{way}: {pair.fast}, {number + 1}: {judgement}, slower / faster = {ratio:.2f}")
        del os.environ["MAPBENCH_MAPPERS"]
    words = (RIGHT, TIE, WRONG, NO_LOAD)
    rows = [(way, *(f"{Counter(each)[word]} of {len(each)}" for word in words)) for way, each in said.items()]
    print(f"\n{common.table((f'the order of {len(PAIRS)} pairs', *words), rows)}\n")
    print(common.figures(figures(said)))


if __name__ == "__main__":
    main()
