"""The foot of the choices: what a run will need, and the button; or why it cannot be run."""

import streamlit as st

from measure import runner
from measure.model.request import Request
from measure.sweep.request import SweepRequest
from views.result import actions
from views.ui import look

_HOST_POLL_S = 1.0


def draw(request: Request | SweepRequest | None, refusal: str | None, needs: str) -> None:
    """``needs``: what it will take, as Markdown."""
    host = runner.shared().host()
    with st.container(key="run_bar", gap="small"):
        refusal = st.session_state.pop("refusal", None) or refusal
        if refusal:
            st.warning(look.plain(refusal), icon=":material/block:")
        elif needs:
            st.caption(needs)
        st.button(
            "Run", type="primary", key="run", icon=":material/play_arrow:", width="stretch",
            disabled=request is None or refusal is not None, on_click=actions.start, args=(request,),
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
