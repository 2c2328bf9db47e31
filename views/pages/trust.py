"""The box above a run of somebody's own function that is not known here: its code, and the button that runs it."""

import msgspec
import streamlit as st

from measure.run.request import RequestError
from measure.run.run import Run
from views.result import actions, lookup
from views.ui import look, permission


def draw(run: Run) -> bool:
    """Draw the box; False where the run is of no such function. Nothing of it is executed before the button is
    pressed."""
    own = run.request.own
    if own is msgspec.UNSET or not actions.comes_with_code(run):
        return False
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
        else:
            st.caption(
                "On this server no code of others is run. Export the run and import it where Mapbench runs on your "
                "machine."
            )
    return True


def _trust(run_id: str) -> None:
    try:
        run = lookup.find(run_id)
        own = run.request.own
        assert own is not msgspec.UNSET  # the button is drawn for such runs only
        permission.give(own.given, run.request.size, run.request.seed)
    except RequestError as error:
        st.session_state["notices"] = (f"The code of this run cannot be measured here: {error}.",)
    else:
        actions.again(run_id)
