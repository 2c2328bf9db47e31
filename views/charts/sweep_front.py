"""Latency against memory: the strategies that nothing beats in both. Pure."""

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from measure.judge import pareto
from measure.judge.lines import asked_for, place
from measure.run import text
from measure.run.run import Measurement, Run
from views.charts.base import (
    COLOUR,
    INK,
    MEMORY_SPAN,
    MIB,
    PADDING,
    SHAPE,
    Spec,
    memory_axis,
    of_kind,
    room,
    seconds_axis,
    spec,
    tooltip,
)
from views.ui import look

_HEIGHT = 340
_FADED = 0.3  # opacity of a beaten strategy's mark
# Pixels that the points keep from the edges.
_EDGE, _SIDE_EDGE = 20, 24


def _specification() -> Spec:
    y = seconds_axis("time of one call", _EDGE)("y")
    scale = alt.Scale(type="log", nice=False, padding=_SIDE_EDGE)
    x = alt.X("x:Q", scale=scale, axis=memory_axis("peak memory of one call"))
    ends = of_kind("end").mark_point(opacity=0).encode(x=x)
    front = of_kind("front")
    steps = front.mark_line(interpolate="step-after", strokeWidth=1, opacity=0.5, color=INK).encode(
        x=x, y=y, order=alt.Order(field="order")
    )
    dots = of_kind("strategy").mark_point(filled=True, size=90).encode(
        x=x, y=y, color=COLOUR, shape=SHAPE, opacity=alt.Opacity("alpha:Q", scale=None, legend=None),
        tooltip=tooltip("strategy", "latency", "memory", "standing"),
    )  # fmt: skip
    names = front.mark_text(align="left", baseline="bottom", dx=7, dy=-5, fontSize=11, color=INK).encode(
        x=x, y=y, text=alt.Text(field="strategy")
    )
    return spec(ends, steps, dots, names, height=_HEIGHT, padding=PADDING)


SPEC = _specification()


def subject(run: Run, at: tuple[int, ...] | None = None) -> tuple[dict[str, int], Sequence[Measurement]]:
    """Return a place and what is drawn of it: of the point ``at`` it, or else of the largest one at which a strategy
    has both a latency and a memory. Where an option is swept that is all points, as they are of one case."""
    if any(axis.kind == "option" for axis in run.axes):
        return {}, [item for point in run.points for item in point.measurements]
    drawn = [point for point in run.points if pareto.placed(point.measurements) and asked_for(run, point)]
    chosen = [point for point in drawn if place(point) == at] or sorted(drawn, key=place)[-1:]
    return (chosen[0].at, chosen[0].measurements) if chosen else ({}, [])


def frame(measurements: Sequence[Measurement]) -> pd.DataFrame:
    """Return the rows of the chart, in MiB and seconds."""
    front, rows = pareto.front(measurements), list[dict[str, Any]]()
    for item in pareto.placed(measurements):
        assert item.latency is not None and item.memory is not None
        rows.append(
            {
                **_at(item),
                "kind": "strategy",
                "order": math.nan,
                "strategy": text.label(item.strategy, item.mode),
                "colour": look.colour_name(item.mapper),
                "mode": item.mode,
                "alpha": 1.0 if item in front else _FADED,
                "latency": look.seconds_with_interval(item.latency.median_s, item.latency.low_s, item.latency.high_s),
                "memory": look.size(item.memory.peak_bytes),
                "standing": "the lowest latency with this much memory or less"
                if item in front
                else "another was faster and needs no more memory",
            }
        )
    if not rows:
        return pd.DataFrame()
    places = [row["x"] for row in rows]
    rows += [
        {**_at(item), "kind": "front", "order": float(order), "strategy": item.strategy}
        for order, item in enumerate(reversed(front))
    ]
    rows += [{"kind": "end", "x": x} for x in room(min(places), max(places), MEMORY_SPAN)]
    words = ("strategy", "colour", "mode", "latency", "memory", "standing")
    return pd.DataFrame(rows).fillna(dict.fromkeys(words, ""))


def _at(item: Measurement) -> dict[str, float]:
    assert item.latency is not None and item.memory is not None
    return {"x": max(1, item.memory.peak_bytes) / MIB, "y": item.latency.median_s}


def sentence(measurements: Sequence[Measurement]) -> str:
    """Name the lowest latency for each amount of memory that there may be, the least first; empty where nothing has
    both."""
    front = [
        (item.strategy, look.seconds(item.latency.median_s), look.size(item.memory.peak_bytes))
        for item in reversed(pareto.front(measurements))
        if item.memory and item.latency
    ]
    if len(front) == 1:
        [(name, latency, memory)] = front
        return f"{name} has the lowest latency, {latency}, and no other needs less than its {memory}."
    words = "; ".join(f"with {memory} {latency}, {name}" for name, latency, memory in front)
    return f"The lowest latency that was measured: {words}." if front else ""
