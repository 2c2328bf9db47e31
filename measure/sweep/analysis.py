"""From a sweep's points to what is derived from them. Pure functions: the run file alone is enough."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from measure.judge import analysis, rules
from measure.judge.verdict import verdict as comparison_verdict
from measure.model import text
from measure.model.digits import rounded
from measure.model.run import Analysis, Crossover, Point, Run, Status
from measure.statistics import intervals, ranking
from measure.statistics.intervals import Level
from measure.sweep import crossovers, scaling
from measure.sweep.lines import lines

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
    """The point with what a comparison's run says of it. That there is no control is the plan."""
    return replace(
        point,
        limit=body.limit,
        control=body.control,
        warnings=[warning for warning in body.warnings if warning.code != rules.NoControl.code],
        measurements=body.measurements,
        ranking=body.ranking,
        verdict=body.verdict,
        **changes,
    )


def analyse(run: Run) -> Run:
    """The sweep with intervals, crossovers, fits and verdict computed anew from its points."""
    now = replace(run.analysis, version=Analysis().version, method=Analysis().method)
    run = replace(run, analysis=now, points=_pooled(run))
    run = replace(
        run,
        crossovers=rounded(crossovers.crossovers(run.points, run.axes, run.analysis)),
        fits=rounded(scaling.fits(run.points, run.axes, run.analysis.confidence)),
    )
    return replace(run, verdict=verdict(run))


def _pooled(run: Run) -> list[Point]:
    """The points of a line with the intervals of the crossovers: by itself, a point of one process each knows nothing
    of how far processes differ. A map has no bands."""
    if len(run.axes) != 1:
        return run.points
    made = []
    for point, levels in zip(run.points, crossovers.point_levels(run.points), strict=True):
        measurements = [
            replace(item, latency=rounded(intervals.latency(levels[item.strategy], run.analysis.confidence)))
            if item.strategy in levels
            else item
            for item in point.measurements
        ]
        body = analysis.with_break_even(comparison(run, replace(point, measurements=measurements)))
        made.append(replace(point, measurements=body.measurements))
        if point.verdict and point.ranking and point.measurements:
            # It quotes the leader's interval.
            made[-1] = replace(made[-1], verdict=comparison_verdict(comparison(run, made[-1]), levels))
    return made


def close(run: Run, status: Status, reason: str, finished: str) -> Run:
    """The sweep at its end: points that are open are settled, and what there is is analysed."""
    how = status if status in ("cancelled", "budget") else "interrupted"
    points = [undone(run, point, how, reason, finished) if point.status in _OPEN else point for point in run.points]
    return analyse(replace(run, points=points, status=status, stop_reason=reason, finished=finished))


def undone(run: Run, point: Point, status: Status, reason: str, finished: str) -> Point:
    """A point that was not come to the end of, with what is known of it."""
    if point.status == "waiting" and not point.measurements:
        return replace(point, status=status, reason=reason)
    body = analysis.close(comparison(run, point), status, reason, finished)
    return settled(point, body, status=status, reason=reason)


def measured(run: Run) -> list[Point]:
    """Points with a ranking of everybody, none that is inferred."""
    return [point for point in run.points if point.ranking and point.measurements and asked_for(run, point)]


def asked_for(run: Run, point: Point) -> bool:
    """Whether a point is of the grid: one between its points holds only the strategies whose lines cross there, so that
    its ranking is no whole one."""
    return all(point.at[axis.name] in axis.values for axis in run.axes)


def verdict(run: Run) -> str:
    """One sentence: who wins everywhere, or where the winner changes."""
    points = measured(run)
    if not points:
        return _NOTHING
    if run.axes[0].kind == "option" and len(run.axes) == 1:
        return _best_value(run)
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

    slug: str
    value: int | None
    level: Level


