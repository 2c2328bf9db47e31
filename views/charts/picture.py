"""A comparison in one picture: latency, memory and correctness side by side, one row a strategy. Pure.

It is one Vega-Lite view, whose panels are scales of their own with ranges within its width: rows are level by
construction, the width is the page's, and where that is narrow (a phone) a row becomes two lines. Concatenated charts
can do none of these on a page of Streamlit. Names are marks, not labels of an axis, so that they are never cut.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from measure.judge import limit
from measure.judge.findings import Findings, Row
from measure.run import text
from views.charts import base
from views.charts.base import COLOUR, INK, SECONDS_AXIS, SHAPE, Spec
from views.ui import look


class _Panel(NamedTuple):
    """``figures``: pixels of its figures, right of its plot; ``share``: of the room that is left to plots. Where a row
    is two lines, as shares of the width: where its plot begins and ends, and where its figure ends."""

    figures: int
    share: int
    begin: float
    end: float
    figure: float


# In two lines, the plot of errors is hidden.
PANELS = {
    "latency": _Panel(140, 5, 0.0, 0.34, 1.0),
    "memory": _Panel(70, 3, 0.42, 0.59, 0.77),
    "correctness": _Panel(78, 3, 0.5, 0.52, 1.0),
}
_LATENCY_FIGURE = 76  # pixels, beside the factor's
_GAP, _LEAST_PLOT = 26, 90  # pixels between panels, and of a plot where a row is one line
_ROW, _ROW_OF_TWO = 27, 48  # pixels of a row in one line, and in two
_SIGN, _SHAPE = 7.25, 18  # pixels of a sign of a name, and of the shape before it
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
# Process peaks beyond so many times the bars would crush them: an arrow stands for them, and bars get this share.
_CROWDED, _SHARE = 2.0, 0.8
_UNTIMED_S = (1e-4, 0.1)  # the axis while nothing is timed
_UNCHECKED, _MOST_ERROR = [1e-9, 1e-5], 1e300
_LEAST_SPAN = 5.0  # an axis that is labelled at 1, 2 and 5 then has two labels
_GREY = 0.62  # opacity, which leaves text a contrast of 4.5
_CODE = '"Source Code Pro", monospace'
_WIDE = alt.ExprRef("wide ? 1 : 0")  # opacity of what a row of two lines has no room for
_UPRIGHT = {"shape": "stroke", "angle": 90}


def specification(result: Findings, *, panels: Sequence[str] = tuple(PANELS)) -> Spec:
    """Return the picture of a comparison; where it is too noisy for an order, its latencies are grey."""
    count, rows = max(1, len(result.rows)), result.rows
    values = {
        "rows": count, "names": _SHAPE + 14 + _SIGN * max((len(row.slug) for row in rows), default=0),
        "unit": _unit(rows), "sure": 1.0 if result.tells or any(row.running for row in rows) else _GREY,
        "graded": bool(_errors(rows)),
    }  # fmt: skip
    params = [{"name": name, "value": value} for name, value in values.items()]
    params += [{"name": name, "expr": expression} for name, expression in _places(panels).items()]
    return {**_drawn(tuple(panels)), "height": count * _ROW, "params": params}


def _places(panels: Sequence[str]) -> dict[str, str]:
    """Return where the panels and their figures are, as expressions of the width."""
    fixed = sum(PANELS[name].figures for name in panels) + _GAP * (len(panels) - 1)
    places = {
        "wide": f"width >= names + {fixed + _LEAST_PLOT * len(panels)}",
        "deep": f"rows * (wide ? {_ROW} : {_ROW_OF_TWO})",
        "free": f"(width - names - {fixed}) / {sum(PANELS[name].share for name in panels)}",
    }
    pixels = shares = 0
    for name in panels:
        panel, start = PANELS[name], f"names + {pixels} + free * {shares}"
        end = f"{start} + free * {panel.share}"
        beside = _LATENCY_FIGURE if name == "latency" else panel.figures
        places[f"{name}_from"] = f"wide ? {start} : width * {panel.begin} + 12"
        places[f"{name}_to"] = f"wide ? {end} : width * {panel.end}"
        places[f"{name}_figure"] = f"wide ? {end} + {beside} : width * {panel.figure}"
        places[f"{name}_all"] = f"wide ? {end} + {panel.figures} : width"
        pixels, shares = pixels + panel.figures + _GAP, shares + panel.share
    return places


# --- the layers ------------------------------------------------------------------------------------------------------


@functools.cache
def _drawn(panels: tuple[str, ...]) -> Spec:
    alone, first = len(panels) == 1, panels[0]
    room = "width" if alone else "(isValid(datum.peak_at) ? (wide ? latency_all : memory_from - 8) : width)"
    tips = {
        "strategy": "strategy", "latency": "latency", "first": "first call", "faster": "× baseline",
        "floored": f"× {limit.FLOOR}", "peak": "peak memory", "output": "output", "temporary": "temporary",
        "process": "process peak", "right": "largest error",
    }  # fmt: skip
    whole = {"x": alt.value(0), "x2": alt.value("width")}
    layers = [
        _mark("rect", "isValid(datum.tie_top)", {**whole, "y": _y("tie_top"), "y2": alt.Y2("tie_bottom")},
              color=INK, fillOpacity=0.07, cornerRadius=4),
        _mark("point", "true", {"x": alt.value(8), "y": _y("upper"), "color": COLOUR, "shape": SHAPE}, filled=True,
              size=70, opacity=1),
        # A phone has room for 36 signs; names that are longer are smaller there, and never cut.
        _words("strategy", _SHAPE, "upper", align="left", font=_CODE,
               fontSize=alt.ExprRef(f"wide ? 12 : min(12, 12 * (width - {_SHAPE + _LATENCY_FIGURE}) / (names - 32))")),
        _words("note", f"{first}_from", "lower", "" if first == "latency" else "!isValid(datum.peak_at)", align="left",
               opacity=0.8, limit=alt.ExprRef(f"{room} - {first}_from")),
        *(layer for panel in panels for layer in _LAYERS[panel]()),
        _mark("rect", "true", {**whole, "y": _y("order"), "y2": alt.Y2("below"), "tooltip": [
            alt.Tooltip(f"{field}:N", title=title) for field, title in tips.items()]}, opacity=0),
    ]  # fmt: skip
    drawn = base.spec(
        *layers, autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        padding={"left": 0, "top": 4, "right": 4, "bottom": 4},
    )  # fmt: skip
    places = {"upper": (0.5, 0.28), "lower": (0.5, 0.7), "floor_top": (0, 0.45), "below": (1, 1)}
    moved = [
        {"calculate": f"datum.order + (wide ? {one} : {two})", "as": name} for name, (one, two) in places.items()
    ]  # fmt: skip
    return {**drawn, "resolve": {"scale": {"x": "independent"}}, "transform": moved}


def _latency() -> list[Any]:
    def x(field: str) -> alt.X:
        scale = alt.Scale(type="log", nice=False, padding=8, range=_range("latency"))
        return alt.X(f"{field}:Q", scale=scale, axis=_axis("Latency (log)", labelExpr=SECONDS_AXIS))

    sure, wide = alt.ExprRef("sure"), alt.ExprRef("wide ? sure : 0")
    return [
        alt.layer(
            _mark("rule", "true", {"x": x("latency_low"), "x2": alt.X2("latency_high")}, opacity=0),
            _mark("rule", "isValid(datum.floor) && isValid(datum.median)",
                  {"x": x("floor"), "y": _y("floor_top"), "y2": alt.Y2("below")}, strokeDash=[3, 3], opacity=0.6,
                  color=INK),
            _mark("rule", "isValid(datum.low)", {"x": x("low"), "x2": alt.X2("high"), "color": COLOUR},
                  strokeWidth=3, opacity=alt.ExprRef("0.75 * sure")),
            _mark("point", "isValid(datum.median)", {"x": x("median"), "color": COLOUR, "shape": SHAPE},
                  filled=True, size=80, opacity=alt.ExprRef("datum.rough ? 0.45 : sure")),
        ),
        _words("value", "latency_figure", "upper", opacity=sure),
        _words("factor", "latency_all", "lower", opacity=wide),
        _words("factor_head", "latency_all", "order", dy=-11, fontSize=11, opacity=wide),
    ]  # fmt: skip


def _memory() -> list[Any]:
    def x(field: str) -> alt.X:
        axis = _axis(
            "Memory", labelExpr="wide ? format(datum.value, '~r') + ' ' + unit : ''", tickCount=4, tickOpacity=_WIDE
        )
        return alt.X(f"{field}:Q", scale=alt.Scale(zero=True, nice=False, range=_range("memory")), axis=axis)

    measured = "isValid(datum.peak_at)"
    return [
        alt.layer(
            _mark("rule", "true", {"x": x("zero"), "x2": alt.X2("memory_high")}, opacity=0),
            _mark("rule", measured, {"x": x("zero"), "x2": alt.X2("output_at"), "color": COLOUR}, strokeWidth=12),
            _mark("rule", measured, {"x": x("output_at"), "x2": alt.X2("peak_at"), "color": COLOUR}, strokeWidth=12,
                  opacity=0.4),
            _mark("point", measured, {"x": x("peak_at"), "color": COLOUR}, size=144, strokeWidth=1.5, **_UPRIGHT),
            _mark("point", "isValid(datum.process_at)", {"x": x("process_at")}, size=340, strokeWidth=2, color=INK,
                  opacity=0.75, **_UPRIGHT),
        ),
        _words("beyond", "memory_to", "lower", fontSize=13),
        _words("peak", "memory_figure", "lower"),
    ]  # fmt: skip


def _correctness() -> list[Any]:
    def x(field: str) -> alt.X:
        axis = _axis(
            "Largest error (log)", format=".0e", tickCount=3, labelExpr="wide && graded ? datum.label : ''",
            tickOpacity=alt.ExprRef("wide && graded ? 1 : 0"), titleOpacity=_WIDE,
        )  # fmt: skip
        scale = alt.Scale(type="log", nice=False, padding=6, range=_range("correctness"))
        return alt.X(f"{field}:Q", scale=scale, axis=axis)

    return [
        alt.layer(
            _mark("rule", "true", {"x": x("error_low"), "x2": alt.X2("error_high")}, opacity=0),
            _mark("point", "isValid(datum.allowed)", {"x": x("allowed")}, size=400, strokeWidth=1.5, color=INK,
                  opacity=_WIDE, **_UPRIGHT),
            _mark("point", "isValid(datum.error)", {"x": x("error"), "color": COLOUR, "shape": SHAPE}, filled=True,
                  size=55, opacity=_WIDE),
        ),
        _words("right", "correctness_figure", "lower"),
    ]  # fmt: skip


_LAYERS = {"latency": _latency, "memory": _memory, "correctness": _correctness}


def _mark(kind: str, where: str, channels: dict[str, Any], **more: Any) -> alt.Chart:
    """Return a mark of the rows ``where`` this is true. It is hidden from assistive technology: a kind of
    marks of which there is none would be a picture without a name. Rows are read by their words."""
    chart = getattr(base.unfilled().transform_filter(where), f"mark_{kind}")(aria=False, **more)
    return chart.encode(**{"y": _y("lower"), **channels})


def _words(field: str, at: str | int, line: str, where: str = "", **more: Any) -> alt.Chart:
    """Return a field's words, right-aligned at an expression, in one of a row's lines."""
    chart = base.unfilled().transform_filter(" && ".join(filter(None, (f"datum.{field} !== ''", where))))
    marked = chart.mark_text(**{"align": "right", "fontSize": 12, "color": INK, **more})
    return marked.encode(x=alt.value(alt.ExprRef(str(at))), y=_y(line), text=alt.Text(f"{field}:N"))


def _range(panel: str) -> list[Any]:
    return [alt.ExprRef(f"{panel}_from"), alt.ExprRef(f"{panel}_to")]


def _y(field: str) -> alt.Y:
    scale = alt.Scale(domain=[0, alt.ExprRef("rows")], range=[0, alt.ExprRef("deep")], nice=False, zero=False)
    return alt.Y(f"{field}:Q", scale=scale, axis=None)


def _axis(title: str, **more: Any) -> alt.Axis:
    return alt.Axis(
        title=title, orient="top", domain=False, grid=False, ticks=True, tickColor=INK, labelColor=INK,
        labelFontSize=11, labelPadding=3, labelOverlap="greedy", titleColor=INK, titleAnchor="start",
        titleAlign="left", titleFontSize=12, titleFontWeight=600, titlePadding=4, **more,
    )  # fmt: skip


# --- the rows --------------------------------------------------------------------------------------------------------


def frame(result: Findings, rough_s: Mapping[str, float] | None = None) -> pd.DataFrame:
    """Return one line a row, in seconds, in the unit of the memory axis, and errors relative to the result's scale.
    ``rough_s``: seconds of a call of strategies that are not timed yet, which stand behind those that are."""
    timed = {row.slug for row in result.rows if row.median_s is not None}
    rough_s = {slug: seconds for slug, seconds in (rough_s or {}).items() if slug not in timed}
    rows = sorted(result.rows, key=lambda row: (row.slug not in timed, rough_s.get(row.slug, math.inf)))
    floor_s = _floor_s(result) if timed else None
    seconds = [end for row in rows if row.median_s for end in (row.median_s, *(row.interval or ())) if end > 0]
    seconds += [*rough_s.values(), *([floor_s] if floor_s else [])]
    latency_low, latency_high = base.room(min(seconds), max(seconds), _LEAST_SPAN) if seconds else _UNTIMED_S
    errors = _errors(rows) or _UNCHECKED
    error_low, error_high = min(errors) / 3, min(max(errors) * 2, _MOST_ERROR)
    bands, end, unit = _bands(rows), _memory_end(rows), _UNITS[_unit(rows)]
    has_factors = sum(row.factor is not None for row in rows) > 1
    lines = []
    for order, row in enumerate(rows):
        top, bottom = bands.get(order, (None, None))
        rough, peak, process = rough_s.get(row.slug), row.peak_bytes, row.process_peak_bytes
        lines.append(
            {
                "strategy": row.slug, "order": order, "colour": look.colour_name(row.mapper), "mode": row.mode,
                "tie_top": top, "tie_bottom": bottom, "note": "" if row.slug in timed or rough else _note(row),
                "latency_low": latency_low, "latency_high": latency_high, "floor": floor_s,
                "median": row.median_s or rough, "low": row.low_s, "high": row.high_s, "rough": rough is not None,
                "value": f"about {look.seconds(rough, 1)}" if rough else "" if row.median_s is None else row.latency,
                "factor": _factor(row) if has_factors else "",
                "factor_head": "× baseline" if has_factors and not order else "",
                "zero": 0.0, "memory_high": end / unit,
                # Where an output aliases an input its bar ends at the peak, which is less.
                "output_at": None if peak is None else min(row.output_bytes or 0, peak) / unit,
                "peak_at": None if peak is None else peak / unit,
                "process_at": process / unit if process is not None and process <= end else None,
                "beyond": "→" if process is not None and process > end else "",
                "peak": "" if peak is None else look.size(peak),
                # Nothing is at the left edge of a logarithmic axis but what is exact.
                "error": None if row.max_of_scale is None else min(row.max_of_scale or error_low, error_high),
                "allowed": _allowed(row), "error_low": error_low, "error_high": error_high, "right": _right(row),
                # In the tooltip alone.
                "latency": look.seconds_with_interval(row.median_s, *row.interval)
                if row.median_s and row.interval else look.MISSING,
                "first": look.seconds(row.first_call_s), "floored": limit.shown(row.of_limit),
                "faster": " ".join(look.factor_with_interval(row.factor, row.factor_low, row.factor_high))
                if row.factor and row.factor_low and row.factor_high else look.factor(row.factor),
                "output": look.size(row.output_bytes), "temporary": look.size(row.temporary_bytes),
                "process": look.size(process),
            }
        )  # fmt: skip
    numbers = ("tie_top", "tie_bottom", "median", "low", "high", "floor", "output_at", "peak_at", "process_at", "error",
               "allowed")  # fmt: skip
    return pd.DataFrame(lines).astype(dict.fromkeys(numbers, float) if lines else {})


def _floor_s(result: Findings) -> float | None:
    """Return the run's limit where it says something of its strategies."""
    return result.run.limit.seconds if result.run.limit and limit.tells(result.run) else None


