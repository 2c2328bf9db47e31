"""The keeping of runs in bounded room: which stay, which go, and what is remembered of those that are gone."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from measure.model.place import StoreError
from measure.store import entries, room
from measure.store.access import Access, log
from measure.store.database import gone, marks

# That a run was looked at is noted where nobody else writes: it matters less than that the page is drawn.
_NOTING_S = 0.1


@dataclass(frozen=True)
class Removed:
    """The end of a run that was here: when, and whether it made room for others."""

    at: str
    made_room: bool


class Keeping:
    """Pins, looks, room. Methods raise `StoreError` but where they say otherwise."""

    def __init__(self, access: Access, most_bytes: int | None) -> None:
        """``most_bytes``: of all runs; None: as many as there are."""
        self._access = access
        self._most_bytes = most_bytes

    def pin(self, ids: Iterable[str], pinned: bool, owner: str | None = None) -> list[str]:
        """Have runs that have ended stay when room is made, or not any more; the ids of those that are here. ``owner``:
        only those of one. Raises ValueError where an owner's pins would leave too little room for others."""
        with self._access.writing() as connection:
            chosen = room.ended(connection, ids, owner)
            for run_id in chosen:
                room.pin(connection, run_id, pinned)
            if pinned and owner is not None and self._most_bytes is not None:
                pins = connection.execute(sa.select(marks.c.run).where(marks.c.pinned)).scalars()
                if sum(room.sizes(connection, list(pins)).values()) > self._most_bytes / 2:
                    raise ValueError("pinned runs would take more than half of this server's room")
        return chosen

    def sizes(self) -> dict[str, int]:
        """The bytes of each run."""
        with self._access.reading() as connection:
            return room.sizes(connection)

    def removed(self, run_id: str) -> Removed | None:
        """The end of a run that is no longer here; None where nothing is known of it."""
        asked = sa.select(gone.c.removed, gone.c.reason).where(gone.c.id == run_id)
        with self._access.reading() as connection:
            row = connection.execute(asked).one_or_none()
        return None if row is None else Removed(entries.utc(row.removed), row.reason == room.TO_MAKE_ROOM)

    def note_seen(self, run_id: str, before_ms: int) -> None:
        """Note that a run was looked at, where that is of use and was not noted lately. Raises nothing."""
        if self._most_bytes is not None and room.now_ms() - before_ms >= room.SEEN_EVERY_MS:
            with contextlib.suppress(StoreError), self._access.writing(_NOTING_S) as connection:
                room.note_seen(connection, run_id)

    def make_room(self, spared: str) -> None:
        """Remove what is too much, but for this run. Raises nothing: it is tried again when the next run has ended."""
        if self._most_bytes is None:
            return
        with contextlib.suppress(StoreError):
            with self._access.reading() as connection:
                if not room.too_much(connection, self._most_bytes):
                    return
            with self._access.writing() as connection:
                removed = room.make(connection, self._most_bytes, spared)
            log.info("%d runs were removed to make room", len(removed))
            self._access.give_back()
