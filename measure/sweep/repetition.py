"""The answer to «was a sweep's verdict reproduced?»: point by point as a comparison's is. Pure functions of the samples
of two sweeps of one request."""

from dataclasses import dataclass

from msgspec.structs import replace

from measure.judge import reproduction
from measure.judge.reproduction import Outcome, Reproduction
from measure.model.run import Analysis, Point, Run
from measure.statistics.levels import shown_levels
from measure.sweep import findings
from measure.sweep.evidence import point_levels
from measure.sweep.lines import place, readable


@dataclass(frozen=True)
class AtPoint:
    """The answer of the second sweep about one point of the first."""

    at: dict[str, int]
    answer: Reproduction


@dataclass(frozen=True)
class SweepReproduction:
    """``sentence``: the answer, plain text."""

    outcome: Outcome
    sentence: str
    points: tuple[AtPoint, ...] = ()


def continues(run: Run, first: Run) -> bool:
    """True if a sweep goes on with what its parent measured, instead of repeating it."""
    before = _samples(first)
    return not before or not before.isdisjoint(_samples(run))


def _samples(run: Run) -> set[tuple]:
    return {
        (place(point), item.strategy, tuple(replica.samples_s))
        for point in run.points
        for item in point.measurements
        for replica in item.replicas
        if replica.samples_s
    }


def compare(first: Run, again: Run) -> SweepReproduction:
    """The answer of ``again`` about ``first``: at all their points together it errs with at most 1 − confidence."""
    then = {place(point): point for point in findings.measured(first)}
    both = [(then[place(point)], point) for point in findings.measured(again) if place(point) in then]
    if not both:
        return SweepReproduction("unknown", "The verdict cannot be compared: no point is ranked in both sweeps.")
    # Bonferroni: each point's answer is stricter, the more there are.
    level = replace(first.analysis, confidence=1 - (1 - first.analysis.confidence) / len(both))
    strict = replace(first, analysis=level)
    levels = [_levels(run, points) for run, points in zip((first, again), zip(*both, strict=True), strict=True)]
    points = tuple(
        AtPoint(
            before.at,
            reproduction.compare(findings.comparison(strict, before), findings.comparison(again, now), (then_, now_)),
        )
        for (before, now), then_, now_ in zip(both, *levels, strict=True)
    )
    places: dict[Outcome, list[str]] = {"reproduced": [], "refuted": [], "undecided": [], "unknown": []}
    for point in points:
        places[point.answer.outcome].append(readable(point.at))
    outcome: Outcome = "reproduced"
    if places["refuted"]:
        outcome = "refuted"
    elif places["undecided"] or places["unknown"]:
        outcome = "undecided"
    sentence = {
        "reproduced": "The verdict was reproduced",
        "refuted": "The verdict was not reproduced",
        "undecided": "The verdict was neither reproduced nor refuted",
    }[outcome]
    sentence += f": at {len(places['reproduced'])} of {len(points)} points the same strategies lead"
    if places["refuted"]:
        sentence += f"; others do, beyond chance, at {', '.join(places['refuted'])}"
    if places["undecided"]:
        sentence += f"; others do, within chance, at {', '.join(places['undecided'])}"
    return SweepReproduction(outcome, f"{sentence}.", points)


def _levels(run: Run, points: tuple[Point, ...]) -> list:
    """Strategy → its level, of each point: of a sweep that was analysed by an earlier method, as it shows them."""
    if run.analysis.version == Analysis().version:
        return [levels.by_slug for levels in point_levels(points)]
    return [shown_levels(findings.comparison(run, point)) for point in points]
