"""The layout of the Compare and the Sweep page: choices at the left, and at the right the run that is shown.

Where there is a run, the choices are one line above it, until somebody unfolds them.
"""

from collections.abc import Callable

import msgspec
import streamlit as st

import strategies
from measure import client, hosting
from measure.admission import beyond
from measure.run.request import ALL_MACHINES, RequestError
from measure.run.run import Run
from measure.run.sweep_request import SweepRequest
from measure.store.store import Snapshot
from views.choices import address, form
from views.pages import opening
from views.result import actions, decision, heading, lookup, progress
from views.ui import browser, guard, look, permission
from workloads import places

VIEWER = (
    "This server shows runs and measures none. On a machine of your own, `pip install -r requirements.txt` and "
    "`streamlit run app.py` in Mapbench's folder measure; a run that is exported here and imported there can be "
    "measured again."
)
_PURPOSE = (
    "You map a function over the first axis of a tensor: which way is fastest here, at which memory, and is it right?"
)
_HOST_POLL_S = 1.0
# Of the session: the run above which the choices are unfolded, and the one that was asked for, until it is shown.
_UNFOLDED, _ASKED = "unfolded", "asked_run"


def draw(kind: address.Kind, body: Callable[[Snapshot | None, form.Choices], None]) -> None:
    """Draw the page of one kind of runs; ``body`` draws the run, or the first visitor's page."""
    with guard.calm("the page"):
        if (asked := st.session_state.pop(_ASKED, None)) is not None:
            actions.show(*asked)
        opened = opening.read(kind)
        run = None if opened.snapshot is None else opened.snapshot.run
        if run is not None and run.kind != kind:
            opening.anew()
            st.switch_page(f"views/pages/{run.kind}.py", query_params={"run": run.id})
        shown = opened.snapshot
        if shown is not None and shown.state == "finished" and st.query_params.get("present") == "1":
            _present(shown, st.session_state.get("baseline", address.AUTOMATIC))
            return
        folded = places.viewer() or (run is not None and st.session_state.get(_UNFOLDED) != run.id)
        grid = [mapper.slug for mapper in strategies.mappers()]
        st.html(look.style(grid, "folded" if folded else "unfolded"))
        with st.container(key="notices"):
            for notice in filter(None, (*st.session_state.get("notices", ()), opened.problem)):
                st.warning(look.plain(notice), icon=":material/link_off:")
        if run is None:
            with st.container(key="purpose"):
                st.markdown(_PURPOSE)
        # Folded, both are one place, in which the line of choices stays in sight.
        left, right = [st.container()] * 2 if folded else st.columns([0.34, 0.66], gap="large")
        # Run comes first for the keyboard, and stands below the choices.
        bar = left.container(key="run_bar", gap="xsmall" if folded else "small")
        if run is not None and not folded:
            left.button("▾ Fold the choices", key="fold", type="tertiary", on_click=_unfold, args=(None,))
        chosen = form.Choices(None, None)  # where they cannot be drawn
        with left.container(key="form"), guard.calm("the choices"):
            chosen = form.choose(kind, client.shared().places())
        result = right.container(key="result")
        pressed = False
        if places.viewer():
            result.caption(f":material/visibility: {VIEWER}")
        else:
            with bar:
                pressed = _run_bar(chosen, run if folded else None)
        if pressed and chosen.request is not None:
            # Of the choices as they are now: who is quick changes one and presses Run before the page is drawn anew.
            st.session_state[_ASKED] = actions.queue(chosen.request) or None
        # Slots of their own: what comes and goes in one does not move what is drawn in the other.
        state, place = result.container(key="state"), result.container(key="body")
        if not opened.problem:
            with state:
                _state(opened, chosen, kind)
            with place:
                body(opened.snapshot, chosen)
        opening.write(kind, opened)
        if pressed:
            st.rerun()  # only now, since widgets that were not drawn are forgotten


def _present(snapshot: Snapshot, baseline: str) -> None:
    """Draw a result in large figures, for a screen in a meeting: nothing to choose, and one button, which ends it."""
    from views.result import compare, sweep  # which load Altair, as a page does once its choices are there

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
            compare.draw_large(run, version, None if baseline == address.AUTOMATIC else baseline)
        actions.draw_origin(snapshot)


def _unfold(run_id: str | None) -> None:
    st.session_state[_UNFOLDED] = run_id


