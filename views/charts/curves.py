"""The charts behind a comparison: total time against calls, every sample, memory over one call. Pure."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import altair as alt
import numpy as np
import pandas as pd
import pyarrow as pa

from measure.model.run import Latency, Measurement, Run
from measure.output.rows import Row, strategies_of
from measure.statistics import break_even
from views.charts.base import (
    COLOUR,
    DASH,
    DECADES,
    INK,
    MIB,
    MIB_AXIS,
    PADDING,
    RIGHT_EDGE,
    SECONDS_AXIS,
    SHAPE,
    Spec,
    spec,
    tooltip,
    unfilled,
)
from views.ui import look

_HEIGHT = 340
NAME_HEIGHT = 16  # pixels that a name beside the chart takes
_MOST_CALLS = 1_000_000


def _height(names: int) -> int:
    return max(_HEIGHT, names * NAME_HEIGHT)


def sized(drawn: Spec, frame: pa.Table) -> Spec:
    """The specification with a height that has room for the names of the frame's strategies."""
    return {**drawn, "height": _height(len(frame["strategy"].unique()))}


def _pushed_up(places: np.ndarray, apart: float, most: float) -> np.ndarray:
    """Ascending places, moved up until they are ``apart``; from the top down those that this took beyond ``most``."""
    steps = apart * np.arange(len(places))
    up = np.maximum.accumulate(places - steps) + steps
    return np.minimum.accumulate((np.minimum(up, most) - steps)[::-1])[::-1] + steps


def clear(at: np.ndarray, apart: float, most: float) -> np.ndarray:
    """Ascending places between 0 and ``most``, moved until they are ``apart``: between what goes up and what goes down
    to be clear of others, so that those which share a place are around it."""
    return (_pushed_up(at, apart, most) + most - _pushed_up(most - at[::-1], apart, most)[::-1]) / 2


