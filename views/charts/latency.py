"""Latencies: a dot with its interval for each strategy, ties in a bracket, the limit as a line. Pure."""

import functools
from collections import Counter

import altair as alt
import pandas as pd

from measure.judge import limit
from measure.output.rows import Row
from measure.run.run import Limit, Run
from views.charts import base, texts
from views.charts.base import (
    COLOUR,
    INK,
    PADDING,
    RIGHT_EDGE,
    SECONDS_AXIS,
    SHAPE,
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

_TOOLTIP = ("strategy", "latency", texts.FIRST_CALL, texts.FASTER)
# A logarithmic axis is labelled at 1, 2 and 5: of any factor of 5 it labels two values at least.
_LEAST_SPAN = 5.0
_UNTIMED_S = (1e-4, 0.1)  # seconds that the axis shows while nothing is timed


@functools.cache
def specification(*, floor: bool) -> Spec:
    """Return the chart; ``floor`` where the run's limit is drawn."""

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

    least = unfilled().transform_aggregate(floor="min(floor)")
    floor_line = least.mark_rule(strokeDash=[3, 3], opacity=0.7, color=INK, aria=False).encode(x=x("floor"))
    floor_text = floor_name(opacity=0.8).encode(x=x("floor"))
    # Rows are named by texts, and the chart by its own: marks of a kind that has none would be a nameless picture.
    intervals = (
        unfilled()
        .transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=3, opacity=0.75, aria=False)
        .encode(y=STRATEGY, x=x("low"), x2=alt.X2("high"), color=COLOUR)
    )
    dots = (
        unfilled()
        .transform_filter("isValid(datum.median)")
        .mark_point(filled=True, size=95, opacity=1, aria=False)
        .encode(
            y=STRATEGY,
            x=x("median"),
            color=COLOUR,
            shape=SHAPE,
            tooltip=tooltip(*_TOOLTIP, *((texts.OF_FLOOR,) if floor else ())),
        )
    )
    # A line through the rows of a tie, not a rule from the first to the last: a field of its own for the last one
    # would count when the rows are sorted.
    brackets = (
        unfilled()
        .transform_filter("isValid(datum.tie)")
        .mark_line(xOffset=6, strokeWidth=2, opacity=0.55, color=INK, aria=False)
        .encode(x=RIGHT_EDGE, y=STRATEGY, detail=alt.Detail(field="tie"), order=alt.Order(field="order"))
    )
    axis = reach("axis_low", "axis_high").encode(x=x("low"), x2=alt.X2("high"))
    shared = (axis, intervals, dots, brackets, value_column(), note())
    return spec(*((floor_line, floor_text) if floor else ()), *shared, padding=PADDING)


def floor_of(run: Run) -> Limit | None:
    """Return the run's limit where it says something of its strategies."""
    return run.limit if limit.tells(run) else None


def frame(rows: list[Row], floor: Limit | None) -> pd.DataFrame:
    """Return one row per strategy, in seconds; ``tie`` numbers the bracket that a strategy stands in. ``floor`` is the
    run's limit, where it is drawn."""
    bracketed = joined(rows)
    low, high = _axis(rows, floor)
    made = []
    for row in rows:
        ends = row.interval
        made.append(
            {
                "strategy": row.label,
                "order": row.order,
                "colour": look.colour_name(row.mapper),
                "mode": row.mode,
                "median": row.median_s,
                "low": ends and ends[0],
                "high": ends and ends[1],
                "tie": row.tie if row.slug in bracketed else None,
                "value": _value(row),
                "note": "" if row.median_s is not None else _why_not(row),
                "latency": _latency(row),
                texts.FIRST_CALL: look.seconds(row.first_call_s),
                texts.FASTER: look.factor(row.factor),
                "axis_low": low,
                "axis_high": high,
                **({} if floor is None else {"floor": floor.seconds, texts.OF_FLOOR: limit.shown(row.of_limit)}),
            }
        )
    numbers = ("median", "low", "high", "tie")
    return pd.DataFrame(made).astype(dict.fromkeys(numbers, float) if made else {})


def joined(rows: list[Row]) -> set[str]:
    """Return the strategies that brackets join: those that tie, but for one process alone, which is too little to say
    what it is like."""
    able = {row.slug: row.tie for row in rows if row.tied and row.interval is not None}
    company = Counter(able.values())
    return {slug for slug, tie in able.items() if company[tie] > 1}


def _axis(rows: list[Row], floor: Limit | None) -> tuple[float, float]:
    """Return the ends of the axis, so far apart that it has labels, in seconds."""
    seconds = [end for row in rows if row.median_s is not None for end in (row.median_s, *(row.interval or ()))]
    seconds += [] if floor is None else [floor.seconds]
    known = [value for value in seconds if value > 0]
    return base.room(min(known), max(known), _LEAST_SPAN) if known else _UNTIMED_S


def _why_not(row: Row) -> str:
    return texts.NOT_TIMED if row.outcome in ("ok", "not_run") else row.status


def _value(row: Row) -> str:
    """Return the latency; a cross tells that a strategy was timed but computes the wrong values."""
    if row.median_s is None:
        return ""
    return look.seconds(row.median_s) + (" ✕" if row.failed else "")


def _latency(row: Row) -> str:
    if row.median_s is None:
        return look.MISSING
    if row.interval is None:
        return look.seconds(row.median_s)
    return look.seconds_with_interval(row.median_s, *row.interval)


def caption(rows: list[Row], run: Run) -> str:
    """Return what the chart's marks mean, as far as it has them; plain text."""
    timed = [row for row in rows if row.median_s is not None]
    parts = [texts.DOT]
    parts += [texts.BAR] if any(row.interval for row in timed) else []
    parts += [texts.BRACKET] if joined(rows) else []
    floor = floor_of(run)
    if floor is not None:
        parts.append(texts.FLOOR.format(floor=limit.FLOOR, about=limit.describe(floor)))
    sentences = [look.sentence("; ".join(parts)), limit.fresh_pages(run) if floor is not None else ""]
    return " ".join(filter(None, sentences))


def takeaway(rows: list[Row]) -> str:
    """Return what the chart says, for people who do not see it."""
    timed = [row for row in rows if row.median_s is not None and row.outcome == "ok"]
    if not timed:
        return texts.NO_LATENCY
    slowest = max(timed, key=lambda row: row.median_s or 0.0)
    bracketed = joined(rows)
    fastest = [row for row in timed if row.slug in bracketed and row.tie == timed[0].tie] or timed[:1]
    leaders, latency = " and ".join(row.slug for row in fastest[:4]), look.seconds(fastest[0].median_s)
    return texts.LATENCIES.format(
        count=len(timed),
        fastest=texts.FASTEST_TIE.format(strategies=leaders, latency=latency)
        if len(fastest) > 1
        else texts.FASTEST.format(strategy=leaders, latency=latency),
        slowest=slowest.slug,
        latency=look.seconds(slowest.median_s),
    )
