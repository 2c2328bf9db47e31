"""From a sweep's points to what is derived from them. Pure functions: the run file alone is enough."""

from collections.abc import Mapping

from msgspec.structs import replace

from measure.judge import analysis
from measure.judge.verdict import verdict as comparison_verdict
from measure.model.digits import rounded
from measure.model.run import Analysis, Measurement, Point, Run, Status
from measure.pool.dialogue import TIME_OVER
from measure.statistics.intervals import Ratio, ratio
from measure.statistics.levels import latency, shown_levels
from measure.sweep import crossovers, regions, scaling, values
from measure.sweep.evidence import Evidence, evidence, with_spread
from measure.sweep.needs import OVER_BUDGET

_OPEN = ("waiting", "running")
_NOTHING = "Nothing was ranked at any point: each point says why."


def comparison(run: Run, point: Point) -> Run:
    """One point as the run of a comparison."""
    sizes = {axis.name: point.at[axis.name] for axis in run.axes if axis.kind == "size"}
    slugs = [item.strategy for item in point.measurements if item.twin_of is None]
    settled: Mapping[str, Status] = {"complete": "complete", "budget": "budget", "cancelled": "cancelled"}
    return replace(
        run,
        kind="compare",
        status=settled.get(point.status, "interrupted"),
        stop_reason=point.reason,
        request=replace(run.request, size={**run.request.size, **sizes}, strategies=slugs),
        limit=point.limit,
        control=point.control,
        warnings=point.warnings,
        measurements=point.measurements,
        ranking=point.ranking,
        verdict=point.verdict,
        axes=[],
        points=[],
        crossovers=[],
        fits=[],
    )


def lead(run: Run, point: Point) -> tuple[Ratio, str] | None:
    """How many times as long as the fastest the next strategy takes, and which that is: the best of the next group, or
    where all tie, of the others. None where that is not measured."""
    by_slug = shown_levels(comparison(run, point))
    first, *others = point.ranking[0] if point.ranking else [""]
    known = [name for name in (point.ranking[1] if len(point.ranking) > 1 else others) if name in by_slug]
    if first not in by_slug or not known:
        return None
    ratios = {name: ratio(by_slug[name], by_slug[first], run.analysis.confidence) for name in known}
    next_ = min(known, key=lambda name: ratios[name].ratio)
    return ratios[next_], next_


def lacks_time(item: Measurement) -> bool:
    """True if the budget left a strategy no time."""
    return item.error is not None and item.error.type in (OVER_BUDGET, TIME_OVER)


def settled(point: Point, body: Run, **changes: object) -> Point:
    """The point with the results of a comparison's run. That there is no control is the plan."""
    return replace(
        point,
        limit=body.limit,
        control=body.control,
        warnings=[warning for warning in body.warnings if warning.code != "no_control"],
        measurements=body.measurements,
        ranking=body.ranking,
        verdict=body.verdict,
        **changes,
    )


def of_comparison(body: Run) -> Run:
    """A point's run without what is not kept of it: where the memory of a call went, over time, would be
    most of the file, and a few samples are the plan."""
    measurements = [
        replace(
            item,
            memory=replace(item.memory, timeline=None) if item.memory else None,
            warnings=[warning for warning in item.warnings if warning.code != "few_rounds"],
        )
        for item in body.measurements
    ]
    return replace(body, measurements=measurements)


def analyse(run: Run) -> Run:
    """The sweep with intervals, crossovers, fits and verdict computed anew from its points."""
    now = replace(run.analysis, version=Analysis().version, method=Analysis().method)
    run = replace(run, analysis=with_spread(now, run.points))
    run = replace(run, points=_pooled(run, evidence(run.points, run.axes)))
    known = evidence(run.points, run.axes)  # anew: by the ranks that all points give
    # Of a map there are neither crossovers nor fits.
    run = replace(
        run,
        crossovers=rounded(crossovers.crossovers(known, run.analysis)),
        fits=rounded(scaling.fits(known, run.analysis.confidence)),
    )
    return replace(run, verdict=verdict(run, known))


def _pooled(run: Run, known: Evidence) -> list[Point]:
    """The points with the intervals and ranks that all of them give: by itself, a point of one process each knows
    nothing of how far processes differ."""
    made = []
    for point, levels in zip(run.points, known.levels, strict=True):
        measurements = [
            replace(item, latency=rounded(latency(item, levels, run.analysis.confidence)))
            for item in point.measurements
        ]
        # What is inferred from the points around it has no levels.
        groups = analysis.tie_groups(measurements, levels, run.analysis) or point.ranking
        body = replace(comparison(run, replace(point, measurements=measurements)), ranking=groups)
        pooled = replace(point, measurements=analysis.with_break_even(body).measurements, ranking=groups)
        if point.verdict and point.ranking and point.measurements:
            # It quotes the leader's interval.
            pooled = replace(pooled, verdict=comparison_verdict(comparison(run, pooled), levels.by_slug))
        made.append(pooled)
    return made


def close(run: Run, status: Status, reason: str, finished: str) -> Run:
    """The sweep at its end: points that are open are settled, and what there is is analysed."""
    how = status if status in ("cancelled", "budget") else "interrupted"
    points = [undone(run, point, how, reason, finished) if point.status in _OPEN else point for point in run.points]
    return analyse(replace(run, points=points, status=status, stop_reason=reason, finished=finished))


def undone(run: Run, point: Point, status: Status, reason: str, finished: str) -> Point:
    """A point that was not measured to its end, with what is known of it."""
    if point.status == "waiting" and not point.measurements:
        return replace(point, status=status, reason=reason)
    body = analysis.close(comparison(run, point), status, reason, finished)
    return settled(point, body, status=status, reason=reason)


def measured(run: Run) -> list[Point]:
    """Points with a ranking of everybody, none that is inferred."""
    return [point for point in run.points if point.ranking and point.measurements and asked_for(run, point)]


def asked_for(run: Run, point: Point) -> bool:
    """True if a point is of the grid: one between its points holds only the strategies whose lines cross there, so
    that its ranking is no whole one."""
    return all(point.at[axis.name] in axis.values for axis in run.axes)


def verdict(run: Run, known: Evidence | None = None) -> str:
    """One sentence: where who is fastest, or with which value of a swept option. ``known``: the levels of the points,
    where somebody has made them already."""
    points = measured(run)
    if not points:
        return _NOTHING
    if len(run.axes) == 2:
        return regions.map_sentence(run)
    if run.axes[0].kind == "option":
        return values.sentence(known or evidence(run.points, run.axes), run.analysis) or _NOTHING
    return regions.line_sentence(run, points)
