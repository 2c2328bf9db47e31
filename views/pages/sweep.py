"""The Sweep page: the choices of a sweep at the left, its result at the right."""

import streamlit as st

from measure.judge.lines import readable
from measure.store.store import Snapshot
from views.choices import examples
from views.choices.sweep import SweepChoices, choose, fields, of_run, unasked
from views.pages import frame
from views.ui import look
from workloads import places


def _needs(chosen: SweepChoices) -> str:
    """Say what the sweep will need, and which points cannot fit, before it is run."""
    if chosen.needs is None or chosen.request is None:
        return ""
    count, points = len(chosen.request.base.strategies), len(chosen.request.points())
    memory, time = look.size(chosen.needs.peak_bytes), look.duration(chosen.needs.seconds)
    words = f"{points} points, {count} strateg{'ies' if count > 1 else 'y'}: needs about **{memory}** and **{time}**"
    for at, reason in chosen.needs.skipped:
        words += f"\n- :material/block: {look.plain(readable(at))} is left out: {look.plain(reason)}"
    if chosen.needs.too_long:
        words += f"\n- :material/timer_off: {look.plain(look.sentence(chosen.needs.too_long))}"
    return words


def _body(snapshot: Snapshot | None, chosen: SweepChoices) -> None:
    if snapshot is None and places.viewer():
        st.caption("A sweep is opened by its link, or under Runs.")
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
