"""A comparison in one picture: latency, memory and correctness side by side, one row a strategy. Pure.

It is one Vega-Lite view, whose panels are scales of their own with ranges within its width: rows are level, the width
is the page's, and where that is narrow (a phone) a row becomes two lines, none of which concatenated charts can do.
Names are marks, not labels of an axis, so that they are never cut.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import altair as alt
import pandas as pd

from measure.judge import limit
from measure.judge.findings import Findings, Row
from measure.judge.verdict import verdict
from views.charts import base
from views.charts.base import COLOUR, SHAPE, Spec
from views.ui import look

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_CROWDED = 2.0  # the axis of memory is at most so many times as long as the bars
_UNTIMED_S = (1e-4, 0.1)  # the axis while nothing is timed
_UNCHECKED, _MOST_ERROR = [1e-9, 1e-5], 1e300
_LEAST_SPAN = 5.0  # an axis that is labelled at 1, 2 and 5 then has two labels
_GREY = 0.62  # opacity, which leaves text a contrast of 4.5


# --- the rows --------------------------------------------------------------------------------------------------------


def frame(result: Findings) -> pd.DataFrame:
    """One line a row, in seconds, in the unit of the memory axis, and errors relative to the result's scale. Strategies
    with a rough latency follow those that were timed."""
    timed = {row.slug for row in result.rows if row.median_s is not None}
    rows = sorted(result.rows, key=lambda row: (row.slug not in timed, row.rough_s or math.inf))
    floor_s = result.run.limit.seconds if timed and result.run.limit and limit.tells(result.run) else None
    bands, has_factors = _bands(rows), sum(row.factor is not None for row in rows) > 1
    end, unit = _memory_end(rows), _UNITS[_unit(rows)]
    lines = []
    for order, row in enumerate(rows):
        rough, peak, process = row.rough_s, row.peak_bytes, row.process_peak_bytes
        error, allowed = row.max_of_scale, _allowed(row)
        top, bottom = bands.get(order, (None, None))
        factor = interval = ""
        if row.factor and row.slug != result.baseline:
            factor, interval = look.factor_with_interval(row.factor.ratio, row.factor.low, row.factor.high)
        elif row.slug == result.baseline and has_factors:
            factor = "baseline"
        elif rough and not row.running:
            factor = "not timed"
        lines.append(
            {
                "strategy": row.slug, "order": order, "colour": look.colour_name(row.mapper), "mode": row.mode,
                "tie_top": top, "tie_bottom": bottom, "note": "" if row.slug in timed or rough else _note(row),
                "median": row.median_s or rough, "low": row.low_s, "high": row.high_s, "floor": floor_s,
                "rough": rough is not None,
                "value": row.latency if row.median_s or rough else "",
                "factor": "✗ wrong" if has_factors and row.ok is False else factor,
                "factor_head": "speedup" if has_factors and not order else "",
                # Where an output aliases an input its bar ends at the peak, which is less.
                "output_at": None if peak is None else min(row.output_bytes or 0, peak) / unit,
                "peak_at": None if peak is None else peak / unit,
                "process_at": process / unit if process is not None and process <= end else None,
                "zero": 0.0, "memory_high": end / unit,
                "beyond": "→" if process is not None and process > end else "",
                "peak": "" if peak is None else look.size(peak),
                # Of values above the scale more is allowed than of the scale: what is right is not beyond its line.
                "error": min(error, allowed) if error and allowed and row.ok else error, "allowed": allowed,
                "right": _right(row),
                # In the tooltip alone.
                "latency": look.seconds_with_interval(row.median_s, *row.interval)
                if row.median_s and row.interval else f"{row.latency}, not timed" if rough else look.MISSING,
                "faster": f"{factor} {interval}".strip() or look.MISSING, "first": look.seconds(row.first_call_s),
                "output": look.size(row.output_bytes), "temporary": look.size(row.temporary_bytes),
                "process": look.size(process),
            }
        )  # fmt: skip
    made = pd.DataFrame(lines)
    return _with_ends(made.astype(dict.fromkeys(_NUMBERS, float))) if lines else made


_NUMBERS = ("tie_top", "tie_bottom", "median", "low", "high", "floor", "output_at", "peak_at", "process_at", "error",
            "allowed")  # fmt: skip


def _with_ends(made: pd.DataFrame) -> pd.DataFrame:
    seconds, errors = (
        [value for field in fields for value in made[field] if value > 0]
        for fields in (("median", "low", "high", "floor"), ("error", "allowed"))
    )
    ends = base.room(min(seconds), max(seconds), _LEAST_SPAN) if seconds else _UNTIMED_S
    made["latency_low"], made["latency_high"] = ends
    least, most = min(errors or _UNCHECKED), max(errors or _UNCHECKED)
    made["error_low"], made["error_high"] = least / 3, min(most * 2, _MOST_ERROR)
    # Nothing is at the left edge of a logarithmic axis but what is exact.
    made["error"] = made["error"].replace(0.0, least / 3).clip(upper=made["error_high"])
    return made


def _bands(rows: Sequence[Row]) -> dict[int, tuple[float, float]]:
    """The first row of each tie → the ends of its band, in rows."""
    ties = [row.tie if row.tied else None for row in rows]
    numbers = {tie for tie in ties if tie is not None}
    return {ties.index(tie): (ties.index(tie) + 0.05, len(ties) - ties[::-1].index(tie) - 0.05) for tie in numbers}


def _memory_end(rows: Sequence[Row]) -> float:
    """The bytes at which the axis ends: process peaks that would crush the bars are beyond it."""
    bars = max((row.peak_bytes or 0 for row in rows), default=0)
    processes = max((row.process_peak_bytes or 0 for row in rows), default=0)
    return max(bars, min(processes, _CROWDED * bars)) or _UNITS["MiB"]


def _unit(rows: Sequence[Row]) -> str:
    end = _memory_end(rows)
    return next(name for name, size in reversed(_UNITS.items()) if end >= size or size == 1)


def _allowed(row: Row) -> float | None:
    """The error that is allowed relative to the result's scale: of its outputs' the largest."""
    check = row.measurement.correctness
    shares = [leaf.tolerance.get("relative") for leaf in check.leaves] if check else []
    return max((float(share) for share in shares if isinstance(share, (int, float)) and share), default=None)


def _note(row: Row) -> str:
    reason = " ".join(row.sentence.split())
    if row.failed:
        return f"✗ {row.status}: {reason}".removesuffix(": ")
    if row.running and not reason:
        return f"{row.status} …"
    return reason if reason.startswith("not timed") else f"not timed: {reason}".removesuffix(": ")


def _right(row: Row) -> str:
    if row.ok is None:
        return ""
    error = row.max_of_scale
    if not row.ok:  # by a shape or a NaN, where the error is none
        return f"{error:.2g} ✗" if error and error > (_allowed(row) or 0.0) else "wrong ✗"
    return "✓" if error is None else f"{error:.2g} ✓" if error else "exact ✓"


# --- the marks -------------------------------------------------------------------------------------------------------

_ROW, _ROW_OF_TWO = 27, 48  # pixels of a row in one line, and in two
_SIGN, _SHAPE = 7.25, 18  # pixels of a sign of a name, and of the shape before it
# Pixels, as expressions. In one line (`wide`): names, then the plots, which share what is free as 5 to 3 to 3 and have
# 90 at least, each with its figures behind it (76 of latency and 64 of its factor, 70, 78) and 26 before the next one.
# In two lines, the plot of errors is hidden.
_PLACES = {
    "wide": "width >= names + 610",
    "deep": f"rows * (wide ? {_ROW} : {_ROW_OF_TWO})",
    "free": "(width - names - 340) / 11",
    "latency_from": "wide ? names : 12",
    "latency_to": "wide ? names + 5 * free : width * 0.34",
    "latency_figure": "wide ? names + 5 * free + 76 : width",
    "latency_factor": "wide ? names + 5 * free + 140 : width",
    "memory_from": "wide ? names + 5 * free + 166 : width * 0.42 + 12",
    "memory_to": "wide ? names + 8 * free + 166 : width * 0.59",
    "memory_figure": "wide ? names + 8 * free + 236 : width * 0.77",
    "correctness_from": "wide ? names + 8 * free + 262 : width * 0.5 + 12",
    "correctness_to": "wide ? width - 78 : width * 0.52",
    "correctness_figure": "width",
}
_WIDE = alt.ExprRef("wide ? 1 : 0")  # opacity of what a row of two lines has no room for
_UPRIGHT = {"shape": "stroke", "angle": 90}


def specification(result: Findings) -> Spec:
    """The picture of a comparison; where it is too noisy for an order, its latencies are grey."""
    count, rows = max(1, len(result.rows)), result.rows
    values = {
        "rows": count, "names": _SHAPE + 14 + _SIGN * max((len(row.slug) for row in rows), default=0),
        "unit": _unit(rows), "sure": 1.0 if result.tells or any(row.running for row in rows) else _GREY,
        "graded": any(row.max_of_scale or _allowed(row) for row in rows),
    }  # fmt: skip
    params = [{"name": name, "value": value} for name, value in values.items()]
    params += [{"name": name, "expr": expression} for name, expression in _PLACES.items()]
    return {**_drawn(), "height": count * _ROW, "params": params}


@functools.cache
def _drawn() -> Spec:
    tips = {
        "strategy": "strategy", "latency": "latency", "first": "first call", "faster": "speedup",
        "peak": "peak memory", "output": "output", "temporary": "temporary", "process": "process peak",
        "right": "largest error",
    }  # fmt: skip
    tip = [alt.Tooltip(f"{field}:N", title=title) for field, title in tips.items()]
    row = {"x": alt.value(0), "x2": alt.value("width")}
    measured, has_median = "isValid(datum.peak_at)", "isValid(datum.median)"

    of_latency = _x("latency", "log", 8, title="Latency (log)", labelExpr=base.SECONDS_LABEL)
    latency = alt.layer(
        _mark("rule", "true", of_latency("latency_low", "latency_high"), opacity=0),
        _mark("rule", f"isValid(datum.floor) && {has_median}",
              {**of_latency("floor"), "y": _y("floor_top"), "y2": alt.Y2("below")}, strokeDash=[3, 3], opacity=0.6),
        _mark("rule", "isValid(datum.low)", {**of_latency("low", "high"), "color": COLOUR}, strokeWidth=3,
              opacity=alt.ExprRef("0.75 * sure")),
        _mark("point", has_median, {**of_latency("median"), "color": COLOUR, "shape": SHAPE}, filled=True, size=80,
              opacity=alt.ExprRef("datum.rough ? 0.45 : sure")),
    )  # fmt: skip
    of_memory = _x("memory", "linear", 0, title="Memory", tickCount=4, tickOpacity=_WIDE,
                   labelExpr="wide ? format(datum.value, '~r') + ' ' + unit : ''")  # fmt: skip
    memory = alt.layer(
        _mark("rule", "true", of_memory("zero", "memory_high"), opacity=0),
        _mark("rule", measured, {**of_memory("zero", "output_at"), "color": COLOUR}, strokeWidth=12),
        _mark("rule", measured, {**of_memory("output_at", "peak_at"), "color": COLOUR}, strokeWidth=12, opacity=0.4),
        _mark("point", measured, {**of_memory("peak_at"), "color": COLOUR}, size=144, strokeWidth=1.5, **_UPRIGHT),
        _mark("point", "isValid(datum.process_at)", of_memory("process_at"), size=340, strokeWidth=2, opacity=0.75,
              **_UPRIGHT),
    )  # fmt: skip
    graded = "wide && graded ?"
    is_graded = alt.ExprRef(f"{graded} 1 : 0")
    of_error = _x("correctness", "log", 6, title="Largest error (log)", format=".0e", tickCount=3,
                  labelExpr=f"{graded} datum.label : ''", tickOpacity=is_graded, titleOpacity=is_graded)  # fmt: skip
    correctness = alt.layer(
        _mark("rule", "true", of_error("error_low", "error_high"), opacity=0),
        _mark("point", "isValid(datum.allowed)", of_error("allowed"), size=400, strokeWidth=1.5, opacity=_WIDE,
              **_UPRIGHT),
        _mark("point", "isValid(datum.error)", {**of_error("error"), "color": COLOUR, "shape": SHAPE}, filled=True,
              size=55, opacity=_WIDE),
    )  # fmt: skip
    layers = [
        _mark("rect", "isValid(datum.tie_top)", {**row, "y": _y("tie_top"), "y2": alt.Y2("tie_bottom")},
              fillOpacity=0.07, cornerRadius=4),
        _mark("point", "true", {"x": alt.value(8), "y": _y("upper"), "color": COLOUR, "shape": SHAPE}, filled=True,
              size=70, opacity=1),
        # A phone has room for 36 signs; names that are longer are smaller there, and never cut.
        _words("strategy", str(_SHAPE), "upper", align="left", font='"Source Code Pro", monospace',
               fontSize=alt.ExprRef(f"wide ? 12 : min(12, 12 * (width - {_SHAPE} - 76) / (names - 32))")),
        _words("note", "latency_from", "lower", align="left", opacity=0.8, limit=alt.ExprRef(
            f"({measured} ? (wide ? latency_factor : memory_from - 8) : width) - latency_from")),
        latency,
        _words("value", "latency_figure", "upper", opacity=alt.ExprRef("sure")),
        _words("factor", "latency_factor", "lower", opacity=alt.ExprRef("wide ? sure : 0")),
        _words("factor_head", "latency_factor", "order", dy=-11, fontSize=11, opacity=alt.ExprRef("wide ? sure : 0")),
        memory,
        _words("beyond", "memory_to", "lower", fontSize=13),
        _words("peak", "memory_figure", "lower"),
        correctness,
        _words("right", "correctness_figure", "lower"),
        _mark("rect", "true", {**row, "y": _y("order"), "y2": alt.Y2("below"), "tooltip": tip}, opacity=0),
    ]  # fmt: skip
    # Within its row, where a row is one line, and where it is two.
    places = {"upper": (0.5, 0.28), "lower": (0.5, 0.7), "floor_top": (0, 0.45), "below": (1, 1)}
    moved = [
        {"calculate": f"datum.order + (wide ? {one} : {two})", "as": name} for name, (one, two) in places.items()
    ]  # fmt: skip
    drawn = base.spec(
        *layers, autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        padding={"left": 0, "top": 4, "right": 4, "bottom": 4},
    )  # fmt: skip
    return {**drawn, "resolve": {"scale": {"x": "independent"}}, "transform": moved}


def _x(panel: str, scale: Literal["log", "linear"], padding: int, **axis: Any) -> Callable[..., dict[str, Any]]:
    scaled = alt.Scale(
        type=scale, zero=scale == "linear", nice=False, padding=padding,
        range=[alt.ExprRef(f"{panel}_from"), alt.ExprRef(f"{panel}_to")],
    )  # fmt: skip
    looks = alt.Axis(orient="top", labelOverlap="greedy", labelSeparation=6, **axis)

    def channels(start: str, end: str = "") -> dict[str, Any]:
        channel = {"x": alt.X(f"{start}:Q", scale=scaled, axis=looks)}
        return {**channel, "x2": alt.X2(end)} if end else channel

    return channels


def _y(field: str) -> alt.Y:
    scale = alt.Scale(domain=[0, alt.ExprRef("rows")], range=[0, alt.ExprRef("deep")], nice=False, zero=False)
    return alt.Y(f"{field}:Q", scale=scale, axis=None)


def _mark(kind: str, where: str, channels: dict[str, Any], **looks: Any) -> alt.Chart:
    """A mark of the rows ``where`` this is true. It is hidden from assistive technology: a kind of marks of which there
    is none would be a picture without a name. Rows are read by their words."""
    chart = getattr(base.unfilled().transform_filter(where), f"mark_{kind}")(aria=False, **looks)
    return chart.encode(**{"y": _y("lower"), **channels})


def _words(field: str, at: str, line: str, **looks: Any) -> alt.Chart:
    """A field's words, right-aligned at an expression, in one of a row's lines."""
    chart = base.unfilled().transform_filter(f"datum.{field} !== ''")
    marked = chart.mark_text(**{"align": "right", "fontSize": 12, **looks})
    return marked.encode(x=alt.value(alt.ExprRef(at)), y=_y(line), text=alt.Text(f"{field}:N"))


def legend(result: Findings) -> str:
    """The meaning of the marks."""
    run, has_floor = result.run, result.run.limit is not None and limit.tells(result.run)
    floor = f"dashed: {limit.FLOOR}, {limit.describe(run.limit)}; " if run.limit and has_floor else ""
    speedup = f"speedup: vs {result.baseline}; " if result.baseline and not result.baseline_problem else ""
    rough = "~ and pale dot: not timed, roughly; " if any(row.rough_s for row in result.rows) else ""
    return (
        f"Dot: latency of one call; bar: 95% CI, the pace of the machine included; band: a tie; {rough}{floor}{speedup}"
        "memory: output solid, temporary pale, inputs and variables not counted; tick: process peak, → where it is "
        "beyond the axis; error: relative to the result's scale; line: its tolerance."
    )


def takeaway(result: Findings) -> str:
    """The picture in words, for people who do not see it; they hear each row's own."""
    count = "1 strategy" if len(result.rows) == 1 else f"{len(result.rows)} strategies"
    words = "It is being measured." if any(row.running for row in result.rows) else verdict(result)
    return f"{count} with latency, memory and largest error. {words}"
