"""Total time by number of calls, the first included: where a line overtakes another, it has paid off. Pure."""

import math

import altair as alt
import numpy as np
import pandas as pd

from measure.judge import break_even
from measure.judge.findings import Findings
from views.charts import base, names
from views.ui import look

_MOST_CALLS = 1_000_000


def frame(result: Findings) -> pd.DataFrame:
    """Total seconds after 1, 2, … calls, the first included, at about ten points a decade."""
    stretches = break_even.stretches_of(result)
    most = min(_MOST_CALLS, max(1_000, 10 * stretches[-1].first)) if stretches else 1_000
    calls = np.unique(np.geomspace(1, most, int(10 * math.log10(most)) + 1).round()).tolist()
    points = [
        {
            "strategy": look.label(row.slug, row.mode), "colour": look.colour_name(row.mapper), "mode": row.mode,
            "calls": count, "total": (total_s := row.first_call_s + (count - 1) * row.median_s),
            "total time": look.seconds(total_s),
        }
        for row in result.rows if row.outcome == "ok" and row.first_call_s is not None and row.median_s is not None
        for count in calls
    ]  # fmt: skip
    return names.placed(pd.DataFrame(points), "total")


SPEC = base.spec(
    *names.curves(
        base.unfilled(),
        base.log(alt.X, "number of calls", format="~s", labelOverlap=True)("calls"),
        base.log(alt.Y, "total time, first call included", **base.SECONDS),
        "total", "calls", "total time",
    ),
    height=base.HEIGHT,
)  # fmt: skip
