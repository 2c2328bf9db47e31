"""The parts that charts share: the theme, channels, axes, and how an Altair chart becomes a specification. Pure.

A chart is built with Altair once: building a layered one at every rerun would cost more than all the rest of the page.
The page sends its specification with a frame and a key, so that new results move marks instead of drawing anew.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import altair as alt

from views.ui import look

MIB = 2**20
HEIGHT = 340  # pixels of a chart with few names
# In an SVG: the page's colour of text, so that charts follow light and dark without a rerun.
INK = "currentColor"

_FRAME = alt.NamedData("frame")  # one, so that layers share it

Spec = dict[str, Any]
_Channel = TypeVar("_Channel", alt.X, alt.Y)

# A mapper's colour is that of its name's place in the palette of the page's theme: it has one for light and for dark.
COLOUR = alt.Color("colour:N", scale=alt.Scale(domain=list(look.COLOUR_NAMES)), legend=None)
SHAPE = alt.Shape("mode:N", scale=alt.Scale(domain=list(look.MODES), range=list(look.SHAPES)), legend=None)
DASH = alt.StrokeDash("mode:N", scale=alt.Scale(domain=list(look.MODES), range=list(look.DASHES)), legend=None)
OPACITY = alt.Opacity("alpha:Q", scale=None, legend=None)

# Vega's SI prefixes would write 0.001 s as "1m"; of the many ticks of a logarithmic axis 1, 2 and 5 are named.
SECONDS_LABEL = (
    "indexof(['1', '2', '5'], format(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)), '.0f')) < 0 ? '' : "
    "datum.value >= 1 ? format(datum.value, '~r') + ' s' : "
    "datum.value >= 0.9999e-3 ? format(datum.value * 1e3, '~r') + ' ms' : format(datum.value * 1e6, '~r') + ' µs'"
)
# Between the powers of ten, a logarithmic axis has so many lines that they would be a hatch: those are faint.
DECADES = {
    "condition": {"test": "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6", "value": 1.0},
    "value": 0.2,
}
# Properties of logarithmic axes, of seconds and of MiB; that of memory is labelled at powers of two.
SECONDS: dict[str, Any] = {"labelExpr": SECONDS_LABEL, "tickCount": 6, "gridOpacity": DECADES}
MEMORY: dict[str, Any] = {
    "labelExpr": (
        "datum.value >= 1023 ? format(datum.value / 1024, '~r') + ' GiB' : datum.value >= 0.9 ? "
        "format(datum.value, '~r') + ' MiB' : datum.value * 1024 >= 0.9 ? format(datum.value * 1024, '~r') + ' KiB' : "
        "format(datum.value * 1048576, '~r') + ' B'"
    ),
    "values": [2.0**power for power in range(-20, 24)],
    "labelOverlap": True,
}
_MEMORY_SPAN = 4.0


@alt.theme.register("mapbench", enable=False)
def theme(ink: str = INK) -> alt.theme.ThemeConfig:
    """The looks that charts have beside those of the page: what has no colour of a mapper is in that of text."""
    top: Any = {
        "domain": False, "grid": False, "ticks": True, "tickColor": ink, "labelColor": ink, "labelFontSize": 11,
        "labelPadding": 3, "titleColor": ink, "titleAnchor": "start", "titleAlign": "left", "titleFontSize": 12,
        "titleFontWeight": 600, "titlePadding": 4,
    }  # fmt: skip
    marks: Any = {kind: {"color": ink} for kind in ("mark", "rule", "line", "point", "rect", "text")}
    return {"config": {**marks, "axisTop": top}}


def unfilled(kind: str = "") -> alt.Chart:
    """A chart without marks, for the frame that the page sends with the specification, or its rows of a ``kind``."""
    chart = alt.Chart(_FRAME)
    return chart.transform_filter(f"datum.kind === '{kind}'") if kind else chart


def log(channel: type[_Channel], title: str, padding: int = 0, **axis: Any) -> Callable[[str], _Channel]:
    """Channels on a logarithmic axis by their fields; ``padding``: pixels at both ends."""
    scale = alt.Scale(type="log", nice=False, padding=padding)
    return lambda field: channel(f"{field}:Q", scale=scale, axis=alt.Axis(title=title, **axis))


def tooltip(*fields: str) -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{field}:N") for field in fields]


def room(low: float, high: float, factor: float = _MEMORY_SPAN) -> tuple[float, float]:
    """The ends of a logarithmic axis that reaches over ``factor`` at least, with the data in its middle: an axis of
    less may have no label, or all of them at one place."""
    wider = max(1.0, factor * low / high) ** 0.5
    return low / wider, high * wider


def spec(*layers: Any, **properties: Any) -> Spec:
    """The layers as one specification. Tests validate it: here that would take half of the time in which a first page
    is drawn."""
    # Around a chart, in pixels; Vega adds what the names at the right take.
    properties = {"padding": {"left": 0, "top": 14, "right": 4, "bottom": 0}, **properties}
    with alt.theme.enable("mapbench"):
        drawn: Spec = alt.layer(*layers, **properties).to_dict(validate=False)
    del drawn["$schema"], drawn["data"]
    return drawn
