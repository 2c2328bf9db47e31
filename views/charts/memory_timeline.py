"""Memory held over one steady call: a step curve for each strategy. Pure."""

import altair as alt
import pandas as pd

from measure.judge.findings import Row
from measure.run.run import Measurement
from views.charts import base, names
from views.ui import look

_TELLING = 3  # lines that can be followed at a glance


def known(measurements: list[Measurement]) -> list[Measurement]:
    """The measurements that have a timeline of their memory, without the control's twin."""
    return [m for m in measurements if m.twin_of is None and m.memory and m.memory.timeline and m.memory.timeline.t_s]


def telling(rows: list[Row]) -> list[str]:
    """The three strategies whose memory matters most, of rows that have a timeline: the first, then the ones that need
    the least and the most."""
    right = [row for row in rows if row.outcome == "ok"] or rows
    thriftiest = sorted(right, key=lambda row: row.peak_bytes or 0)
    wanted = dict.fromkeys(row.slug for row in (*right[:1], *thriftiest[:1], *reversed(thriftiest)))
    three = list(wanted)[:_TELLING]
    return [row.slug for row in rows if row.slug in three]


def frame(measurements: list[Measurement]) -> pd.DataFrame:
    """The MiB that are held over one steady call, over the percentage of it that has passed: calls differ, and one that
    is profiled is slower than one that is timed."""
    points = [
        {
            "strategy": look.label(m.strategy, m.mode), "colour": look.colour_name(m.mapper), "mode": m.mode,
            "at": 100 * at_s / (m.memory.timeline.t_s[-1] or 1.0), "live": live_bytes / base.MIB,
            "memory": look.size(live_bytes), "time": look.seconds(at_s),
        }
        for m in known(measurements) if m.memory and m.memory.timeline
        for at_s, live_bytes in zip(m.memory.timeline.t_s, m.memory.timeline.live_bytes, strict=False)
    ]  # fmt: skip
    return names.placed(pd.DataFrame(points), "live", log=False)


def _held(field: str) -> alt.Y:
    axis = alt.Axis(title="memory held", labelExpr="datum.label + ' MiB'", tickCount=5)
    return alt.Y(f"{field}:Q", scale=alt.Scale(zero=True, nice=False), axis=axis)


_SHARE = alt.Axis(title="share of the call", labelExpr="datum.label + ' %'")
SPEC = base.spec(
    *names.curves(
        base.unfilled(), alt.X("at:Q", scale=alt.Scale(nice=False), axis=_SHARE), _held, "live", "time", "memory",
        interpolate="step-after",
    ),
    height=base.HEIGHT,
)  # fmt: skip
