"""Orders to the server that uses this store, from another process: to end a run, to take no new ones, and from the
server before it: to explain a run."""

from collections.abc import Collection

import sqlalchemy as sa

from measure.store.access import Access
from measure.store.database import orders, waiting

_DRAIN = "drain"
_EXPLAIN = "explain:"


class Orders:
    """The orders in a store. All methods raise `StoreError`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def drain(self) -> None:
        """Have servers take no new runs."""
        self._give(_DRAIN)

    def resume(self) -> bool:
        """Have servers take new runs again; False where they do."""
        with self._access.writing() as connection:
            return bool(connection.execute(sa.delete(orders).where(orders.c.name == _DRAIN)).rowcount)

    def is_drained(self) -> bool:
        with self._access.reading() as connection:
            return connection.execute(sa.select(orders.c.name).where(orders.c.name == _DRAIN)).first() is not None

    def waiting(self) -> list[str]:
        """Ids of the runs that wait to be measured, in their order."""
        with self._access.reading() as connection:
            return list(connection.execute(sa.select(waiting.c.run).order_by(waiting.c.place)).scalars())

    def cancel(self, run_id: str) -> None:
        """Have the process that measures a run end it, with what was measured."""
        self._give(run_id)

    def to_cancel(self, ids: Collection[str]) -> list[str]:
        """The ones of these runs that are to be ended; each is told once."""
        asked = sa.select(orders.c.name).where(orders.c.name.in_(list(ids)))
        with self._access.reading() as connection:
            found = list(connection.execute(asked).scalars())
        if found:
            with self._access.writing() as connection:
                connection.execute(sa.delete(orders).where(orders.c.name.in_(found)))
        return found

    def explain(self, run_id: str) -> None:
        """Have the next server explain a run, unless this one begins to, and says so by `explained`."""
        self._give(f"{_EXPLAIN}{run_id}")

    def explained(self, run_id: str) -> None:
        """Take that order back."""
        with self._access.writing() as connection:
            connection.execute(sa.delete(orders).where(orders.c.name == f"{_EXPLAIN}{run_id}"))

    def to_explain(self) -> list[str]:
        """Ids of the runs that wait to be explained."""
        asked = sa.select(orders.c.name).where(orders.c.name.startswith(_EXPLAIN)).order_by(orders.c.name)
        with self._access.reading() as connection:
            return [name.removeprefix(_EXPLAIN) for name in connection.execute(asked).scalars()]

    def _give(self, name: str) -> None:
        with self._access.writing() as connection:
            connection.execute(sa.delete(orders).where(orders.c.name == name))
            connection.execute(sa.insert(orders).values(name=name))
