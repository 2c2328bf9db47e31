"""Two runs of one request, compared by statistics: was the verdict reproduced? A sweep's is, point by point. Pure
functions of their findings.

Latencies of different machines, or of one machine on different days, differ as a whole, which says nothing about a
verdict. So strategies are compared by their latency *relative to one of them*, the leader of the first run: whether
that ratio differs between the runs is tested with Welch's t, on means over processes of logarithms, as within a run.
"""

from dataclasses import dataclass
from typing import Literal

from measure.judge import pair
from measure.judge.findings import findings
from measure.judge.levels import ratio
from measure.judge.lines import measured, place, readable
from measure.judge.sweep_findings import comparison
from measure.run import text
from measure.run.run import Run

Outcome = Literal["reproduced", "refuted", "undecided", "unknown"]


@dataclass(frozen=True)
class Reproduction:
    """``sentence``: the answer, plain text, with names of the first run's strategies."""

    outcome: Outcome
    sentence: str


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
    before, now, reference = groups_before[0], groups_now[0], groups_before[0][0]
    led = [row.slug for row in then.leaders]
    lost = [slug for slug in led if slug not in before]
    outcome: Outcome = "undecided"
    lead = f"{text.listed(now)} {'leads' if len(now) == 1 else 'lead'}"
    because = f"{text.listed(led)} led, {lead} here"
    if lost:
        if not set(lost) <= set(here.missing):
            outcome = "refuted"
        because += f", and {text.listed(lost)} {'was' if len(lost) == 1 else 'were'} not ranked"
    elif set(before) == set(now):
        outcome, because = "reproduced", f"{lead} again"
    elif not set(before) & set(now):
        sure = first.analysis.confidence if confidence is None else confidence
        # All decisions together err with at most 1 − confidence (Bonferroni).
        sure = 1 - (1 - sure) / max(1, sum(map(len, groups_before)) - 1)
        beyond = any(pair.has_changed(then, here, slug, reference, sure) for slug in now)
        outcome = "refuted" if beyond else "undecided"
        because += f", and how they stand to each other has {'' if beyond else 'not '}changed beyond chance"
    words = {"reproduced": "reproduced", "refuted": "not reproduced"}.get(outcome, "neither reproduced nor refuted")
    sentence = f"The verdict was {words}: {because}."
    if reference in then.levels and reference in here.levels:
        pace = ratio(here.levels[reference], then.levels[reference], first.analysis.confidence)
        sentence += f" {reference} takes {pace.words} as long as then."
    return Reproduction(outcome, sentence)


def _groups(run: Run, other: Run) -> list[list[str]]:
    """The ranking of ``run``, of those strategies only that the other run ranks too."""
    ranked = {slug for group in other.ranking for slug in group}
    return [both for group in run.ranking if (both := [slug for slug in group if slug in ranked])]


def continues(run: Run, first: Run) -> bool:
    """True if a sweep goes on with what its parent measured, instead of repeating it."""
    before, now = (
        {tuple(replica.samples_s) for point in of.points for item in point.measurements for replica in item.replicas}
        for of in (first, run)
    )
    return not before - {()} or bool(before & now - {()})


def compare_sweeps(first: Run, again: Run) -> Reproduction:
    """The answer of ``again`` about ``first``: at all their points together it errs with at most 1 − confidence."""
    now = {place(point): point for point in measured(again)}
    both = [(point, now[place(point)]) for point in measured(first) if place(point) in now]
    if not both:
        return Reproduction("unknown", "The verdict cannot be compared: no point is ranked in both sweeps.")
    # Bonferroni: each point's answer is stricter, the more there are.
    confidence = 1 - (1 - first.analysis.confidence) / len(both)
    places: dict[Outcome, list[str]] = {"reproduced": [], "refuted": [], "undecided": [], "unknown": []}
    for before, after in both:
        answer = compare(comparison(first, before), comparison(again, after), confidence)
        places[answer.outcome].append(readable(before.at))
    reproduced, how = len(places["reproduced"]), "neither reproduced nor refuted"
    outcome: Outcome = "undecided"
    if reproduced == len(both):
        outcome, how = "reproduced", "reproduced"
    elif places["refuted"]:
        outcome, how = "refuted", "not reproduced"
    sentence = f"The verdict was {how}: at {reproduced} of {len(both)} points the same strategies lead"
    for others, words in ((places["refuted"], "beyond chance"), (places["undecided"], "within chance")):
        sentence += f"; others do, {words}, at {', '.join(others)}" if others else ""
    return Reproduction(outcome, f"{sentence}.")
