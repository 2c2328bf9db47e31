"""Two runs of one request, compared by statistics: was the verdict reproduced? Pure functions of their findings.

Latencies of different machines, or of one machine on different days, differ as a whole, which says nothing about a
verdict. So strategies are compared by their latency *relative to one of them*, the leader of the first run: whether
that ratio differs between the runs is tested with Welch's t, on means over processes of logarithms, as within a run.
"""

import math
from dataclasses import dataclass
from typing import Literal

from measure.judge import intervals
from measure.judge.findings import Findings, findings
from measure.judge.intervals import Ratio
from measure.judge.ranking import ranks
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
    """``sentence``: the answer, plain text. ``strategies`` are in the order of the first run's ranking; ``before`` and
    ``now`` are those of them that lead in either run."""

    outcome: Outcome
    sentence: str
    reference: str = ""
    before: tuple[str, ...] = ()
    now: tuple[str, ...] = ()
    strategies: tuple[Compared, ...] = ()


def compare(first: Run, again: Run, confidence: float | None = None) -> Reproduction:
    """The answer of ``again`` about the verdict of ``first``. ``confidence``: of all decisions together; that of
    ``first``, if it is not given."""
    then, here = findings(first), findings(again)
    groups_before, groups_now = _groups(first, again), _groups(again, first)
    if not groups_before:
        return Reproduction("unknown", "The verdict cannot be compared: no strategy is ranked in both runs.")
    for of, name in ((then, "the first run"), (here, "this run")):
        if not of.tells:
            return Reproduction("unknown", f"The verdict cannot be compared: {name} is {of.word} to rank.")
    before, now = groups_before[0], groups_now[0]
    reference = before[0]
    strategies = _compared(then, here, ranks(groups_before), ranks(groups_now), reference, confidence)
    led, lead = text.listed(before), f"{text.listed(now)} {'leads' if len(now) == 1 else 'lead'}"
    if lost := [row.slug for row in then.leaders if row.slug not in before]:
        were = "was" if len(lost) == 1 else "were"
        outcome: Outcome = "undecided" if set(lost) <= set(here.missing) else "refuted"
        how = "neither reproduced nor refuted" if outcome == "undecided" else "not reproduced"
        why = "not timed" if outcome == "undecided" else "not ranked"
        sentence = f"The verdict was {how}: {text.listed(lost)}, which led, {were} {why} here."
    elif set(before) == set(now):
        outcome, sentence = "reproduced", f"The verdict was reproduced: {lead} again."
    elif set(before) & set(now):
        outcome = "undecided"
        sentence = f"The verdict was reproduced in part: {led} led, {lead} here."
    elif {row.slug for row in strategies if row.changed} & set(now):
        outcome = "refuted"
        sentence = (
            f"The verdict was not reproduced: {led} led, {lead} here, and how they stand to each other has changed "
            "beyond chance."
        )
    else:
        outcome = "undecided"
        sentence = (
            f"The verdict was neither reproduced nor refuted: {led} led, {lead} here, but how they stand to each other "
            "has not changed beyond chance."
        )
    if {reference} <= then.levels.keys() & here.levels.keys():
        pace = intervals.ratio(here.levels[reference], then.levels[reference], first.analysis.confidence)
        times = " ".join(text.factor_with_interval(pace.ratio, pace.low, pace.high))
        sentence += f" {reference} takes {times} as long as then."
    return Reproduction(outcome, sentence, reference, tuple(before), tuple(now), tuple(strategies))


def _groups(run: Run, other: Run) -> list[list[str]]:
    """The ranking of ``run``, of those strategies only that the other run ranks too."""
    ranked = {slug for group in other.ranking for slug in group}
    return [both for group in run.ranking if (both := [slug for slug in group if slug in ranked])]


def _compared(
    then: Findings, here: Findings, before: dict[str, int], now: dict[str, int], reference: str, sure: float | None
) -> list[Compared]:
    confidence = then.run.analysis.confidence if sure is None else sure
    # All decisions together err with at most 1 − confidence (Bonferroni).
    level = (1 - confidence) / max(1, len(before) - 1)
    resolution = max((of.run.control.resolution for of in (then, here) if of.run.control is not None), default=0.0)
    compared = []
    for slug in before:
        change = None
        if slug != reference and {slug, reference} <= then.levels.keys() & here.levels.keys():
            change = intervals.ratio(
                intervals.difference(here.levels[slug], here.levels[reference]),
                intervals.difference(then.levels[slug], then.levels[reference]),
                confidence,
            )
        beyond = change is not None and change.p < level and abs(math.log(change.ratio)) > math.log1p(resolution)
        compared.append(Compared(slug, before[slug], now[slug], change, beyond))
    return compared
