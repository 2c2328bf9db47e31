"""Whether the order of two strategies survives a load that starts midway: within rounds, and one after the other.

``python -m tests.benchmarks.drift [--repeats 5]``; about 5 minutes.

The pair is known by construction: a Python loop, and the same loop that does a fifth of its elements twice.
"""

import argparse
import contextlib
import os
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from measure.comparison import Settings
from measure.run import Run
from measure.runner import Runner, Snapshot
from tests.benchmarks import common, others
from tests.benchmarks.common import Case, Figure, say

FAST, SLOW = "loop.eager", "loop_and_a_fifth.eager"
CASE = Case("image_sqrt", {"batch": 100, "height": 16, "width": 16, "channels": 3})
# The load begins in this round: the pair has met in the scouting rounds, and its further processes have been started
# and sampled a few times, which is about half of what a decision usually takes.
_MIDWAY_ROUND = 7
_BUDGET_S = 60.0
RIGHT, WRONG, TIE, NO_LOAD = "right", "wrong", "tie", "decided before the load"
_SLOWER = '''\
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


class LoadMidway:
    """Starts a busy process on each core when so many rounds have been sampled."""

    def __init__(self, stack: contextlib.ExitStack, rounds: int) -> None:
        self._stack, self._rounds = stack, rounds
        self.samples_before: int | None = None

    def look(self, at_s: float, snapshot: Snapshot) -> None:
        over = snapshot.state == "finished"
        if self.samples_before is None and not over and rounds_done(snapshot.run) >= self._rounds:
            self.samples_before = samples(snapshot.run)
            self._stack.enter_context(common.busy(common.cores()))


def rounds_done(run: Run) -> int:
    """The last round in which any strategy was sampled."""
    return max((max(each.rounds) for item in run.measurements for each in item.replicas if each.rounds), default=0)


def samples(run: Run) -> int:
    return sum(len(replica.samples_s) for item in run.measurements for replica in item.replicas)


def order(ranking: Sequence[Sequence[str]]) -> str:
    """What a ranking says of the pair."""
    if len(ranking) < 2:
        return TIE
    return RIGHT if FAST in ranking[0] else WRONG


def together(runner: Runner) -> tuple[str, Run, float]:
    """What Mapbench says with the load starting midway, its run, and the share of samples taken before the load."""
    with contextlib.ExitStack() as stack:
        load = LoadMidway(stack, _MIDWAY_ROUND)
        run = common.compare(runner, CASE.request([FAST, SLOW], budget_s=_BUDGET_S), load.look)
    if load.samples_before is None:
        return NO_LOAD, run, 1.0
    return order(run.ranking), run, load.samples_before / samples(run)


def one_after_the_other(first: str, second: str) -> tuple[str, dict[str, float]]:
    """What two medians of `timeit` say, with the load starting between them."""
    seconds = {first: statistics.median(others.timeit(CASE.script(first)))}
    with common.busy(common.cores()):
        seconds[second] = statistics.median(others.timeit(CASE.script(second)))
    return RIGHT if seconds[FAST] < seconds[SLOW] else WRONG, seconds


def _percent(share: float) -> str:
    return f"{share:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    common.start("Whether an order survives a load that starts midway")
    said: dict[str, list[str]] = {"Mapbench": [], "slower first": [], "faster first": []}
    with common.own_folders() as folder:
        path = Path(folder) / "loop_and_a_fifth.py"
        path.write_text(_SLOWER, encoding="utf-8")
        os.environ["MAPBENCH_MAPPERS"] = str(path)
        with common.engine(Settings(probes=False, process_peaks_s=0.0)) as runner:
            idle = common.compare(runner, CASE.request([FAST, SLOW], budget_s=_BUDGET_S))
            print(f"Idle: {idle.verdict} ({samples(idle)} samples in {rounds_done(idle)} rounds)")
            for number in range(repeats):
                judgement, run, before = together(runner)
                said["Mapbench"].append(judgement)
                say(f"{number + 1} of {repeats}: {judgement}, {before:.0%} of samples before the load: {run.verdict}")
        for name, pair in (("slower first", (SLOW, FAST)), ("faster first", (FAST, SLOW))):
            for number in range(repeats):
                judgement, seconds = one_after_the_other(*pair)
                said[name].append(judgement)
                ratio = seconds[SLOW] / seconds[FAST]
                say(f"{name}, {number + 1} of {repeats}: {judgement}, slower / faster = {ratio:.2f}")
        del os.environ["MAPBENCH_MAPPERS"]
    rows, words = [], (RIGHT, TIE, WRONG, NO_LOAD)
    for name, title in (
        ("Mapbench", "Mapbench, sampled in rounds"),
        ("slower first", "timeit, the slower one first, then load"),
        ("faster first", "timeit, the faster one first, then load"),
    ):
        counts = Counter(said[name])
        rows.append((title, *(f"{counts[word]} of {repeats}" for word in words)))
    print(f"\n{common.table(('the order of the pair', *words), rows)}\n")
    shares = [("Mapbench gets the order right", said["Mapbench"].count(RIGHT), 1.0, True)]
    shares.append(("timeit gets it right with the slower one first", said["slower first"].count(RIGHT), None, False))
    print(common.figures(Figure(name, n / repeats, limit, None, _percent, up) for name, n, limit, up in shares))


if __name__ == "__main__":
    main()
