"""Effects of rounds on the samples of all that take part, and samples without them: a robust two-way fit.

All subjects that take part in a round meet the same machine, so what the round adds to all of them is taken out, and
strategies are compared within rounds. Those that never met in a round are compared through processes that took part in
both of their rounds; what these leave open is in the variance (``Detrended.links``).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csgraph

from measure.model.processes import CONTENDER
from measure.model.run import Measurement
from measure.statistics import robust

# A round in which at least so many processes take part has an effect of its own. Where they are fewer, neighbouring
# rounds of the same processes have one together: two would share each other's scatter between them.
_PAIRED = 3
# Residuals beyond this many deviations count less. So low, a third of the processes may change their pace at once, and
# 94 % of that are still told as theirs; of normal samples it makes as much use as of 79 % of them by least squares.
_HUBER = 0.5
# The fit converges in a few steps; one that changes no effect by this much (0.01 %) is the last.
_FITS = 30
_FITTED = 1e-4


@dataclass(frozen=True)
class Detrended:
    """Samples with the effect of their round taken out. ``logs``: slug → the logarithms of those that count, one
    float64 array per replica that has samples, in order. ``effects``: what was taken out of all in a round, as a
    logarithm, float64 [rounds], around 0 in each phase. ``phases``: the number of each round's phase, int64 [rounds]: a
    phase begins where processes do. ``steps``: how much longer than at the leaders' own time those took that lived
    through both, as a logarithm, float64 [rounds], the same for all rounds of a phase. ``links``: slug →
    `measure.statistics.intervals.Level.link`."""

    logs: Mapping[str, Sequence[np.ndarray]]
    effects: np.ndarray
    phases: np.ndarray
    steps: np.ndarray
    links: Mapping[str, tuple[float, ...]]


def detrend(measurements: Sequence[Measurement]) -> Detrended:
    """Take out of every sample what its round did to all that took part in it.

    An additive model, logarithm = process + round + rest, fitted by least squares that a few disturbed samples do not
    move (Huber 1964, «Robust estimation of a location parameter»). It reaches through the whole run: a process that
    lives through two rounds links all that took part in either.

    Between phases, though, processes do not only meet another machine: fewer take turns, and each has longer to come
    to its pace, which short calls need and long ones do not. So what changed for those that lived through both may
    concern the others wholly or not at all. Nothing of it is taken out, and that all of it may have to be is in
    ``links``, as the second moment of the one or the other with equal probability.
    """
    processes = [(item.strategy, replica) for item in measurements for replica in item.replicas if replica.samples_s]
    if not processes:
        return Detrended({}, np.zeros(0), np.zeros(0, int), np.zeros(0), {})
    numbers = np.unique(np.concatenate([replica.rounds for _, replica in processes]))
    table = np.full((len(processes), len(numbers)), np.nan)
    for row, (_, replica) in enumerate(processes):
        table[row, np.searchsorted(numbers, replica.rounds)] = np.log(replica.samples_s)
    present = ~np.isnan(table)
    rows: dict[str, list[int]] = {}
    for row, (slug, _) in enumerate(processes):
        rows.setdefault(slug, []).append(row)
    counted = {slug: _counted(present[own]) for slug, own in rows.items()}
    effects, factor = _fit(table)
    phases = np.searchsorted(np.unique(np.argmax(present, axis=1)), np.arange(len(numbers)), side="right") - 1
    means = (phases[:, None] == phases).astype(np.float64)
    means /= means.sum(1, keepdims=True)
    steps = np.array([np.median(effects[phases == phase]) for phase in phases])
    effects = effects - steps
    # The strategy with the most processes is the one that the others are compared with.
    best_known = counted[max(rows, key=lambda slug: len(rows[slug]))]
    at_best: np.ndarray = np.any(best_known, axis=0, keepdims=False)
    for part in _parts(present):
        best = part[at_best[part]]
        steps[part] -= np.median(steps[best if len(best) else part])
    between = np.column_stack([means @ factor, steps]) / math.sqrt(2)
    factor = np.column_stack([factor - means @ factor, between])
    logs, links = {}, {}
    for slug, own in rows.items():
        shares = counted[slug] / counted[slug].sum(1, keepdims=True)
        logs[slug] = [table[row, counts] - effects[counts] for row, counts in zip(own, counted[slug], strict=True)]
        links[slug] = tuple(map(float, shares.mean(0) @ factor))
    return Detrended(logs, effects, phases, steps, links)


def _counted(present: np.ndarray) -> np.ndarray:
    """The samples of a strategy that count: bool [processes, rounds], as ``present`` is. A process that has none of
    them counts with all that it has."""
    # From when it had the processes of a contender, or all that it has: before, it was scouted, with less time to come
    # to its pace, and by a process that was picked for what it showed then.
    together = present & (present.sum(0) >= min(len(present), CONTENDER))
    return np.where(together.any(1, keepdims=True), together, present)


def _fit(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Effects of the columns of ``table``, float64 [processes, rounds] with NaN where a process took no part, and a
    factor of their covariance: F with F·Fᵀ = Cov, float64 [rounds, blocks of rounds]."""
    present = ~np.isnan(table)
    values = np.where(present, table, 0.0)
    of_block = _blocks(present)
    weights = present.astype(np.float64)
    effects, inverse, deviation = np.zeros(of_block.shape[1]), np.zeros((0, 0)), 0.0
    for _ in range(_FITS):
        by_process = weights.sum(1, keepdims=True)
        by_block = weights @ of_block
        # The normal equations with the processes eliminated: the Laplacian of «a process links two blocks».
        laplacian = np.diag(by_block.sum(0)) - by_block.T @ (by_block / by_process)
        inverse = np.linalg.pinv(laplacian, rcond=1e-10, hermitian=True)
        own = (weights * values).sum(1, keepdims=True) / by_process
        before, effects = effects, inverse @ ((weights * (values - own)) @ of_block).sum(0)
        rest = values - of_block @ effects
        rest -= (weights * rest).sum(1, keepdims=True) / by_process
        deviation = robust.deviation(rest[present])
        if np.abs(effects - before).max() < _FITTED:
            break
        # What is left of an exact fit is rounding.
        weights = present * np.minimum(1.0, _HUBER * max(deviation, _FITTED) / np.maximum(np.abs(rest), 1e-12))
    eigenvalues, vectors = np.linalg.eigh(inverse)
    factor = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    return of_block @ effects, of_block @ factor * (robust.MEDIAN_ERROR * deviation)


def _blocks(present: np.ndarray) -> np.ndarray:
    """The rounds that share an effect: float64 [rounds, blocks], 1 where a round is of a block. ``present``: bool
    [processes, rounds]."""
    count, numbers = 0, []
    for index in range(present.shape[1]):
        few = present[:, index].sum() < _PAIRED
        if index and not (few and np.array_equal(present[:, index], present[:, index - 1])):
            count += 1
        numbers.append(count)
    return np.eye(count + 1)[numbers]


def _parts(present: np.ndarray) -> list[np.ndarray]:
    """The rounds, in parts that processes link: integer arrays. ``present``: bool [processes, rounds]."""
    if present.all(1).any():
        return [np.arange(present.shape[1])]
    count, labels = csgraph.connected_components(present.T.astype(int) @ present.astype(int), directed=False)
    return [np.flatnonzero(labels == label) for label in range(count)]
