"""The Compare page: what is compared at the left, how it came out at the right."""

import functools
import html
from pathlib import Path
from typing import Any

import streamlit as st

import strategies
from measure import place, runner
from measure.place import StoreError
from measure.run import Run, decode
from measure.runner import Snapshot
from views import actions, choices, guard, link, look, progress

_EXAMPLE = Path(__file__).with_name("example_run.json")
_HOST_POLL_S = 1.0
_HOW_TO_READ = (
    "Further left is faster, a shorter bar needs less memory, and rows joined by a bracket cannot be told apart."
)


@functools.cache
def _example() -> Run:
    return decode(_EXAMPLE.read_bytes())


def _read_link() -> None:
    """Once for each visit: say what in the address is not valid, and make its choices valid."""
    if "link_read" in st.session_state:
        # The list of strategies takes any text, and what the address says goes before what a script sets: so it is
        # put right in a second run.
        kept = st.session_state.pop("strategies_kept", None)
        if kept is not None:
            st.session_state["strategies"] = list(kept)
        return
    params = {name: tuple(st.query_params.get_all(name)) for name in st.query_params}
    st.session_state["link_read"] = True
    found = link.read(params)
    st.session_state["notices"] = found.notices
    if found.strategies is not None:
        st.session_state["strategies_kept"] = found.strategies
        # Now, before the list is drawn and owns this part of the address.
        st.query_params["strategies"] = list(found.strategies)
    if set(params) <= {"run", "tab"} and "run" in params:
        _choose_as(params["run"][-1])


def _choose_as(run_id: str) -> None:
    """A link that names only a run opens that run's choices too."""
    snapshot = _snapshot(run_id)[0]
    if snapshot is None:
        return
    values = link.of_request(snapshot.run.request)
    as_text = {key: _as_texts(value) for key, value in values.items() if value is not None}
    if link.read(as_text).notices:  # an imported run may ask for what is not here
        return
    for key, value in values.items():
        st.session_state[key] = value
    choices.address_workload(snapshot.run.request.workload)


def _as_texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(map(str, value))
    return (f"{value:g}" if isinstance(value, float) else str(value),)


def _snapshot(run_id: str) -> tuple[Snapshot | None, str]:
    """The run, live or stored, or the sentence why there is none."""
    if not place.is_id(run_id):
        return None, f"«{run_id[:60]}» is not the id of a run: an id is 24 digits and letters from a to f."
    try:
        snapshot = runner.shared().snapshot(run_id)
    except (ValueError, StoreError) as error:
        return None, f"Run {run_id} cannot be read: {error}."
    if snapshot is None:
        return None, f"Run {run_id} is not known here: it was measured on another machine, or deleted."
    return snapshot, ""


def _run_bar(chosen: choices.Choices) -> None:
    """What the run will need, and the button; or why it cannot be run."""
    host = runner.shared().host()
    with st.container(key="run_bar", gap="small"):
        refusal = st.session_state.pop("refusal", None) or chosen.refusal
        if refusal:
            st.warning(look.plain(refusal), icon=":material/block:")
        elif chosen.needs is not None and chosen.request is not None:
            count = len(chosen.request.strategies)
            st.caption(
                f"{count} strateg{'ies' if count > 1 else 'y'}: needs about **{look.size(chosen.needs.peak_bytes)}** "
                f"and **{look.duration(chosen.needs.seconds)}**"
            )
        st.button(
            "Run", type="primary", key="run", icon=":material/play_arrow:", width="stretch",
            disabled=chosen.request is None or refusal is not None, on_click=actions.start, args=(chosen.request,),
            shortcut="Ctrl+Enter",
        )  # fmt: skip
        if host.state != "ready":
            st.fragment(_host, run_every=_HOST_POLL_S)()


def _host() -> None:
    """The measuring process while it is not ready; the page runs again when it is, and knows its devices."""
    host = runner.shared().host()
    if host.state == "ready":
        st.rerun()
    elif host.state == "failed":
        st.error(f"The measuring process does not start: {look.plain(host.message)}", icon=":material/error:")
    else:
        st.caption(f":material/hourglass_top: {look.plain(host.message or 'TensorFlow is being loaded')}")


def _right(chosen: choices.Choices) -> None:
    # Only now, since loading Altair and pandas takes a moment: the choices are on the page by then.
    from views import result

    # Slots of their own: what comes and goes in one does not move what is drawn in the others.
    notices, state, body = st.container(key="notices"), st.container(key="state"), st.container(key="body")
    run_id = st.query_params.get("run")
    snapshot, problem = _snapshot(run_id) if run_id else (None, "")
    with notices:
        for notice in (*st.session_state.get("notices", ()), *((problem,) if problem else ())):
            st.warning(look.plain(notice), icon=":material/link_off:")
    with state:
        _state(snapshot, chosen)
        if snapshot is not None:
            actions.draw(snapshot)
    with body:
        if snapshot is None:
            _first_visit(chosen)
        elif snapshot.state == "finished" or any(m.outcome != "not_run" for m in snapshot.run.measurements):
            finished = snapshot.state == "finished"
            result.draw(
                snapshot.run, snapshot.version, finished=finished, baseline=chosen.baseline, imported=snapshot.imported
            )


def _state(snapshot: Snapshot | None, chosen: choices.Choices) -> None:
    """How far the run is; or what else there is to know before pressing Run."""
    if snapshot is None:
        going_on = progress.others()
        if going_on:
            st.caption(f":material/hourglass_top: {look.plain(going_on)}")
    elif snapshot.state != "finished":
        progress.watch(snapshot)
    elif chosen.request is not None and chosen.request.record() != snapshot.run.request:
        st.caption(":material/info: The choices have changed since this run; Run measures them.")


def _first_visit(chosen: choices.Choices) -> None:
    run = _example()
    cpu = str(run.environment.get("cpu_model") or run.environment.get("cpu") or "another machine")
    st.html(
        '<div style="opacity:.85"><b>An example, measured before.</b> '
        f"{html.escape(run.request.workload)} on {html.escape(cpu)}, {html.escape(run.created[:10])}. {_HOW_TO_READ} "
        "Choose what you have, and press Run to measure it here.</div>"
    )
    from views import result

    result.draw(run, 0, finished=True, baseline=chosen.baseline, prefix="example_")


with guard.calm("the page"):
    _read_link()
    st.html(look.style(mapper.slug for mapper in strategies.mappers()))
    left, right = st.columns([0.34, 0.66], gap="large")
    with left, guard.calm("the choices"):
        chosen = choices.draw(runner.shared().host().devices)
        _run_bar(chosen)
    with right:
        _right(chosen)
    if "strategies_kept" in st.session_state:
        st.rerun()
