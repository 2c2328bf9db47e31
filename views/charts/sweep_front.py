"""Latency against memory: the strategies that nothing beats in both, those that do not fit, and the dial of `chunked`.
Pure."""

import math
from collections.abc import Mapping, Sequence
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
from measure.sweep import findings
from measure.sweep.omissions import DOES_NOT_FIT
from views.charts import texts
from views.charts.base import (
    COLOUR,
    INK,
    MEMORY_SPAN,
    MIB,
    PADDING,
    RIGHT_EDGE,
    SHAPE,
    Spec,
    memory_axis,
    of_kind,
    room,
    seconds_axis,
    spec,
    tooltip,
)
from views.charts.failures import outcome
from views.charts.names import NAME_HEIGHT, pushed_up
from views.ui import look

_HEIGHT = 340
_FADED, _PALE = 0.3, 0.65  # opacity of a beaten strategy's mark, and of its name
# A slider's steps from one power of two to the next.
_STEPS = 4
# Pixels that the points keep from the edges, and in which they are, with the axis and its title taken off.
_EDGE, _SIDE_EDGE = 20, 24
_INSIDE = _HEIGHT - 2 * _EDGE - 60
_NAME_WIDTH = 150  # pixels of the longest name
_ABOVE = -5  # pixels from a point's height to the bottom of its name


def _specification() -> Spec:
    y = seconds_axis(texts.TIME_OF_CALL, _EDGE)

    def x(field: str) -> alt.X:
        scale = alt.Scale(type="log", nice=False, padding=_SIDE_EDGE)
        return alt.X(f"{field}:Q", scale=scale, axis=memory_axis(texts.PEAK_OF_CALL))

    opacity = alt.Opacity("alpha:Q", scale=None, legend=None)
    ends = of_kind("end").mark_point(opacity=0).encode(x=x("x"))
    limit = of_kind("limit").mark_rule(strokeDash=[5, 3], strokeWidth=1.5, color=INK, opacity=0.8).encode(x=x("x"))
    front = of_kind("front").mark_line(interpolate="step-after", strokeWidth=1, opacity=0.5, color=INK)
    steps = front.encode(x=x("x"), y=y("y"), order=alt.Order(field="order"))
    dial = of_kind("dial").mark_line(strokeWidth=2.5, opacity=0.75)
    curve = dial.encode(
        x=x("x"), y=y("y"), color=COLOUR, detail=alt.Detail(field="mode"), order=alt.Order(field="order")
    )
    strategies = of_kind("strategy")
    dots = strategies.mark_point(filled=True, size=90).encode(
        x=x("x"),
        y=y("y"),
        color=COLOUR,
        shape=SHAPE,
        opacity=opacity,
        tooltip=tooltip("strategy", "latency", "memory", "standing"),
    )
    rings = (
        of_kind("chosen")
        .mark_point(size=260, strokeWidth=2, opacity=1, color=INK, aria=False)  # empty, it would have no name
        .encode(x=x("x"), y=y("y"), tooltip=tooltip("strategy", "standing"))
    )
    # Above its point and at its right, where a falling curve leaves room; at its left where it would leave the chart.
    at_right = f"(1 - datum.share) * width > {_NAME_WIDTH}"
    beside = (
        of_kind("name")
        .mark_text(
            align=alt.expr(f"{at_right} ? 'left' : 'right'"), dx=alt.expr(f"{at_right} ? 7 : -7"),
            baseline="bottom", dy=_ABOVE, fontSize=11, color=INK,
        )
        .encode(x=x("x"), y=y("beside"), text=alt.Text(field="name"), opacity=opacity)
    )  # fmt: skip
    leaders = of_kind("name").mark_rule(opacity=0.4, color=INK).encode(x=x("x"), y=y("y"), y2=alt.Y2("beside"))
    rim = (
        of_kind("rim")
        .mark_text(align="right", baseline="bottom", dy=_ABOVE, fontSize=11, dx=-4)
        .encode(
            x=RIGHT_EDGE,
            y=y("beside"),
            color=COLOUR,
            text=alt.Text(field="name"),
            tooltip=tooltip("strategy", "standing"),
        )
    )
    return spec(ends, limit, steps, curve, leaders, dots, rings, beside, rim, height=_HEIGHT, padding=PADDING)


SPEC = _specification()


