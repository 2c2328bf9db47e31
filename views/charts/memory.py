"""Memory: a bar for each strategy, output and temporary apart, and the process peak as a tick. Pure."""

import functools

import altair as alt
import pandas as pd

from measure.output.rows import Row
from views.charts import texts
from views.charts.base import (
    COLOUR,
    COLOUR_SCALE,
    INK,
    PADDING,
    RIGHT_EDGE,
    STRATEGY,
    Spec,
    floor_name,
    note,
    reach,
    spec,
    tooltip,
    unfilled,
    value_column,
)
from views.ui import look

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
# Process peaks may take half of the axis: beyond that they are named at its end, and bars get this share of it.
_CROWDED, _SHARE = 2.0, 0.6


@functools.cache
def specification(unit: str, *, floor: bool) -> Spec:
    """Return the chart, with its axis in ``unit``; ``floor`` where the chart of latencies beside it has the name of a
    line above its rows."""

    def x(field: str) -> alt.X:
        # Ticks as the axis of latencies has them: beside it, the rows of both charts are level.
        axis = alt.Axis(
            title=None, labelExpr=f"datum.label + ' {unit}'", labelColor=INK, tickCount=4, grid=False, ticks=True
        )
        return alt.X(f"{field}:Q", scale=alt.Scale(zero=True, nice=False, padding=2), axis=axis)

    tip = tooltip("strategy", "peak", "output", "temporary", texts.PROCESS_PEAK)
    thickness = alt.RelativeBandSize(band=0.56)
    # As in the chart of latencies, a kind of marks that has none would be a picture without a name.
    output = (
        unfilled()
        .transform_filter("isValid(datum.output_at)")
        .mark_bar(height=thickness, aria=False)
        .encode(y=STRATEGY, x=x("zero"), x2=alt.X2("output_at"), color=COLOUR, tooltip=tip)
    )
    temporary = (
        unfilled()
        .transform_filter("isValid(datum.peak_at) && datum.peak_at > datum.output_at")
        .mark_bar(height=thickness, fillOpacity=0.35, strokeWidth=1.2, aria=False)
        .encode(
            y=STRATEGY,
            x=x("output_at"),
            x2=alt.X2("peak_at"),
            color=COLOUR,
            stroke=alt.Stroke("colour:N", scale=COLOUR_SCALE, legend=None),
            tooltip=tip,
        )
    )
    process = (
        unfilled()
        .transform_filter("isValid(datum.process_at)")
        .mark_tick(thickness=2, height=alt.RelativeBandSize(band=0.85), color=INK, opacity=0.75, aria=False)
        .encode(y=STRATEGY, x=x("process_at"), tooltip=tip)
    )
    beyond = (
        unfilled()
        .transform_filter("datum.beyond !== ''")
        .mark_text(align="right", dx=-2, fontSize=11, color=INK, opacity=0.75)
        .encode(y=STRATEGY, x=RIGHT_EDGE, text=alt.Text(field="beyond"), tooltip=tip)
    )
    room = [floor_name(opacity=0).encode(x=RIGHT_EDGE)] if floor else []
    axis = reach("zero", "axis_high").encode(x=x("low"), x2=alt.X2("high"))
    return spec(axis, *room, output, temporary, process, beyond, value_column(), note(), padding=PADDING)


def unit(rows: list[Row]) -> str:
    """Return the unit of the axis: the one in which its end is a number from 1 to 1023."""
    end = _end(rows)
    return next(name for name, size in reversed(_UNITS.items()) if end >= size or size == 1)


def frame(rows: list[Row]) -> pd.DataFrame:
    """Return one row per strategy, in its `unit`. Where an output aliases an input the bar ends at the peak, which is
    less. ``beyond`` names a process peak that lies beyond the axis."""
    end, scale = _end(rows), _UNITS[unit(rows)]
    made = []
    for row in rows:
        known = row.peak_bytes is not None and row.output_bytes is not None
        process = row.process_peak_bytes
        made.append(
            {
                "strategy": row.label,
                "order": row.order,
                "colour": look.colour_name(row.mapper),
                "mode": row.mode,
                "zero": 0.0,
                "axis_high": end / scale,
                "output_at": min(row.output_bytes or 0, row.peak_bytes or 0) / scale if known else None,
                "peak_at": (row.peak_bytes or 0) / scale if known else None,
                "process_at": process / scale if process is not None and process <= end else None,
                "beyond": f"{look.size(process)} →" if process is not None and process > end else "",
                "value": look.size(row.peak_bytes) if known else "",
                "note": "" if known else texts.NOT_MEASURED if row.outcome in ("ok", "not_run") else row.status,
                "peak": look.size(row.peak_bytes),
                "output": look.size(row.output_bytes),
                "temporary": look.size(row.temporary_bytes),
                texts.PROCESS_PEAK: look.size(process),
            }
        )
    numbers = ("output_at", "peak_at", "process_at")
    return pd.DataFrame(made).astype(dict.fromkeys(numbers, float) if made else {})


def _end(rows: list[Row]) -> float:
    """Return the bytes at which the axis ends: process peaks that would crush the bars do not count."""
    bars = max((row.peak_bytes or 0 for row in rows), default=0)
    processes = max((row.process_peak_bytes or 0 for row in rows), default=0)
    if bars and processes > _CROWDED * bars:
        return bars / _SHARE
    return max(bars, processes) or _UNITS["MiB"]


def caption(rows: list[Row]) -> str:
    """Return what the chart's marks mean, as far as it has them; plain text."""
    peaks = [row.process_peak_bytes for row in rows if row.process_peak_bytes is not None]
    parts = [texts.SOLID, texts.PALE]
    parts += [texts.TICK] if any(peak <= _end(rows) for peak in peaks) else []
    parts += [texts.ARROW] if any(peak > _end(rows) for peak in peaks) else []
    marks = look.sentence("; ".join(parts))
    known = next((row for row in rows if row.input_bytes is not None), None)
    if known is None:
        return marks
    uncounted = texts.VARIABLES_NOT_COUNTED if known.captured_bytes else texts.INPUTS_NOT_COUNTED
    inputs, variables = look.size(known.input_bytes), look.size(known.captured_bytes)
    return f"{marks} {uncounted.format(inputs=inputs, variables=variables)}"


def takeaway(rows: list[Row]) -> str:
    """Return what the chart says, for people who do not see it."""
    known = [row for row in rows if row.peak_bytes is not None]
    if not known:
        return texts.NO_MEMORY
    least = min(known, key=lambda row: row.peak_bytes or 0)
    most = max(known, key=lambda row: row.peak_bytes or 0)
    return texts.MEMORIES.format(
        count=len(known),
        least=look.size(least.peak_bytes),
        thriftiest=least.slug,
        most=look.size(most.peak_bytes),
        hungriest=most.slug,
        temporary=look.size(most.temporary_bytes),
    )
