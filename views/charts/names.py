"""Names at the right of a chart, each beside the end of its line and clear of the others. Pure."""

from collections.abc import Callable
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd
import pyarrow as pa

from views.charts.base import COLOUR, DASH, INK, PADDING, RIGHT_EDGE, Spec, spec, tooltip, unfilled

HEIGHT = 340  # pixels of a chart with few names
NAME_HEIGHT = 16  # pixels that a name takes


def _height(count: int) -> int:
    return max(HEIGHT, count * NAME_HEIGHT)


def sized(drawn: Spec, frame: pa.Table) -> Spec:
    """Return the specification with a height that has room for the names of the frame's strategies."""
    return {**drawn, "height": _height(len(frame["strategy"].unique()))}


def clear(at: np.ndarray, apart: float, most: float) -> np.ndarray:
    """Move ascending places between 0 and ``most``, shape (n,), until they are ``apart``.

    The result is halfway between all moved up and all moved down, so names that share a place are around it.
    """
    steps = apart * np.arange(len(at))

    def up(places: np.ndarray) -> np.ndarray:
        moved = np.minimum(np.maximum.accumulate(places - steps) + steps, most)
        return np.minimum.accumulate((moved - steps)[::-1])[::-1] + steps

    return (up(at) + most - up(most - at[::-1])[::-1]) / 2


def placed(
    frame: pd.DataFrame, field: str, ends: pd.Series, *, log: bool, least: str | None = None, most: str | None = None
) -> pd.DataFrame:
    """Return the frame with two columns more, filled in each strategy's last row: ``end``, the height at which its line
    ends, and ``beside``, a height near it that is clear of the other names.

    Colours alone would not tell all mappers apart. ``ends`` holds the height for each strategy, on the axis of
    ``field``; the axis goes from the lowest of ``least`` to the highest of ``most``, where these are other fields.
    """
    low, high = 0.0, frame[most or field].max()
    if log:
        low, high = np.log(frame[least or field].min()), np.log(high)
    span = high - low or 1.0
    ends = ends.sort_values(kind="stable")
    at = (np.log(ends.to_numpy()) if log else ends.to_numpy()) - low
    places = clear(at, span * NAME_HEIGHT / _height(len(ends)), span)
    beside = pd.Series(np.exp(low + places) if log else low + places, ends.index)
    last = ~frame["strategy"].duplicated(keep="last")
    return frame.assign(end=frame["strategy"].map(ends).where(last), beside=frame["strategy"].map(beside).where(last))


def layers(y: Callable[[str], alt.Y], *, coloured: bool = False) -> list[alt.Chart]:
    """Return the names of a chart whose axis is ``y(field)``, and the lines that lead to them from where their
    strategies end. ``coloured`` names have the colour of their lines."""
    named = unfilled().transform_filter("isValid(datum.beside)")
    leaders = named.mark_rule(x2Offset=10, opacity=0.8).encode(
        x=RIGHT_EDGE, x2=RIGHT_EDGE, y=y("end"), y2=alt.Y2("beside"), color=COLOUR
    )
    weight: Literal["bold", "normal"] = "bold" if coloured else "normal"
    beside = named.mark_text(align="left", dx=13, fontSize=11, fontWeight=weight, color=INK).encode(
        x=RIGHT_EDGE, y=y("beside"), text=alt.Text(field="strategy")
    )
    return [leaders, beside.encode(color=COLOUR) if coloured else beside]


def curves(x: alt.X, y: Callable[[str], alt.Y], field: str, *tips: str, **line: Any) -> Spec:
    """Return a line for each strategy with its name at the end. ``tips``: columns of the tooltip, which invisible
    points carry, since lines are thin to point at; ``line``: properties of the lines."""
    base = unfilled().encode(x=x, y=y(field), color=COLOUR, detail=alt.Detail(field="strategy"))
    lines = base.mark_line(strokeWidth=2, **line).encode(strokeDash=DASH)
    points = base.mark_point(opacity=0, size=120).encode(tooltip=tooltip("strategy", *tips))
    return spec(lines, points, *layers(y), height=HEIGHT, padding=PADDING)
