"""From a sweep's points to what is derived from them. Pure functions: the run file alone is enough."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from measure.judge import analysis
from measure.judge.verdict import verdict as comparison_verdict
from measure.model import text
from measure.model.digits import rounded
from measure.model.run import Analysis, Crossover, Point, Run, Status
from measure.statistics import intervals, ranking
from measure.statistics.intervals import Level
from measure.sweep import crossovers, scaling
from measure.sweep.evidence import Evidence, evidence

_OPEN = ("waiting", "running")
_NOTHING = "Nothing was ranked at any point: each point says why."
# More values than so many, between which there may be others, are named by their number and their ends.
_MOST_LISTED = 8


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
    run = replace(run, analysis=now)
    if len(run.axes) == 1:
        known = known or evidence(run.points, run.axes)
        run = replace(
            run,
            points=_pooled(run, known),
            crossovers=rounded(crossovers.crossovers(known, run.analysis)),
            fits=rounded(scaling.fits(known, run.analysis.confidence)),
        )
    else:
        # A map has neither intervals, nor crossovers, nor fits.
        run = replace(run, crossovers=[], fits=[])
    return replace(run, verdict=verdict(run, known))


def _pooled(run: Run, known: Evidence) -> list[Point]:
    """The points of a line with the intervals of the crossovers: by itself, a point of one process each knows nothing
    of how far processes differ."""
    made = []
    for point, levels in zip(run.points, known.levels, strict=True):
        measurements = [
            replace(item, latency=analysis.latency_of(item.strategy, levels, run.analysis.confidence))
            for item in point.measurements
        ]
        body = analysis.with_break_even(comparison(run, replace(point, measurements=measurements)))
        pooled = replace(point, measurements=body.measurements)
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
    """One sentence: who wins everywhere, or where the winner changes. ``known``: the levels of the points, where
    somebody has made them already."""
    points = measured(run)
    if not points:
        return _NOTHING
    if run.axes[0].kind == "option" and len(run.axes) == 1:
        return _best_value(run, known or evidence(run.points, run.axes))
    if everywhere := _everywhere(points):
        also = f" ({' and '.join(everywhere[1:])} tie{'s' if len(everywhere) == 2 else ''})" if everywhere[1:] else ""
        return f"{everywhere[0]} is fastest at every point that was measured{also}."
    if len(run.axes) == 2:
        wins = Counter(point.ranking[0][0] for point in run.points if point.ranking)
        total = sum(wins.values())
        return f"{', '.join(f'{slug} leads at {count}' for slug, count in wins.most_common(3))} of {total} points."
    if changes := _changes(run, points):
        return f"{'; '.join(map(crossovers.sentence, changes))}."
    axis = run.axes[0].name
    first, last = points[0], points[-1]
    one, other = first.ranking[0][0], last.ranking[0][0]
    if one == other:
        ends = f"{one} is fastest at {axis} {first.at[axis]:,} and {last.at[axis]:,}, but not everywhere between"
    else:
        ends = f"{one} is fastest at {axis} {first.at[axis]:,}, {other} at {axis} {last.at[axis]:,}"
    return f"{ends}; where one overtakes another is not decided."


@dataclass(frozen=True)
class _Candidate:
    """A line at one value of a swept option; ``value`` is None where the option does not concern it."""

    line: str
    value: int | None
    level: Level


def _best_value(run: Run, known: Evidence) -> str:
    """The sentence that says which value of a swept option is best, what ties with it, and how the next strategy
    compares. All values of all strategies are of one case: they are judged as the strategies of a comparison are."""
    axis, confidence = run.axes[0].name, run.analysis.confidence
    candidates = sorted(
        (
            _Candidate(along.line.slug, None if along.line.flat else timed.value, timed.level)
            for along in known.lines
            for timed in along.timed
        ),
        key=lambda candidate: candidate.level.log_mean,
    )
    if not candidates:
        return _NOTHING
    best, *others = candidates
    latency = intervals.latency(best.level, confidence)
    sentence = f"{best.line} is fastest{'' if best.value is None else f' with {axis} {best.value:,}'}"
    sentence += f": {text.seconds_with_interval(latency.median_s, latency.low_s, latency.high_s)}"
    by_name = {f"{place:09}": candidate for place, candidate in enumerate(candidates)}
    order = ranking.Order({name: candidate.level for name, candidate in by_name.items()}, run.analysis, resolution=0.0)
    behind = [by_name[name] for name in order.fastest_first[1:] if order.separated(name, order.fastest_first[0])]
    tied: dict[str, list[_Candidate]] = {}
    for candidate in others:
        if candidate not in behind:
            tied.setdefault(candidate.line, []).append(candidate)
    if tied:
        own = tied.pop(best.line, [])
        names = [f"{axis} {_values(own)}"] if own else []
        names += [_named(axis, line, of_line) for line, of_line in tied.items()]
        sentence += f"; it ties with {_and(names)}"
    if rest := [other for other in behind if other.line != best.line and other.line not in tied] or behind:
        ratio = intervals.ratio(rest[0].level, best.level, confidence)
        interval = f"[{text.number(ratio.low)}, {text.number(ratio.high)}]"
        sentence += f"; {_named(axis, rest[0].line, rest[:1])} takes {text.factor(ratio.ratio)} {interval} as long"
    return f"{sentence}."


def _named(axis: str, line: str, candidates: Sequence[_Candidate]) -> str:
    return line if candidates[0].value is None else f"{line} with {axis} {_values(candidates)}"


def _values(candidates: Sequence[_Candidate]) -> str:
    values = [f"{value:,}" for value in sorted(other.value for other in candidates if other.value is not None)]
    return _and(values) if len(values) <= _MOST_LISTED else f"{values[0]} … {values[-1]} ({len(values)} values)"


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _everywhere(points: list[Point]) -> list[str]:
    """Strategies in the leading group of every point, the one that leads most often first."""
    common = set.intersection(*(set(point.ranking[0]) for point in points))
    leads = Counter(point.ranking[0][0] for point in points)
    return sorted(common, key=lambda slug: (-leads[slug], slug))


def _changes(run: Run, points: list[Point]) -> list[Crossover]:
    """Crossings at which the lead changes, in order: their strategies lead before and after."""
    axis = run.axes[0].name
    changes = []
    for crossing in sorted(run.crossovers, key=lambda crossing: crossing.value or 0.0):
        if crossing.value is None:
            continue
        before = [point for point in points if point.at[axis] <= crossing.value and _has(point, crossing)]
        after = [point for point in points if point.at[axis] > crossing.value and _has(point, crossing)]
        if before and after and crossing.a in before[-1].ranking[0] and crossing.b in after[0].ranking[0]:
            changes.append(crossing)
    return changes[:3]


def _has(point: Point, crossing: Crossover) -> bool:
    """True if both strategies of a crossing are ranked at a point."""
    ranked = {slug for group in point.ranking for slug in group}
    return crossing.a in ranked and crossing.b in ranked
