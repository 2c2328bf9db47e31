"""The charts behind a comparison: total time against calls, every sample, memory over one call. Pure."""

import math
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from measure.run import Measurement, Run
from views import look
from views.charts import COLOUR, DASH, MIB, MIB_AXIS, SECONDS_AXIS, SHAPE, Spec, spec, tooltip, unfilled
from views.rows import Row, strategies_of

_HEIGHT = 340
_MOST_CALLS = 1_000_000


@dataclass(frozen=True)
class Stretch:
    """From ``first`` calls on, up to the next stretch, ``slug`` has cost the least in total."""

    slug: str
    first: int


def cheapest(rows: list[Row]) -> list[Stretch]:
    """Who has cost the least after n calls, first call included, as n grows: the lower envelope of straight lines."""
    lines = [
        (row.first_call_s, row.median_s, row.slug)
        for row in rows
        if row.outcome == "ok" and row.first_call_s is not None and row.median_s is not None
    ]
    if not lines:
        return []
    now = min(lines)
    stretches = [Stretch(now[2], 1)]
    while True:
        crossings = [(1 + (line[0] - now[0]) / (now[1] - line[1]), line[1], line) for line in lines if line[1] < now[1]]
        if not crossings:
            return stretches
        calls, _, line = min(crossings)
        first = math.floor(calls) + 1
        if first == stretches[-1].first:  # cheapest for less than one whole call
            stretches[-1] = Stretch(line[2], first)
        else:
            stretches.append(Stretch(line[2], first))
        now = line


def cheapest_sentence(stretches: list[Stretch]) -> str:
    """Cheapest in total: for 1 call loop.eager, for 2 to 36 batched.eager, from 37 batched.xla."""
    if not stretches:
        return "No strategy has both a first call and a latency."
    parts = []
    for index, stretch in enumerate(stretches):
        if index + 1 == len(stretches):
            parts.append(f"from {stretch.first:,} calls on {stretch.slug}" if index else f"always {stretch.slug}")
            continue
        last = stretches[index + 1].first - 1
        span = f"{stretch.first:,} to {last:,} calls" if last > stretch.first else f"{last:,} call{'s' * (last > 1)}"
        parts.append(f"for {span} {stretch.slug}")
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
                        "colour": row.colour,
                        "mode": row.mode,
                        "calls": count,
                        "total": total,
                        "total time": look.seconds(total),
                    }
                )
    return pd.DataFrame(lines)


def _totals_spec() -> Spec:
    base = unfilled().encode(
        x=alt.X(
            "calls:Q",
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(title="number of calls", format="~s", labelOverlap=True),
        ),
        y=alt.Y(
            "total:Q",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(title="total time, first call included", labelExpr=SECONDS_AXIS, tickCount=6),
        ),
        color=COLOUR,
        detail=alt.Detail(field="strategy"),
    )
    lines = base.mark_line(strokeWidth=2).encode(strokeDash=DASH)
    # Lines are thin to point at: invisible points carry the tooltips.
    points = base.mark_point(opacity=0, size=120).encode(tooltip=tooltip("strategy", "calls", "total time"))
    return spec(lines, points, height=_HEIGHT)


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
    return pd.DataFrame(lines)


def _samples_spec() -> Spec:
    base = unfilled().encode(
        x=alt.X("round:Q", axis=alt.Axis(title="round", tickMinStep=1, format="d")),
        y=alt.Y(
            "seconds:Q",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(title="time of one call", labelExpr=SECONDS_AXIS, tickCount=6),
        ),
        color=COLOUR,
    )
    lines = base.mark_line(strokeWidth=1, opacity=0.35).encode(detail=alt.Detail(field="line"))
    points = base.mark_point(size=40, opacity=0.85).encode(
        shape=SHAPE, tooltip=tooltip("strategy", "replica", "round", "latency", "calls in a sample")
    )
    return spec(lines, points, height=_HEIGHT)


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
    return pd.DataFrame(lines)


def _timeline_spec(*, share: bool) -> Spec:
    base = unfilled().encode(
        x=alt.X(
            "at:Q",
            scale=alt.Scale(nice=False),
            axis=alt.Axis(
                title="share of the call" if share else "time within the call (profiled, so slower than timed)",
                labelExpr=f"datum.label + ' {'%' if share else 'ms'}'",
            ),
        ),
        y=alt.Y(
            "live:Q",
            scale=alt.Scale(zero=True),
            axis=alt.Axis(title="memory held", labelExpr=MIB_AXIS, tickCount=5),
        ),
        color=COLOUR,
        detail=alt.Detail(field="strategy"),
    )
    if share:
        curve = base.mark_line(interpolate="step-after", strokeWidth=2).encode(strokeDash=DASH)
    else:
        curve = base.mark_area(interpolate="step-after", line=True, fillOpacity=0.2)
    points = base.mark_point(opacity=0, size=80).encode(tooltip=tooltip("strategy", "time", "memory"))
    return spec(curve, points, height=_HEIGHT)


TOTALS = _totals_spec()
SAMPLES = _samples_spec()
TIMELINE_SHARE = _timeline_spec(share=True)
TIMELINE = _timeline_spec(share=False)


def has_timeline(run: Run) -> list[Measurement]:
    return [m for m in strategies_of(run) if m.memory and m.memory.timeline and m.memory.timeline.t_s]
