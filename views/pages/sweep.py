"""The Sweep page: the choices of a sweep at the left, its result at the right."""

import streamlit as st

from measure.judge.lines import readable
from measure.store.store import Snapshot
from views.choices import examples
from views.choices.sweep import SweepChoices, choose, fields, of_run, unasked
from views.pages import frame, texts
from views.ui import look
from workloads import places


def _needs(chosen: SweepChoices) -> str:
    """Say what the sweep will need, and which points cannot fit, before it is run."""
    if chosen.needs is None or chosen.request is None:
        return ""
    count, points = len(chosen.request.base.strategies), len(chosen.request.points())
    compared = texts.STRATEGIES.format(count=count) if count > 1 else texts.ONE_STRATEGY
    needs = texts.NEEDS.format(
        asked=f"{texts.POINTS.format(count=points)}, {compared}",
        memory=look.size(chosen.needs.peak_bytes),
        time=look.duration(chosen.needs.seconds),
    )
    for at, reason in chosen.needs.skipped:
        needs += texts.POINT_LEFT_OUT.format(point=look.plain(readable(at)), reason=look.plain(reason))
    if chosen.needs.too_long:
        needs += f"\n- :material/timer_off: {look.plain(look.sentence(chosen.needs.too_long))}"
    return needs


def _body(snapshot: Snapshot | None, chosen: SweepChoices) -> None:
    if snapshot is None and places.viewer():
        st.caption(texts.NO_SWEEP)
    elif snapshot is None:
        examples.draw(chosen.request)
    elif snapshot.state in ("running", "finished"):
        # Only now, since loading Altair and pandas takes a moment: the choices are on the page by then.
        from views.result.sweep import draw_sweep

        draw_sweep(
            snapshot.run, snapshot.version, finished=snapshot.state == "finished", baseline=chosen.baseline,
            imported=snapshot.imported,
        )  # fmt: skip


frame.draw(
    "sweep", fields=fields, choose=unasked if places.viewer() else choose, of_run=of_run, needs=_needs, body=_body
)  # fmt: skip
