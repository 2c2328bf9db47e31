"""Memory held over one steady call: a step curve for each strategy. Pure."""

import altair as alt
import pandas as pd

from measure.judge.findings import Row
from measure.run.run import Measurement
from views.charts import names
from views.charts.base import MIB
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


def frame(measurements: list[Measurement]) -> pd.DataFrame:
    """Return the MiB that are held over one steady call, over the percentage of it that has passed: calls differ, and
    one that is profiled is slower than one that is timed."""
    points = []
    for m in measurements:
        timeline = m.memory.timeline if m.memory else None
        if timeline is None or not timeline.t_s:
            continue
        for at_s, live_bytes in zip(timeline.t_s, timeline.live_bytes, strict=False):
            points.append(
                {
                    "strategy": look.label(m.strategy, m.mode), "colour": look.colour_name(m.mapper), "mode": m.mode,
                    "at": 100 * at_s / (timeline.t_s[-1] or 1.0), "live": live_bytes / MIB,
                    "memory": look.size(live_bytes), "time": look.seconds(at_s),
                }
            )  # fmt: skip
    made = pd.DataFrame(points)
    return names.placed(made, "live", made.groupby("strategy")["live"].last(), log=False) if points else made


def _held(field: str) -> alt.Y:
    axis = alt.Axis(title="memory held", labelExpr="datum.label + ' MiB'", tickCount=5)
    return alt.Y(f"{field}:Q", scale=alt.Scale(zero=True, nice=False), axis=axis)


SPEC = names.curves(
    alt.X(
        "at:Q", scale=alt.Scale(nice=False), axis=alt.Axis(title="share of the call", labelExpr="datum.label + ' %'")
    ),
    _held, "live", "time", "memory", interpolate="step-after",
)  # fmt: skip
