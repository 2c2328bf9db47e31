"""From a sweep's points to what is derived from them. Pure functions: the run file alone is enough."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from measure.judge import analysis, crossovers, ranking, scaling, sweep_findings
from measure.judge import findings as comparison_findings
from measure.judge import verdict as comparison_verdict
from measure.judge.levels import Levels, Spread
from measure.judge.lines import measured
from measure.judge.sweep_findings import SweepFindings
from measure.run import text
from measure.run.run import Analysis, Measurement, Point, Run, Status

# The fields that a point shares with a comparison.
_BODY = ("limit", "control", "warnings", "measurements", "ranking", "verdict")
# More strategies of a tie are counted, and so are more changes along a line, or leaders of a map.
_MOST_TIED, _MOST_PARTS = 3, 4


def comparison(run: Run, point: Point) -> Run:
    """One point as the run of a comparison."""
    sizes = {axis.name: point.at[axis.name] for axis in run.axes if axis.kind == "size"}
    slugs = [item.strategy for item in point.measurements if item.twin_of is None]
    ends: Mapping[str, Status] = {"complete": "complete", "budget": "budget", "cancelled": "cancelled"}
    whole = {name: getattr(point, name) for name in _BODY}
    request = replace(run.request, size={**run.request.size, **sizes}, strategies=slugs)
    status = ends.get(point.status, "interrupted")
    return replace(
        run, kind="compare", status=status, stop_reason=point.reason, request=request, axes=[], points=[],
        crossovers=[], fits=[], **whole,
    )  # fmt: skip


def settled(point: Point, body: Run) -> Point:
    """The point with the results of a comparison's run. That there is no control is the plan."""
    body = of_comparison(body)
    body = replace(body, warnings=[warning for warning in body.warnings if warning.code != "no_control"])
    return replace(point, **{name: getattr(body, name) for name in _BODY})


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
    run = replace(run, analysis=sweep_findings.with_spread(now, run.points))
    run = replace(run, points=[_pooled(run, point) if point.measurements else point for point in run.points])
    sweep = sweep_findings.findings(run)
    fits = scaling.fits(run.axes[0], sweep.levels, run.analysis.confidence)
    return replace(run, crossovers=sweep.crossovers, fits=fits, verdict=verdict(sweep))


def _pooled(run: Run, point: Point) -> Point:
    """A point with the intervals, ranks and verdict that the spread of all points gives; its warnings stay."""
    body = analysis.analyse(comparison(run, point))
    measurements = [
        replace(now, warnings=before.warnings)
        for now, before in zip(body.measurements, point.measurements, strict=True)
    ]
    return replace(point, measurements=measurements, ranking=body.ranking, verdict=body.verdict)


def close(run: Run, status: Status, reason: str, finished: str) -> Run:
    """The sweep at its end: points that are open are settled with what there is of them, and all is analysed."""
    how = status if status in ("cancelled", "budget") else "interrupted"
    points = []
    for point in run.points:
        if point.status in ("waiting", "running"):
            point = replace(point, status=how, reason=reason)
            if point.measurements:
                point = settled(point, analysis.close(comparison(run, point), how, reason, finished))
        points.append(point)
    return analyse(replace(run, points=points, status=status, stop_reason=reason, finished=finished))


# --- the verdict -----------------------------------------------------------------------------------------------------


def verdict(sweep: SweepFindings, *pair: str) -> str:
    """The answer to what a sweep asks: where one of two strategies overtakes the other, of a ``pair`` that somebody
    picked or of the only two along a size; else who is fastest where, or with which value of an option."""
    run, points = sweep.run, measured(sweep.run)
    if not points:
        return "Nothing was ranked at any point: each point says why."
    if len(run.axes) == 2:
        return _of_map(sweep, points)
    last = points[-1].at[run.axes[0].name]
    beyond = f" Beyond {last:,} nothing is ranked." if last < run.axes[0].values[-1] else ""
    if not pair and len(sweep.levels) == 2 and run.axes[0].kind == "size":
        one, other = sweep.levels
        pair = (one, other) if sweep.levels[one].keys() & sweep.levels[other].keys() else ()
    if pair:
        return f"{crossovers.sentences(sweep.pair(*pair))}{beyond}"
    return _of_option(sweep, points) if run.axes[0].kind == "option" else f"{_of_line(sweep)}{beyond}"


def _of_option(sweep: SweepFindings, points: Sequence[Point]) -> str:
    """The verdict of the comparison that all values of all strategies make: they are of one case."""
    run, axis = sweep.run, sweep.run.axes[0].name
    items, levels = list[Measurement](), {}
    for line in sweep.lines:
        for value, _, item in line.points:
            name = line.slug if line.flat else f"{line.slug} with {axis} {value:,}"
            items.append(replace(item, strategy=name))
            if value in sweep.levels.get(line.slug, {}):
                levels[name] = sweep.levels[line.slug][value]
    groups = ranking.Order(levels, run.analysis).groups()
    body = replace(comparison(run, points[0]), measurements=items, ranking=groups)
    made = Levels(levels, {}, Spread(*(run.analysis.spread or (0.0, 0.0))), 0.0)
    return comparison_verdict.verdict(comparison_findings.findings(body, levels=made))


def _of_map(sweep: SweepFindings, points: Sequence[Point]) -> str:
    """«Fastest: vectorized_map.graph at 6 of 9 cells and loop.eager at 3.» Who ties is counted as well, and it is said
    that some do."""
    cells = [sweep.leaders(point) for point in points]
    (first, most), *others = Counter(name for names in cells for name in names).most_common()
    parts = [f"{first} at {most} of {len(cells)} cells", *(f"{name} at {count}" for name, count in others)]
    return f"{_head(max(map(len, cells)) > 1)}: {text.listed(parts, _MOST_PARTS)}."


def _of_line(sweep: SweepFindings) -> str:
    """«Fastest: loop.eager below batch 3, vectorized_map.graph from 3 [3, 4].» Nobody of a tie is crowned."""
    axis, stretches = sweep.run.axes[0].name, sweep.stretches
    # That who leads next ties before it overtakes is said by the interval of the crossing.
    following = [*(set(part.names) for part in stretches[1:]), set[str]()]
    ties = any(
        {*sweep.leaders(point)} - {*part.names} - after
        for part, after in zip(stretches, following, strict=True)
        for point in part.points
    )
    first = stretches[0]
    if len(stretches) == 1:
        verb = "tie for the lead" if len(first.names) > 1 else "is fastest, or ties for it," if ties else "is fastest"
        return f"{text.listed(first.names, _MOST_TIED)} {verb} at every point that was measured."
    until = f"below {axis} {crossovers.first_beyond(first.crossing.value or 0.0):,}" if first.crossing else ""
    parts = [f"{_names(first.names)} {until or f'up to {axis} {first.points[-1].at[axis]:,}'}"]
    for part, after in pairwise(stretches):
        start = crossovers.place(part.crossing) if part.crossing else f"{after.points[0].at[axis]:,}"
        parts.append(f"{_names(after.names)} from {start}")
    if len(parts) > _MOST_PARTS:
        parts[_MOST_PARTS:] = [f"and {len(parts) - _MOST_PARTS} more changes"]
    return f"{_head(ties)}: {', '.join(parts)}."


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{text.listed(names, _MOST_TIED)} tied"


def _head(ties: bool) -> str:
    return "Fastest, alone or tied" if ties else "Fastest"
