"""The map of winners: a cell for each point of two axes, in the colour of the strategy that is fastest there. Pure."""

from collections import Counter
from collections.abc import Mapping

import altair as alt
import pandas as pd

from measure.judge.lines import inferred, measured, place, readable
from measure.judge.sweep_findings import SweepFindings
from measure.run import text
from measure.run.run import Point, Run
from views.charts import failures
from views.charts.base import COLOUR, INK, PADDING, Spec, spec, tooltip, unfilled
from views.ui import look
from views.ui.memo import Memo

SELECTION = "cell"
_CELL_HEIGHT = 46
_AXIS_HEIGHT = 50  # it is part of a chart's height
_MOST_LETTERS = 3
# Opacity of a cell in the colour of its winner, and of one that was not measured.
_MEASURED, _INFERRED = 0.5, 0.14
_STATES = {"running": "being measured", "budget": "not reached", "skipped": "left out"}
_memo = Memo(__name__)


def specification(across: str, up: str) -> Spec:
    return _memo.get((across, up), lambda: _specification(across, up))


def _specification(across: str, up: str) -> Spec:
    axis = alt.Axis(title=across, format=",", labelAngle=0, ticks=False, domain=False, labelOverlap=True)
    at = {
        "x": alt.X("x:O", axis=axis),
        "y": alt.Y("y:O", sort="descending", axis=alt.Axis(title=up, format=",", ticks=False, domain=False)),
        "tooltip": tooltip("at", "fastest", "latency", "without", "state"),
    }
    cells = unfilled().mark_rect(fillOpacity=0, stroke=INK, strokeOpacity=0.25, strokeWidth=1).encode(**at)
    # A layer of marks that has none would be a picture without a name; the cells themselves are named by the first.
    won = unfilled().transform_filter("datum.colour !== ''").mark_rect(aria=False).encode(
        **at, color=COLOUR, fillOpacity=alt.FillOpacity("alpha:Q", scale=None)
    )  # fmt: skip
    letters = unfilled().mark_text(fontSize=13, fontWeight="bold", color=INK, limit=alt.expr("bandwidth('x')"))
    chosen = alt.selection_point(name=SELECTION, fields=[SELECTION], on="click", empty=False)
    return spec(
        cells, won, letters.encode(**at, text=alt.Text(field="letters")).add_params(chosen), padding=PADDING
    )  # fmt: skip


def sized(drawn: Spec, run: Run) -> Spec:
    return {**drawn, "height": _AXIS_HEIGHT + _CELL_HEIGHT * len({point.at[run.axes[1].name] for point in run.points})}


def letters(sweep: SweepFindings) -> dict[str, str]:
    """Map each winning line to the letter that stands for it in the cells, in the order of the lines."""
    leading = {name: None for point in sweep.run.points for name in sweep.leaders(point)}
    in_order = [line.slug for line in sweep.lines if line.slug in leading]
    # One that an earlier version inferred may have been measured nowhere.
    named = dict.fromkeys((*in_order, *leading))
    return {name: chr(ord("A") + number % 26) * (1 + number // 26) for number, name in enumerate(named)}


def cell(run: Run, point: Point) -> str:
    """Return the value that a click selects: it names the run, too, as a click outlives the run that is shown."""
    return " ".join(map(str, (run.id, *place(point))))


def frame(sweep: SweepFindings) -> pd.DataFrame:
    across, up = (axis.name for axis in sweep.run.axes)
    codes, mappers = letters(sweep), {line.slug: line.mapper for line in sweep.lines}
    rows = []
    for point in sweep.run.points:
        first = sweep.leaders(point)
        shown = "=".join(sorted(codes[name] for name in first)[:_MOST_LETTERS])
        shown += "…" if len(first) > _MOST_LETTERS else ""
        latencies = {item.strategy: item.latency for item in point.measurements}
        fastest = latencies.get(first[0]) if first else None
        rows.append(
            {
                SELECTION: cell(sweep.run, point),
                "x": point.at[across],
                "y": point.at[up],
                "colour": look.colour_name(mappers.get(first[0], "")) if len(first) == 1 else "",
                "alpha": _INFERRED if inferred(point) else _MEASURED,
                "letters": shown or _sign(point),
                "at": readable(point.at),
                "fastest": " and ".join(first) or look.MISSING,
                "latency": look.seconds_with_interval(fastest.median_s, fastest.low_s, fastest.high_s)
                if fastest
                else look.MISSING,
                "without": failures.without(point) or look.MISSING,
                "state": state(point),
            }
        )
    return pd.DataFrame(rows)


def _sign(point: Point) -> str:
    return "…" if point.status == "running" else "✕" if point.status in ("skipped", "complete") else ""


def state(point: Point) -> str:
    """Return in words how far a point is."""
    if inferred(point):
        return "not measured: its neighbours agree"
    if point.ranking:
        return "measured"
    if point.status == "complete":
        return "no winner"
    return text.standing(_STATES.get(point.status, point.status), point.reason)


def legend_html(sweep: SweepFindings) -> str:
    """Return the letter of each strategy in its colour."""
    of = {line.slug: (line.mapper, line.mode) for line in sweep.lines}
    names = "".join(
        f'<span style="white-space:nowrap">{_box(look.css_colour(of.get(name, ("", ""))[0]), letter)} '
        f"{look.strategy_html(name, *of.get(name, ('', '')))}</span>"
        for name, letter in letters(sweep).items()
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;font-size:.88rem">{names}</div>'


def _box(colour: str, letter: str) -> str:
    return (
        '<span aria-hidden="true" style="display:inline-block;min-width:1.5em;text-align:center;font-weight:700;'
        "border:1px solid color-mix(in srgb, currentColor 35%, transparent);"
        f'background:color-mix(in srgb, {colour} 50%, transparent)">{letter}</span>'
    )


def about(sweep: SweepFindings) -> str:
    """Return what the cells' looks mean, of those that there are."""
    points = sweep.run.points
    signs: Mapping[str, bool] = {
        "Without colour: a tie.": any(len(sweep.leaders(point)) > 1 for point in points),
        "✕: nothing is ranked.": any(_sign(point) == "✕" and not point.ranking for point in points),
        "…: being measured.": any(_sign(point) == "…" and not point.ranking for point in points),
        "Pale: not measured, an earlier Mapbench inferred it from its neighbours.": any(map(inferred, points)),
    }
    return " ".join(sign for sign, shown in signs.items() if shown)


def takeaway(sweep: SweepFindings) -> str:
    """Return what the map says, for people who do not see it."""
    over = f"Map of winners over {' and '.join(axis.name for axis in sweep.run.axes)}"
    won = Counter(name for point in measured(sweep.run) for name in sweep.leaders(point)).most_common()
    if not won:
        return f"{over}: nothing has been measured yet."
    winners = ", ".join(f"{name} in {count}" for name, count in won)
    return f"{over}, {len(sweep.run.points)} cells. Fastest or tied: {winners}."
