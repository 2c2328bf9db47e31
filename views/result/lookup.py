"""The run of an id, for callbacks and fragments: who is given the run itself keeps it in memory for as long as somebody
has the page open."""

from measure import client
from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.run.run import Run


def find(run_id: str) -> Run:
    """The run. Raises `RequestError` where it is gone, or cannot be read."""
    try:
        snapshot = client.shared().snapshot(run_id)
    except (ValueError, StoreError) as error:
        raise RequestError(f"the run cannot be read: {error}") from None
    if snapshot is None:
        raise RequestError("the run has been deleted")
    return snapshot.run
