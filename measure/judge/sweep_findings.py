"""All that is said of a sweep, made once: its lines with their levels, who leads at each point, where one overtakes
another, how latencies grow, and the sentence that answers.

Sentences, tables, charts, tooltips and exports read it, so that no two of them can differ. What is said of one point is
said of it as a comparison: a point that is too noisy to rank has no leaders. Pure functions of a run.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

from msgspec import UNSET
from msgspec.structs import replace

from measure.judge import analysis, lines
from measure.judge import findings as comparisons
from measure.judge import verdict as comparison_verdict
from measure.judge.levels import Level, Levels, Order, Spread, levels_of, spread_of
from measure.judge.lines import Line, line_of, measured, place
from measure.run import text
from measure.run.run import Analysis, Crossover, Fit, Measurement, Point, Run, Status

# Words for the status of a point that ranks nothing.
_STATES = {"complete": "no winner", "running": "being measured", "budget": "not reached", "skipped": "left out"}
# The fields that a point shares with a comparison.
_BODY = ("limit", "control", "warnings", "measurements", "ranking", "verdict")
# Of the values at which a line is faster, of those who tie, and of changes along a line or leaders of a map so many are
# named.
_MOST_NAMED, _MOST_TIED, _MOST_PARTS = 6, 3, 4
# Lines of which each pair is compared all along.
_MOST_PAIRED = 40


@dataclass(frozen=True)
class Stretch:
    """Neighbouring points of a line, and the lines that lead, or tie for the lead, at all of them. ``crossing``: where
    the next stretch takes over, None where that is not known."""

    names: list[str]
    points: list[Point]
    crossing: Crossover | None = None


@dataclass(frozen=True, kw_only=True)
class SweepFindings:
    """The findings of a sweep, finished or not. The points of its ``run`` are those of its grid.

    ``levels``: line → value of the axis → the level of its latency there, where its values are right; one that is flat
    has its level at all values. ``orders``: value → the order of these. Both are empty of a map. ``points``: place →
    the findings of each point, with the lines as its strategies.
    """

    run: Run
    lines: Sequence[Line]
    levels: Mapping[str, Mapping[int, Level]]
    orders: Mapping[int, Order]
    points: Mapping[tuple[int, ...], comparisons.Findings]

    def leaders(self, point: Point) -> list[str]:
        """The lines that are fastest at a point, or tie for it; none where nothing is ranked."""
        of = self.points[place(point)]
        return [line_of(row.slug, self.run.axes) for row in of.leaders] if of.tells else []

    def statement(self, point: Point) -> str:
        """Return what every form of the sweep reports for a point."""
        of = self.points[place(point)]
        return _STATES.get(point.status, point.status) if of.word == "nothing" else statement(of)

    def is_unsure(self, point: Point) -> bool:
        """True if a point has leaders, and its verdict is not sure of them."""
        return self.points[place(point)].word == "cannot tell"

    @property
    def coverage(self) -> str:
        """``8 of 9 points measured, 1 with strategies not timed``."""
        ended = [p for p in self.run.points if p.status == "complete" or (p.ranking and p.status != "running")]
        lacking = sum(bool(self.points[place(point)].missing) for point in ended)
        words = f"{len(ended)} of {len(self.run.points)} points measured"
        return words + f", {lacking} with strategies not timed" * bool(lacking)

    @cached_property
    def ranked(self) -> list[Point]:
        """The points that were measured and have leaders."""
        return [point for point in measured(self.run) if self.leaders(point)]

    @cached_property
    def headline_points(self) -> list[Point]:
        """The ranked points that are sure, or all where none is."""
        return [point for point in self.ranked if not self.is_unsure(point)] or self.ranked

    @cached_property
    def _ranks(self) -> dict[int, dict[str, int]]:
        """The ranks at each value of the axis."""
        return {at[0]: {row.slug: row.rank or 0 for row in of.ranked} for at, of in self.points.items()}

    def pair(self, one: str, other: str) -> list[Crossover]:
        """Where one line overtakes another, whether they lead or not; where they never do, one that says why. At each
        value the one is faster that has the better rank there and is separated from the other."""
        axis, faster, values = self.run.axes[0], dict[int, str](), list[int]()
        for value in sorted(self.levels.get(one, {}).keys() & self.levels.get(other, {}).keys()):
            values.append(value)
            rank = self._ranks.get(value, {})
            first, second = sorted((one, other), key=lambda line: rank.get(line, math.inf))
            if rank.get(first) != rank.get(second) and self.orders[value].separated(second, first):
                faster[value] = first
        made = []
        for low, high in pairwise(faster):
            if (a := faster[low]) != (b := faster[high]):
                between = [value for value in values if low <= value <= high]
                at, least, most = lines.crossing(
                    self.levels[a], self.levels[b], between, axis.scale, self.run.analysis.confidence
                )
                made.append(Crossover(a=a, b=b, axis=axis.name, value=at, low=least, high=most))
        if made:
            return made
        a = next(iter(faster.values()), one)
        b = other if a == one else one
        reason = "they were never timed at the same place"
        if values:
            reason = "neither is clearly faster wherever both were timed"
        if faster:
            logs = sorted(self.levels[b][value].log_mean - self.levels[a][value].log_mean for value in faster)
            factors = " to ".join(dict.fromkeys(text.times(math.exp(end)) for end in (logs[0], logs[-1])))
            where, rest = "wherever both were timed", ""
            if len(faster) < len(values):
                where = f"at {axis.name} {text.listed([f'{value:,}' for value in faster], _MOST_NAMED)}"
                rest = ", and elsewhere neither clearly is"
            reason = f"{a} is faster {where}, {factors}×{rest}"
        return [Crossover(a=a, b=b, axis=axis.name, none=reason)]

    @cached_property
    def crossovers(self) -> list[Crossover]:
        """Of each pair of lines that lead somewhere, or tie for it, the crossings; none of a map. Where very many lead,
        of those that do so most often."""
        leading = Counter(name for point in self.run.points for name in self.leaders(point))
        most = {name for name, _ in leading.most_common(_MOST_PAIRED)}
        pairs = combinations([line for line in self.levels if line in most], 2)
        return [crossing for pair in pairs for crossing in self.pair(*pair)]

    @cached_property
    def fits(self) -> list[tuple[Fit, str]]:
        """The costs of each line that is nearly straight, with its growth in words."""
        made = []
        for fit in self.run.fits:
            if not fit.note:
                grows = lines.growth(self.levels.get(fit.strategy, {}), self.run.analysis.confidence)
                made.append((fit, lines.power(fit.axis, *grows) if grows else ""))
        return made

    @cached_property
    def stretches(self) -> list[Stretch]:
        """The headline's points along one axis, by which lines lead at all of a stretch."""
        made = list[Stretch]()
        for point in self.headline_points:
            leading = self.leaders(point)
            if made and (common := [name for name in made[-1].names if name in leading]):
                made[-1] = Stretch(common, [*made[-1].points, point])
            else:
                made.append(Stretch(leading, [point]))
        for number, (one, other) in enumerate(pairwise(made)):
            [low], [high] = (part.points[0].at.values() for part in (one, other))
            turns = [turn for turn in self.crossovers if turn.a in one.names and turn.b in other.names]
            within = [turn for turn in turns if turn.value is not None and low <= turn.value <= high]
            made[number] = Stretch(one.names, one.points, max(within, key=lambda turn: turn.value or 0.0, default=None))
        return made

    @cached_property
    def of_option(self) -> comparisons.Findings:
        """All values of an option as one comparison, as they are of one case; some point is ranked."""
        return self.option_findings(self.ranked[0])

    def option_findings(self, point: Point, only: int | None = None) -> comparisons.Findings:
        """All values of an option, or the ``only`` one, with the flat lines; the warnings are those of ``point``."""
        run, axis = self.run, self.run.axes[0].name
        items, levels = list[Measurement](), {}
        for line in self.lines:
            for value, _, item in line.points:
                if line.flat or only in (None, value):
                    name = line.slug if line.flat or only is not None else f"{line.slug} with {axis} {value:,}"
                    items.append(replace(item, strategy=name))
                    if value in self.levels.get(line.slug, {}):
                        levels[name] = self.levels[line.slug][value]
        body = replace(comparison(run, point), measurements=items, ranking=Order(levels, run.analysis).groups())
        made = Levels(levels, {}, Spread(*(run.analysis.spread or (0.0, 0.0))), 0.0)
        return comparisons.findings(body, levels=made)


