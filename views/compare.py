"""The Compare page: what is compared at the left, how it came out at the right."""

import functools
import html
from pathlib import Path

import streamlit as st

import strategies
from measure import runner
from measure.run import Run, decode
from measure.runner import Snapshot
from views import actions, choices, guard, look, opening, progress, run_bar

_EXAMPLE = Path(__file__).with_name("example_run.json")
_HOW_TO_READ = (
    "Further left is faster, a shorter bar needs less memory, and rows joined by a bracket cannot be told apart."
)


@functools.cache
def _example() -> Run:
    return decode(_EXAMPLE.read_bytes())


def _run_bar(chosen: choices.Choices) -> None:
    needs = ""
    if chosen.needs is not None and chosen.request is not None:
        count = len(chosen.request.strategies)
        needs = (
            f"{count} strateg{'ies' if count > 1 else 'y'}: needs about **{look.size(chosen.needs.peak_bytes)}** "
            f"and **{look.duration(chosen.needs.seconds)}**"
        )
    run_bar.draw(chosen.request, chosen.refusal, needs)


def _right(chosen: choices.Choices) -> None:
    # Only now, since loading Altair and pandas takes a moment: the choices are on the page by then.
    from views import result

    # Slots of their own: what comes and goes in one does not move what is drawn in the others.
    notices, state, body = st.container(key="notices"), st.container(key="state"), st.container(key="body")
    run_id = st.query_params.get("run")
    snapshot, problem = opening.find(run_id) if run_id else (None, "")
    if snapshot is not None and snapshot.run.kind == "sweep":
        opening.anew()
        st.switch_page("views/sweep.py", query_params={"run": snapshot.run.id})
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
    opening.read_address("compare")
    st.html(look.style(mapper.slug for mapper in strategies.mappers()))
    left, right = st.columns([0.34, 0.66], gap="large")
    with left, guard.calm("the choices"):
        chosen = choices.draw(runner.shared().host().devices)
        _run_bar(chosen)
    with right:
        _right(chosen)
    opening.put_right("compare")
