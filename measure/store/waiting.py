"""Requests that wait to be measured: they outlive the server that took them, and the next one queues them again."""

from dataclasses import dataclass

import msgspec
import sqlalchemy as sa

from measure.model.asked import Asked
from measure.model.run import Run
from measure.store import documents
from measure.store.database import runs, waiting

# The holder of runs whose server is gone and that wait for the next one.
NOBODY = "nobody"


@dataclass(frozen=True)
class Waiting:
    """A run that waits: as it was when it was queued, its owner, and what was asked for."""

    run: Run
    owner: str
    asked: Asked


def note(connection: sa.Connection, run_id: str, asked: Asked | None) -> None:
    """Note that a run waits; without a request, that it does not."""
    connection.execute(sa.delete(waiting).where(waiting.c.run == run_id))
    if asked is not None:
        last = connection.execute(sa.select(sa.func.max(waiting.c.place))).scalar() or 0
        row = {"run": run_id, "place": last + 1, "asked": msgspec.json.encode(asked)}
        connection.execute(sa.insert(waiting).values(row))


def leave(connection: sa.Connection, holder: str) -> None:
    """Leave what waits for a process that is gone to the next server."""
    waits = sa.select(waiting.c.run)
    connection.execute(sa.update(runs).where(runs.c.holder == holder, runs.c.id.in_(waits)).values(holder=NOBODY))


def take(connection: sa.Connection, holder: str) -> list[Waiting]:
    """Make what waits for the next server this one's, in its order. What cannot be read ends."""
    columns = (runs.c.id, runs.c.owner, waiting.c.asked)
    chosen = sa.select(*columns).join(waiting, waiting.c.run == runs.c.id).where(runs.c.holder == NOBODY)
    taken = []
    for run_id, owner, asked in connection.execute(chosen.order_by(waiting.c.place)).all():
        try:
            taken.append(Waiting(documents.read(connection, run_id), owner, msgspec.json.decode(asked, type=Asked)))
        except ValueError:
            note(connection, run_id, None)
            ended = {"holder": None, "status": "interrupted"}
            connection.execute(sa.update(runs).where(runs.c.id == run_id).values(ended))
    connection.execute(sa.update(runs).where(runs.c.holder == NOBODY).values(holder=holder))
    return taken
