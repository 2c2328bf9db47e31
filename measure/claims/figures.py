"""Figures of evidence as predicates ask for them, by names. One that is not there raises `Missing`."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import mean, variance

from msgspec.structs import replace

from measure.model.run import Evidence, Measurement, Replica, Run
from measure.model.script_end import ScriptEnd
from measure.statistics import intervals
from measure.statistics.intervals import Level
from measure.statistics.levels import RERUN, UNKNOWN_DEGREES, UNKNOWN_DEVIATION, levels_of

CONFIDENCE = 0.95
# Before a strategy's slug: the time of its first call.
FIRST_CALL = "the first call of "


class Missing(Exception):
    """Figures that a predicate needs are not there: the message says which, and why."""


def run_of(evidence: Evidence) -> Run:
    if evidence.run is None:
        raise Missing(evidence.reason or "it was not measured")
    return evidence.run


def figures_of(evidence: Evidence) -> Mapping[str, object]:
    """What a script reported."""
    end = script_of(evidence)
    if end.error:
        raise Missing(f"its script failed: {end.error}")
    return end.figures


def script_of(evidence: Evidence) -> ScriptEnd:
    if evidence.script is None:
        raise Missing(evidence.reason or "its script was not run")
    if evidence.script.ended is True:
        raise Missing(f"its script was not run to its end: {evidence.script.error}")
    return evidence.script


def numbers_of(evidence: Evidence, name: str) -> list[float]:
    """A script's figure, by its processes."""
    figures = figures_of(evidence)
    if name not in figures:
        raise Missing(f"its script reported no {name}")
    if not (numbers := _numbers(figures[name])):
        raise Missing(f"the script's figure {name} is {figures[name]!r}, which is no number")
    return numbers


def item_of(run: Run, slug: str) -> Measurement:
    """A strategy that was measured; of a sweep there is none."""
    try:
        return run.measurement(slug)
    except KeyError:
        raise Missing(f"{slug} was not measured") from None


def right_item_of(run: Run, slug: str) -> Measurement:
    item = item_of(run, slug)
    if item.outcome != "ok":
        reason = f": {item.error.message}" if item.error else ""
        raise Missing(f"{slug} ended as {item.outcome.replace('_', ' ')}{reason}")
    return item


def ratio_of(evidence: Evidence, over: str, under: str) -> intervals.Ratio:
    """The ratio of two times of a comparison or a script, with its interval."""
    if evidence.run is None:
        return _ratio_of_processes(*(_seconds_of(evidence, name) for name in (over, under)))
    levels = _times_of(evidence.run.measurements)
    for name in (over, under):
        if name not in levels:
            right_item_of(evidence.run, name.removeprefix(FIRST_CALL))
            raise Missing(f"{name} was not timed")
    return intervals.ratio(levels[over], levels[under], CONFIDENCE)


def _ratio_of_processes(over: Sequence[float], under: Sequence[float]) -> intervals.Ratio:
    """The ratio of two times of a script, of which each process has both. Its interval is Student's, of what processes
    differ by, and of what reruns do; that of a single process is as wide as where nothing tells what they differ by."""
    logs = [math.log(one / other) for one, other in zip(over, under, strict=False)]
    several = len(logs) > 1
    of_mean = variance(logs) / len(logs) if several else 2 * UNKNOWN_DEVIATION**2
    level = Level(mean(logs), of_mean + RERUN**2, len(logs) - 1.0 if several else UNKNOWN_DEGREES, len(logs))
    return intervals.Ratio(math.exp(level.log_mean), *level.interval(CONFIDENCE), math.nan)


def _seconds_of(evidence: Evidence, name: str) -> list[float]:
    seconds = _numbers(figures_of(evidence).get(name))
    if min(seconds, default=0) <= 0:
        raise Missing(f"{name} was not timed")
    return seconds


def levels_along(run: Run, axis: str) -> dict[int, Mapping[str, Level]]:
    """Value of the axis → the levels of the strategies that are right there."""
    if [known.name for known in run.axes] != [axis]:
        raise Missing(f"it is no sweep over {axis}")
    return {
        point.at[axis]: levels_of(list(_right(point.measurements)), run.analysis).by_slug
        for point in sorted(run.points, key=lambda point: point.at[axis])
    }


def ratios_along(run: Run, axis: str, over: str, under: str) -> dict[int, intervals.Ratio]:
    """Value of the axis → the ratio of two strategies' times, where both are right there."""
    ratios = {
        value: intervals.ratio(levels[over], levels[under], CONFIDENCE)
        for value, levels in levels_along(run, axis).items()
        if over in levels and under in levels
    }
    if len(ratios) < 2:
        raise Missing(f"{over} and {under} were not both timed at two values of {axis}")
    return ratios


def _right(measurements: Iterable[Measurement]) -> Iterator[Measurement]:
    return (item for item in measurements if item.outcome == "ok")


def _times_of(measurements: Iterable[Measurement]) -> Mapping[str, Level]:
    """Times of a comparison by their names: of calls by slugs, and of first calls."""
    right = list(_right(measurements))
    first = [
        replace(item, strategy=FIRST_CALL + item.strategy, replicas=[
            Replica(id=each.id, calls_per_sample=1, rounds=[0], samples_s=[each.first_call_s])
            for each in item.replicas if each.first_call_s
        ])
        for item in right
    ]  # fmt: skip
    return {**levels_of(right).by_slug, **levels_of(first).by_slug}


def _numbers(values: object) -> list[float]:
    """A figure's numbers; none where one of its values is none."""
    listed = values if isinstance(values, list) else [values]
    numbers = [value for value in listed if isinstance(value, int | float) and not isinstance(value, bool)]
    return numbers if len(numbers) == len(listed) else []
