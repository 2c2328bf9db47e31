"""The parts that charts share: channels, axes, rows, and how an Altair chart becomes a specification. Pure.

A chart is built with Altair once, when its module is imported: building a layered one at every rerun would cost more
than all the rest of the page. The page sends its specification with a frame and a key, so that new results move marks
instead of drawing anew. Colours come from the theme (its categorical range has the mappers' order), so that light and
dark follow the browser without a rerun.
"""

from collections.abc import Callable
from typing import Any

import altair as alt

from views.ui import look

# In an SVG: the theme's colour of text, so that it follows light and dark.
INK = "currentColor"
MIB = 2**20

Spec = dict[str, Any]
_FRAME = alt.NamedData("frame")

COLOUR = alt.Color("colour:N", scale=alt.Scale(domain=list(look.COLOUR_NAMES)), legend=None)
SHAPE = alt.Shape("mode:N", scale=alt.Scale(domain=list(look.MODES), range=list(look.SHAPES)), legend=None)
DASH = alt.StrokeDash("mode:N", scale=alt.Scale(domain=list(look.MODES), range=list(look.DASHES)), legend=None)
# Vega's SI prefixes would write 0.001 s as "1m"; of the many ticks of a logarithmic axis 1, 2 and 5 are named.
SECONDS_AXIS = (
    "indexof(['1', '2', '5'], format(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)), '.0f')) < 0 ? '' : "
    "datum.value >= 1 ? format(datum.value, '~r') + ' s' : "
    "datum.value >= 0.9999e-3 ? format(datum.value * 1e3, '~r') + ' ms' : format(datum.value * 1e6, '~r') + ' µs'"
)
# Between the powers of ten, a logarithmic axis has so many lines that they would be a hatch: those are faint.
DECADES = {
    "condition": {"test": "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6", "value": 1.0},
    "value": 0.2,
}
_MEMORY_AXIS = (
    "datum.value >= 1023 ? format(datum.value / 1024, '~r') + ' GiB' : datum.value >= 0.9 ? "
    "format(datum.value, '~r') + ' MiB' : datum.value * 1024 >= 0.9 ? format(datum.value * 1024, '~r') + ' KiB' : "
    "format(datum.value * 1048576, '~r') + ' B'"
)
_MEMORY_TICKS = [2.0**power for power in range(-20, 24)]
# The factor that a logarithmic axis of memory reaches over at least: it is labelled at powers of two.
MEMORY_SPAN = 4.0
RIGHT_EDGE = alt.value("width")
# Room around a chart, in pixels; Vega adds what the column of values at the right takes.
PADDING = {"left": 0, "top": 14, "right": 4, "bottom": 0}


def tooltip(*fields: str) -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{field}:N") for field in fields]


def unfilled() -> alt.Chart:
    """Return a chart without marks, for the frame that the page will send with the specification."""
    return alt.Chart(_FRAME)


def of_kind(kind: str) -> alt.Chart:
    """Return a chart without marks, for the frame's rows of one ``kind``."""
    return unfilled().transform_filter(f"datum.kind === '{kind}'")


def seconds_axis(title: str, padding: int = 0) -> Callable[[str], alt.Y]:
    """Return what makes a channel on a logarithmic axis of seconds from its field; ``padding``: pixels at both ends."""
    return lambda field: alt.Y(
        f"{field}:Q",
        scale=alt.Scale(type="log", nice=False, padding=padding),
        axis=alt.Axis(title=title, labelExpr=SECONDS_AXIS, tickCount=6, gridOpacity=DECADES),
    )


def memory_axis(title: str) -> alt.Axis:
    """Return the axis of a logarithmic scale in MiB."""
    return alt.Axis(title=title, labelExpr=_MEMORY_AXIS, values=_MEMORY_TICKS, labelOverlap=True)


def room(low: float, high: float, factor: float) -> tuple[float, float]:
    """Return the ends of a logarithmic axis that reaches over ``factor`` at least, with the data in its middle: an axis
    of less may have no label, or all of them at one place."""
    wider = max(1.0, factor * low / high) ** 0.5
    return low / wider, high * wider


def spec(*layers: alt.Chart, **properties: Any) -> Spec:
    """Return the layers as one specification, without Altair's own theme: the looks of a page are Streamlit's. Tests
    validate it: here that would take half of the time in which a first page is drawn."""
    with alt.theme.enable("none"):
        drawn: Spec = alt.layer(*layers, **properties).to_dict(validate=False)
    del drawn["$schema"], drawn["data"]
    return drawn
