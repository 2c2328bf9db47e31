"""The opening of a page: the choices that its address makes, and the run that it names."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from measure import runner
from measure.model import place
from measure.model.place import StoreError
from measure.model.run import Run
from measure.runner import Snapshot
from views.choices import address
from views.choices.case import address_workload

_READ = "link_read"
_LEFT_AS = "addresses"


def read_address(page: str, further: Callable[[Run], dict[str, Any]] = lambda run: {}) -> None:
    """Note which values of the address are not valid, and make its choices valid; once for each visit of a page.

    ``further`` returns widget key → value of what an opened run chooses beyond a comparison's choices.
    """
    if st.session_state.get(_READ) == page:
        # The list of strategies takes any text, and what the address says goes before what a script sets: so it is
        # put right in a second run.
        kept = st.session_state.pop("strategies_kept", None)
        if kept is not None:
            st.session_state["strategies"] = list(kept)
        return
    params = _address()
    if not params and st.session_state.get(_LEFT_AS, {}).get(page):
        # The navigation opens a page without an address: it is to be found as it was left.
        st.query_params.from_dict(st.session_state[_LEFT_AS][page])
        st.rerun()
    st.session_state[_READ] = page
    faults = address.read(params)
    st.session_state["notices"] = faults.notices
    if faults.strategies is not None:
        st.session_state["strategies_kept"] = faults.strategies
        # Now, before the list is drawn and owns this part of the address.
        st.query_params["strategies"] = list(faults.strategies)
    if set(params) <= {"run", "tab", "baseline"} and "run" in params:
        _choose_as(params["run"][-1], further)


def put_right(page: str) -> None:
    """Start the second run that `read_address` may need, and keep the address as the page leaves it: the last thing
    that a page does."""
    if "strategies_kept" in st.session_state:
        st.rerun()
    st.session_state.setdefault(_LEFT_AS, {})[page] = _address()


def _address() -> dict[str, tuple[str, ...]]:
    return {name: tuple(st.query_params.get_all(name)) for name in st.query_params}


def anew() -> None:
    """Have the next page read its address, whatever was open before."""
    st.session_state.pop(_READ, None)


def _choose_as(run_id: str, further: Callable[[Run], dict[str, Any]]) -> None:
    """Make the choices of a run, for a link that names nothing else."""
    snapshot = find(run_id)[0]
    if snapshot is None:
        return
    values = address.of_request(snapshot.run.request)
    as_text = {key: _as_texts(value) for key, value in values.items() if value is not None}
    if address.read(as_text).notices:  # an imported run may ask for what is not here
        return
    for key, value in {**values, **further(snapshot.run)}.items():
        st.session_state[key] = value
    address_workload(snapshot.run.request.workload)


def _as_texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(map(str, value))
    return (f"{value:g}" if isinstance(value, float) else str(value),)


def find(run_id: str) -> tuple[Snapshot | None, str]:
    """Return the run, live or stored, or the sentence why there is none."""
    if not place.is_id(run_id):
        return None, f"«{run_id[:60]}» is not the id of a run: an id is 24 digits and letters from a to f."
    try:
        snapshot = runner.shared().snapshot(run_id)
    except (ValueError, StoreError) as error:
        return None, f"Run {run_id} cannot be read: {error}."
    if snapshot is None:
        return None, f"Run {run_id} is not known here: it was measured on another machine, or deleted."
    return snapshot, ""
