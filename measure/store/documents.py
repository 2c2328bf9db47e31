"""A run as documents of the database: its head, and one for each measurement; of a sweep for each point, and of claims
for each piece of evidence.

So a result that arrives costs what it weighs, not what the whole run does.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from measure.model.run import Evidence, Measurement, Point, Run
from measure.model.run_file import decode, upgraded
from measure.model.why import Why
from measure.store.database import parts

Piece = Measurement | Point | Evidence

_P = TypeVar("_P", Measurement, Point, Evidence)


def pieces(run: Run) -> Sequence[Piece]:
    """The parts of a run that arrive one after another."""
    if run.kind == "claims":
        return run.evidence or []
    return run.points if run.kind == "sweep" else run.measurements


def _head(run: Run) -> Run:
    """The run without its pieces."""
    if run.kind == "claims":
        return replace(run, evidence=[])
    return replace(run, points=[]) if run.kind == "sweep" else replace(run, measurements=[])


def packed(part: Run | Piece) -> bytes:
    """A part as it is stored: compressed JSON."""
    return zlib.compress(msgspec.json.encode(part), 1)


def read(connection: sa.Connection, run_id: str) -> Run:
    """The run as its documents make it. ValueError where they are damaged."""
    asked = sa.select(parts.c.document).where(parts.c.run == run_id).order_by(parts.c.place)
    try:
        head, *others = (zlib.decompress(document) for document in connection.execute(asked).scalars())
        run = decode(head)
        if run.kind == "claims":
            return replace(run, evidence=[_piece(document, Evidence) for document in others])
        if run.kind == "sweep":
            return upgraded(replace(run, points=[_piece(document, Point) for document in others]))
        return replace(run, measurements=[_piece(document, Measurement) for document in others])
    except (zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"what is stored of it is damaged ({error})") from None


def _piece(document: bytes, kind: type[_P]) -> _P:
    try:
        return msgspec.json.decode(document, type=kind)
    except msgspec.ValidationError:
        return msgspec.convert(_without_strange_reasons(msgspec.json.decode(document)), kind)


def _without_strange_reasons(raw: Any) -> Any:
    """A measurement, or what holds measurements, without each ``why`` that is not valid: what measures nothing hides no
    run. What comes from elsewhere is checked when it is imported."""
    if isinstance(raw, list):
        return [_without_strange_reasons(item) for item in raw]
    if not isinstance(raw, dict):
        return raw
    if inner := {name: raw[name] for name in ("run", "points", "measurements") if name in raw}:
        return raw | {name: _without_strange_reasons(item) for name, item in inner.items()}
    try:
        msgspec.convert(raw.get("why", {}), Why)
    except msgspec.ValidationError:
        return {name: value for name, value in raw.items() if name != "why"}
    return raw


def write(connection: sa.Connection, run: Run, before: Sequence[Piece] = ()) -> None:
    """Write the run's head and those of its pieces that are not the same objects as ``before``, which are stored."""
    now = pieces(run)
    changed = {0: packed(_head(run))} | {
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
