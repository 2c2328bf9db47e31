"""The map of winners: a cell for each point of two axes, in the colour of the strategy that is fastest there. Pure."""

from functools import lru_cache

import altair as alt
import pandas as pd

from measure.judge.lines import place, readable
from measure.judge.sweep_findings import SweepFindings, verdict
from measure.run import text
from measure.run.run import Point, Run
from views.charts.base import COLOUR, Spec, spec, tooltip, unfilled
from views.ui import look

SELECTION = "cell"
_CELL_HEIGHT, _AXIS_HEIGHT = 46, 50  # pixels
_MOST_LETTERS = 3
_SIGNS = {"=": "a tie", "?": "not sure", "~": "too noisy or too short", "✕": "nothing is ranked", "…": "being measured"}


def cell(run: Run, point: Point) -> str:
    """The value that a click selects: it names the run, too, as a click outlives the run that is shown."""
    return " ".join(map(str, (run.id, *place(point))))


def letters(sweep: SweepFindings) -> dict[str, str]:
    """Winning line → the letter that stands for it in the cells, in the order of the lines."""
    leading = {name for point in sweep.run.points for name in sweep.leaders(point)}
    winners = [line.slug for line in sweep.lines if line.slug in leading]
    return {name: chr(ord("A") + number % 26) * (1 + number // 26) for number, name in enumerate(winners)}


def frame(sweep: SweepFindings) -> pd.DataFrame:
    across, up = (axis.name for axis in sweep.run.axes)
    rows = []
    for point, mark in zip(sweep.run.points, _marks(sweep), strict=True):
        first = sweep.points[place(point)].leaders if sweep.leaders(point) else []
        latency = first[0].measurement.latency if first else None
        rows.append(
            {
                SELECTION: cell(sweep.run, point), "x": point.at[across], "y": point.at[up],
                "colour": look.colour_name(first[0].mapper) if len(first) == 1 else "",
                "alpha": 0.15 if sweep.is_unsure(point) else 0.5, "letters": mark,
                "at": readable(point.at), "result": state(sweep, point),
                "latency": look.seconds_with_interval(latency.median_s, latency.low_s, latency.high_s)
                if latency else look.MISSING,
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def _marks(sweep: SweepFindings) -> list[str]:
    """The text of each cell: the letters of those that lead, or a sign."""
    codes, marks = letters(sweep), list[str]()
    for point in sweep.run.points:
        here = sorted(codes[name] for name in sweep.leaders(point))
        mark = "=".join(here[:_MOST_LETTERS]) + "+" * (len(here) > _MOST_LETTERS) + "?" * sweep.is_unsure(point)
        sign = {"running": "…", "skipped": "✕", "complete": "✕"}.get(point.status, "")
        marks.append(mark or ("~" if point.ranking and sign != "…" else sign))
    return marks


@lru_cache(maxsize=50)
def specification(across: str, up: str) -> Spec:
    x = alt.Axis(title=across, format=",", labelAngle=0, ticks=False, domain=False, labelOverlap=True)
    y = alt.Axis(title=up, format=",", ticks=False, domain=False)
    based = unfilled().encode(
        x=alt.X("x:O", axis=x), y=alt.Y("y:O", sort="descending", axis=y),
        tooltip=tooltip("at", "result", "latency"),
    )  # fmt: skip
    cells = based.mark_rect(filled=False, fill="transparent", strokeOpacity=0.25)
    # A layer of marks that has none would be a picture without a name; the cells themselves are named by the first.
    won = based.transform_filter("datum.colour !== ''").mark_rect(aria=False)
    won = won.encode(color=COLOUR, fillOpacity=alt.FillOpacity("alpha:Q", scale=None))
    words = based.mark_text(fontSize=13, fontWeight="bold", limit=alt.expr("bandwidth('x')"))
    chosen = alt.selection_point(name=SELECTION, fields=[SELECTION], on="click", empty=False)
    return spec(cells, won, words.encode(text=alt.Text(field="letters")).add_params(chosen))


def sized(drawn: Spec, run: Run) -> Spec:
    return {**drawn, "height": _AXIS_HEIGHT + _CELL_HEIGHT * len({point.at[run.axes[1].name] for point in run.points})}


def state(sweep: SweepFindings, point: Point) -> str:
    """The statement on a point, with the reason why it was not measured."""
    words = sweep.statement(point)
    return words if point.ranking or point.status == "complete" else text.standing(words, point.reason)


def legend_html(sweep: SweepFindings) -> str:
    of, codes = {line.slug: line for line in sweep.lines}, letters(sweep)
    names = (f"<b>{codes[name]}</b>&ensp;{look.strategy_html(name, of[name].mapper, of[name].mode)}" for name in codes)
    items = "".join(f'<span style="white-space:nowrap">{name}</span>' for name in names)
    return f'<div style="display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;font-size:.88rem">{items}</div>'


def about(sweep: SweepFindings) -> str:
    """The meaning of the cells' looks, of those that there are."""
    shown = "".join(_marks(sweep))
    return " ".join(f"{sign}: {words}." for sign, words in _SIGNS.items() if sign in shown)


def takeaway(sweep: SweepFindings) -> str:
    """The map in words, for people who do not see it."""
    axes = " and ".join(axis.name for axis in sweep.run.axes)
    return f"Map of winners over {axes}, {len(sweep.run.points)} cells. {verdict(sweep)}"
