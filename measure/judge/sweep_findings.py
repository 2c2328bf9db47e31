"""All that is said of a sweep, made once: its lines with their levels, who leads at each point, where one overtakes
another, how latencies grow.

The verdict, tables, charts, tooltips and exports read it, so that no two of them can differ. Pure functions of a run.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

from msgspec import UNSET
from msgspec.structs import replace

from measure.judge import crossovers, scaling
from measure.judge.intervals import Level
from measure.judge.levels import levels_of, shown_levels, spread_of
from measure.judge.lines import Line, asked_for, line_of, lines, measured, place
from measure.judge.ranking import Order, ranks
from measure.judge.scaling import Growth
from measure.run import text
from measure.run.run import Analysis, Crossover, Fit, Point, Run

# Of the values at which a line is faster so many are named.
_MOST_NAMED = 6


@dataclass(frozen=True)
class Stretch:
    """Neighbouring points of a line, and the lines that lead, or tie for the lead, at all of them. ``crossing``: where
    the next stretch takes over, None where that is not known."""

    names: list[str]
    points: list[Point]
    crossing: Crossover | None = None


@dataclass(frozen=True, kw_only=True)
class SweepFindings:
    """The findings of a sweep, finished or not.

    ``levels``: line → value of the axis → the level of its latency there, where its values are right; one that is flat
    has its level at all values. ``orders``: value → the order of these. Both are empty of a map. ``groups``: place →
    tie groups of lines, fastest first, of each point that was ranked.
    """

    run: Run
    lines: Sequence[Line]
    levels: Mapping[str, Mapping[int, Level]]
    orders: Mapping[int, Order]
    groups: Mapping[tuple[int, ...], list[list[str]]]

    def leaders(self, point: Point) -> list[str]:
        """The lines that are fastest at a point of the grid, or tie for it; none where nothing is ranked."""
        groups = self.groups.get(place(point), [])
        return groups[0] if groups and asked_for(self.run, point) else []

    def pair(self, one: str, other: str) -> list[Crossover]:
        """Where one line overtakes another, whether they lead or not; where they never do, one that says why. At each
        value the one is faster that has the better rank there and is separated from the other."""
        axis, faster, values = self.run.axes[0], dict[int, str](), list[int]()
        for value in sorted(self.levels.get(one, {}).keys() & self.levels.get(other, {}).keys()):
            values.append(value)
            rank = ranks(self.groups.get((value,), []))
            first, second = sorted((one, other), key=lambda line: rank.get(line, math.inf))
            if rank.get(first) != rank.get(second) and self.orders[value].separated(second, first):
                faster[value] = first
        made = []
        for low, high in pairwise(faster):
            if (a := faster[low]) != (b := faster[high]):
                between = [value for value in values if low <= value <= high]
                at, least, most = crossovers.crossing(
                    self.levels[a], self.levels[b], between, axis.scale, self.run.analysis.confidence
                )
                made.append(Crossover(a=a, b=b, axis=axis.name, value=at, low=least, high=most))
        return made or [self._apart(one, other, faster, values)]

    def _apart(self, one: str, other: str, faster: Mapping[int, str], values: Sequence[int]) -> Crossover:
        a = next(iter(faster.values()), one)
        b = other if a == one else one
        reason = "they tie wherever both were timed" if values else "they were never timed at the same place"
        if faster:
            logs = sorted(self.levels[b][value].log_mean - self.levels[a][value].log_mean for value in faster)
            ends = dict.fromkeys(text.times(math.exp(end)) for end in (logs[0], logs[-1]))
            where, rest = "wherever both were timed", ""
            if len(faster) < len(values):
                named = text.listed([f"{value:,}" for value in faster], _MOST_NAMED)
                where, rest = f"at {self.run.axes[0].name} {named}", ", and elsewhere they tie"
            reason = f"{a} is faster {where}, {' to '.join(ends)} ×{rest}"
        return Crossover(a=a, b=b, axis=self.run.axes[0].name, none=reason)

    @cached_property
    def crossovers(self) -> list[Crossover]:
        """Of each pair of lines that lead somewhere, or tie for it, the crossings; none of a map."""
        leading = {name for point in self.run.points for name in self.leaders(point)}
        pairs = combinations([line for line in self.levels if line in leading], 2)
        return [crossing for pair in pairs for crossing in self.pair(*pair)]

    @cached_property
    def fits(self) -> list[tuple[Fit, Growth | None]]:
        """The costs of each line that is nearly straight, with the exponent of its growth."""
        confidence = self.run.analysis.confidence
        straight = [fit for fit in self.run.fits if not fit.note]
        return [(fit, scaling.growth(self.levels.get(fit.strategy, {}), confidence)) for fit in straight]

    @cached_property
    def stretches(self) -> list[Stretch]:
        """The points of one axis that were ranked, by who leads at all of a stretch."""
        made = list[Stretch]()
        for point in measured(self.run):
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


def findings(run: Run) -> SweepFindings:
    """The findings of a sweep whose points were analysed."""
    drawn = lines(run.points, run.axes)
    levels = _levels(run, drawn) if len(run.axes) == 1 else {}
    by_value = dict[int, dict[str, Level]]()
    for line, along in levels.items():
        for value, level in along.items():
            by_value.setdefault(value, {})[line] = level
    orders = {value: Order(here, run.analysis) for value, here in by_value.items()}
    groups = {}
    for point in run.points:
        if point.ranking and run.axes[0].kind == "option":  # with the lines that are flat
            groups[place(point)] = orders[place(point)[0]].groups() if place(point)[0] in orders else []
        elif point.ranking:
            groups[place(point)] = [[line_of(slug, run.axes) for slug in group] for group in point.ranking]
    return SweepFindings(run=run, lines=drawn, levels=levels, orders=orders, groups=groups)


def with_spread(analysis: Analysis, points: Sequence[Point]) -> Analysis:
    """The analysis of a sweep with the spread between processes of one strategy at one point, over all points, as one
    by itself may have a single process of each; without any where no strategy has two at one."""
    alone = (levels_of(point.measurements).logs.values() for point in points)
    spread = spread_of(itertools.chain.from_iterable(alone))
    return replace(analysis, spread=(spread.deviation, spread.degrees) if spread.degrees else UNSET)


def _levels(run: Run, drawn: Sequence[Line]) -> dict[str, dict[int, Level]]:
    now = run.analysis if run.analysis.spread else with_spread(run.analysis, run.points)
    pooled = replace(run, analysis=now)
    at = {id(point): shown_levels(replace(pooled, measurements=point.measurements)) for point in run.points}
    made = {}
    for line in drawn:
        timed = {
            value: at[id(point)][item.strategy]
            for value, point, item in line.points
            if item.outcome == "ok" and item.strategy in at[id(point)]
        }
        if timed:
            made[line.slug] = dict.fromkeys(run.axes[0].values, *timed.values()) if line.flat else timed
    return made
