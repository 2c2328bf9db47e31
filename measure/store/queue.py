"""The work that waits or is being done, as rows of the store: pages add it, a worker takes the next and tells how it
stands, and whoever finds that a worker is gone closes what it had begun.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import sqlalchemy as sa

from measure.model.job import Answer, Job, Kind, Order, Standing, WorkerState
from measure.store.access import Access
from measure.store.database import jobs, orders, spent, workers
from measure.store.holders import Holders

# From the end of a piece of work to the start of the next one.
BETWEEN_S = 2.0
_DRAIN = "drain"
# Answers that nobody has fetched, in milliseconds.
_STALE_MS = 600_000


@dataclass(frozen=True)
class Work:
    """A row of the queue. ``holder``: the process that does it, None while it waits; ``passed_s``: since its begin."""

    id: str
    kind: Kind
    run_id: str | None
    job: Job
    owner: str
    session: str
    address: str
    forecast_s: float
    bound_s: float | None
    holder: str | None
    passed_s: float | None
    standing: Standing

    @property
    def most_s(self) -> float:
        """Seconds within which it has ended in any case; infinite where it has no bound."""
        return math.inf if self.bound_s is None else max(0.0, self.bound_s - (self.passed_s or 0.0)) + BETWEEN_S

    @property
    def left_s(self) -> float:
        """Seconds that are left by forecast; of one that takes longer than that, those to its bound."""
        left_s = self.forecast_s - (self.passed_s or 0.0)
        return left_s if left_s > 0 else self.most_s if self.bound_s is not None else BETWEEN_S


# A check takes a moment, and somebody looks at the page until it has ended: it goes before all that wait.
_IN_ORDER = (jobs.c.holder.is_(None), jobs.c.kind != "check", jobs.c.place)
_OPEN = jobs.c.answer.is_(None)


def add(connection: sa.Connection, work: Work) -> None:
    """Put work behind all that waits, or begin it where it has a holder."""
    last = connection.execute(sa.select(sa.func.max(jobs.c.place))).scalar() or 0
    row = {
        "id": work.id, "kind": work.kind, "run": work.run_id, "place": last + 1,
        "asked": msgspec.json.encode(work.job), "owner": work.owner, "session": work.session,
        "address": work.address, "forecast_s": work.forecast_s, "bound_s": work.bound_s, "holder": work.holder,
        "begun": None if work.holder is None else now_ms(), "order": "",
    }  # fmt: skip
    connection.execute(sa.insert(jobs).values(row))


def remove(connection: sa.Connection, work_id: str, holder: str | None = None) -> bool:
    """Take work out of the queue; False where it is not there, or is another holder's."""
    chosen = sa.delete(jobs).where(jobs.c.id == work_id)
    return bool(connection.execute(chosen if holder is None else chosen.where(jobs.c.holder == holder)).rowcount)


def is_held(connection: sa.Connection, work_id: str, holder: str) -> bool:
    """True if this is the holder's own work."""
    asked = sa.select(jobs.c.id).where(jobs.c.id == work_id, jobs.c.holder == holder)
    return connection.execute(asked).first() is not None


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def read(connection: sa.Connection, *where: sa.ColumnElement[bool]) -> list[Work]:
    """The work that is not done and matches, in its order: what is being done first."""
    now = now_ms()
    return [_work(row, now) for row in connection.execute(sa.select(jobs).where(_OPEN, *where).order_by(*_IN_ORDER))]


def _work(row: Any, now: int) -> Work:
    try:
        job = msgspec.json.decode(row.asked, type=Job)
        standing = msgspec.json.decode(row.standing, type=Standing) if row.standing else Standing()
    except msgspec.DecodeError:  # of another version: the run itself says what is asked for
        job, standing = Job(), Standing()
    return Work(
        row.id, row.kind, row.run, job, row.owner, row.session, row.address, row.forecast_s, row.bound_s, row.holder,
        None if row.begun is None else max(0.0, (now - row.begun) / 1000), standing,
    )  # fmt: skip


