"""Latencies: a dot with its interval for each strategy, ties in a bracket, the limit as a line. Pure."""

import functools

import altair as alt
import pandas as pd

from measure.judge import limit
from measure.model.run import Limit
from measure.output.rows import Row
from views.charts.base import (
    COLOUR,
    INK,
    LIMIT_NAME,
    PADDING,
    RIGHT_EDGE,
    SECONDS_AXIS,
    SHAPE,
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

_TOOLTIP = ("strategy", "latency", "first call", "faster than baseline")
_OF_LIMIT = "multiple of the limit"


@functools.cache
def specification(*, limited: bool) -> Spec:
    """Return the chart; ``limited`` where the run knows the least time possible, and what sets it."""

    def x(field: str) -> alt.X:
        return alt.X(
            f"{field}:Q",
            scale=alt.Scale(type="log", nice=False, padding=14),
            axis=alt.Axis(
                title=None,
                labelExpr=SECONDS_AXIS,
                labelOverlap="greedy",
                labelColor=INK,
                grid=False,
                ticks=True,
            ),
        )

    least = unfilled().transform_aggregate(limit="min(limit)")
    limit_line = least.mark_rule(strokeDash=[3, 3], opacity=0.7, color=INK).encode(x=x("limit"))
    limit_text = limit_name(opacity=0.8).encode(x=x("limit"), text=alt.Text(field=LIMIT_NAME))
    intervals = (
        unfilled()
        .transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=3, opacity=0.75)
        .encode(y=STRATEGY, x=x("low"), x2=alt.X2("high"), color=COLOUR)
    )
    dots = (
        unfilled()
        .transform_filter("isValid(datum.median)")
        .mark_point(filled=True, size=95, opacity=1)
        .encode(
            y=STRATEGY,
            x=x("median"),
            color=COLOUR,
            shape=SHAPE,
            tooltip=tooltip(*_TOOLTIP, *((_OF_LIMIT,) if limited else ())),
        )
    )
    # A line through the rows of a tie, not a rule from the first to the last: a field of its own for the last one
    # would count when the rows are sorted.
    ties = (
        unfilled()
        .transform_filter("isValid(datum.tie)")
        .mark_line(xOffset=6, strokeWidth=2, opacity=0.55, color=INK)
        .encode(x=RIGHT_EDGE, y=STRATEGY, detail=alt.Detail(field="tie"), order=alt.Order(field="order"))
    )
    shared = (intervals, dots, ties, value_column(), note())
    return spec(*((limit_line, limit_text) if limited else ()), *shared, padding=PADDING)


def frame(rows: list[Row], least: Limit | None) -> pd.DataFrame:
    """Return one row per strategy, in seconds; ``tie`` numbers the tie group of a strategy that is not alone in it.
    ``least`` is the run's limit, where it knows one."""
    made = []
    for row in rows:
        has_interval = row.median_s is not None and row.low_s is not None and row.high_s is not None
        made.append(
            {
                "strategy": row.label,
                "order": row.order,
                "colour": look.colour_name(row.mapper),
                "mode": row.mode,
                "median": row.median_s,
                "low": row.low_s,
                "high": row.high_s,
                "tie": row.tie if row.tied else None,
                "value": _value(row),
                "note": "" if row.median_s is not None else row.status if row.failed else "not timed",
                "latency": _interval(row) if has_interval else look.MISSING,
                "first call": look.seconds(row.first_call_s),
                "faster than baseline": look.factor(row.factor),
                **({} if least is None else _limited(row, least)),
            }
        )
    numbers = ("median", "low", "high", "tie")
    return pd.DataFrame(made).astype(dict.fromkeys(numbers, float) if made else {})


def _value(row: Row) -> str:
    """Return the latency; a cross tells that a strategy was timed but has no rank."""
    if row.median_s is None:
        return ""
    return look.seconds(row.median_s) + ("" if row.outcome in ("ok", "not_run") else " ✕")


def _limited(row: Row, least: Limit) -> dict[str, object]:
    name = f"limit, {least.term}" if least.term else "limit"  # without what sets it in runs of an earlier Mapbench
    return {"limit": least.seconds, LIMIT_NAME: name, _OF_LIMIT: _of_limit(row)}


def _of_limit(row: Row) -> str:
    return row.of_limit_note or limit.shown(row.of_limit)


def _interval(row: Row) -> str:
    assert row.median_s is not None and row.low_s is not None and row.high_s is not None
    return look.seconds_with_interval(row.median_s, row.low_s, row.high_s)


def takeaway(rows: list[Row]) -> str:
    """Return what the chart says, for people who do not see it."""
    timed = [row for row in rows if row.median_s is not None and row.outcome == "ok"]
    if not timed:
        return "Latency of each strategy: none has been measured yet."
    slowest = max(timed, key=lambda row: row.median_s or 0.0)
    fastest = [row for row in timed if row.tie == timed[0].tie] if timed[0].tied else timed[:1]
    leaders = " and ".join(row.slug for row in fastest[:4])
    return (
        f"Latency of {len(timed)} strategies on a logarithmic axis: {leaders} {'tie' if len(fastest) > 1 else 'is'} "
        f"fastest with {look.seconds(timed[0].median_s)}, "
        f"{slowest.slug} is slowest with {look.seconds(slowest.median_s)}."
    )
