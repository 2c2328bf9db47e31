"""The opening of a page: the run that its address names, and the choices that it makes; and back into the address."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

import strategies
from measure import client
from measure.run import place
from measure.run.place import StoreError
from measure.run.run import Run
from measure.store.store import Snapshot
from views.choices import address
from views.choices.address import Fields, Form
from views.ui.memo import Memo

_OPENED, _LEFT_AS = "opened", "left_as"
_forms = Memo(__name__)


@dataclass(frozen=True)
class Opened:
    """The run that the address names, or the sentence why there is none; ``own`` is its form, empty where there is no
    run or this one cannot be asked for here."""

    run_id: str | None
    snapshot: Snapshot | None
    problem: str
    own: Form


def read(page: str, fields: Fields, of_run: Callable[[Run], Form]) -> Opened:
    """Return the run, and set the choices where another page or run was open before. ``of_run`` returns the form of a
    run."""
    before = st.session_state.get(_OPENED, (None, None))
    params = _address()
    if not params and page != before[0]:
        # The navigation opens a page without an address: it is to be found as it was left.
        params = st.session_state.get(_LEFT_AS, {}).get(page, {})
    run_id = params["run"][-1] if "run" in params else None
    snapshot, problem = find(run_id) if run_id else (None, "")
    own: Form = {}
    if snapshot is not None and (run := snapshot.run).kind == page:
        own = _forms.get((run.id, snapshot.version, strategies.version()), lambda: of_run(run))
    if (page, run_id) != before:
        st.session_state[_OPENED] = (page, run_id)
        form, st.session_state["notices"] = address.read(params, own, fields)
        choose(form)
    return Opened(run_id, snapshot, problem, own)


def write(page: str, opened: Opened, fields: Fields) -> None:
    """Put the run and the choices into the address, and remember it: the last thing that a page does."""
    wanted = {"run": [opened.run_id]} if opened.run_id else {}
    wanted |= address.write(chosen(fields), opened.own, fields)
    # The open tab of a result is the one that writes itself.
    for name in [name for name in st.query_params if name not in wanted and name != "tab"]:
        del st.query_params[name]
    if changes := {name: values for name, values in wanted.items() if st.query_params.get_all(name) != values}:
        st.query_params.update(changes)
    st.session_state.setdefault(_LEFT_AS, {})[page] = _address()


def choose(form: Mapping[str, Any]) -> None:
    """Set the choices; their fields are not drawn yet, or this is a callback."""
    for key, value in form.items():
        st.session_state[key] = value


def chosen(fields: Fields) -> Form:
    """Return the form as it is now."""
    form: Form = {}
    while new := [key for key in fields(form) if key not in form and key in st.session_state]:
        form |= {key: st.session_state[key] for key in new}
    return form


def anew() -> None:
    """Have the next page read its address, whatever was open before."""
    st.session_state.pop(_OPENED, None)


def _address() -> dict[str, list[str]]:
    return {name: st.query_params.get_all(name) for name in st.query_params}


def find(run_id: str) -> tuple[Snapshot | None, str]:
    """Return the run, live or stored, or the sentence why there is none."""
    if not place.is_id(run_id):
        return None, f"«{run_id[:60]}» is not the id of a run: an id is 24 digits and letters from a to f."
    gone = f"Run {run_id} is not known here: it was measured on another machine, deleted, or removed to make room."
    try:
        snapshot = client.shared().snapshot(run_id)
    except (ValueError, StoreError) as error:
        return None, f"Run {run_id} cannot be read: {error}."
    return snapshot, "" if snapshot is not None else gone
