"""The run of an id, for callbacks and fragments: who is given the run itself keeps it in memory for as long as somebody
has the page open."""

from collections.abc import Callable
from typing import TypeVar

from measure import client
from measure.run import place
from measure.run.request import RequestError
from measure.store.entries import Entry
from measure.store.store import Snapshot

_T = TypeVar("_T")


def find(run_id: str) -> Snapshot:
    """Return the run, live or stored. Raises `RequestError` with the sentence why there is none."""
    return _there(run_id, client.shared().snapshot)


def line(run_id: str) -> Entry:
    """Return the run's line in the list of runs, which costs next to nothing. Raises as `find` does."""
    return _there(run_id, client.shared().store.entry)


def _there(run_id: str, look_up: Callable[[str], _T | None]) -> _T:
    if not place.is_id(run_id):
        raise RequestError(f"«{run_id[:60]}» is not the id of a run: an id is 24 digits and letters from a to f")
    try:
        there = look_up(run_id)
    except (ValueError, place.StoreError) as error:
        raise RequestError(f"run {run_id} cannot be read: {error}") from None
    if there is None:
        gone = "it was measured on another machine, deleted, or removed to make room"
        raise RequestError(f"run {run_id} is not known here: {gone}")
    return there
