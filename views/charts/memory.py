"""Memory: a bar for each strategy, output and temporary apart, and the process peak as a tick. Pure."""

import functools

import altair as alt
import pandas as pd

from measure.output.rows import Row
from views.charts.base import (
    COLOUR,
    COLOUR_SCALE,
    INK,
    MIB,
    MIB_AXIS,
    PADDING,
    RIGHT_EDGE,
    STRATEGY,
    Spec,
    limit_name,
    note,
    spec,
    tooltip,
    unfilled,
    value_column,
)
from views.ui import look


@functools.cache
def specification(*, limited: bool) -> Spec:
    """Return the chart; ``limited`` where that of latencies beside it has a limit, whose name takes room above the
    rows."""

    def x(field: str) -> alt.X:
        return alt.X(
            f"{field}:Q",
            scale=alt.Scale(zero=True, nice=False, padding=2),
            # Ticks as the axis of latencies has them: beside it, the rows of both charts are level.
            axis=alt.Axis(title=None, labelExpr=MIB_AXIS, labelColor=INK, tickCount=4, grid=False, ticks=True),
        )

    tip = tooltip("strategy", "peak", "output", "temporary", "process peak")
    thickness = alt.RelativeBandSize(band=0.56)
    output = (
        unfilled()
        .transform_filter("isValid(datum.output_mib)")
        .mark_bar(height=thickness)
        .encode(y=STRATEGY, x=x("zero"), x2=alt.X2("output_mib"), color=COLOUR, tooltip=tip)
    )
    temporary = (
        unfilled()
        .transform_filter("isValid(datum.peak_mib) && datum.peak_mib > datum.output_mib")
        .mark_bar(height=thickness, fillOpacity=0.35, strokeWidth=1.2)
        .encode(
            y=STRATEGY,
            x=x("output_mib"),
            x2=alt.X2("peak_mib"),
            color=COLOUR,
            stroke=alt.Stroke("colour:N", scale=COLOUR_SCALE, legend=None),
            tooltip=tip,
        )
    )
    process = (
        unfilled()
        .transform_filter("isValid(datum.process_mib)")
        .mark_tick(thickness=2, height=alt.RelativeBandSize(band=0.85), color=INK, opacity=0.75)
        .encode(y=STRATEGY, x=x("process_mib"), tooltip=tip)
    )
    room = [limit_name(opacity=0).encode(x=RIGHT_EDGE)] if limited else []
    return spec(*room, output, temporary, process, value_column(), note(), padding=PADDING)


def frame(rows: list[Row]) -> pd.DataFrame:
    """Return one row per strategy, in MiB. Where an output aliases an input the bar ends at the peak, which is less."""
    made = []
    for row in rows:
        known = row.peak_bytes is not None and row.output_bytes is not None
        made.append(
            {
                "strategy": row.label,
                "order": row.order,
                "colour": look.colour_name(row.mapper),
                "mode": row.mode,
                "zero": 0.0,
                "output_mib": min(row.output_bytes or 0, row.peak_bytes or 0) / MIB if known else None,
                "peak_mib": (row.peak_bytes or 0) / MIB if known else None,
                "process_mib": row.process_peak_bytes / MIB if row.process_peak_bytes is not None else None,
                "value": look.size(row.peak_bytes) if known else "",
                "note": "" if known else row.status if row.failed else "not measured",
                "peak": look.size(row.peak_bytes),
                "output": look.size(row.output_bytes),
                "temporary": look.size(row.temporary_bytes),
                "process peak": look.size(row.process_peak_bytes),
            }
        )
    numbers = ("output_mib", "peak_mib", "process_mib")
    return pd.DataFrame(made).astype(dict.fromkeys(numbers, float) if made else {})


def takeaway(rows: list[Row]) -> str:
    """Return what the chart says, for people who do not see it."""
    known = [row for row in rows if row.peak_bytes is not None]
    if not known:
        return "Memory of each strategy: none has been measured yet."
    least = min(known, key=lambda row: row.peak_bytes or 0)
    most = max(known, key=lambda row: row.peak_bytes or 0)
    return (
        f"Peak memory of one call of {len(known)} strategies: from {look.size(least.peak_bytes)} ({least.slug}) "
        f"to {look.size(most.peak_bytes)} ({most.slug}, of which {look.size(most.temporary_bytes)} are temporary)."
    )
