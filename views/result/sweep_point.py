"""One point of a sweep as the comparison that it is: chosen by a click in the chart above it, or from a list."""

from typing import Any

import streamlit as st
from msgspec.structs import replace

from measure.judge import sweep_analysis
from measure.judge.lines import place, readable
from measure.run.run import Point, Run
from views.charts import sweep_map
from views.result import texts
from views.result.compare import draw_comparison
from views.ui import look
from views.ui.parameters import option_key, size_key

_COMPARE = "views/pages/compare.py"
# The list, and the click that was followed last.
_LIST, _CHOSEN, _CLICKED = "sweep_point", "sweep_point_chosen", "sweep_clicked"


def point_run(run: Run, point: Point) -> Run:
    """One point of a sweep as the comparison that it is."""
    at = "-".join(f"{name}-{value}" for name, value in point.at.items())
    # What is computed of it is kept under its id.
    return replace(sweep_analysis.comparison(run, point), id=f"{run.id}-{at}")


def draw(run: Run, version: int, baseline: str | None, event: Any, *, imported: bool) -> None:
    """Draw the list of points and the comparison at the chosen one. ``event``: of the chart that a click may have
    chosen a point in."""
    offered = {place(point): point for point in run.points if point.status != "waiting"}
    if not offered:
        return
    names = {where: f"{readable(point.at)} ({sweep_map.state(point)})" for where, point in offered.items()}
    _take_click(run, event)
    chosen = chosen_place(_CHOSEN, run)
    st.session_state[_LIST] = chosen if chosen in offered else None
    picked = st.selectbox(
        texts.POINT_AT, list(offered), index=None, key=_LIST,
        placeholder=texts.POINT_PLACEHOLDER, on_change=choose, args=(_CHOSEN, _LIST, run.id),
        format_func=names.__getitem__,
    )  # fmt: skip
    if picked is None:
        return
    point = offered[picked]
    comparison = point_run(run, point)
    with st.container(border=True, key="point", gap="small"):
        st.page_link(
            _COMPARE, label=texts.COMPARE_LINK, icon=":material/compare_arrows:",
            query_params=_address(comparison),
        )  # fmt: skip
        if not point.measurements:
            st.caption(look.plain(look.sentence(f"{sweep_map.state(point)}")))
            return
        draw_comparison(
            comparison, version, finished=point.status not in ("waiting", "running"), baseline=baseline,
            prefix="point_", imported=imported,
        )  # fmt: skip


def _take_click(run: Run, event: Any) -> None:
    """Have a click choose the point, until another one is chosen by other means."""
    if event is None:
        return
    picked = [selected.get(sweep_map.SELECTION) for selected in event.selection.get(sweep_map.SELECTION, [])]
    clicked = next((point for point in run.points if picked and sweep_map.cell(run, point) == picked[0]), None)
    if clicked is not None and picked[0] != st.session_state.get(_CLICKED):
        st.session_state[_CLICKED] = picked[0]
        st.session_state[_CHOSEN] = (run.id, place(clicked))


def choose(chosen: str, widget: str, run_id: str) -> None:
    """Keep what is picked in a list of points, which are told by their place, for this run."""
    st.session_state[chosen] = (run_id, st.session_state[widget])


def chosen_place(chosen: str, run: Run) -> tuple[int, ...] | None:
    """Return what was picked for this run; a choice in another one says nothing about it."""
    run_id, where = st.session_state.get(chosen) or (None, None)
    return where if run_id == run.id else None


def _address(comparison: Run) -> dict[str, Any]:
    """Return the query parameters with which the Compare page makes a comparison's choices."""
    request = comparison.request
    parameters: dict[str, Any] = {"workload": request.workload, "dtype": request.dtype, "device": request.device}
    parameters |= {size_key(name): str(value) for name, value in request.size.items()}
    parameters |= {option_key(name): str(value) for name, value in request.workload_options.items()}
    return {**parameters, "strategies": list(request.strategies) or ["default"]}
