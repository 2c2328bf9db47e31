"""The answer to «was a sweep's verdict reproduced?»: point by point as a comparison's is, and crossings by intervals.

Pure functions of the samples of two sweeps of one request.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from measure.judge import reproduction
from measure.judge.reproduction import Outcome, Reproduction
from measure.model.run import Analysis, Crossover, Point, Run
from measure.statistics.intervals import Level
from measure.statistics.levels import shown_levels
from measure.sweep import crossovers, findings
from measure.sweep.evidence import point_levels


@dataclass(frozen=True)
class AtPoint:
    """The answer of the second sweep about one point of the first."""

    at: dict[str, int]
    answer: Reproduction


@dataclass(frozen=True)
class SweepReproduction:
    """``sentence``: the answer, plain text; ``crossings``: a sentence for each crossing of the first sweep."""

    outcome: Outcome
    sentence: str
    points: tuple[AtPoint, ...] = ()
    crossings: tuple[str, ...] = ()


def continues(run: Run, first: Run) -> bool:
    """True if a sweep goes on with what its parent measured, instead of repeating it."""
    known = {
        (tuple(point.at.items()), item.strategy, tuple(replica.samples_s)) for point, item, replica in _replicas(first)
    }
    return not known or any(
        (tuple(point.at.items()), item.strategy, tuple(replica.samples_s)) in known
        for point, item, replica in _replicas(run)
    )


def compare(first: Run, again: Run) -> SweepReproduction:
    """The answer of ``again`` about ``first``: at all their points together it errs with at most 1 − confidence."""
    then = {tuple(point.at.items()): point for point in findings.measured(first)}
    both = [(then[key], point) for point in findings.measured(again) if (key := tuple(point.at.items())) in then]
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
    crossings = [(crossing, _again(crossing, again)) for crossing in first.crossovers if crossing.value is not None]
    apart = [then_ for then_, now in crossings if now is not None and not _overlap(then_, now)]
    outcomes = {point.answer.outcome for point in points}
    refuted, undecided = (_places(points, wanted) for wanted in ("refuted", "undecided"))
    outcome: Outcome = "reproduced"
    if refuted or apart:
        outcome = "refuted"
    elif undecided or "unknown" in outcomes:
        outcome = "undecided"
    same = sum(point.answer.outcome == "reproduced" for point in points)
    sentence = {
        "reproduced": "The verdict was reproduced",
        "refuted": "The verdict was not reproduced",
        "undecided": "The verdict was neither reproduced nor refuted",
    }[outcome]
    sentence += f": at {same} of {len(points)} points the same strategies lead"
    if refuted:
        sentence += f"; others do, beyond chance, at {refuted}"
    if undecided:
        sentence += f"; others do, within chance, at {undecided}"
    if apart:
        sentence += f"; {len(apart)} of {len(crossings)} crossings moved beyond their intervals"
    return SweepReproduction(outcome, f"{sentence}.", points, tuple(_sentence(*pair) for pair in crossings))


def _levels(run: Run, points: Sequence[Point]) -> list[Mapping[str, Level]]:
    """Strategy → its level, of each point: of a sweep that was analysed by an earlier method, as it shows them."""
    if run.analysis.version == Analysis().version:
        return [levels.by_slug for levels in point_levels(points)]
    return [shown_levels(findings.comparison(run, point)) for point in points]


def _replicas(run: Run) -> Iterator[tuple]:
    for point in run.points:
        for item in point.measurements:
            for replica in item.replicas:
                if replica.samples_s:
                    yield point, item, replica


def _places(points: tuple[AtPoint, ...], outcome: str) -> str:
    places = (
        " ".join(f"{name} {value:,}" for name, value in point.at.items())
        for point in points
        if point.answer.outcome == outcome
    )
    return ", ".join(places)


def _again(crossing: Crossover, run: Run) -> Crossover | None:
    """The nearest crossing of the same two in the same direction."""
    same = [other for other in run.crossovers if (other.a, other.b) == (crossing.a, crossing.b)]
    crossed = [other for other in same if other.value is not None]
    return min(crossed, key=lambda other: abs((other.value or 0.0) - (crossing.value or 0.0)), default=None)


def _overlap(one: Crossover, other: Crossover) -> bool:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return True
    return one.low <= other.high and other.low <= one.high


def _sentence(crossing: Crossover, now: Crossover | None) -> str:
    said = crossovers.sentence(crossing)
    if now is None:
        return f"{said}; here no crossing of theirs was found"
    intervals = "overlap" if _overlap(crossing, now) else "are apart"
    return f"{said}; here at {crossovers.place(now)}: the intervals {intervals}"
