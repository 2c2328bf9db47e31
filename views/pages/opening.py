"""The opening of a page: the run that its address names, and the choices that it makes; and back into the address."""

from dataclasses import dataclass

import streamlit as st

import strategies
from measure.run.request import RequestError
from measure.store.store import Snapshot
from views.choices import address
from views.choices.address import Form, Kind
from views.result import lookup
from views.ui import look, memo

_OPENED, _LEFT_AS = "opened", "left_as"
_forms = memo.Memo(__name__)


@dataclass(frozen=True)
class Opened:
    """The run that the address names, or the sentence why there is none; ``own`` is its form, empty where there is no
    run or this one cannot be asked for here."""

    run_id: str | None
    snapshot: Snapshot | None
    problem: str
    own: Form


def read(page: Kind) -> Opened:
    """Return the run, and set the choices where another page or run was open before."""
    # A page that draws no form has Streamlit forget the choices.
    before = st.session_state.get(_OPENED, (None, None)) if "workload" in st.session_state else (None, None)
    params = _address()
    if not params and page != before[0]:
        # The navigation opens a page without an address: it is to be found as it was left.
        params = st.session_state.get(_LEFT_AS, {}).get(page, {})
    run_id = params["run"][-1] if "run" in params else None
    snapshot, problem = find(run_id) if run_id else (None, "")
    own: Form = {}
    if snapshot is not None:
        memo.opened(snapshot.run.id, snapshot.documents_bytes)
    if snapshot is not None and (run := snapshot.run).kind == page:
        own = _forms.get((run.id, snapshot.version, strategies.version()), lambda: address.of_run(run))
    if (page, run_id) != before:
        st.session_state[_OPENED] = (page, run_id)
        form, st.session_state["notices"] = address.read(page, params, own)
        st.session_state.update(form)
    return Opened(run_id, snapshot, problem, own)


def write(page: Kind, opened: Opened) -> None:
    """Put the run and the choices into the address, and remember it: the last thing that a page does."""
    wanted = {"run": [opened.run_id]} if opened.run_id else {}
    wanted |= address.write(page, chosen(page), opened.own)
    # What is said of the result is written where it changes.
    for name in [name for name in st.query_params if name not in wanted and name not in address.OF_RESULT[1:]]:
        del st.query_params[name]
    if changes := {name: values for name, values in wanted.items() if st.query_params.get_all(name) != values}:
        st.query_params.update(changes)
    st.session_state.setdefault(_LEFT_AS, {})[page] = _address()


def chosen(page: Kind) -> Form:
    """Return the form as it is now."""
    state = st.session_state
    return {field.key: state[field.key] for field in address.fields(page, state) if field.key in state}


def anew() -> None:
    """Have the next page read its address, whatever was open before."""
    st.session_state.pop(_OPENED, None)


def _address() -> dict[str, list[str]]:
    return {name: st.query_params.get_all(name) for name in st.query_params}


def find(run_id: str) -> tuple[Snapshot | None, str]:
    """Return the run, live or stored, or the sentence why there is none."""
    try:
        return lookup.find(run_id), ""
    except RequestError as error:
        return None, look.sentence(str(error))
