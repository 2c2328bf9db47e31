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
_STATES = {"running": "being measured", "budget": "not reached", "skipped": "left out"}


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
    codes, mappers = letters(sweep), {line.slug: line.mapper for line in sweep.lines}
    rows = []
    for point in sweep.run.points:
        first = sweep.leaders(point)
        codes_here = sorted(codes[name] for name in first if name in codes)
        more = "…" if len(codes_here) > _MOST_LETTERS else ""
        latencies = {item.strategy: item.latency for item in point.measurements}
        latency = latencies.get(first[0]) if first else None
        rows.append(
            {
                SELECTION: cell(sweep.run, point), "x": point.at[across], "y": point.at[up],
                "colour": look.colour_name(mappers.get(first[0], "")) if len(first) == 1 else "",
                "letters": "=".join(codes_here[:_MOST_LETTERS]) + more + "?" * _is_unsure(sweep, point) or _sign(point),
                "at": readable(point.at), "fastest": " and ".join(first) or look.MISSING,
                "latency": look.seconds_with_interval(latency.median_s, latency.low_s, latency.high_s)
                if latency else look.MISSING,
                "state": _state(sweep, point),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def _is_unsure(sweep: SweepFindings, point: Point) -> bool:
    return bool(sweep.leaders(point) and sweep.missing(point))


def _state(sweep: SweepFindings, point: Point) -> str:
    if _is_unsure(sweep, point):
        return f"{text.listed(sweep.missing(point))} not timed, and may be faster"
    return "too noisy to rank" if point.ranking and not sweep.leaders(point) else state(point)


def _sign(point: Point) -> str:
    return "…" if point.status == "running" else "✕" if point.status in ("skipped", "complete") else ""


@lru_cache(maxsize=50)
def specification(across: str, up: str) -> Spec:
    x = alt.Axis(title=across, format=",", labelAngle=0, ticks=False, domain=False, labelOverlap=True)
    y = alt.Axis(title=up, format=",", ticks=False, domain=False)
    based = unfilled().encode(
        x=alt.X("x:O", axis=x), y=alt.Y("y:O", sort="descending", axis=y),
        tooltip=tooltip("at", "fastest", "latency", "state"),
    )  # fmt: skip
    cells = based.mark_rect(filled=False, fill="transparent", strokeOpacity=0.25)
    # A layer of marks that has none would be a picture without a name; the cells themselves are named by the first.
    won = based.transform_filter("datum.colour !== ''").mark_rect(aria=False, fillOpacity=0.5).encode(color=COLOUR)
    words = based.mark_text(fontSize=13, fontWeight="bold", limit=alt.expr("bandwidth('x')"))
    chosen = alt.selection_point(name=SELECTION, fields=[SELECTION], on="click", empty=False)
    return spec(cells, won, words.encode(text=alt.Text(field="letters")).add_params(chosen))


def sized(drawn: Spec, run: Run) -> Spec:
    return {**drawn, "height": _AXIS_HEIGHT + _CELL_HEIGHT * len({point.at[run.axes[1].name] for point in run.points})}


def state(point: Point) -> str:
    if point.ranking:
        return "measured"
    if point.status == "complete":
        return "no winner"
    return text.standing(_STATES.get(point.status, point.status), point.reason)


def legend_html(sweep: SweepFindings) -> str:
    of, codes = {line.slug: line for line in sweep.lines}, letters(sweep)
    names = (f"<b>{codes[name]}</b>&ensp;{look.strategy_html(name, of[name].mapper, of[name].mode)}" for name in codes)
    items = "".join(f'<span style="white-space:nowrap">{name}</span>' for name in names)
    return f'<div style="display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;font-size:.88rem">{items}</div>'


def about(sweep: SweepFindings) -> str:
    """The meaning of the cells' looks, of those that there are."""
    points = sweep.run.points
    signs = {
        "Without colour: a tie.": any(len(sweep.leaders(point)) > 1 for point in points),
        "?: a strategy that was not timed may be faster.": any(_is_unsure(sweep, point) for point in points),
        "✕: nothing is ranked.": any(_sign(point) == "✕" and not sweep.leaders(point) for point in points),
        "…: being measured.": any(_sign(point) == "…" and not sweep.leaders(point) for point in points),
    }
    return " ".join(sign for sign, shown in signs.items() if shown)


def takeaway(sweep: SweepFindings) -> str:
    """The map in words, for people who do not see it."""
    axes = " and ".join(axis.name for axis in sweep.run.axes)
    return f"Map of winners over {axes}, {len(sweep.run.points)} cells. {verdict(sweep)}"
