"""The charts along one axis of a sweep: latency with its interval, and memory, a line for each strategy. Pure."""

import math
from collections.abc import Collection, Sequence
from typing import Any, Literal

import altair as alt
import pandas as pd

from measure.judge.crossovers import sentence
from measure.judge.lines import Line, lines
from measure.run.run import Axis, Crossover, Measurement, Point, Run
from views.charts import names, texts
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
_TITLES = {"latency": texts.TIME_OF_CALL, "memory": texts.PEAK_OF_CALL}
_LEAST_SPAN = {"latency": 1.0, "memory": MEMORY_SPAN}
_memo = Memo(__name__)
# Opacity of a band, and of lines beside two that are asked about.
_BAND, _FADED = 0.18, 0.22


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
                title=texts.LOG_AXIS.format(axis=axis) if scale == "log" else axis,
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
    layers = [ends, whole_marks, *([bands] if quantity == "latency" else []), curve, dots, leaders, crosses]
    layers += [spans, rings] if quantity == "latency" else []
    return spec(*layers, *names.layers(y, coloured=True), height=_HEIGHT, padding=PADDING)


def frame(
    run: Run, quantity: Quantity, asked: Collection[str] = (), crossings: Sequence[Crossover] = ()
) -> pd.DataFrame:
    """Return a row for each point of a line, for each failure where it occurred, and for each crossing.

    Latencies are in seconds, memory is in MiB. Of lines that are ``asked`` about, the others fade; ``crossings`` are
    these lines', beside those of the run.
    """
    axis = run.axes[0]
    drawn = lines(run.points, run.axes)
    measured = [row for line in drawn for row in _points(line, run, quantity)]
    points = pd.DataFrame(measured)
    if measured:
        ends = points.groupby("strategy")["y"].last()
        low, high = room(points["low"].min(), points["high"].max(), _LEAST_SPAN[quantity])
        points = names.placed(points.assign(least=low, most=high), "y", ends, log=True, least="least", most="most")
    heights = {line.slug: _heights(line, quantity) for line in drawn}
    top = max((height for by_value in heights.values() for height in by_value.values()), default=1.0)
    other = [row for line in drawn for row in _failures(line, axis.name, heights[line.slug], top, quantity)]
    other += [_without_strategies(point, axis.name) for point in run.points if _left_out(point)]
    if quantity == "latency":
        other += _crossings(
            [*run.crossovers, *(each for each in crossings if each not in run.crossovers)], heights, axis
        )
    made = pd.concat([points, pd.DataFrame(other)], ignore_index=True) if other else points
    if made.empty:
        return made
    for column in ("x", "y", "low", "high", "least", "most", "from", "to", "end", "beside"):
        made[column] = made[column].astype(float) if column in made else math.nan
    for column in ("strategy", "colour", "mode", "at", quantity, "outcome", "crossover", SELECTION):
        made[column] = made[column].fillna("") if column in made else ""
    named = {look.label(line.slug, line.mode) for line in drawn if line.slug in asked}
    return made.assign(alpha=[1.0 if not named or name in named else _FADED for name in made["strategy"]])


def _height(item: Measurement, quantity: Quantity) -> float | None:
    if quantity == "latency":
        return item.latency.median_s if item.latency else None
    return max(1, item.memory.peak_bytes) / MIB if item.memory else None


def _heights(line: Line, quantity: Quantity) -> dict[int, float]:
    heights = {value: _height(item, quantity) for value, _, item in line.points if item.outcome in ("ok", "not_run")}
    return {value: height for value, height in heights.items() if height is not None}


def _points(line: Line, run: Run, quantity: Quantity) -> list[dict[str, Any]]:
    rows = []
    for value, point, item in line.points:
        height = _height(item, quantity)
        if height is None or item.outcome not in ("ok", "not_run"):
            continue
        latency = item.latency if quantity == "latency" else None
        figure = (
            look.seconds_with_interval(latency.median_s, latency.low_s, latency.high_s)
            if latency
            else look.size(item.memory.peak_bytes if item.memory else None)
        )
        row = {
            **_identity(line),
            "kind": "point",
            "x": float(value),
            "y": height,
            "low": latency.low_s if latency else height,
            "high": latency.high_s if latency else height,
            "at": f"{run.axes[0].name} {value:,}",
            SELECTION: cell(run, point),
            quantity: figure,
        }
        rows.append(row)
        if line.flat:  # a strategy that does not depend on the axis is a level
            rows[-1]["at"] = texts.FLAT.format(axis=run.axes[0].name)
            rows = [{**row, "x": float(end)} for end in (run.axes[0].values[0], run.axes[0].values[-1])]
    return rows


