"""From a sweep's points to what is derived from them. Pure functions: the run file alone is enough."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from measure.judge import analysis
from measure.judge.verdict import verdict as comparison_verdict
from measure.model.digits import rounded
from measure.model.run import Analysis, Point, Run, Status
from measure.statistics.levels import Levels, latency
from measure.sweep import crossovers, regions, scaling, values
from measure.sweep.evidence import Evidence, evidence, point_levels, with_spread

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


def analyse(run: Run, known: Evidence | None = None) -> Run:
    """The sweep with intervals, crossovers, fits and verdict computed anew from its points. ``known``: their levels,
    where somebody has made them already."""
    now = replace(run.analysis, version=Analysis().version, method=Analysis().method)
    run = replace(run, analysis=with_spread(now, run.points))
    run = replace(run, points=_pooled(run, known.levels if known else point_levels(run.points)))
    if len(run.axes) == 1:
        known = known or evidence(run.points, run.axes)
        run = replace(
            run,
            crossovers=rounded(crossovers.crossovers(known, run.analysis)),
            fits=rounded(scaling.fits(known, run.analysis.confidence)),
        )
    else:
        # A map has neither intervals, nor crossovers, nor fits.
        run = replace(run, crossovers=[], fits=[])
    return replace(run, verdict=verdict(run, known))


def _pooled(run: Run, known: Sequence[Levels]) -> list[Point]:
    """The points with the intervals and ranks that all of them give: by itself, a point of one process each knows
    nothing of how far processes differ."""
    made = []
    for point, levels in zip(run.points, known, strict=True):
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
