"""A run as documents of the database: its head, and one for each measurement; of a sweep for each point, and of claims
for each piece of evidence.

So a result that arrives costs what it weighs, not what the whole run does.
"""

import zlib
from collections.abc import Mapping, Sequence

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from measure.run.run import Evidence, Measurement, Point, Run
from measure.run.run_file import decode, upgraded
from measure.store.database import parts

Piece = Measurement | Point | Evidence

# The field of a run of a kind whose items arrive one after another, and their type.
_FIELDS = {"compare": "measurements", "sweep": "points", "claims": "evidence"}
_TYPES: dict[str, type[Piece]] = {"compare": Measurement, "sweep": Point, "claims": Evidence}


def pieces(run: Run) -> Sequence[Piece]:
    """The parts of a run that arrive one after another."""
    return getattr(run, _FIELDS[run.kind]) or []


def packed(part: Run | Piece) -> bytes:
    """A part as it is stored: compressed JSON."""
    return zlib.compress(msgspec.json.encode(part), 1)


def read(connection: sa.Connection, run_id: str) -> Run:
    """The run as its documents make it. ValueError where they are damaged."""
    asked = sa.select(parts.c.document).where(parts.c.run == run_id).order_by(parts.c.place)
    try:
        head, *others = (zlib.decompress(document) for document in connection.execute(asked).scalars())
        run = decode(head)
        now = [msgspec.json.decode(document, type=_TYPES[run.kind]) for document in others]
        return upgraded(replace(run, **{_FIELDS[run.kind]: now}))
    except (zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"what is stored of it is damaged ({error})") from None


def write(connection: sa.Connection, run: Run, before: Sequence[Piece] = ()) -> None:
    """Write the run's head and those of its pieces that are not the same objects as ``before``, which are stored."""
    now = pieces(run)
    head = replace(run, **{_FIELDS[run.kind]: []})
    changed = {0: packed(head)} | {
        place: packed(piece)
        for place, piece in enumerate(now, 1)
        if place > len(before) or before[place - 1] is not piece
    }
    connection.execute(sa.delete(parts).where(parts.c.run == run.id, parts.c.place > len(now)))
    write_parts(connection, run.id, changed)


def write_parts(connection: sa.Connection, run_id: str, changed: Mapping[int, bytes]) -> None:
    """Replace documents of a run, by their places."""
    connection.execute(sa.delete(parts).where(parts.c.run == run_id, parts.c.place.in_(list(changed))))
    rows = [{"run": run_id, "place": place, "document": document} for place, document in changed.items()]
    if rows:
        connection.execute(sa.insert(parts), rows)
