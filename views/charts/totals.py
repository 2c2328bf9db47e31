"""Total time by number of calls, the first included: where each line overtakes another, it has paid off. Pure."""

import math
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from measure.judge import break_even
from measure.output.rows import Row
from measure.run.run import Latency
from views.charts import names, texts
from views.charts.base import COLOUR, DASH, PADDING, Spec, seconds_axis, spec, tooltip, unfilled
from views.ui import look

_MOST_CALLS = 1_000_000


@dataclass(frozen=True)
class Stretch:
    """A range of call counts in which ``slug`` has cost the least in total: from ``first`` calls to the next stretch.

    ``low`` and ``high`` are the interval of ``first``; a strategy that leads from the first call has none.
    """

    slug: str
    first: int
    low: int | None = None
    high: int | None = None

    @property
    def text(self) -> str:
        """``37 [20, 66] calls``."""
        if self.low is None or self.high is None:
            return texts.CALLS.format(first=self.first)
        return texts.CALLS_INTERVAL.format(first=self.first, low=self.low, high=self.high)


def cheapest(rows: list[Row]) -> list[Stretch]:
    """Return who has cost the least after n calls as n grows, first call included: the lower envelope of straight
    lines.

    A strategy that cannot be shown to overtake the cheapest so far, or that ties with it, is passed over.
    """
    candidates = [(cost, row) for row in rows if (cost := _cost(row)) is not None]
    if not candidates:
        return []
    now = min(candidates, key=lambda pair: (pair[0].first.median_s, pair[0].further.median_s, pair[1].slug))
    stretches = [Stretch(now[1].slug, 1)]
    while True:
        crossings = []
        for cost, row in candidates:
            tied = row.tie is not None and row.tie == now[1].tie
            crossing = break_even.crossing(cost, now[0], tied=tied)
            if crossing.pays_off == "calls" and crossing.calls and crossing.low and crossing.high:
                crossings.append((crossing.calls, cost.further.median_s, crossing.low, crossing.high, cost, row))
        if not crossings:
            return stretches
        calls, _, low, high, cost, row = min(crossings, key=lambda crossing: crossing[:2])
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
        _interval(row.first_call_s, row.first_low_s, row.first_high_s), _interval(row.median_s, row.low_s, row.high_s)
    )


def _interval(median_s: float, low_s: float | None, high_s: float | None) -> Latency:
    return Latency(
        median_s=median_s,
        low_s=median_s if low_s is None else low_s,
        high_s=median_s if high_s is None else high_s,
    )


def sentence(stretches: list[Stretch]) -> str:
    """Cheapest in total: loop.eager at first, batched.eager from 2 [2, 3] calls on, batched.xla from 37 [20, 66] on."""
    if not stretches:
        return texts.NO_TOTALS
    if len(stretches) == 1:
        return texts.ALWAYS_CHEAPEST.format(strategy=stretches[0].slug)
    parts = [texts.AT_FIRST.format(strategy=stretches[0].slug)]
    parts += [texts.FROM_CALLS.format(strategy=stretch.slug, calls=stretch.text) for stretch in stretches[1:]]
    return texts.CHEAPEST.format(stretches=", ".join(parts))


def frame(rows: list[Row]) -> pd.DataFrame:
    """Return total seconds after 1, 2, … calls, the first included, at about ten points a decade."""
    stretches = cheapest(rows)
    most = min(_MOST_CALLS, max(1_000, 10 * stretches[-1].first)) if stretches else 1_000
    calls = np.unique(np.geomspace(1, most, int(10 * math.log10(most)) + 1).round()).astype(int)
    points = []
    for row in rows:
        if row.outcome == "ok" and row.first_call_s is not None and row.median_s is not None:
            for count in calls.tolist():
                total_s = row.first_call_s + (count - 1) * row.median_s
                points.append(
                    {
                        "strategy": row.label,
                        "colour": look.colour_name(row.mapper),
                        "mode": row.mode,
                        "calls": count,
                        "total": total_s,
                        texts.TOTAL_TIME: look.seconds(total_s),
                    }
                )
    made = pd.DataFrame(points)
    return names.placed(made, "total", made.groupby("strategy")["total"].last(), log=True) if points else made


def _specification() -> Spec:
    y = seconds_axis(texts.TOTAL_AXIS)
    base = unfilled().encode(
        x=alt.X(
            "calls:Q",
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(title=texts.CALLS_AXIS, format="~s", labelOverlap=True),
        ),
        y=y("total"),
        color=COLOUR,
        detail=alt.Detail(field="strategy"),
    )
    lines = base.mark_line(strokeWidth=2).encode(strokeDash=DASH)
    # Lines are thin to point at: invisible points carry the tooltips.
    points = base.mark_point(opacity=0, size=120).encode(tooltip=tooltip("strategy", "calls", texts.TOTAL_TIME))
    return spec(lines, points, *names.layers(y), height=names.HEIGHT, padding=PADDING)


SPEC = _specification()
