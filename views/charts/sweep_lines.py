"""The charts along one axis of a sweep: latency with its interval, and memory, a line for each strategy. Pure."""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from measure.judge.lines import sentence
from measure.judge.sweep_findings import SweepFindings, verdict
from measure.run.run import Axis, Measurement
from views.charts import base, names
from views.charts.failures import failed, outcome
from views.charts.sweep_map import SELECTION, cell, state
from views.ui import look

Quantity = Literal["latency", "memory"]
TITLES = {"latency": "Time of one call", "memory": "Peak memory of one call"}
_EDGE = 6  # pixels that lines keep from the ends of the axis of what is measured
_FADED = 0.22  # opacity of lines beside two that are asked about
_STEP, _STRIP = 14, 42  # pixels from one failure's mark to the next above it, and of all of them


def frame(sweep: SweepFindings, quantity: Quantity, pair: Collection[str] = ()) -> pd.DataFrame:
    """A row for each point of a line, in seconds or MiB, for each failure where it occurred, ``up`` in a strip over the
    plot, and for each crossing: those of a ``pair`` that is asked about, beside which other lines fade, or else those
    at which the lead goes from one to another."""
    axis = sweep.run.axes[0]
    points, marks, heights = list[dict[str, Any]](), list[dict[str, Any]](), dict[str, dict[int, float]]()
    for line in sweep.lines:
        of = {
            "strategy": look.label(line.slug, line.mode), "colour": look.colour_name(line.mapper), "mode": line.mode,
            "alpha": 1.0 if not pair or line.slug in pair else _FADED,
        }  # fmt: skip
        along = heights[line.slug] = {}
        for value, point, item in line.points:
            if failed(item):
                words = {"at": f"{axis.name} {value:,}", "outcome": outcome(item)}
                marks.append({**of, "kind": "failure", "x": value, **words})
            elif (height := _height(item, quantity)) is not None:
                along[value] = height
                latency = item.latency if quantity == "latency" else None
                row = {
                    **of, "kind": "point", SELECTION: cell(sweep.run, point), "y": height,
                    "low": latency.low_s if latency else height, "high": latency.high_s if latency else height,
                    "at": f"does not depend on {axis.name}" if line.flat else f"{axis.name} {value:,}",
                    quantity: look.seconds_with_interval(latency.median_s, latency.low_s, latency.high_s)
                    if latency else look.size(height * base.MIB),
                }  # fmt: skip
                # A strategy that does not depend on the axis is a level.
                points += [{**row, "x": x} for x in ((axis.values[0], axis.values[-1]) if line.flat else (value,))]
    failures, below = Counter(mark["x"] for mark in marks), Counter[int]()
    for mark in marks:
        mark["up"] = below[mark["x"]] * min(_STEP, _STRIP / failures[mark["x"]])
        below[mark["x"]] += 1
    for point in sweep.run.points:
        nothing = not any(item.latency or item.memory or failed(item) for item in point.measurements)
        if nothing and point.status in ("skipped", "cancelled", "interrupted", "budget"):
            value = point.at[axis.name]
            words = {"at": f"{axis.name} {value:,}", "outcome": state(sweep, point)}
            marks.append({"kind": "no point", "strategy": "", "x": value, **words})
    # Of many lines, the crossings of all that lead somewhere would be a smear.
    turns = sweep.pair(*pair) if pair else [part.crossing for part in sweep.stretches if part.crossing]
    for turn in turns if quantity == "latency" else ():
        if turn.value is not None and (along := heights[turn.a]):
            at = {"x": turn.value, "from": turn.low, "to": turn.high, "y": _on_line(along, turn.value, axis)}
            marks.append({"kind": "crossing", **at, "crossover": sentence(turn)})
    made = pd.DataFrame(points)
    if points:
        low, high = made["low"].min(), made["high"].max()
        ends = base.room(low, high) if quantity == "memory" else (low, high)
        made = names.placed(made.assign(least=ends[0], most=ends[1]), "y", ends=ends)
    made = pd.concat([made, pd.DataFrame(marks)], ignore_index=True)
    return made.fillna(dict.fromkeys(made.select_dtypes(exclude="number"), ""))


