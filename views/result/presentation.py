"""A result in large figures, for a screen in a meeting: nothing to choose, and one button, which ends it."""

import streamlit as st

from measure.store.store import Snapshot
from views.choices.address import AUTOMATIC
from views.result import actions, compare, decision, heading, sweep
from views.ui import browser, guard, look


def draw(snapshot: Snapshot, baseline: str) -> None:
    run, version = snapshot.run, snapshot.version
    st.html(look.style((), "present"))
    with guard.calm("the presentation"), st.container(key="presentation"):
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
            heading.title(run)
            st.button(
                "End presentation", key="present_end", type="tertiary", icon=":material/close:",
                on_click=browser.leave, args=("present",),
            )  # fmt: skip
        decision.draw(run)
        if run.kind == "sweep":
            sweep.draw_large(run, version)
        else:
            compare.draw_large(run, version, None if baseline == AUTOMATIC else baseline)
        actions.draw_origin(snapshot)
