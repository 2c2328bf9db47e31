"""The regions of a sweep: the stretches of a line, or the areas of a map, in which the same strategies are fastest.

Nobody of a tie is crowned: a region is led by all strategies that are fastest, or tie for it, at most of its points,
and whoever ties with them at some is named beside them. Pure functions of a run.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, pairwise, product

from measure.model import text
from measure.model.run import Axis, Crossover, Point, Run
from measure.sweep import crossovers
from measure.sweep.lines import leaders, line_of

# More strategies of a tie are counted, and so are more regions of a line or of a map; and of those that tie at some
# points, those that do at the fewest.
_MOST_NAMED, _MOST_BESIDE = 3, 2
_MOST_STRETCHES, _MOST_AREAS = 4, 3


@dataclass(frozen=True)
class Region:
    """Points that have a leader in common. ``leaders``: those who are fastest, or tie for it, at more than half of the
    points, those who do at all of them first; ``counts``: at how many points each strategy does."""

    points: tuple[Point, ...]
    leaders: tuple[str, ...]
    counts: Mapping[str, int]

    @property
    def common(self) -> set[str]:
        """The leaders at every point."""
        return {name for name, count in self.counts.items() if count == len(self.points)}


def along(points: Sequence[Point], axes: Sequence[Axis]) -> list[Region]:
    """The regions of a line, in its order: each as long as somebody leads, or ties, at all of its points. ``points``
    are ranked, and in the order of the axis."""
    parts: list[list[Point]] = []
    common: set[str] = set()
    for point in points:
        leading = set(leaders(point, axes))
        if common & leading:
            common &= leading
            parts[-1].append(point)
        else:
            common = leading
            parts.append([point])
    return [_region(part, axes) for part in parts]


def of_map(points: Iterable[Point], axes: Sequence[Axis]) -> list[Region]:
    """The regions of a map, the largest first: where the strategy that leads, or ties, at most points does; then the
    same of the points that are left."""
    left = [point for point in points if point.ranking]
    made = []
    while left:
        counts = Counter(name for point in left for name in leaders(point, axes))
        most = min(counts, key=lambda name: (-counts[name], name))
        made.append(_region([point for point in left if most in leaders(point, axes)], axes))
        left = [point for point in left if most not in leaders(point, axes)]
    return made


def _region(points: Sequence[Point], axes: Sequence[Axis]) -> Region:
    leading = [leaders(point, axes) for point in points]
    counts = Counter(name for names in leading for name in names)
    first = Counter(names[0] for names in leading)
    often = [name for name, count in counts.items() if 2 * count > len(points)]
    return Region(
        tuple(points),
        tuple(sorted(often, key=lambda name: (-counts[name], -first[name], name))),
        dict(counts.most_common()),
    )


# --- the sentence of a line ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Border:
    """The end of one region, and the start of the next if there is one: ``last`` is the last value at which nobody of
    the next one ties, ``crossing`` where one overtakes the other, if that is known."""

    last: int
    crossing: Crossover | None


def line_sentence(run: Run, points: Sequence[Point]) -> str:
    """«Fastest: loop.eager below batch 3, vectorized_map.graph from 3 [3, 4].» ``points``: the run's ranked ones."""
    regions = along(points, run.axes)
    if len(regions) == 1:
        return _throughout(regions[0], "point that was measured")
    axis = run.axes[0].name
    borders = [_border(run, one, other) for one, other in pairwise(regions)]
    if (last := points[-1].at[axis]) < run.axes[0].values[-1]:
        borders.append(_Border(last, None))  # beyond it nothing is ranked
    said = []
    for number, region in enumerate(regions[:_MOST_STRETCHES]):
        before = borders[number - 1] if number else None
        after = borders[number] if number < len(borders) else None
        where = _stretch(region, before, after, axis if number == 0 else "")
        ties = ", ".join(_beside(_clear(region, after, run), "points"))
        beside = "; ".join(filter(None, [ties, _missing(run, regions[number - 1], region, before)]))
        said.append(f"{_names(region.leaders)} {where}" + (f" ({beside})" if beside else ""))
    if len(regions) > _MOST_STRETCHES:
        said.append(f"and {len(regions) - _MOST_STRETCHES} more changes up to {points[-1].at[axis]:,}")
    return f"Fastest: {', '.join(said)}."


def _throughout(region: Region, place: str) -> str:
    verb = "is fastest" if len(region.leaders) == 1 else "tie for the lead"
    beside = ", ".join(_beside(region, ""))
    return f"{text.listed(region.leaders, _MOST_NAMED)} {verb} at every {place}{f' ({beside})' if beside else ''}."


def _border(run: Run, one: Region, other: Region) -> _Border:
    axis = run.axes[0].name
    clear = [point for point in one.points if not other.common & set(leaders(point, run.axes))]
    last, first = clear[-1].at[axis], other.points[0].at[axis]
    between = [
        crossing
        for crossing in run.crossovers
        if crossing.value is not None
        and last <= crossing.value <= first
        and crossing.a in one.common
        and crossing.b in other.common
    ]
    # Only when the last of them is overtaken, another one leads.
    return _Border(last, max(between, key=lambda crossing: crossing.value or 0.0, default=None))


def _stretch(region: Region, before: _Border | None, after: _Border | None, axis: str) -> str:
    """The words for where a region of a line is; the axis is named in the first one only."""
    first = next(iter(region.points[0].at.values()))
    name = f"{axis} " if axis else ""
    if before is None:
        assert after is not None
        if after.crossing is not None:
            return f"below {name}{crossovers.first_beyond(after.crossing.value or 0.0):,}"
        return f"at {name}{first:,}" if after.last == first else f"up to {name}{after.last:,}"
    if before.crossing is not None:
        start = f"from {crossovers.place(before.crossing)}"
    elif (after is not None and after.last == first) or (after is None and len(region.points) == 1):
        return f"at {first:,}"
    else:
        start = f"from {first:,}"
    # Where the next one overtakes it is said there.
    return start if after is None or after.crossing is not None else f"{start} to {after.last:,}"


