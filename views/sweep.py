"""The Sweep page: what is swept at the left, where the winner changes at the right."""

import streamlit as st

import strategies
from measure import runner
from measure.runner import Snapshot
from views import actions, guard, look, opening, progress, run_bar, sweep_choices


def _run_bar(chosen: sweep_choices.SweepChoices) -> None:
    """What the sweep will need, and which points cannot fit, before it is run."""
    needs = ""
    if chosen.needs is not None and chosen.request is not None:
        count, points = len(chosen.request.base.strategies), len(chosen.request.points())
        needs = (
            f"{points} points, {count} strateg{'ies' if count > 1 else 'y'}: needs about "
            f"**{look.size(chosen.needs.peak_bytes)}** and **{look.duration(chosen.needs.seconds)}**"
        )
        for at, reason in chosen.needs.skipped:
            place = ", ".join(f"{name} {value:,}" for name, value in at.items())
            needs += f"\n- :material/block: {look.plain(place)} is left out: {look.plain(reason)}"
    run_bar.draw(chosen.request, chosen.refusal, needs)


def _right(chosen: sweep_choices.SweepChoices) -> None:
    # Slots of their own: what comes and goes in one does not move what is drawn in the others.
    notices, state, body = st.container(key="notices"), st.container(key="state"), st.container(key="body")
    run_id = st.query_params.get("run")
    snapshot, problem = opening.find(run_id) if run_id else (None, "")
    if snapshot is not None and snapshot.run.kind == "compare":
        opening.anew()
        st.switch_page("views/compare.py", query_params={"run": snapshot.run.id})
    with notices:
        for notice in (*st.session_state.get("notices", ()), *((problem,) if problem else ())):
            st.warning(look.plain(notice), icon=":material/link_off:")
    with state:
        _state(snapshot)
        if snapshot is not None:
            actions.draw(snapshot)
    with body:
        if snapshot is None:
            _first_visit()
        elif snapshot.state in ("running", "finished"):
            # Only now, since loading Altair and pandas takes a moment: the choices are on the page by then.
            from views import sweep_result

            sweep_result.draw(
                snapshot.run, snapshot.version, finished=snapshot.state == "finished", baseline=chosen.baseline,
                imported=snapshot.imported,
            )  # fmt: skip


def _state(snapshot: Snapshot | None) -> None:
    if snapshot is None:
        going_on = progress.others()
        if going_on:
            st.caption(f":material/hourglass_top: {look.plain(going_on)}")
    elif snapshot.state != "finished":
        progress.watch(snapshot)


def _first_visit() -> None:
    st.markdown(
        "**Where does the winner change?** One size gives lines and the sizes at which one strategy overtakes another; "
        "two sizes give a map of winners; an option such as `chunk` turns the dial between speed and memory. "
        "Choose a range, and press Run."
    )


with guard.calm("the page"):
    opening.read_address("sweep", sweep_choices.of_run)
    st.html(look.style(mapper.slug for mapper in strategies.mappers()))
    left, right = st.columns([0.34, 0.66], gap="large")
    with left, guard.calm("the choices"):
        chosen = sweep_choices.draw(runner.shared().host().devices)
        _run_bar(chosen)
    with right:
        _right(chosen)
    opening.put_right("sweep")
