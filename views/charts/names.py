"""Lines with their names at the right, each beside the end of its line and clear of the others. Pure."""

from collections.abc import Callable
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pyarrow as pa

from views.charts.base import COLOUR, DASH, HEIGHT, SHAPE, Spec, tooltip

_NAME_HEIGHT = 16  # pixels that a name takes
_EDGE = alt.value("width")


def sized(drawn: Spec, frame: pa.Table | pd.DataFrame) -> Spec:
    """The specification, higher where the names of the frame's strategies need it."""
    return {**drawn, "height": drawn["height"] - HEIGHT + _height(len(frame["strategy"].unique()))}


def _height(count: int) -> int:
    return max(HEIGHT, count * _NAME_HEIGHT)


def placed(
    frame: pd.DataFrame, field: str, *, at: str = "last", log: bool = True, ends: tuple[float, float] | None = None
) -> pd.DataFrame:
    """The frame with two columns more, filled in each strategy's last row: ``end``, the height at which its line ends
    (or its median, as ``at`` says), and ``beside``, a height near it that is clear of the other names. ``ends``: of the
    axis, where they are not the least and the largest value of ``field``."""
    if frame.empty:
        return frame
    low, high = ends or (frame[field].min() if log else 0.0, frame[field].max())
    low, high = (np.log(low), np.log(high)) if log else (low, high)
    heights = frame.groupby("strategy")[field].agg(at).sort_values(kind="stable")
    wanted = np.log(heights.to_numpy()) if log else heights.to_numpy()
    span = high - low or 1.0
    places = low + clear(wanted - low, span * _NAME_HEIGHT / _height(len(heights)), span)
    beside = pd.Series(np.exp(places) if log else places, heights.index)
    last = ~frame["strategy"].duplicated(keep="last")
    return frame.assign(
        end=frame["strategy"].map(heights).where(last), beside=frame["strategy"].map(beside).where(last)
    )


def clear(at: np.ndarray, apart: float, most: float) -> np.ndarray:
    """Move ascending places between 0 and ``most``, shape (n,), until they are ``apart``: halfway between all moved up
    and all moved down, so that names that share a place are around it."""
    steps = apart * np.arange(len(at))

    def up(places: np.ndarray) -> np.ndarray:
        moved = np.minimum(np.maximum.accumulate(places - steps) + steps, most)
        return np.minimum.accumulate((moved - steps)[::-1])[::-1] + steps

    return (up(at) + most - up(most - at[::-1])[::-1]) / 2


def layers(chart: alt.Chart, y: Callable[[str], alt.Y]) -> list[alt.Chart]:
    """The names of a chart whose axis is ``y(field)``, and what leads to them from where their lines end."""
    named = chart.transform_filter("isValid(datum.beside)")
    leaders = named.mark_rule(x2Offset=10, strokeWidth=1.5)
    words = named.mark_text(align="left", dx=13, fontSize=11)
    return [
        leaders.encode(x=_EDGE, x2=_EDGE, y=y("end"), y2=alt.Y2("beside"), color=COLOUR),
        words.encode(x=_EDGE, y=y("beside"), text=alt.Text(field="strategy")),
    ]


def curves(
    chart: alt.Chart, x: alt.X, y: Callable[[str], alt.Y], field: str, *tips: str, dots: int = 0, **line: Any
) -> list[alt.Chart]:
    """A line for each strategy, its points, and its name at the end. ``tips``: columns of the tooltip, which points
    carry, since lines are thin to point at; ``dots``: their opacity; ``line``: properties of the lines."""
    based = chart.encode(x=x, y=y(field), color=COLOUR, detail=alt.Detail(field="strategy"))
    lines = based.mark_line(strokeWidth=2, **line).encode(strokeDash=DASH)
    points = based.mark_point(filled=True, opacity=dots, size=36 if dots else 120)
    return [lines, points.encode(shape=SHAPE, tooltip=tooltip("strategy", *tips)), *layers(chart, y)]
