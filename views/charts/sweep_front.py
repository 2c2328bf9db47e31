"""Latency against memory: the strategies that nothing beats in both, and those that do not fit. Pure."""

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from measure.judge import pareto, sweep_analysis
from measure.run.fit import DOES_NOT_FIT
from measure.run.run import Measurement, Run
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
from views.ui import look

_HEIGHT = 340
_FADED = 0.3  # opacity of a beaten strategy's mark
# A slider's steps from one power of two to the next.
_STEPS = 4
# Pixels that the points keep from the edges.
_EDGE, _SIDE_EDGE = 20, 24


def _specification() -> Spec:
    y = seconds_axis(texts.TIME_OF_CALL, _EDGE)
    scale = alt.Scale(type="log", nice=False, padding=_SIDE_EDGE)
    x = alt.X("x:Q", scale=scale, axis=memory_axis(texts.PEAK_OF_CALL))
    opacity = alt.Opacity("alpha:Q", scale=None, legend=None)
    ends = of_kind("end").mark_point(opacity=0).encode(x=x)
    limit = of_kind("limit").mark_rule(strokeDash=[5, 3], strokeWidth=1.5, color=INK, opacity=0.8).encode(x=x)
    front = of_kind("front")
    steps = front.mark_line(interpolate="step-after", strokeWidth=1, opacity=0.5, color=INK).encode(
        x=x, y=y("y"), order=alt.Order(field="order")
    )
    dots = (
        of_kind("strategy")
        .mark_point(filled=True, size=90)
        .encode(
            x=x,
            y=y("y"),
            color=COLOUR,
            shape=SHAPE,
            opacity=opacity,
            tooltip=tooltip("strategy", "latency", "memory", "standing"),
        )
    )
    names = front.mark_text(align="left", baseline="bottom", dx=7, dy=-5, fontSize=11, color=INK).encode(
        x=x, y=y("y"), text=alt.Text(field="strategy")
    )
    rim = (
        of_kind("rim")
        .mark_text(align="right", baseline="bottom", fontSize=11, dx=-4)
        .encode(
            x=RIGHT_EDGE,
            y=y("y"),
            color=COLOUR,
            text=alt.Text(field="strategy"),
            tooltip=tooltip("strategy", "standing"),
        )
    )
    return spec(ends, limit, steps, dots, names, rim, height=_HEIGHT, padding=PADDING)


SPEC = _specification()


def offered(run: Run) -> list[int]:
    """Return the indices of the points at which some strategy has both a latency and a memory."""
    return [
        index
        for index, point in enumerate(run.points)
        if pareto.placed(point.measurements) and sweep_analysis.asked_for(run, point)
    ]


def subject(run: Run, index: int | None = None) -> list[Measurement]:
    """Return what is drawn of a sweep: one point, by default the largest one; where an option is swept, all points, as
    they are of one case."""
    known = offered(run)
    if not known:
        return []
    if by_option(run):
        return [item for point in run.points for item in point.measurements]
    index = max(known, key=lambda index: tuple(run.points[index].at.values())) if index is None else index
    return run.points[index].measurements


def by_option(run: Run) -> bool:
    return any(axis.kind == "option" for axis in run.axes)


def frame(measurements: Sequence[Measurement], limit_bytes: float | None) -> pd.DataFrame:
    """Return the rows of the chart, in MiB and seconds. Strategies that take more than ``limit_bytes``, the slider's
    amount, fade as well."""
    known = pareto.placed(measurements)
    if not known:
        return pd.DataFrame()
    front = pareto.front(measurements)
    best = pareto.fastest_within(measurements, math.inf if limit_bytes is None else limit_bytes)
    rows = [_row(item, item in front, best, limit_bytes) for item in known]
    rows += [
        {**_at(item), "kind": "front", "order": float(order), "strategy": item.strategy}
        for order, item in enumerate(reversed(front))
    ]
    if limit_bytes is not None:
        rows.append({"kind": "limit", "x": limit_bytes / MIB})
    places = [row["x"] for row in rows]
    rows += [{"kind": "end", "x": x} for x in room(min(places), max(places), MEMORY_SPAN)]
    made = pd.DataFrame([*rows, *_rim(measurements, known)])
    words = ("strategy", "colour", "mode", "latency", "memory", "standing")
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
            "y": float(at),
            "strategy": f"{look.label(item.strategy, item.mode)} ✕",
            "colour": look.colour_name(item.mapper),
            "mode": item.mode,
            "standing": outcome(item),
        }
        for item, at in zip(failed, places, strict=True)
    ]


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
