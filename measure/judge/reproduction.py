"""Two runs of one request, compared by statistics: was the verdict reproduced? A sweep's is, point by point. Pure
functions of their findings.

Latencies of different machines, or of one machine on different days, differ as a whole, which says nothing about a
verdict. So strategies are compared by their latency *relative to one of them*, the fastest of the earlier run: whether
that ratio differs between the runs is tested with Welch's t, on means over processes of logarithms, as within a run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from measure.judge import pair
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


def compare(first: Run, second: Run, confidence: float | None = None) -> Reproduction:
    """Say whether the later run reproduces the verdict of the earlier one. ``confidence``: of all decisions together;
    that of ``first``, if it is not given."""
    if not _groups(first, second):
        return Reproduction("unknown", "The verdict cannot be compared: no strategy is ranked in both runs.")
    both = pair.of(first, second)
    then, now = (both.first, both.second) if both.names[0] == "earlier" else (both.second, both.first)
    doubts = []
    for name, of in (("earlier", then), ("later", now)):
        if not of.tells:
            return Reproduction("unknown", f"The verdict cannot be compared: the {name} run is {of.word} to rank.")
        if of.word not in ("clear", "tie") and not then.word == now.word == "no choice":
            why = f"{_were(of.missing)} not timed" if of.missing else of.reason or of.word
            doubts.append(f"the {name} run is inconclusive: {why}")
    groups, after = _groups(then.run, now.run), _groups(now.run, then.run)[0]
    before, reference = groups[0], groups[0][0]
    led = [row.slug for row in then.leaders]
    lost = [slug for slug in led if slug not in before]
    outcome: Outcome = "undecided"
    because = f"{_were(led)} fastest in the earlier run, {text.listed(after)} in the later run"
    if lost:
        if not set(lost) <= set(now.missing):
            outcome = "refuted"
        because += f", where {_were(lost)} not ranked"
    elif set(before) == set(after):
        because = f"{_were(after)} fastest in both runs"
        for row in [row for of in (then, now) for row in of.rows if row is of.following or row.slug == of.baseline]:
            one, other = (of.ratio(row.slug, reference) for of in (then, now))
            if one and other and (one.high < other.low or other.high < one.low):
                doubts.append(f"the lead over {row.slug} went from {one.words} to {other.words}")
        outcome = "undecided" if doubts else "reproduced"
    elif not set(before) & set(after):
        sure = first.analysis.confidence if confidence is None else confidence
        # All decisions together err with at most 1 − confidence (Bonferroni).
        sure = 1 - (1 - sure) / max(1, sum(map(len, groups)) - 1)
        beyond = any(pair.has_changed(then, now, slug, reference, sure) for slug in after)
        outcome = "refuted" if beyond else "undecided"
        because += f"; their ratio {'changed' if beyond else 'did not change'} beyond chance"
    words = {"reproduced": "reproduced", "refuted": "not reproduced"}.get(outcome, "neither reproduced nor refuted")
    sentence = f"The earlier verdict was {words}: {'; '.join([because, *doubts[:1]])}."
    if pace := next(change.times for change in both.changes if change.strategy == reference):
        sentence += f" {reference} takes {pace.ratio(both.confidence).words} as long in the {both.names[1]} run."
    return Reproduction(outcome, sentence)


def _were(slugs: Sequence[str]) -> str:
    return f"{text.listed(slugs, 5)} {'was' if len(slugs) == 1 else 'were'}"


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
    for others, words in ((places["refuted"], "others do, beyond chance,"), (places["undecided"], "undecided")):
        sentence += f"; {words} at {', '.join(others)}" if others else ""
    return Reproduction(outcome, f"{sentence}.")
