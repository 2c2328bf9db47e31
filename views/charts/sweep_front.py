"""Latency against memory: what nothing beats in both, what does not fit, and the dial of `chunked`. Pure."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from msgspec.structs import replace

import workloads
from measure.model.request import case_of
from measure.model.run import Measurement, Run
from measure.statistics import pareto
from measure.statistics.pareto import Dial
from measure.sweep import analysis as sweep_analysis
from measure.sweep.forecast import DOES_NOT_FIT
from strategies.spec import Strategy
from views.charts.base import COLOUR, INK, MIB, PADDING, RIGHT_EDGE, SHAPE, Spec, room, spec, tooltip, unfilled
from views.charts.curves import NAME_HEIGHT, clear, seconds_axis
from views.charts.sweep_labels import SIDES, Box, Name, place
from views.charts.sweep_lines import MEMORY_SPAN, memory_axis, why
from views.ui import look

_HEIGHT = 340
_FADED = 0.3
# A slider's steps from one power of two to the next.
_STEPS = 4
# Pixels that the points keep from the edges, and in which they are, with the axis and its title taken off.
_EDGE, _SIDE_EDGE = 20, 24
_INSIDE = _HEIGHT - 2 * _EDGE - 60
# Names are placed for charts that are this wide, without what is left of the axis; below this width for a phone.
_WIDTHS = {"wide": 520, "narrow": 270}
_NARROW = 420
_PALE = 0.65


def _specification() -> Spec:
    y = seconds_axis("time of one call", _EDGE)

    def x(field: str) -> alt.X:
        scale = alt.Scale(type="log", nice=False, padding=_SIDE_EDGE)
        return alt.X(f"{field}:Q", scale=scale, axis=memory_axis("peak memory of one call"))

    def rows(kind: str) -> alt.Chart:
        return unfilled().transform_filter(f"datum.kind === '{kind}'")

    ends = rows("end").mark_point(opacity=0).encode(x=x("x"))
    limit = rows("limit").mark_rule(strokeDash=[5, 3], strokeWidth=1.5, color=INK, opacity=0.8).encode(x=x("x"))
    front = rows("front").mark_line(interpolate="step-after", strokeWidth=1, opacity=0.5, color=INK)
    steps = front.encode(x=x("x"), y=y("y"), order=alt.Order(field="order"))
    dial = rows("dial").mark_line(strokeWidth=2.5, opacity=0.75)
    curve = dial.encode(
        x=x("x"), y=y("y"), color=COLOUR, detail=alt.Detail(field="mode"), order=alt.Order(field="order")
    )
    strategies = rows("strategy")
    dots = strategies.mark_point(filled=True, size=90).encode(
        x=x("x"),
        y=y("y"),
        color=COLOUR,
        shape=SHAPE,
        opacity=alt.Opacity("alpha:Q", scale=None, legend=None),
        tooltip=tooltip("strategy", "latency", "memory", "standing"),
    )
    rings = (
        rows("chosen")
        .mark_point(size=260, strokeWidth=2, opacity=1, color=INK)
        .encode(x=x("x"), y=y("y"), tooltip=tooltip("strategy", "standing"))
    )
    # Placed for two widths: what is beside each other on a screen is on each other on a phone.
    names = rows("name").transform_filter(f"datum.layout === (width < {_NARROW} ? 'narrow' : 'wide')")
    words = [
        names.transform_filter(f"datum.side === '{side}'")
        .mark_text(align=how.align, baseline=how.baseline, dx=how.dx, dy=how.dy, fontSize=11, color=INK)
        .encode(
            x=x("x"),
            y=y("beside"),
            text=alt.Text(field="label"),
            opacity=alt.Opacity("alpha:Q", scale=None, legend=None),
        )
        for side, how in SIDES.items()
    ]
    ties = names.mark_rule(opacity=0.4, color=INK).encode(x=x("x"), y=y("y"), y2=alt.Y2("beside"))
    rim = (
        rows("rim")
        .mark_text(align="right", fontSize=11, dx=-4)
        .encode(
            x=RIGHT_EDGE,
            y=y("beside"),
            color=COLOUR,
            text=alt.Text(field="name"),
            tooltip=tooltip("strategy", "standing"),
        )
    )
    return spec(ends, limit, steps, curve, ties, dots, rings, *words, rim, height=_HEIGHT, padding=PADDING)


SPEC = _specification()


def offered(run: Run) -> list[int]:
    """Indices of the points that have something to show, of everybody."""
    return [
        index
        for index, point in enumerate(run.points)
        if pareto.known(point.measurements) and sweep_analysis.asked_for(run, point)
    ]


def subject(run: Run, index: int | None = None) -> tuple[list[Measurement], list[Dial]]:
    """What is drawn of a sweep, and its dials: one point, by default the largest one; where an option is swept, all of
    them, as they are of one case."""
    known = offered(run)
    if not known:
        return [], []
    index = max(known, key=lambda each: tuple(run.points[each].at.values())) if index is None else index
    measurements = run.points[index].measurements
    if by_option(run):
        # A line's name leaves the option out; here each of its values is a strategy.
        measurements = [
            item if item.twin_of else replace(item, strategy=own_slug(item))
            for point in run.points
            for item in point.measurements
        ]
    return measurements, _dials(run, measurements, run.points[index].at)


def own_slug(item: Measurement) -> str:
    """The strategy with the swept option, which a line's name leaves out."""
    return Strategy(item.mapper, item.mode, item.options).slug