def offered(run: Run) -> list[int]:
    """Return the indices of the points at which some strategy has both a latency and a memory."""
    return [
        index
        for index, point in enumerate(run.points)
        if pareto.known(point.measurements) and findings.asked_for(run, point)
    ]


def subject(run: Run, index: int | None = None) -> tuple[list[Measurement], list[Dial]]:
    """Return what is drawn of a sweep, and its dials: one point, by default the largest one; where an option is swept,
    all points, as they are of one case."""
    known = offered(run)
    if not known:
        return [], []
    index = max(known, key=lambda index: tuple(run.points[index].at.values())) if index is None else index
    measurements = run.points[index].measurements
    if by_option(run):
        measurements = [item for point in run.points for item in point.measurements]
    return measurements, _dials(run, measurements, run.points[index].at)


def by_option(run: Run) -> bool:
    return any(axis.kind == "option" for axis in run.axes)


def _dials(run: Run, measurements: Sequence[Measurement], at: Mapping[str, int]) -> list[Dial]:
    if run.request.workload not in workloads.names():
        return []
    sizes = {axis.name: at[axis.name] for axis in run.axes if axis.kind == "size"}
    request = replace(run.request, size={**run.request.size, **sizes})
    return pareto.dials(measurements, case_of(request), request.memory_limit_mib)


def frame(measurements: Sequence[Measurement], dials: Sequence[Dial], limit_bytes: float | None) -> pd.DataFrame:
    """Return the rows of the chart, in MiB and seconds. Strategies that take more than ``limit_bytes``, the slider's
    amount, fade as well."""
    known = pareto.known(measurements)
    if not known:
        return pd.DataFrame()
    front = pareto.front(measurements)
    best = pareto.fastest_within(measurements, math.inf if limit_bytes is None else limit_bytes)
    rows = [_row(item, item in front, best, limit_bytes) for item in known]
    rows += [{**_at(item), "kind": "front", "order": order} for order, item in enumerate(reversed(front))]
    by_slug = {item.strategy: item for item in known}
    for dial in dials:
        along = [by_slug[slug] for slug in (dial.start, *(slug for _, slug in dial.chunks), dial.end) if slug]
        rows += [
            {**_at(item), "kind": "dial", "order": order, "colour": "chunked", "mode": dial.mode}
            for order, item in enumerate(along)
        ]
        nearest = by_slug[pareto.nearest_chunk(dial)]
        standing = texts.NEAREST_CHUNK.format(chunk=dial.chosen)
        rows.append({**_at(nearest), "kind": "chosen", "strategy": nearest.strategy, "standing": standing})
    if limit_bytes is not None:
        rows.append({"kind": "limit", "x": limit_bytes / MIB})
    places = [row["x"] for row in rows if "x" in row]
    ends = room(min(places), max(places), MEMORY_SPAN)
    rows += [{"kind": "end", "x": x} for x in ends]
    rows += _placed(_rim(measurements, known), _names(known, front, dials, ends))
    made = pd.DataFrame(rows)
    for column in ("order", "beside"):
        made[column] = made[column].astype(float)
    words = ("strategy", "name", "colour", "mode", "latency", "memory", "standing")
    return made.assign(**{column: made[column].fillna("") if column in made else "" for column in words})


def _at(item: Measurement) -> dict[str, Any]:
    assert item.latency is not None and item.memory is not None
    return {"x": max(1, item.memory.peak_bytes) / MIB, "y": item.latency.median_s}


def _row(item: Measurement, on_front: bool, best: Measurement | None, limit_bytes: float | None) -> dict[str, Any]:
    assert item.latency is not None and item.memory is not None
    fits = limit_bytes is None or item.memory.peak_bytes <= limit_bytes
    latency = item.latency
    standing = texts.FASTEST_FITTING if item is best else texts.ON_FRONT
    standing = standing if on_front else texts.BEATEN
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
        "standing": standing if fits else texts.TOO_LARGE,
    }


