"""The map of winners: a cell for each point of two axes, in the colour of the strategy that is fastest there. Pure."""

import html
from collections.abc import Iterable

import altair as alt
import pandas as pd

from measure.judge.lines import Line, inferred, leaders, lines, place, readable
from measure.run import text
from measure.run.run import Point, Run
from views.charts import failures, texts
from views.charts.base import COLOUR, COLOUR_SCALE, INK, PADDING, Spec, spec, tooltip, unfilled
from views.ui import look
from views.ui.memo import Memo

SELECTION = "cell"
_CELL_HEIGHT = 46
_AXIS_HEIGHT = 50  # it is part of a chart's height
# Pixels: of a cell where some tie, the height of the stripes in the second's and the third's colour, and their places.
_STRIPE = 8
_STRIPES_AT = {"second": -13, "third": 13}
_MOST_LETTERS = 3
# Opacity of a cell in the colour of its winner.
_ALPHA = {"measured": 0.5, "inferred": 0.14}
_memo = Memo(__name__)
# In a cell without a winner.
_SIGNS = {"without": "✕", "running": "…"}


def specification(across: str, up: str) -> Spec:
    return _memo.get((across, up), lambda: _specification(across, up))


def _specification(across: str, up: str) -> Spec:
    x = alt.X(
        "x:O", axis=alt.Axis(title=across, format=",", labelAngle=0, ticks=False, domain=False, labelOverlap=True)
    )
    y = alt.Y("y:O", sort="descending", axis=alt.Axis(title=up, format=",", ticks=False, domain=False))
    tip = tooltip("at", "fastest", "by", "without", "state")
    cell = {"x": x, "y": y}
    empty = (
        unfilled().mark_rect(fillOpacity=0, stroke=INK, strokeOpacity=0.25, strokeWidth=1).encode(**cell, tooltip=tip)
    )
    won = unfilled().transform_filter("datum.colour !== ''")
    # A layer of marks that has none would be a picture without a name; the cells themselves are named by the first.
    fill = won.mark_rect(aria=False).encode(
        **cell, color=COLOUR, fillOpacity=alt.FillOpacity("alpha:Q", scale=None), tooltip=tip
    )
    # A tie has stripes around its letters, of two both in the second's colour; each has an edge, since two modes of a
    # mapper, and two mappers to some eyes, are one colour.
    stripes = [
        unfilled()
        .transform_filter(f"datum.{field} !== ''")
        .mark_rect(
            height=_STRIPE, yOffset=offset, stroke=INK, strokeWidth=1, strokeOpacity=0.45, cursor="pointer", aria=False
        )
        .encode(
            **cell,
            color=alt.Color(f"{field}:N", scale=COLOUR_SCALE, legend=None),
            fillOpacity=alt.FillOpacity("alpha:Q", scale=None),
            tooltip=tip,
        )
        for field, offset in _STRIPES_AT.items()
    ]
    chosen = alt.selection_point(name=SELECTION, fields=[SELECTION], on="click", empty=False)
    letters = (
        unfilled()
        .mark_text(fontSize=13, fontWeight="bold", color=INK, limit=alt.expr("bandwidth('x')"))
        .encode(**cell, text=alt.Text(field="letters"), tooltip=tip)
        .add_params(chosen)
    )
    return spec(empty, fill, *stripes, letters, padding=PADDING)


def sized(drawn: Spec, run: Run) -> Spec:
    return {**drawn, "height": _AXIS_HEIGHT + _CELL_HEIGHT * len({point.at[run.axes[1].name] for point in run.points})}


