"""Memory held over one steady call: a step curve for each strategy. Pure."""

import functools

import altair as alt
import pandas as pd

from measure.output.rows import Row
from measure.run.run import Measurement
from views.charts import names, texts
from views.charts.base import COLOUR, DASH, MIB, MIB_AXIS, PADDING, Spec, spec, tooltip, unfilled
from views.ui import look

_TELLING = 3  # lines that can be followed at a glance


def known(measurements: list[Measurement]) -> list[Measurement]:
    """Return the measurements that have a timeline of their memory, without the control's twin."""
    return [m for m in measurements if m.twin_of is None and m.memory and m.memory.timeline and m.memory.timeline.t_s]


def telling(rows: list[Row]) -> list[str]:
    """Return the three strategies whose memory matters most, of rows that have a timeline: the first, the one that
    needs the least, and the baseline; in place of those that are the same, the ones that need the most."""
    right = [row for row in rows if row.outcome == "ok"] or rows
    thriftiest = sorted(right, key=lambda row: row.peak_bytes or 0)
    baseline = [row for row in right if row.factor is not None and row.factor_low is None]
    wanted = dict.fromkeys(row.slug for row in (*right[:1], *thriftiest[:1], *baseline, *reversed(thriftiest)))
    three = list(wanted)[:_TELLING]
    return [row.slug for row in rows if row.slug in three]


def frame(measurements: list[Measurement], *, share: bool) -> pd.DataFrame:
    """Return live bytes over one steady call, in MiB over milliseconds, or over the percentage of the call (``share``)
    where calls differ."""
    points = []
    for m in measurements:
        timeline = m.memory.timeline if m.memory else None
        if timeline is None or not timeline.t_s:
            continue
        end_s = timeline.t_s[-1] or 1.0
        for at_s, live_bytes in zip(timeline.t_s, timeline.live_bytes, strict=False):
            points.append(
                {
                    "strategy": look.label(m.strategy, m.mode),
                    "colour": look.colour_name(m.mapper),
                    "mode": m.mode,
                    "at": 100 * at_s / end_s if share else 1e3 * at_s,
                    "live": live_bytes / MIB,
                    "memory": look.size(live_bytes),
                    "time": look.seconds(at_s),
                }
            )
    made = pd.DataFrame(points)
    return names.placed(made, "live", made.groupby("strategy")["live"].last(), log=False) if points else made


@functools.cache
def specification(*, share: bool) -> Spec:
    """Return the chart of many strategies over the ``share`` of their calls, or of one over its time."""

    def y(field: str) -> alt.Y:
        return alt.Y(
            f"{field}:Q",
            scale=alt.Scale(zero=True, nice=False),
            axis=alt.Axis(title=texts.HELD_AXIS, labelExpr=MIB_AXIS, tickCount=5),
        )

    base = unfilled().encode(
        x=alt.X(
            "at:Q",
            scale=alt.Scale(nice=False),
            axis=alt.Axis(
                title=texts.SHARE_AXIS if share else texts.TIME_AXIS,
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
    return spec(curve, points, *(names.layers(y) if share else ()), height=names.HEIGHT, padding=PADDING)
