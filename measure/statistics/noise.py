"""The scatter of one strategy's samples: pure functions of logarithms, one float64 array per process.

All look within processes first, since processes of one strategy have levels of their own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from measure.statistics import robust
from measure.statistics.intervals import p_value

# Where the search for two paces starts: quantiles of the distances between samples of one process.
_STARTS = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_STEPS = 6  # of that search; it settles in two or three
_SETTLED = 1e-6
# A sample this many times the usual away from its pace was disturbed, and counts as so far away.
_DISTURBED = 3.0


def trend(effects: np.ndarray, phases: np.ndarray) -> tuple[float, float]:
    """The share by which the pace of a machine changed over a run, and the two-sided p value of «it did not».

    ``effects``: of rounds, logarithms; ``phases``: the number of each one's phase. The change is that from the first
    third of each phase to its last, over all phases; p is that of a trend by least squares that phases have in common,
    each about a level of its own.
    """
    rounds = np.arange(len(effects), dtype=np.float64)
    counts = np.maximum(1, np.bincount(phases))
    x, y = (values - (np.bincount(phases, values) / counts)[phases] for values in (rounds, effects))
    degrees = len(effects) - len(np.unique(phases)) - 1
    if degrees < 1 or not x.any():
        return 0.0, 1.0
    slope = float(x @ y / (x @ x))
    error = math.sqrt(float(np.sum((y - slope * x) ** 2)) / degrees / float(x @ x))
    p = p_value(slope / error, degrees) if error else float(slope == 0.0)
    change = 0.0
    for phase in np.unique(phases):
        own = effects[phases == phase]
        third = max(1, len(own) // 3)
        change += float(np.median(own[-third:]) - np.median(own[:third]))
    return math.expm1(change), p


def halves(logs: Sequence[np.ndarray]) -> tuple[float, float]:
    """A strategy's change from the first half of its processes' samples to the second (a difference of logarithms), and
    the two-sided p value of «it did not». ``logs``: at least two samples each, in the order of time.

    The change is the median of all differences between a later and an earlier sample of one process (Hodges and Lehmann
    1963); p is that of the rank sum test with processes as strata (van Elteren 1960), in its normal approximation. Both
    make a process' level cancel, and a few disturbed samples weigh no more than others.
    """
    changes, excess, variance = [], 0.0, 0.0
    for samples in logs:
        count = len(samples)
        differences = np.subtract.outer(samples[count // 2 :], samples[: count // 2]).ravel()
        changes.append(differences)
        excess += float(np.sign(differences).sum()) / 2 / (count + 1)
        variance += len(differences) / 12 / (count + 1)
    return float(np.median(np.concatenate(changes))), 2 * float(special.ndtr(-abs(excess) / math.sqrt(variance)))


@dataclass(frozen=True)
class Paces:
    """Two groups that the samples of each process fall into. ``gap``: their distance, a difference of logarithms;
    ``separation``: how many times as far apart they are as either scatters; ``share``: of the samples, those in the
    lesser group; ``processes``: of the processes, those with samples in both groups."""

    gap: float
    separation: float
    share: float
    processes: float


def two_paces(logs: Sequence[np.ndarray]) -> Paces | None:
    """The two paces, one distance apart in all processes, that fit the samples best; None where none of the processes
    has samples at both. Any samples can be cut in two: it is `Paces.separation` that tells whether they are.

    Samples = process + (0 or gap) + rest, with the least sum of absolute rests; by alternation between cutting each
    process' sorted samples and the median distance across the cuts. The separation is Ashman's D (Ashman, Bird and
    Zepf 1994) for groups that scatter alike.
    """
    ordered = [np.sort(samples) for samples in logs]
    within = [np.subtract.outer(samples, samples)[np.tril_indices(len(samples), -1)] for samples in ordered]
    best: tuple[float, float, list[_Cut]] | None = None
    for gap in np.quantile(np.concatenate(within), _STARTS) if any(map(len, within)) else ():
        for _ in range(_STEPS):
            cuts = [_cut(samples, gap) for samples in ordered]
            across = [
                np.subtract.outer(samples[cut.low :], samples[: cut.low]).ravel()
                for samples, cut in zip(ordered, cuts, strict=True)
                if cut.is_split
            ]
            if not across:
                break
            before, gap = gap, float(np.median(np.concatenate(across)))
            if abs(gap - before) < _SETTLED:
                break
        cost = sum(float(np.abs(cut.rests).sum()) for cut in cuts)
        if across and (best is None or cost < best[0]):
            best = cost, gap, cuts
    if best is None:
        return None
    _, gap, cuts = best
    rests = np.abs(np.concatenate([cut.rests for cut in cuts]))
    usual = robust.NORMAL * float(np.median(rests))
    # Each process' level and the gap are fitted.
    degrees = max(1, len(rests) - len(cuts) - 1)
    scatter = math.sqrt(float(np.sum(np.minimum(rests, _DISTURBED * usual) ** 2)) / degrees)
    split = [cut for cut in cuts if cut.is_split]
    lesser = min(sum(cut.low for cut in split), sum(len(cut.rests) - cut.low for cut in split))
    return Paces(
        gap=gap,
        separation=gap / scatter if scatter else math.inf,
        share=lesser / len(rests),
        processes=len(split) / len(cuts),
    )


@dataclass(frozen=True)
class _Cut:
    """A process' sorted samples, cut after the first ``low``; ``rests``: what is left of them."""

    low: int
    rests: np.ndarray

    @property
    def is_split(self) -> bool:
        return 0 < self.low < len(self.rests)


def _cut(ordered: np.ndarray, gap: float) -> _Cut:
    """The cut that leaves the least, where those above it are ``gap`` slower."""
    count = len(ordered)
    rests = ordered - gap * (np.arange(count) >= np.arange(count + 1)[:, None])
    rests = rests - np.median(rests, axis=1)[:, None]
    low = int(np.abs(rests).sum(axis=1).argmin())
    return _Cut(low, rests[low])


def farthest_process(logs: Sequence[np.ndarray]) -> float:
    """The distance of the process that stands out most from the others (a difference of logarithms, negative where it
    is faster), 0 where there is only one.

    That far from the middle one of the others are at least two thirds of its samples, and from as many of theirs: two
    disturbed ones of three or four move no process.
    """
    if len(logs) < 2:
        return 0.0
    ordered, thirds = [np.sort(samples) for samples in logs], [(len(samples) - 1) // 3 for samples in logs]
    low = np.array([samples[third] for samples, third in zip(ordered, thirds, strict=True)])
    high = np.array([samples[-1 - third] for samples, third in zip(ordered, thirds, strict=True)])
    slower = [low[number] - np.median(np.delete(high, number)) for number in range(len(logs))]
    faster = [high[number] - np.median(np.delete(low, number)) for number in range(len(logs))]
    return max(0.0, float(max(slower)), float(min(faster)), key=abs)
