"""The Sweep page: the choices of a sweep at the left, its result at the right."""

import streamlit as st

from measure.store.store import Snapshot
from views.choices import examples
from views.choices.form import Choices
from views.pages import frame, opening
from views.result import progress
from workloads import places


def _body(snapshot: Snapshot | None, chosen: Choices) -> None:
    if snapshot is not None and snapshot.state != "finished":
        progress.watch(snapshot)
    if snapshot is None and places.viewer():
        st.caption("A sweep is opened by its link, or under Runs.")
    elif snapshot is None:
        examples.draw(opening.chosen("sweep"))
    elif snapshot.state in ("running", "finished"):
        # Only now, since loading Altair and pandas takes a moment: the choices are on the page by then.
        from views.result import pair
        from views.result.sweep import draw_sweep

        if snapshot.state == "finished":
            pair.draw(snapshot.run, snapshot.version, chosen.baseline)
        draw_sweep(
            snapshot.run, snapshot.version, finished=snapshot.state == "finished", baseline=chosen.baseline,
            imported=snapshot.imported,
        )  # fmt: skip


frame.draw("sweep", _body)
