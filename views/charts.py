"""The charts of a comparison: Vega-Lite specifications that never change, and the frames that fill them. Pure.

A specification is a plain dict, built once: the page sends it with a frame and a key, so that new results move marks
instead of drawing anew. Colours come from the theme (its categorical range has the mappers' order), so that light and
dark follow the browser without a rerun.
"""

from typing import Any

import pandas as pd

from views import look
from views.rows import Row

ROW_HEIGHT = 26
# In an SVG: the theme's colour of text, so that it follows light and dark.
INK = "currentColor"
_MIB = 2**20

Spec = dict[str, Any]

COLOUR = {
    "field": "colour",
    "type": "nominal",
    "scale": {"domain": list(look.COLOUR_NAMES)},
    "legend": None,
}
SHAPE = {
    "field": "mode",
    "type": "nominal",
    "scale": {"domain": list(look.MODES), "range": list(look.SHAPES)},
    "legend": None,
}
DASH = {
    "field": "mode",
    "type": "nominal",
    "scale": {"domain": list(look.MODES), "range": list(look.DASHES)},
    "legend": None,
}
# Vega's SI prefixes would write 0.001 s as "1m"; of the many ticks of a logarithmic axis 1, 2 and 5 are named.
SECONDS_AXIS = (
    "indexof(['1', '2', '5'], format(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)), '.0f')) < 0 ? '' : "
    "datum.value >= 1 ? format(datum.value, '~r') + ' s' : "
    "datum.value >= 0.9999e-3 ? format(datum.value * 1e3, '~r') + ' ms' : format(datum.value * 1e6, '~r') + ' µs'"
)
_Y = {
    "field": "strategy",
    "type": "nominal",
    "sort": {"op": "min", "field": "order"},
    "scale": {"type": "band", "padding": 0},
    "axis": {
        "title": None,
        "labelLimit": 190,
        "ticks": False,
        "domain": False,
        "grid": False,
        "labelPadding": 6,
        "labelFlush": False,
        "labelColor": INK,
    },
}
# Room around a chart, in pixels; Vega adds what the column of values at the right takes.
_VALUES = {"left": 0, "top": 14, "right": 4, "bottom": 0}


def _value_column(field: str) -> Spec:
    return {
        "mark": {"type": "text", "align": "left", "dx": 12, "fontSize": 12, "color": INK},
        "encoding": {"y": _Y, "x": {"value": "width"}, "text": {"field": field}},
    }


_NOTE: Spec = {
    "transform": [{"filter": "datum.note !== ''"}],
    "mark": {
        "type": "text",
        "align": "right",
        "dx": -6,
        "fontStyle": "italic",
        "fontSize": 12,
        "opacity": 0.75,
        "color": INK,
    },
    "encoding": {"y": _Y, "x": {"value": "width"}, "text": {"field": "note"}},
}


def _tooltip(*fields: str) -> list[Spec]:
    return [{"field": field, "type": "nominal"} for field in fields]


def _latency_spec() -> Spec:
    x = {
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "padding": 14},
        "axis": {
            "title": None,
            "labelExpr": SECONDS_AXIS,
            "labelOverlap": "greedy",
            "labelColor": INK,
            "grid": False,
            "ticks": True,
        },
    }
    tip = _tooltip("strategy", "latency", "first call", "faster than baseline", "multiple of the limit")
    limit: Spec = {
        "transform": [
            {"filter": "isValid(datum.limit)"},
            {"aggregate": [{"op": "min", "field": "limit", "as": "limit"}]},
        ]
    }
    return {
        "padding": _VALUES,
        "layer": [
            {
                **limit,
                "mark": {"type": "rule", "strokeDash": [3, 3], "opacity": 0.7, "color": INK},
                "encoding": {"x": {**x, "field": "limit"}},
            },
            {
                **limit,
                "mark": {
                    "type": "text",
                    "align": "center",
                    "dy": -8,
                    "fontSize": 11,
                    "opacity": 0.8,
                    "text": "limit",
                    "color": INK,
                },
                "encoding": {"x": {**x, "field": "limit"}, "y": {"value": 0}},
            },
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.75},
                "encoding": {"y": _Y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": COLOUR},
            },
            {
                "transform": [{"filter": "isValid(datum.median)"}],
                "mark": {"type": "point", "filled": True, "size": 95, "opacity": 1},
                "encoding": {
                    "y": _Y,
                    "x": {**x, "field": "median"},
                    "color": COLOUR,
                    "shape": SHAPE,
                    "tooltip": tip,
                },
            },
            # A line through the rows of a tie, not a rule from the first to the last: a field of its own for the last
            # one would count when the rows are sorted.
            {
                "transform": [{"filter": "isValid(datum.tie)"}],
                "mark": {"type": "line", "xOffset": 6, "strokeWidth": 2, "opacity": 0.55, "color": INK},
                "encoding": {
                    "x": {"value": "width"},
                    "y": _Y,
                    "detail": {"field": "tie"},
                    "order": {"field": "order"},
                },
            },
            _value_column("value"),
            _NOTE,
        ],
    }