def _run_bar(chosen: form.Choices, folded_for: Run | None) -> bool:
    """Draw what is always in sight: the button with the forecast, or why the choices cannot be run; and, where they are
    folded above a run, the choices in one line. True if the button was pressed."""
    # What is more than this server allows is to be said before Run is pressed.
    cannot = chosen.refusal or (beyond(chosen.request, hosting.limits()) if chosen.request else None)
    if refusal := st.session_state.pop("refusal", None) or cannot:
        st.warning(look.plain(look.sentence(refusal)), icon=":material/block:")
    if chosen.needs and folded_for is None:
        st.caption(chosen.needs)
    with st.container(
        key="run_line", horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", wrap=False
    ):
        if folded_for is not None:
            line = address.line(chosen.request) if chosen.request else str(st.session_state["workload"])
            st.button(f"▸ {look.plain(line)}", key="fold", type="tertiary", on_click=_unfold, args=(folded_for.id,))
        pressed = st.button(
            "Run", type="primary", key="run", icon=":material/play_arrow:", shortcut="Ctrl+Enter",
            disabled=chosen.request is None or cannot is not None, width="content" if folded_for else "stretch",
        )  # fmt: skip
    if client.shared().host().state != "ready":
        st.fragment(_host, run_every=_HOST_POLL_S)()
    return pressed and cannot is None


def _host() -> None:
    """Show the measuring process while it is not ready; the page runs again when it is, and has its devices."""
    host = client.shared().host()
    if host.state == "ready":
        st.rerun()
    elif host.state == "failed":
        st.error(f"Nothing can be measured now: {look.plain(host.message)}", icon=":material/error:")
    else:
        st.caption(f":material/hourglass_top: {look.plain(host.message or 'TensorFlow is being loaded')}")


# --- the run that is shown -------------------------------------------------------------------------------------------


def _state(opened: opening.Opened, chosen: form.Choices, kind: address.Kind) -> None:
    """Draw how the run stands, and where it is one of other choices than those on the form."""
    snapshot = opened.snapshot
    if snapshot is None:
        if _ASKED not in st.session_state and (going_on := progress.others()):
            st.caption(f":material/hourglass_top: {look.plain(going_on)}")
        return
    if not places.viewer():
        if actions.comes_with_code(snapshot.run):
            _trust_box(snapshot.run)
        elif not opened.own:
            st.caption(
                ":material/info: This run's workload or strategies are not known here, so the choices are other ones."
            )
        if others := _other_choices(opened, chosen, kind):
            st.html(look.sheet("grey"))
            with st.container(key="agreement", border=True, horizontal=True, vertical_alignment="center", gap="small"):
                words = look.plain(", ".join(others))
                st.markdown(
                    f":material/info: **These are results of other choices**: {words}. Run measures the new ones.",
                    width="stretch",
                )
                own = {key: value for key, value in opened.own.items() if key != "baseline"}
                st.button("Take the choices of this result", key="take", on_click=st.session_state.update, args=(own,))
    actions.draw(snapshot)


def _other_choices(opened: opening.Opened, chosen: form.Choices, kind: address.Kind) -> list[str]:
    """Return, in words, the choices of a finished run that are not those on the form."""
    if opened.snapshot is None or opened.snapshot.state != "finished" or not opened.own:
        return []
    keys = address.changed(kind, opening.chosen(kind), opened.own)
    if "workload" in keys:
        keys = ["workload"]
    request = chosen.request.base if isinstance(chosen.request, SweepRequest) else chosen.request
    of_run = opened.snapshot.run.request.strategies
    if request is not None and set(request.strategies) == set(of_run):
        keys = [key for key in keys if key != "strategies"]
    if request is not None and request.machine == ALL_MACHINES and request.device == opened.snapshot.run.request.device:
        keys = [key for key in keys if key != "device"]
    own = {**opened.own, "strategies": of_run}
    return [address.choice(key, own[key]) for key in keys if key != "baseline" and key in own]


def _trust_box(run: Run) -> None:
    """Draw the box above a run of somebody's own function that is not known here: its code, and the button that runs
    it. Nothing of it is executed before that is pressed."""
    own = run.request.own
    assert own is not msgspec.UNSET, "it comes with code"
    with st.container(border=True, key="trust", gap="small"):
        st.markdown(
            f":material/shield: **This run came with code**: the function {look.plain(own.given.function)}, which is "
            "not known here. Nothing of it was executed. To measure it here, read it first."
        )
        with st.expander("The code that came with the run", icon=":material/code:"):
            st.code(own.given.code, language="python")
        if permission.may_execute():
            st.button(
                "I trust this code, run it here", key="trust_it", icon=":material/verified_user:", on_click=_trust,
                args=(run.id,),
            )  # fmt: skip
        elif permission.policy() == "token":
            st.caption(f"To run it here, {permission.LOCKED}; then open this run again.")
        else:
            st.caption(
                "On this server no code of others is run. Export the run and import it where Mapbench runs on your "
                "machine."
            )


def _trust(run_id: str) -> None:
    try:
        request = lookup.find(run_id).run.request
        assert request.own is not msgspec.UNSET, "it comes with code"
        permission.give(request.own.given, request.size, request.seed)
    except RequestError as error:
        st.session_state["notices"] = (f"The code of this run cannot be measured here: {error}.",)
    else:
        actions.again(run_id)