def _height(item: Measurement, quantity: Quantity) -> float | None:
    if quantity == "latency":
        return item.latency.median_s if item.latency else None
    return max(1, item.memory.peak_bytes) / base.MIB if item.memory else None


def _on_line(heights: Mapping[int, float], value: float, axis: Axis) -> float:
    """The height of a line as it is drawn: straight between points, on a logarithmic axis of the quantity and the swept
    axis as it is; beyond its ends, that of the end."""
    along = math.log if axis.scale == "log" else float
    return math.exp(np.interp(along(value), [along(x) for x in heights], np.log(list(heights.values()))))


def specification(quantity: Quantity, axis: Axis) -> base.Spec:
    return _specification(quantity, axis.name, axis.scale, axis.values[0], axis.values[-1])


@lru_cache(maxsize=50)
def _specification(quantity: Quantity, axis: str, scale: str, first: int, last: int) -> base.Spec:
    """``scale``: log or linear, of the swept axis; the axis of the quantity is logarithmic."""

    def x(field: str) -> alt.X:
        # All of the range from the start: lines grow into it.
        kind: Literal["log", "linear"] = "log" if scale == "log" else "linear"
        across = alt.Scale(type=kind, domain=[first, last], nice=False, padding=8)
        title, decades = (f"{axis}, log axis", base.DECADES) if scale == "log" else (axis, 1.0)
        looks = alt.Axis(title=title, format="~s", labelOverlap=True, gridOpacity=decades)
        return alt.X(f"{field}:Q", scale=across, axis=looks)

    looks = base.SECONDS if quantity == "latency" else base.MEMORY
    y = base.log(alt.Y, TITLES[quantity], _EDGE, **looks)
    points = base.unfilled("point").encode(opacity=base.OPACITY)
    ends = base.unfilled("point").mark_rule(opacity=0).encode(y=y("least"), y2=alt.Y2("most"))
    bands = points.mark_area(fillOpacity=0.18).encode(
        x=x("x"), y=y("low"), y2=alt.Y2("high"), color=base.COLOUR, detail=alt.Detail(field="strategy")
    )
    lines, dots, *beside = names.curves(points, x("x"), y, "y", "at", quantity, dots=1)
    if quantity == "latency":
        dots = dots.add_params(alt.selection_point(name=SELECTION, fields=[SELECTION], on="click", empty=False))
    # A point that was left out as a whole is a line through all. A layer that may have no marks would be a picture
    # without a name: it has none.
    left_out = base.unfilled("no point").mark_rule(strokeDash=[2, 4], opacity=0.5, aria=False)
    # Above the plot, where nobody reads a figure from them.
    up = alt.expr(f"-{_STEP} - datum.up")
    crosses = base.unfilled("failure").mark_text(text="✕", dy=up, fontSize=13, fontWeight="bold", aria=False)
    spans = base.unfilled("crossing").mark_rule(strokeWidth=5, opacity=0.35, aria=False)
    rings = base.unfilled("crossing").mark_point(size=110, strokeWidth=2, opacity=1, aria=False)
    return base.spec(
        ends, left_out.encode(x=x("x"), tooltip=base.tooltip("at", "outcome")), bands, lines, dots,
        crosses.encode(x=x("x"), y=alt.value(0), color=base.COLOUR, tooltip=base.tooltip("strategy", "at", "outcome")),
        spans.encode(x=x("from"), x2=alt.X2("to"), y=y("y")),
        rings.encode(x=x("x"), y=y("y"), tooltip=base.tooltip("crossover")), *beside, height=base.HEIGHT + _STRIP,
    )  # fmt: skip


def takeaway(sweep: SweepFindings, quantity: Quantity) -> str:
    """The chart in words, for people who do not see it."""
    about = f"of {len(sweep.lines)} strategies over {sweep.run.axes[0].name}"
    if quantity == "latency":
        return f"Latency {about}. {verdict(sweep)}"
    sizes = [item.memory.peak_bytes for line in sweep.lines for *_, item in line.points if item.memory]
    ends = f", {look.size(min(sizes))} to {look.size(max(sizes))}" if sizes else ""
    return f"Peak memory {about}{ends}."
