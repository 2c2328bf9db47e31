"""Is HEAD shown to be slower than BASE, to need more memory or to be wrong, by more than is allowed? Pure functions.

Where both were measured in one run, each process of HEAD's has one of BASE's beside it, which takes its turns in the
same rounds: what the machine does to one it does to the other. The logarithm of their ratio is one figure a pair, and
their mean has Student's interval. Two runs are compared by their ratios to a baseline. All intervals hold together
(Bonferroni): an alarm needs the low end of one beyond what is allowed.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles, variance
from typing import Literal

from measure.judge import pair
from measure.judge.findings import strategies_of
from measure.judge.levels import Level, Ratio, difference, relative, turns_of
from measure.run import text
from measure.run.run import BASE, Analysis, Measurement, Replica, Run

Word = Literal["wrong", "failed", "slower", "more memory", "cannot tell", "within", "not judged"]
ALARMS: tuple[Word, ...] = ("wrong", "failed", "slower", "more memory")
# Fewer pairs tell too little of what they differ by.
LEAST_PAIRS = 3
LEADER = "the fastest"
_CONFIDENCE = Analysis().confidence
_WORKS, _OPEN = ("ok", "wrong"), ("not_run", "cancelled")
_Unknown = tuple[Word, str] | None
_IS_BASELINE: _Unknown = "not judged", "it is the baseline, to which others are relative"
# What makes a case; a function of a person's own is the same by its name.
_CASE = ("title", "size", "dtype", "device", "workload_options")
_IN_ONE_RUN = "two checkouts measured in one run, by --function, can tell"
# What ops of a graph need that run at the same time: in one call up to so much more than in another one like it.
_PEAKS_DIFFER = 0.5


@dataclass(frozen=True)
class Allowed:
    """So much slower may HEAD be, and so much more memory may it need: shares of BASE's figures."""

    slower: float
    memory: float


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A strategy, or the `LEADER` of each side. ``ratio``: latency of HEAD over BASE's, None where nothing tells it."""

    name: str
    base: Measurement | None
    head: Measurement | None
    ratio: Ratio | None
    word: Word
    reason: str
    is_open: bool = False  # more samples may tell more of its latency


@dataclass(frozen=True, kw_only=True)
class Result:
    base: str
    head: str
    allowed: Allowed
    judged: Sequence[Judged]
    notes: Sequence[str] = ()

    @property
    def word(self) -> Word:
        """The worst of all: an alarm, else «cannot tell» where one cannot be told, or none is judged."""
        words = {item.word for item in self.judged}
        alarm = next((word for word in ALARMS if word in words), None)
        return alarm or ("within" if "within" in words and "cannot tell" not in words else "cannot tell")


# --- both in one run -------------------------------------------------------------------------------------------------


def of_run(run: Run, allowed: Allowed, names: tuple[str, str], *, leader: bool = False) -> Result:
    """The result of a run in which each strategy was measured beside its `BASE`. ``names``: of BASE and HEAD."""
    by_slug = {item.strategy: item for item in run.measurements}
    sides = [(by_slug[item.strategy + BASE], item) for item in strategies_of(run)]
    if leader:
        sides = [(_fastest([base for base, _ in sides]), _fastest([head for _, head in sides]))]
    count = sum(base.outcome in _WORKS and head.outcome in _WORKS for base, head in sides)
    confidence = 1 - (1 - _CONFIDENCE) / max(1, count)
    judged = [
        _judged(LEADER if leader else head.strategy, (base, head), level_of(base, head), confidence, allowed)
        for base, head in sides
    ]
    return Result(base=names[0], head=names[1], allowed=allowed, judged=judged)


def level_of(base: Measurement, head: Measurement) -> Level | None:
    """The logarithm of HEAD's latency over BASE's; None where too few pairs of processes were timed."""
    logs = [median(apart) for apart in pairs(base, head)]
    if len(logs) < LEAST_PAIRS:
        return None
    return Level(fmean(logs), variance(logs) / len(logs), len(logs) - 1.0)


def pairs(base: Measurement, head: Measurement) -> list[list[float]]:
    """The logarithm of the ratio of each process of HEAD's to the one that took its turns beside it, in each of their
    rounds. Their median tells of the pair: what disturbs a single turn says nothing."""
    beside, logs = defaultdict[int, list[Replica]](list), []
    for replica in base.replicas:
        beside[min(replica.rounds, default=0)].append(replica)
    for replica in head.replicas:
        if others := beside[min(replica.rounds, default=0)]:  # they were started together
            there = dict(turns_of(others.pop(0)))
            logs.append([log - there[number] for number, log in turns_of(replica) if number in there])
    return list(filter(None, logs))


def error(apart: Sequence[float]) -> float:
    """The standard error of the median of these, by the width of their middle half."""
    low, _, high = quantiles(apart, n=4) if len(apart) > 1 else (0.0, 0.0, math.inf)
    return 0.93 * (high - low) / math.sqrt(len(apart))