def letters(run: Run) -> dict[str, str]:
    """Map each winning line to the letter that stands for it in the cells, in the order in which the lines were asked
    for."""
    leading = {name for point in run.points for name in leaders(point, run.axes)}
    asked = [line.slug for line in lines(run.points, run.axes)]
    known = sorted(leading, key=lambda name: asked.index(name) if name in asked else len(asked))
    return {name: chr(ord("A") + number % 26) * (1 + number // 26) for number, name in enumerate(known)}


def cell(run: Run, point: Point) -> str:
    """Return the value that a click selects: it names the run, too, as a click outlives the run that is shown."""
    return " ".join(map(str, (run.id, *place(point))))


def frame(run: Run) -> pd.DataFrame:
    across, up = run.axes[0].name, run.axes[1].name
    codes = letters(run)
    lines_ = _by_slug(run)
    rows = []
    for point in run.points:
        first = leaders(point, run.axes)
        codes_here = [codes[name] for name in first]
        colours = [look.colour_name(_mapper_and_mode(lines_.get(name))[0]) for name in first]
        shown = "=".join(codes_here[:_MOST_LETTERS]) + ("…" if len(first) > _MOST_LETTERS else "")
        rows.append(
            {
                SELECTION: cell(run, point),
                "x": point.at[across],
                "y": point.at[up],
                "colour": colours[0] if colours else "",
                "second": colours[1] if len(colours) > 1 else "",
                "third": colours[min(2, len(colours) - 1)] if len(colours) > 1 else "",
                "shade": shade(point),
                "alpha": _ALPHA.get(shade(point), 0.0),
                "letters": shown or _SIGNS.get(shade(point), ""),
                "at": readable({across: point.at[across], up: point.at[up]}),
                "fastest": " and ".join(first) if first else look.MISSING,
                "by": point.verdict or look.MISSING,
                "without": failures.without(point) or look.MISSING,
                "state": state(point),
            }
        )
    return pd.DataFrame(rows)


def _by_slug(run: Run) -> dict[str, Line]:
    return {line.slug: line for line in lines(run.points, run.axes)}


def _mapper_and_mode(line: Line | None) -> tuple[str, str]:
    """Return those of a line, which has no measurement where an imported run names it only as a winner."""
    return (line.mapper, line.mode) if line is not None else ("", "")


def shade(point: Point) -> str:
    """Return how a cell is drawn: a key of the legend's shades. That it is a tie comes on top."""
    if point.ranking:
        return "inferred" if inferred(point) else "measured"
    if point.status in ("running", "waiting"):
        return point.status
    return "without" if point.status in ("skipped", "complete") else "missed"


def shades(run: Run) -> list[str]:
    """Return the shades that the cells of a run have, in the order of the legend."""
    seen = {shade(point) for point in run.points}
    if any(len(leaders(point, run.axes)) > 1 for point in run.points):
        seen.add("tie")
    return [name for name in texts.SHADES if name in seen]


def state(point: Point) -> str:
    if inferred(point):
        return point.reason or texts.SHADES["inferred"]
    if point.ranking:
        return texts.SHADES["measured"]
    if point.status == "complete":
        return texts.SHADES["without"]
    return text.standing(texts.STATES.get(point.status, point.status), point.reason)


def legend_html(run: Run) -> str:
    """Return the legend: the letter of each strategy in its colour, and every shade that a cell of this run has."""
    lines_ = _by_slug(run)
    names = []
    for name, letter in letters(run).items():
        mapper, mode = _mapper_and_mode(lines_.get(name))
        names.append(f"{_box(_tint(look.css_colour(mapper), 50), letter)} {look.strategy_html(name, mapper, mode)}")
    return _flow(names) + _flow(f"{_swatch(name)} {html.escape(texts.SHADES[name])}" for name in shades(run))


def _flow(parts: Iterable[str]) -> str:
    spans = "".join(f'<span style="white-space:nowrap">{part}</span>' for part in parts)
    return f'<div style="display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;font-size:.88rem;margin:.1rem 0">{spans}</div>'


def _swatch(name: str) -> str:
    """Return a small cell of this shade, in no strategy's colour."""
    if name == "tie":
        fill, stripe, edge = (_tint("currentColor", percent) for percent in (50, 15, 75))
        return _box(f"linear-gradient({stripe} 0 27%, {edge} 27% 33%, {fill} 33% 67%, {edge} 67% 73%, {stripe} 73%)")
    return _box(_tint("currentColor", round(100 * _ALPHA.get(name, 0.0))), _SIGNS.get(name, ""))


def _tint(colour: str, percent: int) -> str:
    return f"color-mix(in srgb, {colour} {percent}%, transparent)"


def _box(background: str, letter: str = "") -> str:
    return (
        '<span aria-hidden="true" style="display:inline-block;min-width:1.5em;height:1.35em;line-height:1.3em;'
        "padding:0 .25em;box-sizing:border-box;text-align:center;font-weight:700;vertical-align:middle;"
        f'border:1px solid color-mix(in srgb, currentColor 35%, transparent);background:{background}">{letter}</span>'
    )


def takeaway(run: Run) -> str:
    """Return what the map says, for people who do not see it."""
    won: dict[str, int] = {}
    for point in run.points:
        for name in leaders(point, run.axes):
            won[name] = won.get(name, 0) + 1
    across, up = run.axes[0].name, run.axes[1].name
    if not won:
        return texts.NO_MAP.format(across=across, up=up)
    most_first = sorted(won.items(), key=lambda item: -item[1])
    winners = ", ".join(texts.CELLS_WON.format(strategy=name, count=count) for name, count in most_first)
    return texts.MAP.format(across=across, up=up, count=len(run.points), winners=winners)