def _memory_spec() -> Spec:
    x = {
        "type": "quantitative",
        "scale": {"zero": True, "nice": False, "padding": 2},
        "axis": {"title": None, "labelExpr": "datum.label + ' MiB'", "labelColor": INK, "tickCount": 4, "grid": False},
    }
    tip = _tooltip("strategy", "peak", "output", "temporary", "process peak")
    return {
        "padding": _VALUES,
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.output_mib)"}],
                "mark": {"type": "bar", "height": {"band": 0.56}},
                "encoding": {
                    "y": _Y,
                    "x": {**x, "field": "zero"},
                    "x2": {"field": "output_mib"},
                    "color": COLOUR,
                    "tooltip": tip,
                },
            },
            {
                "transform": [{"filter": "isValid(datum.peak_mib) && datum.peak_mib > datum.output_mib"}],
                "mark": {"type": "bar", "height": {"band": 0.56}, "fillOpacity": 0.35, "strokeWidth": 1.2},
                "encoding": {
                    "y": _Y,
                    "x": {**x, "field": "output_mib"},
                    "x2": {"field": "peak_mib"},
                    "color": COLOUR,
                    "stroke": COLOUR,
                    "tooltip": tip,
                },
            },
            {
                "transform": [{"filter": "isValid(datum.process_mib)"}],
                "mark": {"type": "tick", "thickness": 2, "height": {"band": 0.85}, "color": INK, "opacity": 0.75},
                "encoding": {"y": _Y, "x": {**x, "field": "process_mib"}, "tooltip": tip},
            },
            _value_column("value"),
            _NOTE,
        ],
    }


LATENCY = _latency_spec()
MEMORY = _memory_spec()


def sized(spec: Spec, rows: int) -> Spec:
    """The specification with a height that gives every strategy its row."""
    return {**spec, "height": max(2, rows) * ROW_HEIGHT}


def latency_frame(rows: list[Row], limit_s: float | None) -> pd.DataFrame:
    """One line per strategy; ``tie`` numbers the tie group of those that are not alone in theirs."""
    lines = []
    for row in rows:
        has_interval = row.median_s is not None and row.low_s is not None and row.high_s is not None
        lines.append(
            {
                "strategy": row.label,
                "order": row.order,
                "colour": row.colour,
                "mode": row.mode,
                "median": row.median_s,
                "low": row.low_s,
                "high": row.high_s,
                "limit": limit_s,
                "tie": row.tie if row.tied else None,
                "value": _value(row),
                "note": "" if row.median_s is not None else row.status if row.failed else "not timed",
                "latency": _interval(row) if has_interval else look.MISSING,
                "first call": look.seconds(row.first_call_s),
                "faster than baseline": look.factor(row.factor),
                "multiple of the limit": look.factor(row.of_limit),
            }
        )
    frame = pd.DataFrame(lines)
    return frame.astype(dict.fromkeys(("median", "low", "high", "limit", "tie"), float)) if lines else frame


def _value(row: Row) -> str:
    """Its latency; a cross tells that what was timed so has no rank."""
    if row.median_s is None:
        return ""
    return look.seconds(row.median_s) + ("" if row.outcome in ("ok", "not_run") else " ✕")


def _interval(row: Row) -> str:
    assert row.median_s is not None and row.low_s is not None and row.high_s is not None
    return look.seconds_with_interval(row.median_s, row.low_s, row.high_s)


def memory_frame(rows: list[Row]) -> pd.DataFrame:
    """One line per strategy, in MiB. Where an output aliases an input the bar ends at the peak, which is less."""
    lines = []
    for row in rows:
        known = row.peak_bytes is not None and row.output_bytes is not None
        lines.append(
            {
                "strategy": row.label,
                "order": row.order,
                "colour": row.colour,
                "mode": row.mode,
                "zero": 0.0,
                "output_mib": min(row.output_bytes or 0, row.peak_bytes or 0) / _MIB if known else None,
                "peak_mib": (row.peak_bytes or 0) / _MIB if known else None,
                "process_mib": row.process_peak_bytes / _MIB if row.process_peak_bytes is not None else None,
                "value": look.size(row.peak_bytes) if known else "",
                "note": "" if known else row.status if row.failed else "not measured",
                "peak": look.size(row.peak_bytes),
                "output": look.size(row.output_bytes),
                "temporary": look.size(row.temporary_bytes),
                "process peak": look.size(row.process_peak_bytes),
            }
        )
    frame = pd.DataFrame(lines)
    return frame.astype(dict.fromkeys(("output_mib", "peak_mib", "process_mib"), float)) if lines else frame


def revised(frame: pd.DataFrame, *revision: object) -> pd.DataFrame:
    """The frame with a last column that differs whenever anything in it may differ.

    Streamlit's front end takes a frame for the same, or for the same with rows added, if the last column agrees in the
    first and the last line, and then keeps the old marks.
    """
    return frame.assign(revision=" ".join(map(str, revision)))


def latency_takeaway(rows: list[Row]) -> str:
    """What the chart of latencies says, for people who do not see it."""
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


def memory_takeaway(rows: list[Row]) -> str:
    known = [row for row in rows if row.peak_bytes is not None]
    if not known:
        return "Memory of each strategy: none has been measured yet."
    least = min(known, key=lambda row: row.peak_bytes or 0)
    most = max(known, key=lambda row: row.peak_bytes or 0)
    return (
        f"Peak memory of one call of {len(known)} strategies: from {look.size(least.peak_bytes)} ({least.slug}) "
        f"to {look.size(most.peak_bytes)} ({most.slug}, of which {look.size(most.temporary_bytes)} are temporary)."
    )