def _best_value(run: Run) -> str:
    """Which value of a swept option is best, what ties with it, and how the next strategy compares. All values of all
    strategies are of one case: they are judged as the strategies of a comparison are."""
    axis, confidence = run.axes[0].name, run.analysis.confidence
    found = sorted(_candidates(run), key=lambda each: each.level.log_mean)
    if not found:
        return _NOTHING
    best, *others = found
    latency = intervals.latency(best.level, confidence)
    sentence = f"{best.slug} is fastest{'' if best.value is None else f' with {axis} {best.value:,}'}"
    sentence += f": {text.seconds_with_interval(latency.median_s, latency.low_s, latency.high_s)}"
    named = {f"{place:09}": each for place, each in enumerate(found)}
    order = ranking.Order({name: each.level for name, each in named.items()}, run.analysis, resolution=0.0)
    behind = [named[name] for name in order.fastest_first[1:] if order.separated(name, order.fastest_first[0])]
    tied: dict[str, list[_Candidate]] = {}
    for each in others:
        if each not in behind:
            tied.setdefault(each.slug, []).append(each)
    if tied:
        own = tied.pop(best.slug, [])
        names = [f"{axis} {_values(own)}"] if own else []
        names += [_named(axis, slug, each) for slug, each in tied.items()]
        sentence += f"; it ties with {_and(names)}"
    if rest := [each for each in behind if each.slug != best.slug and each.slug not in tied] or behind:
        ratio = intervals.ratio(rest[0].level, best.level, confidence)
        interval = f"[{text.number(ratio.low)}, {text.number(ratio.high)}]"
        sentence += f"; {_named(axis, rest[0].slug, rest[:1])} takes {text.factor(ratio.ratio)} {interval} as long"
    return f"{sentence}."


def _candidates(run: Run) -> list[_Candidate]:
    levels = {id(point): each for point, each in zip(run.points, crossovers.point_levels(run.points), strict=True)}
    return [
        _Candidate(line.slug, None if line.flat else value, levels[id(point)][item.strategy])
        for line in lines(run.points, run.axes)
        for value, point, item in line.points
        if item.outcome == "ok" and item.strategy in levels[id(point)]
    ]


def _named(axis: str, slug: str, candidates: Sequence[_Candidate]) -> str:
    return slug if candidates[0].value is None else f"{slug} with {axis} {_values(candidates)}"


def _values(candidates: Sequence[_Candidate]) -> str:
    values = [f"{value:,}" for value in sorted(each.value for each in candidates if each.value is not None)]
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
    found = []
    for each in sorted(run.crossovers, key=lambda each: each.value or 0.0):
        if each.value is None:
            continue
        before = [point for point in points if point.at[axis] <= each.value and _has(point, each)]
        after = [point for point in points if point.at[axis] > each.value and _has(point, each)]
        if before and after and each.a in before[-1].ranking[0] and each.b in after[0].ranking[0]:
            found.append(each)
    return found[:3]


def _has(point: Point, crossover: Crossover) -> bool:
    ranked = {slug for group in point.ranking for slug in group}
    return crossover.a in ranked and crossover.b in ranked


def renamed(run: Run, names: Mapping[str, str]) -> Run:
    """A comparison's run with its strategies under the names of their lines. Where the memory of a call went, over
    time, is left out: of all points it would be most of the file."""
    measurements = [
        replace(
            item,
            strategy=names.get(item.strategy, item.strategy),
            memory=replace(item.memory, timeline=None) if item.memory else None,
            # A few rounds are the plan.
            warnings=[warning for warning in item.warnings if warning.code != rules.FewRounds.code],
            break_even=[replace(each, against=names.get(each.against, each.against)) for each in item.break_even],
        )
        for item in run.measurements
    ]
    ranking = [[names.get(slug, slug) for slug in group] for group in run.ranking]
    return replace(run, measurements=measurements, ranking=ranking, verdict=_with_names(run.verdict, names))


def _with_names(words: str, names: Mapping[str, str]) -> str:
    """A sentence with other names in it. Made anew it would not have the intervals of the sweep."""
    longest_first = sorted(names, key=len, reverse=True)
    pattern = rf"(?<![\w.])({'|'.join(map(re.escape, longest_first))})(?![\w?]|\.\w)"
    return re.sub(pattern, lambda found: names[found[1]], words) if names else words
