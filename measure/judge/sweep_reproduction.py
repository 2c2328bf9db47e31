"""The answer to «was a sweep's verdict reproduced?»: point by point as a comparison's is. Pure functions of the samples
of two sweeps of one request."""

from dataclasses import dataclass

from measure.judge import reproduction
from measure.judge.lines import measured, place, readable
from measure.judge.reproduction import Outcome, Reproduction
from measure.judge.sweep_analysis import comparison
from measure.run.run import Run


@dataclass(frozen=True)
class SweepReproduction:
    """``sentence``: the answer, plain text. ``points``: that of each point."""

    outcome: Outcome
    sentence: str
    points: tuple[tuple[dict[str, int], Reproduction], ...] = ()


def continues(run: Run, first: Run) -> bool:
    """True if a sweep goes on with what its parent measured, instead of repeating it."""
    before, now = (
        {tuple(replica.samples_s) for point in of.points for item in point.measurements for replica in item.replicas}
        for of in (first, run)
    )
    return not before - {()} or bool(before & now - {()})


def compare(first: Run, again: Run) -> SweepReproduction:
    """The answer of ``again`` about ``first``: at all their points together it errs with at most 1 − confidence."""
    now = {place(point): point for point in measured(again)}
    both = [(point, now[place(point)]) for point in measured(first) if place(point) in now]
    if not both:
        return SweepReproduction("unknown", "The verdict cannot be compared: no point is ranked in both sweeps.")
    # Bonferroni: each point's answer is stricter, the more there are.
    confidence = 1 - (1 - first.analysis.confidence) / len(both)
    points = [
        (before.at, reproduction.compare(comparison(first, before), comparison(again, after), confidence))
        for before, after in both
    ]
    places: dict[Outcome, list[str]] = {"reproduced": [], "refuted": [], "undecided": [], "unknown": []}
    for at, answer in points:
        places[answer.outcome].append(readable(at))
    outcome: Outcome = "refuted" if places["refuted"] else "undecided"
    if len(places["reproduced"]) == len(points):
        outcome = "reproduced"
    sentence = {
        "reproduced": "The verdict was reproduced",
        "refuted": "The verdict was not reproduced",
        "undecided": "The verdict was neither reproduced nor refuted",
    }[outcome]
    sentence += f": at {len(places['reproduced'])} of {len(points)} points the same strategies lead"
    for others, words in ((places["refuted"], "beyond chance"), (places["undecided"], "within chance")):
        sentence += f"; others do, {words}, at {', '.join(others)}" if others else ""
    return SweepReproduction(outcome, f"{sentence}.", tuple(points))
