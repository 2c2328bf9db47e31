"""The queue: work that waits or is being done, as rows of the store. Pages add it; a worker takes the next piece, and
writes how far it is. Each process that measures holds a lock for as long as it lives, by which others see whether it
does.
"""

import contextlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import filelock
import msgspec
import sqlalchemy as sa

from measure.pool.launcher import HostState
from measure.run import place
from measure.run.run import Stage
from measure.store.database import Database, jobs, now_ms, orders, spent, workers
from workloads.functions import Given, OwnFunction

# Of a run that is measured; of one that has ended and is explained; of the check of a function of a person's own.
Kind = Literal["measure", "explain", "check"]
Order = Literal["", "cancel", "stop"]
# Of work that takes longer than forecast.
_STILL_S = 2.0
_DRAIN = "drain"
# Answers that nobody has fetched, and workers that tell nothing any more, in milliseconds.
_STALE_MS, _GONE_MS = 600_000, 7 * 86_400_000


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Of a check: the function, and the sizes and the seed of its elements."""

    given: Given | None = None
    size: dict[str, int] = {}
    seed: int = 0


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The standing of work that is being done."""

    message: str = ""
    stages: Mapping[str, Stage] = {}  # by slug
    round_number: int | None = None  # of the round in which is sampled now
    rough_s: Mapping[str, float] = {}  # seconds of a call of each strategy, as its memory subject has it


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a check: the function with what was derived of it, or the sentence why it cannot be measured."""

    own: OwnFunction | None = None
    refusal: str = ""


@dataclass(frozen=True)
class WorkerState(HostState):
    """A worker as pages see it, with what it has counted since its start."""

    start_method: Literal["fork", "fresh"] = "fresh"
    runs: dict[str, int] = field(default_factory=dict)  # by kind and status
    measured_s: float = 0.0
    files: dict[str, dict[str, Any]] = field(default_factory=dict)  # as `workloads.descriptions.describe` has them


class Work(msgspec.Struct, frozen=True):
    """A row of the queue."""

    id: str
    kind: Kind
    run_id: str | None
    job: Job = Job()
    owner: str = ""
    session: str = ""
    address: str = ""
    forecast_s: float = 0.0
    bound_s: float | None = None  # within which it ends, from its begin, whatever it does
    holder: str | None = None  # the process that does it, None while it waits
    passed_s: float = 0.0  # since its begin
    standing: Standing = Standing()

    @property
    def left_s(self) -> float:
        return max(_STILL_S, self.forecast_s - self.passed_s)

    @property
    def most_s(self) -> float:
        """Seconds that are left of it at the most."""
        return max(self.left_s, (self.bound_s or self.forecast_s) - self.passed_s)


# Somebody looks at the page until a check has ended: it goes before all that wait.
_IN_ORDER = (jobs.c.holder.is_(None), jobs.c.kind != "check", jobs.c.place)
_OPEN = jobs.c.answer.is_(None)
# An operator wants nothing new to be queued or begun; what can be begun.
_IS_DRAINED = sa.exists().where(orders.c.name == _DRAIN)
_FREE = (jobs.c.holder.is_(None), sa.not_(_IS_DRAINED))


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
    return [
        Work(
            row.id, row.kind, row.run, msgspec.json.decode(row.asked, type=Job),
            row.owner, row.session, row.address, row.forecast_s, row.bound_s, row.holder,
            passed_s=0.0 if row.begun is None else max(0.0, (now - row.begun) / 1000),
            standing=msgspec.json.decode(row.standing, type=Standing) if row.standing else Standing(),
        )
        for row in connection.execute(sa.select(jobs).where(_OPEN, *where).order_by(*_IN_ORDER))
    ]  # fmt: skip


class Holders:
    """The locks of the processes that measure, as files in a folder."""

    def __init__(self, folder: Path, *, all_are_here: bool) -> None:
        """``all_are_here``: no holder is on another machine, of which nothing is known in this folder."""
        self._folder, self._all_are_here = folder, all_are_here
        self._own: filelock.BaseFileLock | None = None
        self._token = place.new_id()

    def hold(self) -> str:
        """This process's name among the holders; from now on it is one, by a lock that ends when the process does.
        Raises `StoreError` where that cannot be written."""
        if self._own is None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                own = self._lock(self._token)
                own.acquire(timeout=0)
                os.chmod(own.lock_file, 0o600)
            except OSError as error:
                raise place.StoreError(error.strerror or str(error)) from None
            self._own = own
        return self._token

    def release(self) -> None:
        """Be no holder any more, as when the process ends."""
        if self._own is not None:
            self._own.release()
            with contextlib.suppress(OSError):
                os.unlink(self._own.lock_file)
            self._own, self._token = None, place.new_id()

    def is_gone(self, holder: str, *, is_here: bool = False) -> bool:
        """True if a holder has ended. ``is_here``: it is one of this machine."""
        if holder == self._token:
            return False
        lock = self._lock(holder)
        if not os.path.exists(lock.lock_file):
            return is_here or self._all_are_here
        try:
            with lock.acquire(timeout=0):
                return True
        except OSError:  # it is held, or another user's, of which nothing can be told
            return False

    def _lock(self, holder: str) -> filelock.BaseFileLock:
        return filelock.FileLock(self._folder / f"{holder}.lock", thread_local=False)


class Queue:
    """The queue of a store. All methods raise `StoreError`."""

    def __init__(self, database: Database, holders: Holders) -> None:
        self._database, self._holders = database, holders

    # --- for who asks ------------------------------------------------------------------------------------------------

    def all(self) -> list[Work]:
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
        with self._database.reading() as connection:
            return bool(read(connection, *_FREE))

    def next(self) -> Work | None:
        """Take the first of what waits; None where nothing does, or nothing new is to be begun."""
        holder = self._holders.hold()
        with self._database.writing() as connection:
            for work in read(connection, *_FREE)[:1]:
                free = sa.update(jobs).where(jobs.c.id == work.id, *_FREE).values(holder=holder, begun=now_ms())
                if connection.execute(free).rowcount:
                    return work
        return None

    def stand(self, work_id: str, standing: Standing, passed_s: float) -> None:
        """Tell how far it is, and for how long it has been measured by now."""
        values = {"standing": msgspec.json.encode(standing), "begun": now_ms() - round(1000 * passed_s)}
        with self._database.writing() as connection:
            connection.execute(sa.update(jobs).where(*self._mine(work_id)).values(values))

    def ordered(self, work_id: str) -> Order | None:
        """The order that was given to this process for work; None where it is no longer this process's."""
        asked = sa.select(jobs.c.order).where(*self._mine(work_id))
        with self._database.reading() as connection:
            return connection.execute(asked).scalar()

    def end(self, work_id: str, answer: Answer | None = None) -> None:
        """End an explanation or a check, whose answer stays for a while."""
        mine = self._mine(work_id)
        done = sa.delete(jobs) if answer is None else sa.update(jobs).values(answer=msgspec.json.encode(answer))
        with self._database.writing() as connection:
            connection.execute(done.where(*mine))
            stale = (jobs.c.answer.is_not(None), jobs.c.begun < now_ms() - _STALE_MS)
            connection.execute(sa.delete(jobs).where(*stale))

    def _mine(self, work_id: str) -> tuple[sa.ColumnElement[bool], ...]:
        return jobs.c.id == work_id, jobs.c.holder == self._holders.hold()

    def spend(self, address: str, seconds: float) -> None:
        """Count what was measured for an address today; what was counted before goes."""
        today = datetime.now(UTC).date().isoformat()
        its = (spent.c.day == today, spent.c.address == address)
        with self._database.writing() as connection:
            connection.execute(sa.delete(spent).where(spent.c.day < today))
            if not connection.execute(sa.update(spent).where(*its).values(seconds=spent.c.seconds + seconds)).rowcount:
                connection.execute(sa.insert(spent).values(day=today, address=address, seconds=seconds))

    # --- the worker itself -------------------------------------------------------------------------------------------

    def tell(self, state: WorkerState) -> None:
        """Tell how the worker of this machine stands, which is this process."""
        machine = socket.gethostname()
        row = {"holder": self._holders.hold(), "beat": now_ms(), "state": msgspec.json.encode(state)}
        with self._database.writing() as connection:
            if not connection.execute(sa.update(workers).where(workers.c.machine == machine).values(row)).rowcount:
                # A container has another name each time that it is started.
                connection.execute(sa.delete(workers).where(workers.c.beat < now_ms() - _GONE_MS))
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
            connection.execute(sa.delete(orders).where(orders.c.name == _DRAIN))
            connection.execute(sa.insert(orders).values(name=_DRAIN))

    def resume(self) -> bool:
        """Take new work again; False where it was taken all the time."""
        with self._database.writing() as connection:
            return bool(connection.execute(sa.delete(orders).where(orders.c.name == _DRAIN)).rowcount)

    def is_drained(self) -> bool:
        with self._database.reading() as connection:
            return bool(connection.execute(sa.select(_IS_DRAINED)).scalar())
