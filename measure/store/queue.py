"""The queue: work that waits or is being done, as rows of the store. Pages add it; a worker takes the next piece, and
writes how far it is.
"""

import math
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec
import sqlalchemy as sa

from measure.pool.launcher import HostState
from measure.run.run import Stage, Struct
from measure.store.database import Database, jobs, now_ms, orders, spent, workers
from measure.store.holders import Holders
from workloads.functions import Given, OwnFunction

# Of a run that is measured; of one that has ended and is explained; of the check of a function of a person's own.
Kind = Literal["measure", "explain", "check"]
Order = Literal["", "cancel", "stop"]
# From the end of a piece of work to the start of the next one.
BETWEEN_S = 2.0
_DRAIN = "drain"
# Answers that nobody has fetched, in milliseconds.
_STALE_MS = 600_000


class Job(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Beside the run's own request: ``why``: strategies are explained in the end; ``continue_from``: the sweep whose
    points are taken over. Of a check: the function, and the sizes and the seed of its elements."""

    why: bool = False
    continue_from: str | None = None
    given: Given | None = None
    size: dict[str, int] = {}
    seed: int = 0


class Standing(Struct, frozen=True, kw_only=True):
    """The standing of work that is being done. ``stages``: slug → where the strategy stands; ``round_number``: of the
    round in which is sampled now; ``rough_s``: seconds of a call of each strategy, as its memory subject has it."""

    message: str = ""
    stages: Mapping[str, Stage] = {}
    round_number: int | None = None
    rough_s: Mapping[str, float] = {}


class Answer(Struct, frozen=True, kw_only=True):
    """The end of a check: the function with what was derived of it, or the sentence why it cannot be measured."""

    own: OwnFunction | None = None
    refusal: str = ""


@dataclass(frozen=True)
class WorkerState(HostState):
    """A worker as pages see it. ``files``: what files of a person's own offer, as `workloads.discovery.describe` has
    it. ``runs`` (``kind status``), ``outcomes`` and ``measured_s`` are counted since its start."""

    start_method: Literal["fork", "fresh"] = "fresh"
    runs: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    measured_s: float = 0.0
    files: dict[str, dict[str, Any]] = field(default_factory=dict)


class Work(msgspec.Struct, frozen=True):
    """A row of the queue. ``holder``: the process that does it, None while it waits; ``passed_s``: since its begin."""

    id: str
    kind: Kind
    run_id: str | None
    job: Job = Job()
    owner: str = ""
    session: str = ""
    address: str = ""
    forecast_s: float = 0.0
    bound_s: float | None = None
    holder: str | None = None
    passed_s: float = 0.0
    standing: Standing = Standing()

    @property
    def most_s(self) -> float:
        """Seconds within which it has ended in any case; infinite where it has no bound."""
        return math.inf if self.bound_s is None else max(0.0, self.bound_s - self.passed_s) + BETWEEN_S

    @property
    def left_s(self) -> float:
        """Seconds that are left by forecast; of one that takes longer than that, those to its bound."""
        if self.forecast_s > self.passed_s:
            return self.forecast_s - self.passed_s
        return self.most_s if self.bound_s is not None else BETWEEN_S


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
        0.0 if row.begun is None else max(0.0, (now - row.begun) / 1000), standing,
    )  # fmt: skip


class Queue:
    """The queue of a store. All methods raise `StoreError`."""

    def __init__(self, database: Database, holders: Holders) -> None:
        self._database, self._holders = database, holders

    # --- for who asks ------------------------------------------------------------------------------------------------

    def all(self) -> list[Work]:
        """The work that is not done, in its order."""
        with self._database.reading() as connection:
            return read(connection)

    def answer(self, work_id: str) -> Answer | None:
        """The answer to a check; None while there is none. Raises KeyError where it is no longer there."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(jobs.c.answer).where(jobs.c.id == work_id)).one_or_none()
        if row is None:
            raise KeyError(work_id)
        return None if row.answer is None else msgspec.json.decode(row.answer, type=Answer)

    def spent_s(self, address: str, day: str) -> float:
        """Seconds that were measured for an address on a day, as 2026-01-31."""
        asked = sa.select(spent.c.seconds).where(spent.c.day == day, spent.c.address == address)
        with self._database.reading() as connection:
            return float(connection.execute(asked).scalar() or 0.0)

    # --- for who does it ---------------------------------------------------------------------------------------------

    def waits(self) -> bool:
        """True if there is something to do."""
        with self._database.reading() as connection:
            return bool(read(connection, jobs.c.holder.is_(None))) and not _is_drained(connection)

    def next(self) -> Work | None:
        """Take the first of what waits; None where nothing does, or nothing new is to be begun."""
        holder = self._holders.hold()
        with self._database.writing() as connection:
            waiting = [] if _is_drained(connection) else read(connection, jobs.c.holder.is_(None))
            if not waiting:
                return None
            free = sa.update(jobs).where(jobs.c.id == waiting[0].id, jobs.c.holder.is_(None))
            was_free = connection.execute(free.values(holder=holder, begun=now_ms())).rowcount
            return waiting[0] if was_free else None

    def stand(self, work_id: str, standing: Standing, passed_s: float) -> None:
        """Tell how far it is, and for how long it has been measured by now."""
        values = {"standing": msgspec.json.encode(standing), "begun": now_ms() - round(1000 * passed_s)}
        mine = (jobs.c.id == work_id, jobs.c.holder == self._holders.hold())
        with self._database.writing() as connection:
            connection.execute(sa.update(jobs).where(*mine).values(values))

    def ordered(self, work_id: str) -> Order | None:
        """The order that was given to this process for work; None where it is no longer this process's."""
        asked = sa.select(jobs.c.order).where(jobs.c.id == work_id, jobs.c.holder == self._holders.hold())
        with self._database.reading() as connection:
            return connection.execute(asked).scalar()

    def end(self, work_id: str, answer: Answer | None = None) -> None:
        """End an explanation or a check, whose answer stays for a while."""
        mine = (jobs.c.id == work_id, jobs.c.holder == self._holders.hold())
        with self._database.writing() as connection:
            if answer is None:
                connection.execute(sa.delete(jobs).where(*mine))
            else:
                connection.execute(sa.update(jobs).where(*mine).values(answer=msgspec.json.encode(answer)))
            stale = (jobs.c.answer.is_not(None), jobs.c.begun < now_ms() - _STALE_MS)
            connection.execute(sa.delete(jobs).where(*stale))

    def spend(self, address: str, seconds: float) -> None:
        """Count what was measured for an address today; what was counted before yesterday goes."""
        now = datetime.now(UTC)
        today, yesterday = (moment.date().isoformat() for moment in (now, now - timedelta(days=1)))
        its = (spent.c.day == today, spent.c.address == address)
        with self._database.writing() as connection:
            connection.execute(sa.delete(spent).where(spent.c.day < yesterday))
            if not connection.execute(sa.update(spent).where(*its).values(seconds=spent.c.seconds + seconds)).rowcount:
                connection.execute(sa.insert(spent).values(day=today, address=address, seconds=seconds))

    # --- the worker itself -------------------------------------------------------------------------------------------

    def tell(self, state: WorkerState) -> None:
        """Tell how the worker of this machine stands, which is this process."""
        machine = socket.gethostname()
        row = {"holder": self._holders.hold(), "beat": now_ms(), "state": msgspec.json.encode(state)}
        with self._database.writing() as connection:
            if not connection.execute(sa.update(workers).where(workers.c.machine == machine).values(row)).rowcount:
                connection.execute(sa.insert(workers).values(row | {"machine": machine}))

    def worker(self) -> WorkerState | None:
        """How the worker of this machine stands; None where there is none, or it is gone."""
        its = workers.c.machine == socket.gethostname()
        with self._database.reading() as connection:
            row = connection.execute(sa.select(workers).where(its)).one_or_none()
        if row is None or self._holders.is_gone(row.holder, is_here=True):
            return None
        try:
            return msgspec.json.decode(row.state, type=WorkerState)
        except msgspec.DecodeError:
            return WorkerState("failed", "the worker is one of another version: restart it")

    # --- for an operator ---------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Have nothing new be queued or begun."""
        with self._database.writing() as connection:
            if not _is_drained(connection):
                connection.execute(sa.insert(orders).values(name=_DRAIN))

    def resume(self) -> bool:
        """Take new work again; False where it was taken all the time."""
        with self._database.writing() as connection:
            return bool(connection.execute(sa.delete(orders).where(orders.c.name == _DRAIN)).rowcount)

    def is_drained(self) -> bool:
        with self._database.reading() as connection:
            return _is_drained(connection)


def _is_drained(connection: sa.Connection) -> bool:
    return connection.execute(sa.select(orders.c.name).where(orders.c.name == _DRAIN)).first() is not None