def named(
    frame: pd.DataFrame, field: str, ends: pd.Series, *, log: bool, least: str | None = None, most: str | None = None
) -> pd.DataFrame:
    """The frame with a name for each strategy, beside the height at which it ends but clear of the other names.

    Colours alone would not tell all mappers apart. ``ends``: the height for each strategy, on the axis of ``field``;
    it goes from the lowest of ``least`` to the highest of ``most``, where they are other fields.
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


def names(y: Callable[[str], alt.Y], *, coloured: bool = False) -> list[alt.Chart]:
    """The names at the right of a chart whose axis is ``y(field)``, each with a line to where its strategy ends.

    ``coloured``: in the colour of their lines.
    """
    named = unfilled().transform_filter("isValid(datum.beside)")
    leaders = named.mark_rule(x2Offset=10, opacity=0.8).encode(
        x=RIGHT_EDGE, x2=RIGHT_EDGE, y=y("end"), y2=alt.Y2("beside"), color=COLOUR
    )
    weight: Literal["bold", "normal"] = "bold" if coloured else "normal"
    words = named.mark_text(align="left", dx=13, fontSize=11, fontWeight=weight, color=INK).encode(
        x=RIGHT_EDGE, y=y("beside"), text=alt.Text(field="strategy")
    )
    return [leaders, words.encode(color=COLOUR) if coloured else words]


@dataclass(frozen=True)
class Stretch:
    """From ``first`` calls on, up to the next stretch, ``slug`` has cost the least in total; with an interval of that
    number, but where it leads at once."""

    slug: str
    first: int
    low: int | None = None
    high: int | None = None

    @property
    def said(self) -> str:
        """``37 [20, 66] calls``."""
        interval = f" [{self.low:,}, {self.high:,}]" if self.low is not None and self.high is not None else ""
        return f"{self.first:,}{interval} calls"


def cheapest(rows: list[Row]) -> list[Stretch]:
    """Who has cost the least after n calls, first call included, as n grows: the lower envelope of straight lines.

    Who cannot be shown to overtake the cheapest so far, and who ties with it, is passed over.
    """
    lines = [(cost, row) for row in rows if (cost := _cost(row)) is not None]
    if not lines:
        return []
    now = min(lines, key=lambda line: (line[0].first.median_s, line[0].further.median_s, line[1].slug))
    stretches = [Stretch(now[1].slug, 1)]
    while True:
        found = []
        for cost, row in lines:
            tied = row.tie is not None and row.tie == now[1].tie
            crossing = break_even.crossing(cost, now[0], tied=tied)
            if crossing.pays_off == "calls" and crossing.calls and crossing.low and crossing.high:
                found.append((crossing.calls, cost.further.median_s, crossing.low, crossing.high, cost, row))
        if not found:
            return stretches
        calls, _, low, high, cost, row = min(found, key=lambda each: each[:2])
        first = max(math.floor(calls) + 1, stretches[-1].first)
        stretch = Stretch(row.slug, first, min(math.ceil(low), first), max(math.ceil(high), first))
        if first == stretches[-1].first:  # cheapest for less than one whole call
            stretches.pop()
        stretches.append(stretch)
        now = cost, row


def _cost(row: Row) -> break_even.Cost | None:
    if row.outcome != "ok" or row.first_call_s is None or row.median_s is None:
        return None
    return break_even.Cost(
        Latency(
            median_s=row.first_call_s,
            low_s=row.first_call_s if row.first_low_s is None else row.first_low_s,
            high_s=row.first_call_s if row.first_high_s is None else row.first_high_s,
        ),
        Latency(
            median_s=row.median_s,
            low_s=row.median_s if row.low_s is None else row.low_s,
            high_s=row.median_s if row.high_s is None else row.high_s,
        ),
    )


def cheapest_sentence(stretches: list[Stretch]) -> str:
    """Cheapest in total: loop.eager at first, batched.eager from 2 [2, 3] calls on, batched.xla from 37 [20, 66] on."""
    if not stretches:
        return "No strategy has both a first call and a latency."
    if len(stretches) == 1:
        return f"Cheapest in total, first call included: {stretches[0].slug}, however many calls are made."
    parts = [
        f"{stretch.slug} {f'from {stretch.said} on' if number else 'at first'}"
        for number, stretch in enumerate(stretches)
    ]
    return f"Cheapest in total, first call included: {', '.join(parts)}."


def totals_frame(rows: list[Row]) -> pd.DataFrame:
    """Total seconds after 1, 2, … calls, the first included, at about ten points a decade."""
    stretches = cheapest(rows)
    most = min(_MOST_CALLS, max(1_000, 10 * stretches[-1].first)) if stretches else 1_000
    calls = np.unique(np.geomspace(1, most, int(10 * math.log10(most)) + 1).round()).astype(int)
    lines = []
    for row in rows:
        if row.outcome == "ok" and row.first_call_s is not None and row.median_s is not None:
            for count in calls.tolist():
                total = row.first_call_s + (count - 1) * row.median_s
                lines.append(
                    {
                        "strategy": row.label,
                        "colour": look.colour_name(row.mapper),
                        "mode": row.mode,
                        "calls": count,
                        "total": total,
                        "total time": look.seconds(total),
                    }
                )
    frame = pd.DataFrame(lines)
    return named(frame, "total", frame.groupby("strategy")["total"].last(), log=True) if lines else frame


def seconds_axis(title: str, padding: int = 0) -> Callable[[str], alt.Y]:
    """A channel on a logarithmic axis of seconds, from its field; ``padding``: pixels at both ends."""
    return lambda field: alt.Y(
        f"{field}:Q",
        scale=alt.Scale(type="log", nice=False, padding=padding),
        axis=alt.Axis(title=title, labelExpr=SECONDS_AXIS, tickCount=6, gridOpacity=DECADES),
    )


def _totals_spec() -> Spec:
    y = seconds_axis("total time, first call included")
    base = unfilled().encode(
        x=alt.X(
            "calls:Q",
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(title="number of calls", format="~s", labelOverlap=True),
        ),
        y=y("total"),
        color=COLOUR,
        detail=alt.Detail(field="strategy"),
    )
    lines = base.mark_line(strokeWidth=2).encode(strokeDash=DASH)
    # Lines are thin to point at: invisible points carry the tooltips.
    points = base.mark_point(opacity=0, size=120).encode(tooltip=tooltip("strategy", "calls", "total time"))
    return spec(lines, points, *names(y), height=_HEIGHT, padding=PADDING)


def samples_frame(run: Run, slugs: list[str]) -> pd.DataFrame:
    """Every sample of the strategies and of their twins, by round and replica."""
    lines = []
    for m in run.measurements:
        if m.strategy not in slugs and m.twin_of not in slugs:
            continue
        name = f"{look.label(m.twin_of, m.mode)}, entered twice" if m.twin_of else look.label(m.strategy, m.mode)
        for replica in m.replicas:
            for round_, sample_s in zip(replica.rounds, replica.samples_s, strict=False):
                lines.append(
                    {
                        "strategy": name,
                        "colour": look.colour_name(m.mapper),
                        "mode": m.mode,
                        "twin": m.twin_of is not None,
                        "replica": replica.id + 1,
                        "line": f"{m.strategy} {replica.id}",
                        "round": round_,
                        "seconds": sample_s,
                        "latency": look.seconds(sample_s),
                        "calls in a sample": replica.calls_per_sample,
                    }
                )
    frame = pd.DataFrame(lines)
    return named(frame, "seconds", frame.groupby("strategy")["seconds"].median(), log=True) if lines else frame


def _samples_spec() -> Spec:
    y = seconds_axis("time of one call")
    base = unfilled().encode(
        x=alt.X("round:Q", axis=alt.Axis(title="round", tickMinStep=1, format="d")),
        y=y("seconds"),
        color=COLOUR,
    )
    lines = base.mark_line(strokeWidth=1, opacity=0.35).encode(detail=alt.Detail(field="line"))
    points = base.mark_point(size=40, opacity=0.85).encode(
        shape=SHAPE, tooltip=tooltip("strategy", "replica", "round", "latency", "calls in a sample")
    )
    return spec(lines, points, *names(y), height=_HEIGHT, padding=PADDING)


def timeline_frame(measurements: list[Measurement], *, share: bool) -> pd.DataFrame:
    """Live bytes over one steady call, in MiB over milliseconds, or over the share of the call where calls differ."""
    lines = []
    for m in measurements:
        timeline = m.memory.timeline if m.memory else None
        if timeline is None or not timeline.t_s:
            continue
        end = timeline.t_s[-1] or 1.0
        for at_s, live in zip(timeline.t_s, timeline.live_bytes, strict=False):
            lines.append(
                {
                    "strategy": look.label(m.strategy, m.mode),
                    "colour": look.colour_name(m.mapper),
                    "mode": m.mode,
                    "at": 100 * at_s / end if share else 1e3 * at_s,
                    "live": live / MIB,
                    "memory": look.size(live),
                    "time": look.seconds(at_s),
                }
            )
    frame = pd.DataFrame(lines)
    return named(frame, "live", frame.groupby("strategy")["live"].last(), log=False) if lines else frame


def _timeline_spec(*, share: bool) -> Spec:
    def y(field: str) -> alt.Y:
        return alt.Y(
            f"{field}:Q",
            scale=alt.Scale(zero=True, nice=False),
            axis=alt.Axis(title="memory held", labelExpr=MIB_AXIS, tickCount=5),
        )

    base = unfilled().encode(
        x=alt.X(
            "at:Q",
            scale=alt.Scale(nice=False),
            axis=alt.Axis(
                title="share of the call" if share else "time within the call (profiled, so slower than timed)",
                labelExpr=f"datum.label + ' {'%' if share else 'ms'}'",
            ),
        ),
        y=y("live"),
        color=COLOUR,
        detail=alt.Detail(field="strategy"),
    )
    if share:
        curve = base.mark_line(interpolate="step-after", strokeWidth=2).encode(strokeDash=DASH)
    else:
        curve = base.mark_area(interpolate="step-after", line=True, fillOpacity=0.2)
    points = base.mark_point(opacity=0, size=80).encode(tooltip=tooltip("strategy", "time", "memory"))
    return spec(curve, points, *(names(y) if share else ()), height=_HEIGHT, padding=PADDING)


TOTALS = _totals_spec()
SAMPLES = _samples_spec()
TIMELINE_SHARE = _timeline_spec(share=True)
TIMELINE = _timeline_spec(share=False)


def has_timeline(run: Run) -> list[Measurement]:
    return [m for m in strategies_of(run) if m.memory and m.memory.timeline and m.memory.timeline.t_s]
