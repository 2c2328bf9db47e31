"""Every sample in the order of rounds, the samples of one process joined by a line. Pure."""

from collections.abc import Collection
from typing import Any

import altair as alt
import pandas as pd

from measure.run.run import BASE, Measurement, Run
from views.charts import base, names
from views.ui import look

_ROUND_WIDTH = 0.7  # of the way from one round to the next, for the samples of a process
# A chart has no room for more, and a page that draws them takes a processor from others for seconds.
_MOST_DRAWN = 20_000


def _chosen(run: Run, slugs: Collection[str]) -> list[Measurement]:
    return [m for m in run.measurements if m.strategy in slugs or m.twin_of in slugs]


def one_in(run: Run, slugs: Collection[str]) -> int:
    """Of how many samples of a process one is drawn: 1 but for a run of very many."""
    count = sum(len(replica.samples_s) for m in _chosen(run, slugs) for replica in m.replicas)
    return max(1, -(-count // _MOST_DRAWN))


def frame(run: Run, slugs: Collection[str]) -> pd.DataFrame:
    """A row for each raw sample that is drawn, in seconds per call, of these strategies and of what any of them is
    entered once more as."""
    points, every = list[dict[str, Any]](), one_in(run, slugs)
    for m in _chosen(run, slugs):
        name = look.label(m.twin_of or m.strategy, m.mode)
        if m.twin_of:
            what = "of BASE" if m.strategy.endswith(BASE) else "entered twice"
            name = f"{name}, {'default memory' if m.has_default_memory else what}"
        for replica in m.replicas:
            of = {
                "strategy": name, "colour": look.colour_name(m.mapper), "mode": m.mode, "replica": replica.id + 1,
                "line": f"{m.strategy} {replica.id}", "calls in a sample": replica.calls_per_sample,
            }  # fmt: skip
            # Samples of one round stand beside each other, in the order in which they came.
            width = _ROUND_WIDTH if len(set(replica.rounds)) == 1 else 0.0
            for number in range(0, len(replica.samples_s), every):
                round_, seconds = replica.rounds[number], replica.samples_s[number]
                place = round_ + width * (number / len(replica.samples_s) - 0.5)
                figures = {"place": place, "round": round_, "seconds": seconds, "latency": look.seconds(seconds)}
                points.append({**of, **figures})
    return names.placed(pd.DataFrame(points), "seconds", at="median")


def _specification() -> base.Spec:
    y = base.log(alt.Y, "time of one call", **base.SECONDS)
    x = alt.X("place:Q", axis=alt.Axis(title="round", tickMinStep=1, format="d"))
    based = base.unfilled().encode(x=x, y=y("seconds"), color=base.COLOUR)
    lines = based.mark_line(strokeWidth=1, opacity=0.35).encode(detail=alt.Detail(field="line"))
    points = based.mark_point(size=40, opacity=0.85).encode(
        shape=base.SHAPE, tooltip=base.tooltip("strategy", "replica", "round", "latency", "calls in a sample")
    )
    return base.spec(lines, points, *names.layers(base.unfilled(), y), height=base.HEIGHT)


SPEC = _specification()
