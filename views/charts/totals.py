"""Total time by number of calls, the first included: where each line overtakes another, it has paid off. Pure."""

import math

import altair as alt
import numpy as np
import pandas as pd

from measure.judge import payoff
from measure.judge.findings import Findings
from views.charts import names
from views.charts.base import seconds_axis
from views.ui import look

_MOST_CALLS = 1_000_000


def frame(result: Findings) -> pd.DataFrame:
    """Return total seconds after 1, 2, … calls, the first included, at about ten points a decade."""
    stretches = payoff.stretches_of(result)
    most = min(_MOST_CALLS, max(1_000, 10 * stretches[-1].first)) if stretches else 1_000
    calls = np.unique(np.geomspace(1, most, int(10 * math.log10(most)) + 1).round()).astype(int)
    points = []
    for row in result.rows:
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
                        "total time": look.seconds(total_s),
                    }
                )
    made = pd.DataFrame(points)
    return names.placed(made, "total", made.groupby("strategy")["total"].last(), log=True) if points else made


SPEC = names.curves(
    alt.X(
        "calls:Q", scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(title="number of calls", format="~s", labelOverlap=True),
    ),
    seconds_axis("total time, first call included"), "total", "calls", "total time",
)  # fmt: skip