def findings(run: Run) -> SweepFindings:
    """The findings of a sweep whose points were analysed."""
    # Earlier versions measured two strategies at points between those of the grid, and inferred who wins at some that
    # they did not measure.
    points = [
        point if point.measurements else replace(point, ranking=[])
        for point in run.points
        if all(point.at[axis.name] in axis.values for axis in run.axes)
    ]
    run = replace(run, points=points)
    axis, drawn = run.axes[0], lines.lines(run.points, run.axes)
    of_points = {place(point): comparisons.findings(comparison(run, point)) for point in points}
    levels = dict[str, Mapping[int, Level]]()
    for line in drawn if len(run.axes) == 1 else ():
        timed = {
            value: here[item.strategy]
            for value, point, item in line.points
            if item.outcome == "ok" and item.strategy in (here := of_points[place(point)].levels)
        }
        if timed:
            levels[line.slug] = dict.fromkeys(axis.values, *timed.values()) if line.flat else timed
    values = sorted({value for along in levels.values() for value in along})
    orders = {
        value: Order({line: along[value] for line, along in levels.items() if value in along}, run.analysis)
        for value in values
    }
    sweep = SweepFindings(run=run, lines=drawn, levels=levels, orders=orders, points=of_points)
    if axis.kind == "option":
        ranked = [point for point in points if of_points[at := place(point)].tells and at[0] in orders]
        of_points |= {place(point): sweep.option_findings(point, *place(point)) for point in ranked}
    return sweep


