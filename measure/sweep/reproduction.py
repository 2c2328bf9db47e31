"""Was a sweep's verdict reproduced? Point by point as a comparison's is, and crossing by crossing by their intervals.

Pure functions of the samples of two sweeps of one request.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from measure.judge import reproduction
from measure.judge.reproduction import Outcome, Reproduction
from measure.model.run import Crossover, Run
from measure.sweep import analysis as sweep_analysis
from measure.sweep import crossovers


@dataclass(frozen=True)
class AtPoint:
    """What the second sweep says of one point of the first."""

    at: dict[str, int]
    found: Reproduction


@dataclass(frozen=True)
class SweepReproduction:
    """``sentence``: the answer, plain text; ``crossings``: a sentence for each crossing of the first sweep."""

    outcome: Outcome
    sentence: str
    points: tuple[AtPoint, ...] = ()
    crossings: tuple[str, ...] = ()


def continues(run: Run, first: Run) -> bool:
    """Whether a sweep goes on with what its parent measured, instead of repeating it."""
    known = {
        (tuple(point.at.items()), item.strategy, tuple(replica.samples_s)) for point, item, replica in _replicas(first)
    }
    return not known or any(
        (tuple(point.at.items()), item.strategy, tuple(replica.samples_s)) in known
        for point, item, replica in _replicas(run)
    )


def compare(first: Run, again: Run) -> SweepReproduction:
    """What ``again`` says about ``first``: at all their points together it errs with at most 1 − confidence."""
    then = {tuple(point.at.items()): point for point in sweep_analysis.measured(first)}
    both = [(then[key], point) for point in sweep_analysis.measured(again) if (key := tuple(point.at.items())) in then]
    if not both:
        return SweepReproduction("unknown", "The verdict cannot be compared: no point is ranked in both sweeps.")
    # Bonferroni: each point's answer is stricter, the more there are.
    level = replace(first.analysis, confidence=1 - (1 - first.analysis.confidence) / len(both))
    strict = replace(first, analysis=level)
    levels = [crossovers.point_levels([pair[which] for pair in both]) for which in (0, 1)]
    points = tuple(
        AtPoint(
            before.at,
            reproduction.compare(
                sweep_analysis.comparison(strict, before), sweep_analysis.comparison(again, now), (then_, now_)
            ),
        )
        for (before, now), then_, now_ in zip(both, *levels, strict=True)
    )
    crossings = [(each, _again(each, again)) for each in first.crossovers if each.value is not None]
    apart = [each for each, now in crossings if now is not None and not _overlap(each, now)]
    outcomes = {each.found.outcome for each in points}
    refuted, undecided = (_places(points, wanted) for wanted in ("refuted", "undecided"))
    outcome: Outcome = "reproduced"
    if refuted or apart:
        outcome = "refuted"
    elif undecided or "unknown" in outcomes:
        outcome = "undecided"
    same = sum(each.found.outcome == "reproduced" for each in points)
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
    return SweepReproduction(outcome, f"{sentence}.", points, tuple(_sentence(*each) for each in crossings))


def _replicas(run: Run) -> Iterator[tuple]:
    for point in run.points:
        for item in point.measurements:
            for replica in item.replicas:
                if replica.samples_s:
                    yield point, item, replica


def _places(points: tuple[AtPoint, ...], outcome: str) -> str:
    places = (
        " ".join(f"{name} {value:,}" for name, value in each.at.items())
        for each in points
        if each.found.outcome == outcome
    )
    return ", ".join(places)


def _again(crossing: Crossover, run: Run) -> Crossover | None:
    """The nearest crossing of the same two in the same direction."""
    found = [each for each in run.crossovers if (each.a, each.b) == (crossing.a, crossing.b) and each.value is not None]
    return min(found, key=lambda each: abs((each.value or 0.0) - (crossing.value or 0.0)), default=None)


def _overlap(one: Crossover, other: Crossover) -> bool:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return True
    return one.low <= other.high and other.low <= one.high


def _sentence(crossing: Crossover, now: Crossover | None) -> str:
    said = crossovers.sentence(crossing)
    if now is None:
        return f"{said}; here no crossing of theirs was found"
    at = crossovers.sentence(now).rpartition(f" {crossing.axis} ")[2]
    return f"{said}; here at {at}: the intervals {'overlap' if _overlap(crossing, now) else 'are apart'}"
