"""The layout of the Compare and the Sweep page: choices at the left, and at the right the run that is shown."""

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar

import streamlit as st

import strategies
from measure import runner
from measure.model.request import Request
from measure.model.run import Run
from measure.runner import Snapshot
from measure.sweep.request import SweepRequest
from views.pages import opening
from views.result import actions, progress
from views.ui import guard, look

_HOST_POLL_S = 1.0


class Choices(Protocol):
    """A request, or the sentence why the choices make none; the sentence is None where it is said elsewhere."""

    @property
    def request(self) -> Request | SweepRequest | None: ...

    @property
    def refusal(self) -> str | None: ...


C = TypeVar("C", bound=Choices)


def draw(
    kind: Literal["compare", "sweep"],
    *,
    choose: Callable[[tuple[str, ...]], C],
    needs: Callable[[C], str],
    body: Callable[[Snapshot | None, C], None],
    hint: Callable[[Snapshot, C], None] = lambda snapshot, chosen: None,
    further: Callable[[Run], dict[str, Any]] = lambda run: {},
) -> None:
    """Draw the page of one kind of runs.

    ``choose`` draws the choices, given the devices, which are none while the measuring process is starting; ``needs``
    returns the forecast of a request as Markdown; ``body`` draws the run, or the first visitor's page; ``hint`` adds a
    remark to a finished run; ``further`` is `opening.read_address`'s.
    """
    with guard.calm("the page"):
        opening.read_address(kind, further)
        st.html(look.style(mapper.slug for mapper in strategies.mappers()))
        left, right = st.columns([0.34, 0.66], gap="large")
        with left, guard.calm("the choices"):
            chosen = choose(runner.shared().host().devices)
            _run_bar(chosen, needs(chosen))
        with right:
            _run(kind, chosen, body, hint)
        opening.put_right(kind)


def _run_bar(chosen: Choices, needs: str) -> None:
    """Draw the foot of the choices: the forecast and the button, or why the choices cannot be run."""
    with st.container(key="run_bar", gap="small"):
        refusal = st.session_state.pop("refusal", None) or chosen.refusal
        if refusal:
            st.warning(look.plain(refusal), icon=":material/block:")
        elif needs:
            st.caption(needs)
        st.button(
            "Run", type="primary", key="run", icon=":material/play_arrow:", width="stretch",
            disabled=chosen.request is None or refusal is not None, on_click=actions.start, args=(chosen.request,),
            shortcut="Ctrl+Enter",
        )  # fmt: skip
        if runner.shared().host().state != "ready":
            st.fragment(_host, run_every=_HOST_POLL_S)()


def _host() -> None:
    """Show the measuring process while it is not ready; the page runs again when it is, and knows its devices."""
    host = runner.shared().host()
    if host.state == "ready":
        st.rerun()
    elif host.state == "failed":
        st.error(f"The measuring process does not start: {look.plain(host.message)}", icon=":material/error:")
    else:
        st.caption(f":material/hourglass_top: {look.plain(host.message or 'TensorFlow is being loaded')}")


def _run(
    kind: str, chosen: C, draw_body: Callable[[Snapshot | None, C], None], hint: Callable[[Snapshot, C], None]
) -> None:
    # Slots of their own: what comes and goes in one does not move what is drawn in the others.
    notices, state, body = st.container(key="notices"), st.container(key="state"), st.container(key="body")
    run_id = st.query_params.get("run")
    snapshot, problem = opening.find(run_id) if run_id else (None, "")
    if snapshot is not None and snapshot.run.kind != kind:
        opening.anew()
        st.switch_page(f"views/pages/{snapshot.run.kind}.py", query_params={"run": snapshot.run.id})
    with notices:
        for notice in (*st.session_state.get("notices", ()), *((problem,) if problem else ())):
            st.warning(look.plain(notice), icon=":material/link_off:")
    with state:
        if snapshot is None:
            _others()
        else:
            if snapshot.state == "finished":
                hint(snapshot, chosen)
            else:
                progress.watch(snapshot)
            actions.draw(snapshot)
    with body:
        draw_body(snapshot, chosen)


def _others() -> None:
    if going_on := progress.others():
        st.caption(f":material/hourglass_top: {look.plain(going_on)}")