def by_option(run: Run) -> bool:
    return any(axis.kind == "option" for axis in run.axes)


def _dials(run: Run, measurements: Sequence[Measurement], at: Mapping[str, int]) -> list[Dial]:
    if run.request.workload not in workloads.names():
        return []
    sizes = {axis.name: at[axis.name] for axis in run.axes if axis.kind == "size"}
    request = replace(run.request, size={**run.request.size, **sizes})
    return pareto.dials(measurements, case_of(request), request.memory_limit_mib)


def frame(measurements: Sequence[Measurement], dials: Sequence[Dial], limit_bytes: float | None) -> pd.DataFrame:
    """``limit_bytes``: what the slider says; what does not fit into it fades as well."""
    known = pareto.known(measurements)
    if not known:
        return pd.DataFrame()
    front = pareto.front(measurements)
    best = pareto.fastest_within(measurements, math.inf if limit_bytes is None else limit_bytes)
    rows = [_row(item, item in front, best, limit_bytes) for item in known]
    rows += [{**_at(item), "kind": "front", "order": order} for order, item in enumerate(reversed(front))]
    by_slug = {item.strategy: item for item in known}
    for dial in dials:
        along = [dial.start, *(slug for _, slug in dial.chunks), dial.end]
        found = [by_slug[slug] for slug in along if slug is not None]
        rows += [
            {**_at(item), "kind": "dial", "order": order, "colour": "chunked", "mode": dial.mode}
            for order, item in enumerate(found)
        ]
        nearest = by_slug[pareto.nearest_chunk(dial)]
        words = f"nearest to the chunk that Mapbench would choose, {dial.chosen:,}"
        rows.append({**_at(nearest), "kind": "chosen", "strategy": nearest.strategy, "standing": words})
    rows += _beside(_rim(measurements, known), [row["y"] for row in rows if "y" in row])
    if limit_bytes is not None:
        rows.append({"kind": "limit", "x": limit_bytes / MIB})
    places = [row["x"] for row in rows if "x" in row]
    rows += [{"kind": "end", "x": x} for x in room(min(places), max(places), MEMORY_SPAN)]
    names = _names(known, front, dials)
    rows += [row for layout, width in _WIDTHS.items() for row in _placed(names, rows, layout, width)]
    made = pd.DataFrame(rows)
    for column in ("order", "beside"):
        made[column] = made[column].astype(float)
    texts = ("strategy", "name", "label", "side", "layout", "colour", "mode", "latency", "memory", "standing")
    return made.assign(**{column: made[column].fillna("") if column in made else "" for column in texts})