def _identity(line: Line) -> dict[str, Any]:
    return {
        "strategy": look.label(line.slug, line.mode),
        "colour": look.colour_name(line.mapper),
        "mode": line.mode,
    }


def _failures(line: Line, axis: str, heights: dict[int, float], top: float, quantity: Quantity) -> list[dict[str, Any]]:
    """Return marks at the height that the line had last; at ``top`` where it had none."""
    rows = []
    for value, _, item in line.points:
        if not failed(item):
            continue
        before = [known for known in heights if known < value]
        near = max(before) if before else min((known for known in heights if known > value), default=None)
        own = _height(item, quantity)
        rows.append(
            {
                **_identity(line),
                "kind": "failure",
                "x": float(value),
                "from": float(near if near is not None and own is None else value),
                "y": own or (top if near is None else heights[near]),
                "at": f"{axis} {value:,}",
                "outcome": outcome(item),
            }
        )
    return rows


def _left_out(point: Point) -> bool:
    """True if a point has nothing to show of any strategy, and a reason."""
    return point.status in ("skipped", "cancelled", "interrupted", "budget") and not any(
        item.latency or item.memory or failed(item) for item in point.measurements
    )


def _without_strategies(point: Point, axis: str) -> dict[str, Any]:
    value = point.at[axis]
    return {
        "kind": "point without strategies",
        "x": float(value),
        "at": f"{axis} {value:,}",
        "outcome": state(point),
    }


def _crossings(
    crossovers: Sequence[Crossover], heights: dict[str, dict[int, float]], axis: Axis
) -> list[dict[str, Any]]:
    rows = []
    for crossover in crossovers:
        if crossover.value is None or crossover.low is None or crossover.high is None:
            continue
        height = _between(heights.get(crossover.a, {}), crossover.value, axis.scale)
        if height is not None:
            rows.append(
                {
                    "kind": "crossing",
                    "x": crossover.value,
                    "from": crossover.low,
                    "to": crossover.high,
                    "y": height,
                    "crossover": sentence(crossover),
                }
            )
    return rows


def _between(heights: dict[int, float], value: float, scale: str) -> float | None:
    """Return the height of a line at a value, as it is drawn: straight on axes of which the swept one has this
    ``scale``, and the other is logarithmic."""
    left = max((known for known in heights if known <= value), default=None)
    right = min((known for known in heights if known >= value), default=None)
    if left is None or right is None:
        only = left if right is None else right
        return None if only is None else heights[only]
    if left == right:
        return heights[left]
    if scale == "log":
        share = math.log(value / left) / math.log(right / left)
    else:
        share = (value - left) / (right - left)
    return heights[left] ** (1 - share) * heights[right] ** share


def takeaway(run: Run, quantity: Quantity) -> str:
    """Return what the chart says, for people who do not see it."""
    axis = run.axes[0]
    drawn = [line for line in lines(run.points, run.axes) if _heights(line, quantity)]
    name = texts.LATENCY if quantity == "latency" else texts.PEAK_MEMORY
    if not drawn:
        return texts.NO_LINES.format(quantity=name, axis=axis.name)
    ends = []
    for end in (min, max):
        value = end(value for line in drawn for value in _heights(line, quantity))
        there = {line.slug: height for line in drawn if (height := _heights(line, quantity).get(value)) is not None}
        least = min(there, key=lambda slug: there[slug])
        amount = look.seconds(there[least]) if quantity == "latency" else look.size(there[least] * MIB)
        ends.append(texts.LEAST.format(value=value, strategy=least, amount=amount))
    crossed = [
        sentence(crossover) for crossover in run.crossovers if crossover.value is not None and quantity == "latency"
    ]
    findings = "; ".join(dict.fromkeys([*ends, *crossed]))
    return texts.LINES.format(quantity=name, count=len(drawn), axis=axis.name, findings=findings)
