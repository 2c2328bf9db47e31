"""Latency against memory: the strategies that nothing beats in both. Pure."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from measure.judge import findings
from measure.judge.lines import place
from measure.judge.sweep_findings import SweepFindings
from measure.run import text
from measure.run.run import Measurement
from views.charts import base
from views.ui import look

_FADED = 0.3  # opacity of a beaten strategy's mark
_EDGE = 20  # pixels that points keep from the edges
_MOST_TIED = 3  # of those who tie so many are named


def subject(sweep: SweepFindings, at: tuple[int, ...] | None = None) -> tuple[dict[str, int], Sequence[Measurement]]:
    """A place and what is drawn of it: of the point ``at`` it, or else of the largest one at which a strategy has both
    a latency and a memory. Where an option is swept that is all points, as they are of one case. What is too noisy for
    an order has no lowest latency."""
    points = [point for point in sweep.run.points if findings.placed(point.measurements)]
    if any(axis.kind == "option" for axis in sweep.run.axes):
        tells = sweep.ranked and sweep.of_option.tells
        return {}, [item for point in points for item in point.measurements] if tells else []
    chosen = [point for point in points if place(point) == at] or sorted(points, key=place, reverse=True)
    point = next(filter(sweep.leaders, chosen), None)
    return (point.at, point.measurements) if point else ({}, [])


def frame(measurements: Sequence[Measurement]) -> pd.DataFrame:
    front, rows = findings.front(measurements), list[dict[str, Any]]()
    for item in findings.placed(measurements):
        assert item.latency is not None and item.memory is not None
        rows.append(
            {
                "x": max(1, item.memory.peak_bytes) / base.MIB, "y": item.latency.median_s,
                "strategy": text.label(item.strategy, item.mode), "colour": look.colour_name(item.mapper),
                "mode": item.mode, "alpha": 1.0 if item in front else _FADED,
                "name": item.strategy if item in front else "",
                "latency": look.seconds_with_interval(item.latency.median_s, item.latency.low_s, item.latency.high_s),
                "memory": look.size(item.memory.peak_bytes),
            }
        )  # fmt: skip
    made = pd.DataFrame(rows)
    if rows:
        made["least"], made["most"] = base.room(made["x"].min(), made["x"].max())
    return made


def _specification() -> base.Spec:
    y = base.log(alt.Y, "time of one call", _EDGE, **base.SECONDS)("y")
    x = base.log(alt.X, "peak memory of one call", _EDGE, **base.MEMORY)
    front = base.unfilled().transform_filter("datum.name !== ''").encode(x=x("x"), y=y)
    dots = base.unfilled().mark_point(filled=True, size=90).encode(
        x=x("x"), y=y, color=base.COLOUR, shape=base.SHAPE, opacity=base.OPACITY,
        tooltip=base.tooltip("strategy", "latency", "memory"),
    )  # fmt: skip
    return base.spec(
        base.unfilled().mark_rule(opacity=0).encode(x=x("least"), x2=alt.X2("most")),
        front.mark_line(interpolate="step-after", strokeWidth=1, opacity=0.5),  # in the order of memory
        dots,
        front.mark_text(align="left", baseline="bottom", dx=7, dy=-5, fontSize=11).encode(text=alt.Text(field="name")),
        height=base.HEIGHT,
    )


SPEC = _specification()


def leaders(sweep: SweepFindings, at: dict[str, int]) -> list[str]:
    """The strategies that lead, or tie for it, in what `subject` returns."""
    groups = sweep.groups.get(tuple(at.values()), []) if at else [[row.slug for row in sweep.of_option.leaders]]
    return next(iter(groups), [])


def sentence(measurements: Sequence[Measurement], leaders: Sequence[str] = ()) -> str:
    """«With 4.69 MiB batched.xla has the lowest latency, 1.32 ms»: for each amount of memory that there may be, the
    least first; empty where nothing has both. ``leaders``: of several it is said that they tie."""
    words = [
        f"with {look.size(item.memory.peak_bytes)} {item.strategy} has the lowest latency, "
        f"{look.seconds(item.latency.median_s)}"
        for item in reversed(findings.front(measurements))
        if item.memory and item.latency
    ]
    ties = f" {text.listed(leaders, _MOST_TIED)} tie for the lowest." if len(leaders) > 1 else ""
    return look.sentence("; ".join(words)) + ties if words else ""
