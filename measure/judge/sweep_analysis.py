"""From a sweep's points to what is derived from them. Pure functions: the run file alone is enough."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from msgspec.structs import replace

from measure.judge import analysis, crossovers, ranking, scaling
from measure.judge.lines import leaders, levels_along, lines, with_spread
from measure.judge.verdict import verdict as comparison_verdict
from measure.run import text
from measure.run.run import Analysis, Crossover, Measurement, Point, Run, Status

_NOTHING = "Nothing was ranked at any point: each point says why."
# More strategies of a tie are counted, and so are more changes along a line, or leaders of a map.
_MOST_TIED, _MOST_PARTS = 3, 4


def comparison(run: Run, point: Point) -> Run:
    """One point as the run of a comparison."""
    sizes = {axis.name: point.at[axis.name] for axis in run.axes if axis.kind == "size"}
    slugs = [item.strategy for item in point.measurements if item.twin_of is None]
    ends: Mapping[str, Status] = {"complete": "complete", "budget": "budget", "cancelled": "cancelled"}
    return replace(
        run,
        kind="compare",
        status=ends.get(point.status, "interrupted"),
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


def settled(point: Point, body: Run) -> Point:
    """The point with the results of a comparison's run. That there is no control is the plan."""
    body = of_comparison(body)
    return replace(
        point,
        limit=body.limit,
        control=body.control,
        warnings=[warning for warning in body.warnings if warning.code != "no_control"],
        measurements=body.measurements,
        ranking=body.ranking,
        verdict=body.verdict,
    )


def of_comparison(body: Run) -> Run:
    """A point's run without what is not stored of it: where the memory of a call went, over time, would be most of the
    file, and a few samples are the plan."""
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
    """The sweep with intervals, ranks, crossovers, fits and verdict computed anew from its points. One spread between
    processes is that of all points: by itself, one with a single process of each says nothing of how far they
    differ."""
    now = replace(run.analysis, version=Analysis().version, method=Analysis().method)
    run = replace(run, analysis=with_spread(now, run.points))
    run = replace(run, points=[_pooled(run, point) if point.measurements else point for point in run.points])
    run = replace(run, crossovers=crossovers.crossovers(run), fits=scaling.fits(run))
    return replace(run, verdict=verdict(run))


def _pooled(run: Run, point: Point) -> Point:
    """A point with the intervals, ranks and verdict that the spread of all points gives; its warnings stay."""
    body = analysis.analyse(comparison(run, point))
    measurements = [
        replace(now, warnings=before.warnings)
        for now, before in zip(body.measurements, point.measurements, strict=True)
    ]
    return replace(point, measurements=measurements, ranking=body.ranking, verdict=body.verdict)


def close(run: Run, status: Status, reason: str, finished: str) -> Run:
    """The sweep at its end: points that are open are settled, and what there is is analysed."""
    how = status if status in ("cancelled", "budget") else "interrupted"
    points = [
        _undone(run, point, how, reason, finished) if point.status in ("waiting", "running") else point
        for point in run.points
    ]
    return analyse(replace(run, points=points, status=status, stop_reason=reason, finished=finished))


def _undone(run: Run, point: Point, status: Status, reason: str, finished: str) -> Point:
    """A point that was not measured to its end, with what there is of it."""
    point = replace(point, status=status, reason=reason)
    if not point.measurements:
        return point
    return settled(point, analysis.close(comparison(run, point), status, reason, finished))


def measured(run: Run) -> list[Point]:
    """Points with a ranking of everybody, none that is inferred."""
    return [point for point in run.points if point.ranking and point.measurements and asked_for(run, point)]


def asked_for(run: Run, point: Point) -> bool:
    """True if a point is of the grid: earlier versions added others between its points, of the two strategies alone
    whose lines cross there."""
    return all(point.at[axis.name] in axis.values for axis in run.axes)


# --- the verdict -----------------------------------------------------------------------------------------------------


def verdict(run: Run) -> str:
    """A sentence: where who is fastest, or with which value of a swept option."""
    if not (points := measured(run)):
        return _NOTHING
    if len(run.axes) == 2:
        return _of_map(run, points)
    return _of_option(run, points) if run.axes[0].kind == "option" else _of_line(run, points)