def _rim(measurements: Sequence[Measurement], known: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Return the strategies that ran out of memory, or would, for the right edge: they belong somewhere beyond it."""
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
            "standing": outcome(item),
        }
        for item, place in zip(failed, places, strict=True)
    ]


def _names(
    known: Sequence[Measurement], front: Sequence[Measurement], dials: Sequence[Dial], ends: tuple[float, float]
) -> list[dict[str, Any]]:
    """Return the names of all strategies, the most important first: those on the front, at a dial's ends and in its
    ring; then the other chunks of a dial, then what is beaten. Along a dial a chunk is named by its number."""
    chunks = {slug: (dial, number) for dial in dials for number, slug in dial.chunks}
    marked = {pareto.nearest_chunk(dial) for dial in dials}
    marked |= {slug for dial in dials for slug in (dial.start, dial.end, dial.chunks[0][1], dial.chunks[-1][1]) if slug}
    low, high = map(math.log, ends)

    def name(item: Measurement) -> str:
        if item.strategy not in chunks:
            return item.strategy
        dial, number = chunks[item.strategy]
        return f"{f'{dial.mode} ' if len(dials) > 1 else ''}{'chunk=' if item.strategy in marked else ''}{number:,}"

    def rank(item: Measurement) -> int:
        if item.strategy in marked or (item in front and item.strategy not in chunks):
            return 0
        return 1 if item.strategy in chunks else 2

    return [
        {
            **_at(item),
            "kind": "name",
            "rank": rank(item),
            "name": name(item),
            "share": (math.log(_at(item)["x"]) - low) / (high - low),
            "alpha": 1.0 if rank(item) < 2 else _PALE,
        }
        for item in sorted(known, key=rank)
    ]


def _placed(rim: Sequence[dict[str, Any]], names: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with ``beside``, the height of their text: no two texts are at one height, so none covers another
    however wide the chart is. The most important names are moved up as far as that takes, with a line to their points;
    the others are left out where there is no room at the height of their points."""
    heights = np.log([row["y"] for row in names])
    low, span = heights.min(), (heights.max() - heights.min()) or 1.0
    apart = span * NAME_HEIGHT / _INSIDE
    fixed = sorted([*rim, *(row for row in names if row["rank"] == 0)], key=lambda row: row["y"])
    taken = pushed_up(np.log([row["y"] for row in fixed]) - low, apart, span) + low
    placed = [{**row, "beside": float(np.exp(at))} for row, at in zip(fixed, taken, strict=True)]
    for row in names:
        if row["rank"] > 0 and (np.abs(taken - np.log(row["y"])) >= apart).all():
            taken = np.append(taken, np.log(row["y"]))
            placed.append({**row, "beside": row["y"]})
    return placed


def steps(measurements: Sequence[Measurement]) -> list[int]:
    """Return the steps of the slider in bytes: from just below the least to just above the most that a call takes."""
    bounds = pareto.bounds(measurements)
    if bounds is None:
        return []
    low, high = math.floor(_STEPS * math.log2(max(1, bounds[0]))), math.ceil(_STEPS * math.log2(max(1, bounds[1])))
    return [round(2 ** (power / _STEPS)) for power in range(low, high + 2)]


def sentence(measurements: Sequence[Measurement], limit_bytes: float) -> str:
    """Name the fastest strategy that fits."""
    best = pareto.fastest_within(measurements, limit_bytes)
    if best is None or best.latency is None or best.memory is None:
        least = pareto.bounds(measurements)
        return texts.NOTHING_FITS.format(available=look.size(limit_bytes), least=look.size(least and least[0]))
    latency = look.seconds_with_interval(best.latency.median_s, best.latency.low_s, best.latency.high_s)
    available, memory = look.size(limit_bytes), look.size(best.memory.peak_bytes)
    return texts.FITS.format(available=available, strategy=best.strategy, latency=latency, memory=memory)


def takeaway(measurements: Sequence[Measurement]) -> str:
    """Return what the chart says, for people who do not see it."""
    names = [f"{item.strategy} ({_figures(item)})" for item in pareto.front(measurements)]
    if not names:
        return texts.NO_FRONT
    return texts.FRONT.format(strategies=", ".join(names))


def _figures(item: Measurement) -> str:
    assert item.latency is not None and item.memory is not None
    return f"{look.seconds(item.latency.median_s)}, {look.size(item.memory.peak_bytes)}"


def about(dials: Sequence[Dial]) -> str:
    """Return what the marks of the chart mean, and where its dials run."""
    sentences = [texts.THIN_LINE]
    for dial in dials:
        line = texts.COLOURED_LINE_BETWEEN if dial.start and dial.end else texts.COLOURED_LINE
        first, last = dial.chunks[0][0], dial.chunks[-1][0]
        sentences.append(line.format(mode=dial.mode, first=first, last=last, start=dial.start, end=dial.end))
        sentences.append(texts.RING.format(chunk=dial.chosen))
    return " ".join(sentences)
