"""The Compare page: the choices of a comparison at the left, its result at the right."""

import streamlit as st

from measure.store.store import Snapshot
from views.choices import address
from views.choices.form import Choices
from views.pages import frame, opening
from views.result import examples
from workloads import places

_OF_CASE = ("workload", "size_", "option_", "dtype", "device")


def _body(snapshot: Snapshot | None, chosen: Choices) -> None:
    if snapshot is None:
        cases = [address.changed("compare", opening.chosen("compare"), own) for own in (examples.form(), {})]
        is_open, is_usual = (not any(key.startswith(_OF_CASE) for key in changed) for changed in cases)
        if not is_open:  # beside a form of another case, an example would pass for its result
            st.session_state[examples.OPENED] = None
        if places.viewer() or is_open or is_usual:
            examples.draw()
        else:
            st.caption("Run measures these choices, and shows the result here.")
    # Only now, since loading Altair and pandas takes a second: the choices are on the page by then. Without a run as
    # well, or the first Run would wait for it, and what it measures would be beside it.
    from views.result.compare import draw_comparison, draw_running

    if snapshot is None:
        return
    if snapshot.state != "finished":
        draw_running(snapshot, chosen.baseline)
    else:
        draw_comparison(
            snapshot.run, snapshot.version, finished=True, baseline=chosen.baseline, imported=snapshot.imported
        )


frame.draw("compare", _body)
