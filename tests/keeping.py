"""Runs that nobody has measured, in a store and in a report."""

from measure.run.run import Run
from measure.store import imports
from measure.store.store import Store


def put(kept: Store, run: Run, *, live: bool = False, owner: str = "") -> None:
    """Have a store hold a run as it is: one that has ended, or one that this process measures."""
    before = kept.look(run.id)
    if before is not None and before.state == "finished":
        kept.delete([run.id])
    if before is None or before.state == "finished":
        kept.begin(run, owner=owner)
    assert kept.save(run, ended=not live)


def ids(kept: Store) -> list[str]:
    """The runs of a store, the newest first."""
    return [entry.id for entry in kept.entries()]


def in_report(*files: bytes) -> bytes:
    """A report with these run files, and little else."""
    blocks = (imports.RUN_BEGINS + file.replace(b"<", b"\\u003c") + imports.RUN_ENDS for file in files)
    return b"\n<!doctype html><p>" + b"</p>\n".join(blocks) + b"<script>run()</script>"