def _at(item: Measurement) -> dict[str, Any]:
    assert item.latency is not None and item.memory is not None
    return {"x": max(1, item.memory.peak_bytes) / MIB, "y": item.latency.median_s}


def _row(item: Measurement, on_front: bool, best: Measurement | None, limit_bytes: float | None) -> dict[str, Any]:
    assert item.latency is not None and item.memory is not None
    fits = limit_bytes is None or item.memory.peak_bytes <= limit_bytes
    latency = item.latency
    standing = "the fastest that fits" if item is best else "on the front" if on_front else "beaten in both"
    return {
        **_at(item),
        "kind": "strategy",
        "order": math.nan,
        "strategy": look.label(item.strategy, item.mode),
        "colour": look.colour_name(item.mapper),
        "mode": item.mode,
        "alpha": 1.0 if on_front and fits else _FADED,
        "latency": look.seconds_with_interval(latency.median_s, latency.low_s, latency.high_s),
        "memory": look.size(item.memory.peak_bytes),
        "standing": standing if fits else f"{standing}, takes more than there is",
    }


def _names(
    known: Sequence[Measurement], front: Sequence[Measurement], dials: Sequence[Dial]
) -> list[tuple[Measurement, str, bool, float]]:
    """What is named, the most important first: the item, its text, whether it has to be there, and how opaque it is.
    Along a dial a chunk is named by its number."""
    chunks = {slug: (dial, number) for dial in dials for number, slug in dial.chunks}
    ends = {slug for dial in dials for slug in (dial.start, dial.end)}
    marked = {pareto.nearest_chunk(dial) for dial in dials} | {
        dial.chunks[place][1] for dial in dials for place in (0, -1)
    }

    def text(item: Measurement) -> str:
        if item.strategy not in chunks:
            return item.strategy
        dial, number = chunks[item.strategy]
        named = item in front or item.strategy in marked
        return f"{f'{dial.mode} ' if len(dials) > 1 else ''}{'chunk=' if named else ''}{number:,}"

    def rank(item: Measurement) -> int:
        """0: on the front; 1: an end of a dial, or its ring; 2: a chunk that is a power of 4; 3: what is faded."""
        if item in front:
            return 0
        if item.strategy in ends | marked:
            return 1
        number = chunks[item.strategy][1] if item.strategy in chunks else 0
        return 2 if number and number & (number - 1) == 0 and number.bit_length() % 2 else 3

    ranked = sorted(known, key=rank)
    return [(item, text(item), rank(item) < 2, 1.0 if rank(item) < 3 else _PALE) for item in ranked]


def _placed(
    names: Sequence[tuple[Measurement, str, bool, float]], rows: Sequence[dict[str, Any]], layout: str, width: int
) -> list[dict[str, Any]]:
    """A row for each name that has room beside the marks of ``rows`` in a chart of a width, in pixels."""
    low, high = (math.log(end(row["y"] for row in rows if "y" in row)) for end in (min, max))
    left, right = (math.log(end(row["x"] for row in rows if "x" in row)) for end in (min, max))

    def x(value: float) -> float:
        return _SIDE_EDGE + (width - 2 * _SIDE_EDGE) * (math.log(value) - left) / ((right - left) or 1.0)

    def y(value: float) -> float:
        return _EDGE + _INSIDE * (high - math.log(value)) / ((high - low) or 1.0)

    def at(kind: str) -> list[tuple[float, float]]:
        return [(x(row["x"]), y(row["y"])) for row in rows if row["kind"] == kind]

    curves = [
        [(x(row["x"]), y(row["y"])) for row in rows if row["kind"] == "dial" and row["mode"] == mode]
        for mode in {row["mode"] for row in rows if row["kind"] == "dial"}
    ]
    steps = at("front")  # from the thriftiest on, in the form of stairs
    stairs = [corner for a, b in pairwise(steps) for corner in (a, (b[0], a[1]), b)]
    rim: list[Box] = [
        (width - 6 * len(row["name"]), y(row["beside"]) - 6, width, y(row["beside"]) + 6)
        for row in rows
        if row["kind"] == "rim"
    ]
    found = place(
        [Name(x(_at(item)["x"]), y(_at(item)["y"]), text, must) for item, text, must, _ in names],
        (width, _INSIDE + 2 * _EDGE),
        marks=at("strategy"),
        rings=at("chosen"),
        curves=curves,
        thin=[stairs],
        taken=rim,
    )
    made = []
    for (item, text, _, alpha), each in zip(names, found, strict=True):
        if each is not None:
            height = _at(item)["y"]
            beside = math.exp(math.log(height) - each.shift * (high - low) / _INSIDE)
            row = {**_at(item), "kind": "name", "label": text, "side": each.side, "beside": beside, "alpha": alpha}
            made.append({**row, "layout": layout})
    return made