def _bands(rows: Sequence[Row]) -> dict[int, tuple[float, float]]:
    """Return the first row of each tie → the ends of its band, in rows."""
    ties = [row.tie if row.tied else None for row in rows]
    numbers = {tie for tie in ties if tie is not None}
    return {ties.index(tie): (ties.index(tie) + 0.05, len(ties) - ties[::-1].index(tie) - 0.05) for tie in numbers}


def _memory_end(rows: Sequence[Row]) -> float:
    """Return the bytes at which the axis ends."""
    bars = max((row.peak_bytes or 0 for row in rows), default=0)
    processes = max((row.process_peak_bytes or 0 for row in rows), default=0)
    return bars / _SHARE if bars and processes > _CROWDED * bars else max(bars, processes) or _UNITS["MiB"]


def _unit(rows: Sequence[Row]) -> str:
    end = _memory_end(rows)
    return next(name for name, size in reversed(_UNITS.items()) if end >= size or size == 1)


def _allowed(row: Row) -> float | None:
    """Return the error that is allowed relative to the result's scale: of its outputs' the largest."""
    check = row.measurement.correctness
    shares = [leaf.tolerance.get("relative") for leaf in check.leaves] if check else []
    return max((float(share) for share in shares if isinstance(share, (int, float)) and share), default=None)