def _clear(region: Region, after: _Border | None, run: Run) -> Region:
    """A region of a line without its end, where the next one's leaders tie before they overtake."""
    axis = run.axes[0].name
    points = [point for point in region.points if after is None or point.at[axis] <= after.last]
    return replace(_region(points, run.axes), leaders=region.leaders)


def _missing(run: Run, before: Region, region: Region, border: _Border | None) -> str:
    """The words for a former leader that was not ranked where another one leads: it was not overtaken."""
    first = region.points[0]
    ranked = {line_of(slug, run.axes) for group in first.ranking for slug in group}
    if border is None or border.crossing is not None or ranked & before.common:
        return ""
    name = before.leaders[0]
    outcome = next((item.outcome for item in first.measurements if line_of(item.strategy, run.axes) == name), "not_run")
    return f"{name}: {text.OUTCOMES.get(outcome, outcome)} there"


# --- the sentence of a map -------------------------------------------------------------------------------------------


def map_sentence(run: Run) -> str:
    """«Fastest: vectorized_map.graph from batch 10 (6 of 9 cells); loop.eager at batch 1 (3).»"""
    regions = of_map(run.points, run.axes)
    total = sum(len(region.points) for region in regions)
    known = "" if total == len(run.points) else "known "
    if len(regions) == 1:
        return _throughout(regions[0], f"{known}cell")
    said = []
    for number, region in enumerate(regions[:_MOST_AREAS]):
        count = f"{len(region.points)} of {total} {known}cells" if number == 0 else f"{len(region.points)}"
        beside = _beside(region, None)
        area, is_whole = _area(region, run)
        if is_whole:
            said.append(f"{_names(region.leaders)} {area} ({', '.join([count, *beside])})")
        else:
            more = f" ({', '.join(beside)})" if beside else ""
            said.append(f"{_names(region.leaders)} at {count}, including all {area}{more}")
    if rest := sum(len(region.points) for region in regions[_MOST_AREAS:]):
        said.append(f"others at {rest}")
    return f"Fastest: {'; '.join(said)}."


def _area(region: Region, run: Run) -> tuple[str, bool]:
    """The words for the largest rectangle of cells in a region, and True if that is all of it."""
    across, up = run.axes
    own = {(point.at[across.name], point.at[up.name]) for point in region.points}
    best: tuple[tuple[int, int], list[int], list[int]] = ((0, 0), [], [])
    for left, right in combinations_with_replacement(range(len(across.values)), 2):
        columns = across.values[left : right + 1]
        # Rows of which every one of these columns belongs to the region; neighbours of them make a rectangle.
        rows: list[int] = []
        for value in up.values:
            rows = [*rows, value] if own.issuperset(product(columns, [value])) else []
            # Of equals the one that takes fewer words.
            whole = (columns == across.values) + (rows == up.values)
            best = max(best, ((len(columns) * len(rows), whole), columns, rows), key=lambda each: each[0])
    (count, _), columns, rows = best
    first, second = _range(across, columns), _range(up, rows)
    for both in ("up to ", "from ", "at "):
        second = second.removeprefix(both) if first.startswith(both) else second
    return " and ".join(filter(None, [first, second])), count == len(own)


def _range(axis: Axis, values: Sequence[int]) -> str:
    """The words for neighbouring values of an axis; empty for all of them."""
    first, last = values[0], values[-1]
    if len(values) == len(axis.values):
        return ""
    if first == last:
        return f"at {axis.name} {first:,}"
    if first == axis.values[0]:
        return f"up to {axis.name} {last:,}"
    return f"from {axis.name} {first:,}" + ("" if last == axis.values[-1] else f" to {last:,}")


# --- names -----------------------------------------------------------------------------------------------------------


def _names(leading: Sequence[str]) -> str:
    return leading[0] if len(leading) == 1 else f"{text.listed(leading, _MOST_NAMED)} tied"


def _beside(region: Region, unit: str | None) -> list[str]:
    """The words for where a leader does not lead, and for who else ties: «b not at 1 of 9 points», «c ties at 2». With
    ``unit`` the first of them names how many points there are; without a word for these, where it is empty."""
    total = len(region.points)
    missing = Counter({name: total - region.counts.get(name, 0) for name in region.leaders})
    further = Counter({name: count for name, count in region.counts.items() if name not in region.leaders})
    said: list[tuple[str, int]] = []
    for names, count in _alike(+missing):
        said.append((f"{text.listed(names, _MOST_NAMED)} not", count))
    for number, (names, count) in enumerate(_alike(further)):
        verb = "" if number else " ties" if len(names) == 1 else " tie"
        said.append((f"{text.listed(names, _MOST_NAMED)}{verb}", count))
    of = "" if unit is None else f" of {total:,} {unit}".rstrip()
    return [f"{words} at {count:,}{'' if number else of}" for number, (words, count) in enumerate(said)]


def _alike(counts: Mapping[str, int]) -> list[tuple[list[str], int]]:
    """Names by their count, the greatest first; of many counts the first few."""
    grouped: dict[int, list[str]] = {}
    for name, count in counts.items():
        grouped.setdefault(count, []).append(name)
    return [(grouped[count], count) for count in sorted(grouped, reverse=True)[:_MOST_BESIDE]]
