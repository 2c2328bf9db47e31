"""Runs in a store that nobody has measured."""

from measure.run.run import Run
from measure.store.store import Store


def put(kept: Store, run: Run, *, live: bool = False, owner: str = "") -> None:
    """Have a store hold a run as it is: one that has ended, or one that this process measures."""
    before = kept.look(run.id)
    if before is not None and before.state == "finished":
        kept.delete([run.id])
    if before is None or before.state == "finished":
        kept.begin(run, owner=owner)
    assert kept.save(run, ended=not live)
