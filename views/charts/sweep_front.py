"""Latency against memory: the strategies that nothing beats in both. Pure."""

from collections.abc import Mapping

import altair as alt
import pandas as pd

from measure.judge import findings
from measure.judge.findings import Findings
from measure.judge.lines import measured, place
from measure.judge.sweep_findings import SweepFindings, statement
from measure.run import text
from views.charts import base
from views.ui import look

_FADED = 0.3  # opacity of a beaten strategy's mark
_EDGE = 20  # pixels that points keep from the edges
_MOST_TIED = 3  # of those who tie so many are named


def subject(sweep: SweepFindings, at: tuple[int, ...] | None = None) -> tuple[Mapping[str, int], Findings] | None:
    """The place and findings of the point ``at`` it, or else of the largest one that has a front; of an option those of
    all points, which are one case. None where there is no front."""
    points = sorted(measured(sweep.run), key=place, reverse=True)
    chosen = [point for point in points if place(point) == at] or points
    made = [(point.at, sweep.points[place(point)]) for point in chosen]
    if sweep.run.axes[0].kind == "option":
        made = [({}, sweep.of_option) for _ in sweep.ranked[:1]]
    return next((one for one in made if findings.front(one[1])), None)


def frame(of: Findings) -> pd.DataFrame:
    """A row for each ranked strategy, in seconds and MiB; those of the front have a ``name``."""
    front = {row.slug: row.slug + "?" * (of.word == "cannot tell") for tied in findings.front(of) for row in tied}
    made = pd.DataFrame(
        {
            "x": max(1, row.peak_bytes) / base.MIB, "y": row.median_s,
            "strategy": text.label(row.slug, row.mode), "colour": look.colour_name(row.mapper), "mode": row.mode,
            "alpha": 1.0 if row.slug in front else _FADED, "name": front.get(row.slug, ""),
            "latency": look.seconds_with_interval(row.median_s or 0.0, *row.interval),
            "memory": look.size(row.peak_bytes), "result": statement(of),
        }
        for row in of.ranked if row.peak_bytes is not None and row.interval
    )  # fmt: skip
    made["least"], made["most"] = base.room(made["x"].min(), made["x"].max())
    return made


def _specification() -> base.Spec:
    y = base.log(alt.Y, "time of one call", _EDGE, **base.SECONDS)("y")
    x = base.log(alt.X, "peak memory of one call", _EDGE, **base.MEMORY)
    front = base.unfilled().transform_filter("datum.name !== ''").encode(x=x("x"), y=y)
    dots = base.unfilled().mark_point(filled=True, size=90).encode(
        x=x("x"), y=y, color=base.COLOUR, shape=base.SHAPE, opacity=base.OPACITY,
        tooltip=base.tooltip("strategy", "latency", "memory", "result"),
    )  # fmt: skip
    return base.spec(
        base.unfilled().mark_rule(opacity=0).encode(x=x("least"), x2=alt.X2("most")),
        front.mark_line(interpolate="step-after", strokeWidth=1, opacity=0.5),  # in the order of memory
        dots,
        front.mark_text(align="left", baseline="bottom", dx=7, dy=-5, fontSize=11).encode(text=alt.Text(field="name")),
        height=base.HEIGHT,
    )


SPEC = _specification()


def sentence(of: Findings) -> str:
    """``With 4.69 MiB batched.xla has the lowest latency, 1.32 ms.``: for each amount of memory, the least first; and
    the result where that is not sure or a tie."""
    words, unsure = list[str](), of.word == "cannot tell"
    for tied in reversed(findings.front(of)):
        verb = "may have" if unsure else "has" if len(tied) == 1 else "tie for"
        names = text.listed([row.slug for row in tied], _MOST_TIED)
        words.append(
            f"with {look.size(tied[0].peak_bytes)} {names} {verb} the lowest latency, {look.seconds(tied[0].median_s)}"
        )
    result = f" {look.sentence(statement(of))}" if unsure or len(of.leaders) > 1 else ""
    return look.sentence("; ".join(words)) + result
