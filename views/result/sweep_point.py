"""One point of a sweep as the comparison that it is: chosen by a click in the chart above it, or from a list."""

from typing import Any

import streamlit as st
from msgspec.structs import replace

from measure.judge import sweep_analysis
from measure.judge.lines import place, readable
from measure.run.run import Run
from views.charts import sweep_map
from views.choices import address, compare
from views.result.compare import draw_comparison
from views.ui import look

# The list, the run and the place that it was set for last, and the click that was followed last.
_LIST, _CHOSEN, _CLICKED = "sweep_point", "sweep_point_chosen", "sweep_clicked"


def chosen(run: Run) -> tuple[int, ...] | None:
    """Return the place that was chosen in this run; a choice in another one says nothing about it."""
    run_id, where = st.session_state.get(_CHOSEN) or (None, None)
    return where if run_id == run.id else None


def draw(run: Run, version: int, baseline: str | None, event: Any, *, imported: bool) -> None:
    """Draw the list of points and the comparison at the chosen one. ``event``: of the chart that a click may have
    chosen a point in."""
    offered = {place(point): point for point in run.points if point.status != "waiting"}
    if not offered:
        return
    names = {where: f"{readable(point.at)} ({sweep_map.state(point)})" for where, point in offered.items()}
    clicks = [click.get(sweep_map.SELECTION) for click in event.selection.get(sweep_map.SELECTION, [])] if event else []
    if clicks and clicks[0] != st.session_state.get(_CLICKED):
        # A click chooses once, until another one: by then the list may say something else.
        st.session_state[_CLICKED] = clicks[0]
        for where, point in offered.items():
            if sweep_map.cell(run, point) == clicks[0]:
                st.session_state[_CHOSEN] = (run.id, where)
    st.session_state[_LIST] = chosen(run) if chosen(run) in offered else None
    picked = st.selectbox(
        "Show the comparison at", list(offered), index=None, key=_LIST, on_change=_choose, args=(run.id,),
        placeholder="choose a point, or click one above", format_func=names.__getitem__,
    )  # fmt: skip
    if picked is None:
        return
    point = offered[picked]
    at = "-".join(f"{name}-{value}" for name, value in point.at.items())
    # What is computed of it is kept under its id.
    comparison = replace(sweep_analysis.comparison(run, point), id=f"{run.id}-{at}")
    with st.container(border=True, key="point", gap="small"):
        st.page_link(
            "views/pages/compare.py", label="Open these choices on the Compare page", icon=":material/compare_arrows:",
            query_params=address.write(compare.of_run(comparison), {}, address.fields),
        )  # fmt: skip
        if not point.measurements:
            st.caption(look.plain(look.sentence(sweep_map.state(point))))
            return
        draw_comparison(
            comparison, version, finished=point.status not in ("waiting", "running"), baseline=baseline,
            prefix="point_", imported=imported,
        )  # fmt: skip


def _choose(run_id: str) -> None:
    st.session_state[_CHOSEN] = (run_id, st.session_state[_LIST])
