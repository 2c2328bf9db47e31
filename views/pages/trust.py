"""The box above a run of somebody's own function that is not known here: its code, and the button that runs it."""

import msgspec
import streamlit as st

from measure.run.request import RequestError
from measure.run.run import Run
from views.pages import texts
from views.result import actions, lookup
from views.ui import look, permission


def draw(run: Run) -> bool:
    """Draw the box; False where the run is of no such function. Nothing of it is executed before the button is
    pressed."""
    own = run.request.own
    if own is msgspec.UNSET or not actions.comes_with_code(run):
        return False
    with st.container(border=True, key="trust", gap="small"):
        st.markdown(texts.NOT_TRUSTED.format(function=look.plain(own.given.function)))
        with st.expander(texts.ITS_CODE, icon=":material/code:"):
            st.code(own.given.code, language="python")
        if permission.may_execute():
            st.button(texts.TRUST, key="trust_it", icon=":material/verified_user:", on_click=_trust, args=(run.id,))
        else:
            st.caption(texts.TRUST_AT_HOME)
    return True


def _trust(run_id: str) -> None:
    try:
        run = lookup.find(run_id)
        own = run.request.own
        assert own is not msgspec.UNSET  # the button is drawn for such runs only
        permission.give(own.given, run.request.size, run.request.seed)
    except RequestError as error:
        st.session_state["notices"] = (texts.CODE_NOT_RUN.format(error=error),)
    else:
        actions.again(run_id)
