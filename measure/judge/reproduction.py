"""Two runs of one request, compared by statistics: was the verdict reproduced? Pure functions of their samples.

Latencies of different machines, or of one machine on different days, differ as a whole, which says nothing about a
verdict. So strategies are compared by their latency *relative to one of them*, the leader of the first run: whether
that ratio differs between the runs is tested with Welch's t, on means over processes of logarithms, as within a run.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from measure.judge import intervals
from measure.judge.analysis import ranks
from measure.judge.intervals import Level, Ratio
from measure.judge.levels import shown_levels
from measure.run import text
from measure.run.run import Run

Outcome = Literal["reproduced", "refuted", "undecided", "unknown"]


@dataclass(frozen=True)
class Compared:
    """A strategy that both runs rank. Ranks count the strategies of both runs only. ``change``: by what its latency,
    relative to the reference, has changed; None for the reference itself. ``changed``: beyond chance."""

    slug: str
    rank_before: int
    rank_now: int
    change: Ratio | None
    changed: bool


@dataclass(frozen=True)
class Reproduction:
    """``sentence``: the answer, plain text. ``strategies`` are in the order of the first run's ranking."""

    outcome: Outcome
    sentence: str
    reference: str | None = None
    strategies: tuple[Compared, ...] = ()

    @property
    def moved(self) -> list[Compared]:
        """The strategies whose rank is another one now."""
        return [strategy for strategy in self.strategies if strategy.rank_before != strategy.rank_now]


Levels = Mapping[str, Level]


def compare(first: Run, again: Run, confidence: float | None = None) -> Reproduction:
    """Compare the verdict of ``first`` with what ``again`` found. ``confidence``: of all decisions together; that of
    ``first``, if it is not given."""
    before, after = shown_levels(first), shown_levels(again)
    confidence = first.analysis.confidence if confidence is None else confidence
    then, now = _groups(first, again), _groups(again, first)
    if not then:
        return Reproduction("unknown", "The verdict cannot be compared: no strategy is ranked in both runs.")
    its_leaders = now[0]
    reference = then[0][0]
    strategies = tuple(_compared(first, again, then, now, reference, before, after, confidence))
    pace = _pace(first, reference, before, after)
    lost = [slug for slug in first.ranking[0] if slug not in then[0]]
    changed = {strategy.slug for strategy in strategies if strategy.changed}
    if lost:
        outcome: Outcome = "refuted"
        sentence = f"The verdict was not reproduced: {_names(lost)}, which led, {_is(lost)} not ranked here."
    elif set(then[0]) == set(its_leaders):
        outcome = "reproduced"
        sentence = f"The verdict was reproduced: {_names(its_leaders)} {_lead(its_leaders)} again."
    elif changed & (set(then[0]) ^ set(its_leaders)) or (reference not in its_leaders and changed & set(its_leaders)):
        outcome = "refuted"
        sentence = (
            f"The verdict was not reproduced: {_names(then[0])} led, {_names(its_leaders)} {_lead(its_leaders)} here, "
            "and how they stand to each other has changed beyond chance."
        )
    else:
        outcome = "undecided"
        sentence = (
            f"The verdict was neither reproduced nor refuted: {_names(then[0])} led, {_names(its_leaders)} "
            f"{_lead(its_leaders)} here, but how they stand to each other has not changed beyond chance."
        )
    return Reproduction(outcome, f"{sentence} {pace}".strip(), reference, strategies)


def _groups(run: Run, other: Run) -> list[list[str]]:
    """The ranking of ``run``, of those strategies only that the other run ranks too."""
    ranked = {slug for group in other.ranking for slug in group}
    return [both for group in run.ranking if (both := [slug for slug in group if slug in ranked])]


def _compared(
    first: Run,
    again: Run,
    then: Sequence[Sequence[str]],
    now: Sequence[Sequence[str]],
    reference: str,
    levels_before: Levels,
    levels_after: Levels,
    confidence: float,
) -> list[Compared]:
    before, after = ranks(then), ranks(now)
    # All decisions together err with at most 1 − confidence (Bonferroni).
    level = (1 - confidence) / max(1, len(before) - 1)
    resolution = max((run.control.resolution for run in (first, again) if run.control is not None), default=0.0)
    compared = []
    for slug in before:
        change = None
        if slug != reference and {slug, reference} <= levels_before.keys() & levels_after.keys():
            change = intervals.ratio(
                intervals.difference(levels_after[slug], levels_after[reference]),
                intervals.difference(levels_before[slug], levels_before[reference]),
                confidence,
            )
        beyond = change is not None and change.p < level and abs(math.log(change.ratio)) > math.log1p(resolution)
        compared.append(Compared(slug, before[slug], after[slug], change, beyond))
    return compared


def _pace(first: Run, reference: str, before: Levels, after: Levels) -> str:
    """The sentence of how much longer the reference takes now than then."""
    if reference not in before or reference not in after:
        return ""
    ratio = intervals.ratio(after[reference], before[reference], first.analysis.confidence)
    shown = f"{text.number(ratio.ratio)} × [{text.number(ratio.low)}, {text.number(ratio.high)}]"
    return f"{reference} takes {shown} as long as then."


def _names(slugs: Sequence[str]) -> str:
    return slugs[0] if len(slugs) == 1 else f"{', '.join(slugs[:-1])} and {slugs[-1]}"


def _lead(slugs: Sequence[str]) -> str:
    return "leads" if len(slugs) == 1 else "lead"


def _is(slugs: Sequence[str]) -> str:
    return "is" if len(slugs) == 1 else "are"