def _of_option(run: Run, points: Sequence[Point]) -> str:
    """The verdict of the comparison that all values of all strategies make: they are of one case."""
    axis, along = run.axes[0].name, levels_along(run)
    items, levels = list[Measurement](), {}
    for line in lines(run.points, run.axes):
        for value, _, item in line.points:
            name = line.slug if line.flat else f"{line.slug} with {axis} {value:,}"
            items.append(replace(item, strategy=name))
            if value in along.get(line.slug, {}):
                levels[name] = along[line.slug][value]
    groups = ranking.Order(levels, run.analysis).groups()
    return comparison_verdict(replace(comparison(run, points[0]), measurements=items, ranking=groups), levels)


def _of_map(run: Run, points: Sequence[Point]) -> str:
    """«Fastest: vectorized_map.graph at 6 of 9 cells and loop.eager at 3.» Who ties is counted as well, and it is said
    that some do."""
    cells = [leaders(point, run.axes) for point in points]
    counts = Counter(name for names in cells for name in names).most_common()
    (first, most), *others = counts
    parts = [f"{first} at {most} of {len(cells)} cells", *(f"{name} at {count}" for name, count in others)]
    return f"{_head(max(map(len, cells)) > 1)}: {text.listed(parts, _MOST_PARTS)}."


@dataclass(frozen=True)
class _Stretch:
    """Neighbouring points of a line, and those who lead, or tie for the lead, at all of them."""

    names: list[str]
    points: list[Point]


def _of_line(run: Run, points: Sequence[Point]) -> str:
    """«Fastest: loop.eager below batch 3, vectorized_map.graph from 3 [3, 4].» Nobody of a tie is crowned."""
    axis = run.axes[0].name
    stretches = list[_Stretch]()
    for point in points:
        leading = leaders(point, run.axes)
        if stretches and (common := [name for name in stretches[-1].names if name in leading]):
            stretches[-1] = _Stretch(common, [*stretches[-1].points, point])
        else:
            stretches.append(_Stretch(leading, [point]))
    # That who leads next ties before it overtakes is said by the interval of the crossing.
    ties = any(
        {*leaders(point, run.axes)} - {*part.names, *after.names}
        for part, after in pairwise([*stretches, _Stretch([], [])])
        for point in part.points
    )
    first = stretches[0]
    if len(stretches) == 1:
        verb = "tie for the lead" if len(first.names) > 1 else "is fastest, or ties for it," if ties else "is fastest"
        return f"{text.listed(first.names, _MOST_TIED)} {verb} at every point that was measured."
    parts = list[str]()
    for one, other in pairwise(stretches):
        crossing = _crossing(run, one, other)
        if one is first:
            below = f"below {axis} {crossovers.first_beyond(crossing.value or 0.0):,}" if crossing else ""
            parts.append(f"{_names(first)} {below or f'up to {axis} {first.points[-1].at[axis]:,}'}")
        start = crossovers.place(crossing) if crossing else f"{other.points[0].at[axis]:,}"
        parts.append(f"{_names(other)} from {start}")
    if len(parts) > _MOST_PARTS:
        parts[_MOST_PARTS:] = [f"and {len(parts) - _MOST_PARTS} more changes"]
    last = points[-1].at[axis]
    beyond = f"; beyond {last:,} nothing is ranked" if last < run.axes[0].values[-1] else ""
    return f"{_head(ties)}: {', '.join(parts)}{beyond}."


def _crossing(run: Run, one: _Stretch, other: _Stretch) -> Crossover | None:
    """The place at which who leads next overtakes who leads until then, of several the last."""
    axis = run.axes[0].name
    between = [
        crossing
        for crossing in run.crossovers
        if crossing.value is not None
        and one.points[0].at[axis] <= crossing.value <= other.points[0].at[axis]
        and crossing.a in one.names
        and crossing.b in other.names
    ]
    return max(between, key=lambda crossing: crossing.value or 0.0, default=None)


def _names(part: _Stretch) -> str:
    return part.names[0] if len(part.names) == 1 else f"{text.listed(part.names, _MOST_TIED)} tied"


def _head(ties: bool) -> str:
    return "Fastest, alone or tied" if ties else "Fastest"
