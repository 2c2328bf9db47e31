"""The charts along one axis of a sweep: latency with its interval, and memory, a line for each strategy. Pure."""

import math
from collections.abc import Collection, Mapping
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from measure.judge.crossovers import sentence
from measure.judge.lines import Line
from measure.judge.sweep_findings import SweepFindings
from measure.run.run import Axis, Measurement
from views.charts import names
from views.charts.base import (
    COLOUR,
    DASH,
    DECADES,
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
from views.charts.failures import failed, outcome
from views.charts.sweep_map import SELECTION, cell, state
from views.ui import look
from views.ui.memo import Memo

Quantity = Literal["latency", "memory"]

_HEIGHT = 360
_EDGE = 6  # pixels that lines keep from the ends of the axis of what is measured
_TITLES = {"latency": "time of one call", "memory": "peak memory of one call"}
_LEAST_SPAN = {"latency": 1.0, "memory": MEMORY_SPAN}
_memo = Memo(__name__)
# Opacity of a band, and of lines beside two that are asked about.
_BAND, _FADED = 0.18, 0.22
_NUMBERS = ("x", "y", "low", "high", "least", "most", "from", "to", "end", "beside", "alpha")
_WORDS = ("kind", "strategy", "colour", "mode", "at", "latency", "memory", "outcome", "crossover", SELECTION)


def specification(quantity: Quantity, axis: Axis) -> Spec:
    key = (quantity, axis.name, axis.scale, axis.values[0], axis.values[-1])
    return _memo.get(key, lambda: _specification(*key))


def _specification(quantity: Quantity, axis: str, scale: str, first: int, last: int) -> Spec:
    """``scale``: log or linear, of the swept axis; the axis of the quantity is logarithmic."""

    def x(field: str) -> alt.X:
        return alt.X(
            f"{field}:Q",
            # All of the range from the start: lines grow into it.
            scale=alt.Scale(type="log" if scale == "log" else "linear", domain=[first, last], nice=False, padding=8),
            axis=alt.Axis(
                title=f"{axis}, log axis" if scale == "log" else axis,
                format="~s",
                labelOverlap=True,
                gridOpacity=DECADES if scale == "log" else 1.0,
            ),
        )

    def memory(field: str) -> alt.Y:
        scale = alt.Scale(type="log", nice=False, padding=_EDGE)
        return alt.Y(f"{field}:Q", scale=scale, axis=memory_axis(_TITLES[quantity]))

    y = seconds_axis(_TITLES[quantity], _EDGE) if quantity == "latency" else memory
    detail = alt.Detail(field="strategy")
    opacity = alt.Opacity("alpha:Q", scale=None, legend=None)
    points = of_kind("point")
    bands = points.mark_area(fillOpacity=_BAND).encode(
        x=x("x"), y=y("low"), y2=alt.Y2("high"), color=COLOUR, detail=detail, opacity=opacity
    )
    curve = points.mark_line(strokeWidth=2).encode(
        x=x("x"), y=y("y"), color=COLOUR, detail=detail, strokeDash=DASH, opacity=opacity
    )
    dots = points.mark_point(filled=True, size=36, cursor="pointer").encode(
        x=x("x"), y=y("y"), color=COLOUR, shape=SHAPE, opacity=opacity, tooltip=tooltip("strategy", "at", quantity)
    )
    if quantity == "latency":
        dots = dots.add_params(alt.selection_point(name=SELECTION, fields=[SELECTION], on="click", empty=False))
    # A point that is still running, or was left out as a whole, is a line through all. From here on a layer may have no
    # marks: it would be a picture without a name.
    whole = of_kind("point without strategies").mark_rule(strokeDash=[2, 4], opacity=0.5, color=INK, aria=False)
    whole_marks = whole.encode(x=x("x"), tooltip=tooltip("at", "outcome"))
    failures = of_kind("failure")
    leaders = failures.mark_rule(strokeDash=[1, 4], strokeWidth=1.5, opacity=0.8, aria=False).encode(
        x=x("from"), x2=alt.X2("x"), y=y("y"), color=COLOUR
    )
    crosses = failures.mark_text(text="✕", fontSize=15, fontWeight="bold", aria=False).encode(
        x=x("x"), y=y("y"), color=COLOUR, tooltip=tooltip("strategy", "at", "outcome")
    )
    crossing = of_kind("crossing")
    spans = crossing.mark_rule(strokeWidth=5, opacity=0.35, color=INK, aria=False).encode(
        x=x("from"), x2=alt.X2("to"), y=y("y")
    )
    rings = crossing.mark_point(size=110, strokeWidth=2, opacity=1, color=INK, aria=False).encode(
        x=x("x"), y=y("y"), tooltip=tooltip("crossover")
    )
    ends = points.mark_rule(opacity=0).encode(y=y("least"), y2=alt.Y2("most"))
    layers = [ends, whole_marks, curve, dots, leaders, crosses]
    if quantity == "latency":
        layers = [ends, whole_marks, bands, curve, dots, leaders, crosses, spans, rings]
    return spec(*layers, *names.layers(y, coloured=True), height=_HEIGHT, padding=PADDING)


def frame(sweep: SweepFindings, quantity: Quantity, pair: Collection[str] = ()) -> pd.DataFrame:
    """Return a row for each point of a line, for each failure where it occurred, and for each crossing: those of a
    ``pair`` that is asked about, beside which other lines fade, or else those of all that lead.

    Latencies are in seconds, memory is in MiB.
    """
    run, axis = sweep.run, sweep.run.axes[0]
    heights = {line.slug: _heights(line, quantity) for line in sweep.lines}
    points = pd.DataFrame([row for line in sweep.lines for row in _points(line, sweep, quantity)])
    if len(points):
        ends = points.groupby("strategy")["y"].last()
        low, high = room(points["low"].min(), points["high"].max(), _LEAST_SPAN[quantity])
        points = names.placed(points.assign(least=low, most=high), "y", ends, log=True, least="least", most="most")
    top = max((height for along in heights.values() for height in along.values()), default=1.0)
    other: list[dict[str, Any]] = []
    for line in sweep.lines:
        along = heights[line.slug]
        for value, _, item in line.points:
            if failed(item):
                own = _height(item, quantity)  # of wrong values
                at: dict[str, Any] = {"x": value, "from": value, "y": own or top}
                if along and own is None:  # where the line is, or from its end on
                    end = min(max(value, min(along)), max(along))
                    at |= {"from": end, "y": _on_line(along, value, axis)}
                words = {"at": f"{axis.name} {value:,}", "outcome": outcome(item)}
                other.append({**_identity(line), "kind": "failure", **at, **words})
    for point in run.points:
        nothing = not any(item.latency or item.memory or failed(item) for item in point.measurements)
        if nothing and point.status in ("skipped", "cancelled", "interrupted", "budget"):
            at = {"x": point.at[axis.name], "at": f"{axis.name} {point.at[axis.name]:,}", "outcome": state(point)}
            other.append({"kind": "point without strategies", **at})
    for turn in sweep.pair(*pair) if pair else sweep.crossovers:
        if quantity == "latency" and turn.value and heights.get(turn.a):
            at = {"x": turn.value, "from": turn.low, "to": turn.high, "y": _on_line(heights[turn.a], turn.value, axis)}
            other.append({"kind": "crossing", **at, "crossover": sentence(turn)})
    made = pd.concat([points, pd.DataFrame(other)], ignore_index=True).reindex(columns=[*_WORDS, *_NUMBERS])
    shown = {line.label for line in sweep.lines if not pair or line.slug in pair}
    made["alpha"] = [1.0 if name in shown else _FADED for name in made["strategy"]]
    types = dict.fromkeys(_NUMBERS, float) | dict.fromkeys(_WORDS, object)
    return made.astype(types).fillna(dict.fromkeys(_WORDS, ""))


def _height(item: Measurement, quantity: Quantity) -> float | None:
    if quantity == "latency":
        return item.latency.median_s if item.latency else None
    return max(1, item.memory.peak_bytes) / MIB if item.memory else None


def _heights(line: Line, quantity: Quantity) -> dict[int, float]:
    heights = {value: _height(item, quantity) for value, _, item in line.points if item.outcome in ("ok", "not_run")}
    return {value: height for value, height in heights.items() if height is not None}


def _on_line(heights: Mapping[int, float], value: float, axis: Axis) -> float:
    """Return the height of a line as it is drawn: straight between points, on a logarithmic axis of the quantity and
    the swept axis as it is; beyond its ends, that of the end."""
    along = math.log if axis.scale == "log" else float
    return math.exp(np.interp(along(value), [along(x) for x in heights], np.log(list(heights.values()))))


def _points(line: Line, sweep: SweepFindings, quantity: Quantity) -> list[dict[str, Any]]:
    axis, rows = sweep.run.axes[0], []
    for value, point, item in line.points:
        height = _height(item, quantity)
        if height is None or item.outcome not in ("ok", "not_run"):
            continue
        latency = item.latency if quantity == "latency" else None
        row = {
            **_identity(line),
            "kind": "point",
            "y": height,
            "low": latency.low_s if latency else height,
            "high": latency.high_s if latency else height,
            "at": f"does not depend on {axis.name}" if line.flat else f"{axis.name} {value:,}",
            SELECTION: cell(sweep.run, point),
            quantity: look.seconds_with_interval(latency.median_s, latency.low_s, latency.high_s)
            if latency
            else look.size(item.memory.peak_bytes if item.memory else None),
        }
        # A strategy that does not depend on the axis is a level.
        rows += [{**row, "x": x} for x in ((axis.values[0], axis.values[-1]) if line.flat else (value,))]
    return rows


def _identity(line: Line) -> dict[str, Any]:
    return {"strategy": line.label, "colour": look.colour_name(line.mapper), "mode": line.mode}


def takeaway(sweep: SweepFindings, quantity: Quantity) -> str:
    """Return what the chart says beside the verdict, for people who do not see it."""
    over = f"over {sweep.run.axes[0].name}"
    drawn = [heights for line in sweep.lines if (heights := _heights(line, quantity))]
    name = "Latency" if quantity == "latency" else "Peak memory"
    if not drawn:
        return f"{name} {over}: nothing has been measured yet."
    amount = look.seconds if quantity == "latency" else lambda mib: look.size(mib * MIB)
    ends = [amount(end(height for heights in drawn for height in heights.values())) for end in (min, max)]
    crossed = [sentence(crossing) for crossing in sweep.crossovers if crossing.value and quantity == "latency"]
    return f"{name} of {len(drawn)} strategies {over}, {'; '.join([' to '.join(ends), *crossed])}."
