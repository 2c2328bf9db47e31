"""The run of an id, for callbacks and fragments: who is given the run itself keeps it in memory for as long as somebody
has the page open."""

from measure import client
from measure.run import place
from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.store.store import Snapshot


def find(run_id: str) -> Snapshot:
    """Return the run, live or stored. Raises `RequestError` with the sentence why there is none."""
    if not place.is_id(run_id):
        raise RequestError(f"«{run_id[:60]}» is not the id of a run: an id is 24 digits and letters from a to f")
    try:
        snapshot = client.shared().snapshot(run_id)
    except (ValueError, StoreError) as error:
        raise RequestError(f"run {run_id} cannot be read: {error}") from None
    if snapshot is None:
        gone = "it was measured on another machine, deleted, or removed to make room"
        raise RequestError(f"run {run_id} is not known here: {gone}")
    return snapshot