# --- a point as a comparison -----------------------------------------------------------------------------------------


def comparison(run: Run, point: Point) -> Run:
    """One point as the run of a comparison."""
    sizes = {axis.name: point.at[axis.name] for axis in run.axes if axis.kind == "size"}
    slugs = [item.strategy for item in point.measurements if item.twin_of is None]
    ends: Mapping[str, Status] = {"complete": "complete", "budget": "budget", "cancelled": "cancelled"}
    return replace(
        run, kind="compare", status=ends.get(point.status, "interrupted"), stop_reason=point.reason,
        request=replace(run.request, size={**run.request.size, **sizes}, strategies=slugs),
        axes=[], points=[], crossovers=[], fits=[], **{name: getattr(point, name) for name in _BODY},
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


# --- from samples to findings ----------------------------------------------------------------------------------------


def analyse(run: Run) -> Run:
    """The sweep with intervals, ranks, crossovers, fits and verdict computed anew from its points. One spread between
    processes is that of all points: by itself, one with a single process of each says nothing of how far they
    differ."""
    logs = itertools.chain.from_iterable(levels_of(point.measurements).logs.values() for point in run.points)
    spread = spread_of(logs)
    now = replace(
        run.analysis, version=Analysis().version, method=Analysis().method,
        spread=(spread.deviation, spread.degrees) if spread.degrees else UNSET,
    )  # fmt: skip
    run = replace(run, analysis=now)
    run = replace(run, points=[_pooled(run, point) if point.measurements else point for point in run.points])
    sweep = findings(run)
    fits = lines.fits(run.axes[0], sweep.levels, now.confidence)
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


# --- the sentence that answers ---------------------------------------------------------------------------------------


def verdict(sweep: SweepFindings, *pair: str) -> str:
    """The answer to what a sweep asks: where one of two strategies overtakes the other, of a ``pair`` that somebody
    picked or of the only two along a size; else who is fastest where, or with which value of an option."""
    axis, points = sweep.run.axes[0], sweep.ranked
    noisy = [sweep.statement(point) for point in measured(sweep.run) if not sweep.leaders(point)]
    how = " or ".join(sorted({*noisy}))
    if not points and noisy:
        return f"{how.capitalize()} at every point that was measured. Measure again, for longer."
    if not points:
        left_out = [point.reason for point in sweep.run.points if point.status == "skipped"]
        reason = left_out[:1] if len(left_out) == len(sweep.run.points) else []
        return " ".join(["Nothing was ranked at any point.", *reason])
    if not pair and len(sweep.levels) == 2 and axis.kind == "size":
        one, other = sweep.levels
        pair = (one, other) if sweep.levels[one].keys() & sweep.levels[other].keys() else ()
    if len(sweep.run.axes) == 2:
        words = _of_map(sweep)
    elif pair:
        words = f"{'; '.join(map(lines.sentence, sweep.pair(*pair)))}."
    elif axis.kind == "option":
        return comparison_verdict.verdict(sweep.of_option)
    else:
        words = _of_line(sweep)
    if noisy:
        words += f" {len(noisy)} of {len(points) + len(noisy)} points {'is' if len(noisy) == 1 else 'are'} {how}."
    unsure = [sweep.points[place(point)].missing for point in points if sweep.is_unsure(point)]
    if unsure and not (pair and len(sweep.levels) > 2):  # a third strategy changes nothing between two
        late, noise = "a strategy that was not timed may be faster there", "there is too little data"
        why = ", or ".join(sorted({late if missing else noise for missing in unsure}))
        words += f" Not sure at {len(unsure)} of {len(points)} points: {why}."
    last = measured(sweep.run)[-1].at[axis.name]
    if len(sweep.run.axes) == 1 and last < axis.values[-1]:
        words += f" Beyond {last:,} nothing is ranked."
    return words


def _of_map(sweep: SweepFindings) -> str:
    """``Fastest: vectorized_map.graph at 6 of 9 points and loop.eager at 3.`` Who ties is counted as well, and it is
    said that some do."""
    leading = [sweep.leaders(point) for point in sweep.headline_points]
    (first, most), *others = Counter(name for names in leading for name in names).most_common()
    parts = [f"{first} at {most} of {len(sweep.ranked)} points", *(f"{name} at {count}" for name, count in others)]
    return f"{_head(sweep, max(map(len, leading)) > 1)}: {text.listed(parts, _MOST_PARTS)}."


def _of_line(sweep: SweepFindings) -> str:
    """«Fastest: loop.eager below batch 3, vectorized_map.graph from 3 [3, 4].» Nobody of a tie is crowned."""
    axis, (first, *_) = sweep.run.axes[0].name, sweep.stretches
    ties = any({*sweep.leaders(point)} - {*part.names} for part in sweep.stretches for point in part.points)
    if len(sweep.stretches) == 1:
        verb = "tie for the lead" if len(first.names) > 1 else "is fastest, or ties for it," if ties else "is fastest"
        verb = "may be fastest" if sweep.is_unsure(first.points[0]) else verb
        count = f"{len(first.points)} of {len(sweep.ranked)} points"
        return f"{text.listed(first.names, _MOST_TIED)} {verb} at {count}."
    end = f"up to {axis} {first.points[-1].at[axis]:,}"
    if first.crossing:
        end = f"below {axis} {lines.first_beyond(first.crossing.value or 0.0):,}"
    parts = [f"{_names(first)} {end}"]
    for part, after in pairwise(sweep.stretches):
        start = lines.crossed_at(part.crossing) if part.crossing else f"{after.points[0].at[axis]:,}"
        parts.append(f"{_names(after)} from {start}")
    if len(parts) > _MOST_PARTS:
        parts[_MOST_PARTS:] = [f"and {len(parts) - _MOST_PARTS} more changes"]
    return f"{_head(sweep, ties)}: {', '.join(parts)}."


def _names(part: Stretch) -> str:
    return part.names[0] if len(part.names) == 1 else f"{text.listed(part.names, _MOST_TIED)} tied"


def _head(sweep: SweepFindings, ties: bool) -> str:
    unsure = sweep.is_unsure(sweep.headline_points[0])
    return "May be fastest" if unsure else "Fastest, alone or tied" if ties else "Fastest"


def statement(of: comparisons.Findings) -> str:
    """The verdict of a comparison in a few words, such as ``a and b tie``."""
    names, several = text.listed([row.slug for row in of.leaders], _MOST_TIED), len(of.leaders) > 1
    if not of.tells:
        return f"{of.word} to rank"
    if of.missing:
        return f"not sure: {text.listed(of.missing, _MOST_TIED)} not timed, may be faster than {names}"
    if of.word == "cannot tell":
        return f"not sure: {names} {'cannot be told apart' if several else f'leads, but {of.reason}'}"
    return f"{names} tie" if several else f"{names} is fastest"