def _beside(rows: Sequence[dict[str, Any]], heights: Sequence[float]) -> list[dict[str, Any]]:
    """The rows with the height of their words: near their own, but clear of each other."""
    low, high = math.log(min(heights)), math.log(max(heights))
    span = high - low or 1.0
    ordered = sorted(rows, key=lambda row: row["y"])
    at = np.log([row["y"] for row in ordered]) - low
    places = clear(at, span * NAME_HEIGHT / _INSIDE, span)
    return [{**row, "beside": math.exp(low + place)} for row, place in zip(ordered, places, strict=True)]


def _rim(measurements: Sequence[Measurement], known: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Those that ran out of memory, or would, at the right edge: wherever they would stand, it is beyond."""
    failed = [
        item
        for item in measurements
        if item.twin_of is None
        and (item.outcome == "out_of_memory" or (item.error is not None and item.error.type == DOES_NOT_FIT))
    ]
    heights = [item.latency.median_s for item in known if item.latency]
    places = np.geomspace(max(heights), min(heights), len(failed) + 2)[1:-1]
    return [
        {
            "kind": "rim",
            "y": float(place),
            "strategy": look.label(item.strategy, item.mode),
            "name": f"{item.strategy} ✕",
            "colour": look.colour_name(item.mapper),
            "mode": item.mode,
            "standing": why(item),
        }
        for item, place in zip(failed, places, strict=True)
    ]


def steps(measurements: Sequence[Measurement]) -> list[int]:
    """What the slider offers, in bytes: from just below the least to just above the most that a call takes."""
    found = pareto.bounds(measurements)
    if found is None:
        return []
    low, high = math.floor(_STEPS * math.log2(max(1, found[0]))), math.ceil(_STEPS * math.log2(max(1, found[1])))
    return [round(2 ** (power / _STEPS)) for power in range(low, high + 2)]


def sentence(measurements: Sequence[Measurement], limit_bytes: float) -> str:
    """The fastest strategy that fits."""
    best = pareto.fastest_within(measurements, limit_bytes)
    if best is None or best.latency is None or best.memory is None:
        least = pareto.bounds(measurements)
        return f"Nothing fits into {look.size(limit_bytes)}: the thriftiest takes {look.size(least and least[0])}."
    latency = look.seconds_with_interval(best.latency.median_s, best.latency.low_s, best.latency.high_s)
    return f"With {look.size(limit_bytes)}, {best.strategy} is fastest: {latency}, {look.size(best.memory.peak_bytes)}."


def takeaway(measurements: Sequence[Measurement]) -> str:
    """What the chart says, for people who do not see it."""
    names = [f"{item.strategy} ({_words(item)})" for item in pareto.front(measurements)]
    if not names:
        return "Latency against memory: nothing has both yet."
    return f"Latency against memory: nothing beats {', '.join(names)} in both."


def _words(item: Measurement) -> str:
    assert item.latency is not None and item.memory is not None
    return f"{look.seconds(item.latency.median_s)}, {look.size(item.memory.peak_bytes)}"