class Queue:
    """The queue of a store. All methods raise `StoreError`."""

    def __init__(self, access: Access, holders: Holders) -> None:
        self._access, self._holders = access, holders

    # --- for who asks ------------------------------------------------------------------------------------------------

    def add(self, work: Work) -> None:
        """Queue an explanation or a check."""
        with self._access.writing() as connection:
            add(connection, work)

    def all(self) -> list[Work]:
        """The work that is not done, in its order."""
        with self._access.reading() as connection:
            return read(connection)

    def order(self, work_id: str, order: Order) -> bool:
        """Have whoever does this work end it; False where nobody does."""
        changed = sa.update(jobs).where(jobs.c.id == work_id, jobs.c.holder.is_not(None)).values(order=order)
        with self._access.writing() as connection:
            return bool(connection.execute(changed).rowcount)

    def withdraw(self, work_id: str) -> bool:
        """Take an explanation or a check that waits out of the queue; False where it does not wait."""
        chosen = sa.delete(jobs).where(jobs.c.id == work_id, jobs.c.holder.is_(None), jobs.c.kind != "measure")
        with self._access.writing() as connection:
            return bool(connection.execute(chosen).rowcount)

    def answer(self, work_id: str) -> Answer | None:
        """The answer to a check; None while there is none. Raises KeyError where it is no longer there."""
        with self._access.reading() as connection:
            row = connection.execute(sa.select(jobs.c.answer).where(jobs.c.id == work_id)).one_or_none()
        if row is None:
            raise KeyError(work_id)
        if row.answer is None:
            return None
        with self._access.writing() as connection:
            remove(connection, work_id)
        return msgspec.json.decode(row.answer, type=Answer)

    def spent_s(self, address: str, day: str) -> float:
        """Seconds that were measured for an address on a day, as 2026-01-31."""
        asked = sa.select(spent.c.seconds).where(spent.c.day == day, spent.c.address == address)
        with self._access.reading() as connection:
            return float(connection.execute(asked).scalar() or 0.0)

    # --- for who does it ---------------------------------------------------------------------------------------------

    def waits(self) -> bool:
        """True if there is something to do."""
        asked = sa.select(jobs.c.id).where(jobs.c.holder.is_(None), _OPEN).limit(1)
        with self._access.reading() as connection:
            return connection.execute(asked).first() is not None and not _is_drained(connection)

    def next(self) -> Work | None:
        """Take the first of what waits; None where nothing does, or nothing new is to be begun."""
        holder = self._holders.hold()
        with self._access.writing() as connection:
            if _is_drained(connection):
                return None
            first = sa.select(jobs.c.id).where(jobs.c.holder.is_(None), _OPEN).order_by(*_IN_ORDER).limit(1)
            work_id = connection.execute(first).scalar()
            if work_id is None:
                return None
            free = sa.update(jobs).where(jobs.c.id == work_id, jobs.c.holder.is_(None))
            if not connection.execute(free.values(holder=holder, begun=now_ms())).rowcount:
                return None
            return read(connection, jobs.c.id == work_id)[0]

    def stand(self, work_id: str, standing: Standing, passed_s: float) -> None:
        """Tell how far it is, and for how long it has been measured by now."""
        told = {"standing": msgspec.json.encode(standing), "begun": now_ms() - round(1000 * passed_s)}
        mine = (jobs.c.id == work_id, jobs.c.holder == self._holders.hold())
        with self._access.writing() as connection:
            connection.execute(sa.update(jobs).where(*mine).values(told))

    def ordered(self, work_id: str) -> Order | None:
        """The order that was given to this process for work; None where it is no longer this process's."""
        asked = sa.select(jobs.c.order).where(jobs.c.id == work_id, jobs.c.holder == self._holders.hold())
        with self._access.reading() as connection:
            return connection.execute(asked).scalar()

    def end(self, work_id: str, answer: Answer | None = None) -> None:
        """End an explanation or a check."""
        mine = (jobs.c.id == work_id, jobs.c.holder == self._holders.hold())
        with self._access.writing() as connection:
            if answer is None:
                connection.execute(sa.delete(jobs).where(*mine))
            else:
                connection.execute(sa.update(jobs).where(*mine).values(answer=msgspec.json.encode(answer)))
            stale = (jobs.c.answer.is_not(None), jobs.c.begun < now_ms() - _STALE_MS)
            connection.execute(sa.delete(jobs).where(*stale))

    def spend(self, address: str, seconds: float) -> None:
        """Count what was measured for an address today; what was counted before yesterday goes."""
        if not address:
            return
        now = datetime.now(UTC)
        today, yesterday = (moment.date().isoformat() for moment in (now, now - timedelta(days=1)))
        its = (spent.c.day == today, spent.c.address == address)
        with self._access.writing() as connection:
            connection.execute(sa.delete(spent).where(spent.c.day < yesterday))
            if not connection.execute(sa.update(spent).where(*its).values(seconds=spent.c.seconds + seconds)).rowcount:
                connection.execute(sa.insert(spent).values(day=today, address=address, seconds=seconds))

    # --- the worker itself -------------------------------------------------------------------------------------------

    def tell(self, machine: str, state: WorkerState) -> None:
        """Tell how the worker of a machine stands, which is this process."""
        row = {"holder": self._holders.hold(), "beat": now_ms(), "state": msgspec.json.encode(state)}
        with self._access.writing() as connection:
            if not connection.execute(sa.update(workers).where(workers.c.machine == machine).values(row)).rowcount:
                connection.execute(sa.insert(workers).values(row | {"machine": machine}))

    def worker(self, machine: str) -> WorkerState | None:
        """How the worker of a machine stands; None where there is none, or it is gone."""
        with self._access.reading() as connection:
            row = connection.execute(sa.select(workers).where(workers.c.machine == machine)).one_or_none()
        if row is None or self._holders.is_gone(row.holder):
            return None
        try:
            return msgspec.json.decode(row.state, type=WorkerState)
        except msgspec.DecodeError:
            return WorkerState(state="failed", message="the worker is one of another version: restart it")

    # --- for an operator ---------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Have nothing new be queued or begun."""
        with self._access.writing() as connection:
            if not _is_drained(connection):
                connection.execute(sa.insert(orders).values(name=_DRAIN))

    def resume(self) -> bool:
        """Take new work again; False where it was taken all the time."""
        with self._access.writing() as connection:
            return bool(connection.execute(sa.delete(orders).where(orders.c.name == _DRAIN)).rowcount)

    def is_drained(self) -> bool:
        with self._access.reading() as connection:
            return _is_drained(connection)


def _is_drained(connection: sa.Connection) -> bool:
    return connection.execute(sa.select(orders.c.name).where(orders.c.name == _DRAIN)).first() is not None


def holders(connection: sa.Connection) -> Sequence[str]:
    """The processes that hold work, whether they live or not."""
    return connection.execute(sa.select(jobs.c.holder).distinct().where(jobs.c.holder.is_not(None))).scalars().all()