def _fastest(side: Sequence[Measurement]) -> Measurement:
    """The fastest right strategy of a side; where there is none, the first one, which says why."""
    return min(side, key=lambda item: (item.outcome != "ok", item.latency.median_s if item.latency else math.inf))


# --- two runs --------------------------------------------------------------------------------------------------------


def of_runs(first: Run, second: Run, allowed: Allowed, *, baseline: str | None = None, leader: bool = False) -> Result:
    """The result of two runs of one case. Raises ValueError with a sentence where their cases differ."""
    asked = [name for name in _CASE if getattr(first.request, name) != getattr(second.request, name)]
    if asked:
        raise ValueError(f"the runs are of different cases: {text.listed(asked)}; a gate needs one case in both")
    both = pair.of(first, second, baseline)
    notes = [f"{name}: {then} in BASE, {now} in HEAD" for name, then, now in both.facts]
    unknown: _Unknown = None
    if both.baseline is None:
        unknown = "cannot tell", f"no strategy is timed and right in both runs: {_IN_ONE_RUN}"
    elif not any(change.same_code for change in both.changes if change.strategy == both.baseline):
        unknown = "cannot tell", f"the code of {both.baseline}, the baseline, is another one: {_IN_ONE_RUN}"
    if leader:
        leaders = [_fastest(strategies_of(run)) for run in (first, second)]
        level = _of_leaders(both, *(item.strategy for item in leaders))
        judged = [_judged(LEADER, (leaders[0], leaders[1]), level, _CONFIDENCE, allowed, unknown, once=True)]
    else:
        judged = []
        for change in both.changes:
            rows = [row.measurement if row else None for row in (change.before, change.after)]
            why = unknown or (_IS_BASELINE if change.strategy == both.baseline else None)
            sides, level = (rows[0], rows[1]), change.relative
            judged.append(_judged(change.strategy, sides, level, both.confidence, allowed, why, once=True))
    return Result(base=first.id, head=second.id, allowed=allowed, judged=judged, notes=notes)


def _of_leaders(both: pair.Pair, before: str, after: str) -> Level | None:
    """The logarithm of the second leader's latency over the first one's, both relative to the baseline's."""
    levels = []
    for of, slug in ((both.first, before), (both.second, after)):
        if slug not in of.levels or both.baseline is None:
            return None
        itself = Level(0.0, 0.0, math.inf)
        levels.append(itself if slug == both.baseline else relative(of.levels[slug], of.levels[both.baseline]))
    return difference(levels[1], levels[0])


# --- a strategy ------------------------------------------------------------------------------------------------------


def _judged(
    name: str, sides: tuple[Measurement | None, Measurement | None], level: Level | None, confidence: float,
    allowed: Allowed, unknown: _Unknown = None, *, once: bool = False,
) -> Judged:  # fmt: skip
    """``sides``: BASE's and HEAD's; ``unknown``: the word, and why, where its latency tells nothing; ``once``: memory
    was measured once in each run."""
    ratio = level.ratio(confidence) if level is not None and not unknown else None
    by_latency = unknown or _by_latency(ratio, 1 + allowed.slower)
    word, reason = _word(*sides, by_latency, allowed, once=once)
    return Judged(
        name=name, base=sides[0], head=sides[1], ratio=ratio, word=word,
        reason=text.COMMANDS.sub("", " ".join(reason.split())),  # which may quote a file from elsewhere
        is_open=word in ("cannot tell", "more memory") and by_latency[0] == "cannot tell",
    )  # fmt: skip


def _by_latency(ratio: Ratio | None, limit: float) -> tuple[Word, str]:
    if ratio is None:
        return "cannot tell", "it was not timed often enough"
    if ratio.low > limit:
        return "slower", ""
    if ratio.high < limit:
        return "within", ""
    return "cannot tell", f"the limit, {limit:g}×, is within its interval"


def _word(
    base: Measurement | None, head: Measurement | None, by_latency: tuple[Word, str], allowed: Allowed, *, once: bool
) -> tuple[Word, str]:
    for side, item in (("BASE", base), ("HEAD", head)):
        if item is None:
            return "cannot tell", f"{side} does not have it"
        if item.outcome not in _WORKS:
            reason = text.outcome(item.outcome, item.reason)
            failed: Word = "not judged" if side == "BASE" else "failed"
            return "cannot tell" if item.outcome in _OPEN else failed, f"{reason} ({side})"
    assert base is not None and head is not None
    if base.outcome == "ok" and head.outcome == "wrong":
        return "wrong", head.reason or "other values"
    peaks = [item.memory.peak_bytes for item in (base, head) if item.memory]
    if by_latency[0] != "slower" and len(peaks) == 2 and peaks[1] > peaks[0] * (1 + allowed.memory):
        more = text.percent(peaks[1] / peaks[0] - 1) if peaks[0] else text.size(peaks[1])
        if once and head.mode == "graph" and peaks[1] <= (1 + _PEAKS_DIFFER) * peaks[0]:  # it may be chance
            return "cannot tell", f"{more} more memory, by one call of each: {_IN_ONE_RUN}"
        return "more memory", f"{more} more"
    return by_latency