def _errors(rows: Sequence[Row]) -> list[float]:
    return [value for row in rows for value in (row.max_of_scale, _allowed(row)) if value]


def _note(row: Row) -> str:
    reason = " ".join(row.sentence.split())
    if row.failed:
        return f"✗ did not work: {reason or row.status}"
    if row.running and not reason:
        return f"{row.status} …"
    return reason if reason.startswith("not timed") else f"not timed: {reason}".removesuffix(": ")


def _factor(row: Row) -> str:
    if row.ok is False:
        return "✗ wrong"
    if row.factor is None or row.factor_low is None or row.factor_high is None:
        return "baseline" if row.factor else ""
    return look.factor_with_interval(row.factor, row.factor_low, row.factor_high)[0]


def _right(row: Row) -> str:
    if row.ok is None:
        return ""
    error = row.max_of_scale
    if not row.ok:  # by a shape or a NaN, where the error is none
        return f"{look.error_size(error) if error and error > (_allowed(row) or 0.0) else 'wrong'} ✗"
    return "✓" if error is None else f"{look.error_size(error) if error else 'exact'} ✓"


# --- words -----------------------------------------------------------------------------------------------------------


def caption(result: Findings) -> str:
    """Return what the marks mean, as far as there are such marks; Markdown."""
    rows, run = result.rows, result.run
    processes = [row.process_peak_bytes for row in rows if row.process_peak_bytes is not None]
    memory = next((row.measurement.memory for row in rows if row.measurement.memory is not None), None)
    uncounted = f" (not counted: {look.size(memory.input_bytes)} of inputs" if memory else ""
    if memory:
        uncounted += f" and {look.size(memory.captured_bytes)} of variables)" if memory.captured_bytes else ")"
    has_floor = run.limit is not None and _floor_s(result) is not None
    marks = {
        "dot: time of one call": any(row.interval for row in rows),
        "bar: 95 % interval, the pace of the machine included": any(row.interval for row in rows),
        "band: a tie": bool(_bands(rows)),
        f"dashed: {limit.FLOOR}, {limit.describe(run.limit) if run.limit else ''}": has_floor,
        f"×: times as fast as {result.baseline}": result.baseline is not None,
        f"memory: output solid, temporary pale{uncounted}": memory is not None,
        "tick: process peak": any(peak <= _memory_end(rows) for peak in processes),
        "→: a process peak beyond the axis": any(peak > _memory_end(rows) for peak in processes),
        "error: relative to the result's scale; line: what rounding may do there": bool(_errors(rows)),
    }
    words = "; ".join(words for words, is_there in marks.items() if is_there)
    words = look.sentence(words) if words else ""
    pages = limit.fresh_pages(run) if has_floor else ""
    return look.named(f"{words} {pages}".strip(), [row.slug for row in rows])


def takeaway(result: Findings) -> str:
    """Return what the picture says, for people who do not see it."""
    rows, ranked = result.rows, result.ranked
    weighed = sorted((row for row in rows if row.peak_bytes is not None), key=lambda row: row.peak_bytes or 0)
    checked, wrong = any(row.ok is not None for row in rows), [row.slug for row in rows if row.ok is False]
    sentences = ["1 strategy" if len(rows) == 1 else f"{len(rows)} strategies"]
    if ranked:
        fastest = text.listed([row.slug for row in result.leaders], 4)
        sentences.append(f"fastest: {fastest} with {ranked[0].latency}")
        sentences.append(f"slowest: {ranked[-1].slug} with {ranked[-1].latency}")
    if weighed:
        least, most = (f"{look.size(row.peak_bytes)} ({row.slug})" for row in (weighed[0], weighed[-1]))
        sentences.append(f"peak memory of a call from {least} to {most}")
    if checked:
        sentences.append(f"wrong: {', '.join(wrong)}" if wrong else "all values that were checked are right")
    if failed := [row.slug for row in rows if row.failed and row.median_s is None]:
        sentences.append(f"did not work: {', '.join(failed)}")
    return f"{'; '.join(sentences)}."
