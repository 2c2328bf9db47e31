"""The queue: work that waits or is being done, as rows of the store. Pages add it; a worker takes the next piece, and
writes how far it is. Each process that measures holds a lock, or a lease, for as long as it lives, by which others see
whether it does.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import filelock
import msgspec
import sqlalchemy as sa

from measure.pool.launcher import HostState
from measure.run import place
from measure.run.place import StoreError
from measure.run.run import Stage
from measure.store.database import CLOCK, STARTED, Database, holders, jobs, log, now_ms, orders, spent, workers
from workloads.functions import Given, OwnFunction

# Of a run that is measured; of one that has ended and is explained; of the check of a function of a person's own.
Kind = Literal["measure", "explain", "check"]
Order = Literal["", "cancel", "stop"]
# Of work that takes longer than forecast.
_STILL_S = 2.0
_DRAIN = "drain"
# Answers that nobody has fetched, and workers that tell nothing any more, in milliseconds.
_STALE_MS, _GONE_MS = 600_000, 7 * 86_400_000
# For so long a process is taken to live after it has renewed its lease, which it does four times as often.
LEASE_S = 60.0


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
    extended_s: float | None = None  # from the begin to the end at most, where that is longer than forecast


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
    machine: str = ""  # the name that the worker was given


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
    machine: str = ""  # that is to do it; empty: any worker that was given no name

    @property
    def end_s(self) -> float:
        """Seconds from its begin to its end, as forecast or as extended since."""
        return self.standing.extended_s or self.forecast_s

    @property
    def left_s(self) -> float:
        return max(_STILL_S, self.end_s - self.passed_s)

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
        "begun": None if work.holder is None else now_ms(connection), "order": "", "machine": work.machine,
    }  # fmt: skip
    connection.execute(sa.insert(jobs).values(row))


def read(connection: sa.Connection, *where: sa.ColumnElement[bool]) -> list[Work]:
    """The work that is not done and matches, in its order: what is being done first."""
    now = now_ms(connection)
    return [
        Work(
            row.id, row.kind, row.run, msgspec.json.decode(row.asked, type=Job),
            row.owner, row.session, row.address, row.forecast_s, row.bound_s, row.holder,
            passed_s=0.0 if row.begun is None else max(0.0, (now - row.begun) / 1000),
            standing=msgspec.json.decode(row.standing, type=Standing) if row.standing else Standing(),
            machine=row.machine,
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
                raise StoreError(error.strerror or str(error)) from None
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


class Leases:
    """In place of such locks, leases in a PostgreSQL database, by its clock. Methods raise `StoreError`.

    Where a process could not renew its lease, and somebody has closed its work, it writes nothing on it any more: each
    statement that does names the holder."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changing = threading.Lock()
        self._ends: threading.Event | None = None
        self._token = place.new_id()

    def hold(self) -> str:
        """This process's name among the holders, whose lease a thread renews from now on. It may write: call it before
        a transaction, not in one."""
        with self._changing:
            if self._ends is None:
                with self._database.writing() as connection:
                    connection.execute(sa.delete(holders).where(sa.not_(_lives())))
                self._renew()
                self._ends = threading.Event()
                threading.Thread(target=self._go_on, args=(self._ends,), name="mapbench-lease", daemon=True).start()
            return self._token

    def release(self) -> None:
        """Be no holder any more, as when the process ends."""
        with self._changing:
            if self._ends is not None:
                self._ends.set()
                with contextlib.suppress(StoreError), self._database.writing(in_turn=False) as connection:
                    connection.execute(sa.delete(holders).where(holders.c.holder == self._token))
                self._ends, self._token = None, place.new_id()

    def is_gone(self, holder: str, *, is_here: bool = False) -> bool:
        """True if a holder has ended, or has not renewed its lease for so long. ``is_here`` makes no difference."""
        if holder == self._token:
            return False
        with self._database.reading() as connection:
            asked = sa.select(holders.c.holder).where(holders.c.holder == holder, _lives())
            return connection.execute(asked).first() is None

    def _renew(self) -> None:
        """Renew the lease, in a row of this process's own; not in turn, so that no slow writer ends it."""
        lease = CLOCK + round(1000 * LEASE_S)
        with self._database.writing(in_turn=False) as connection:
            own = sa.update(holders).where(holders.c.holder == self._token).values(lease=lease)
            if not connection.execute(own).rowcount:
                connection.execute(sa.insert(holders).values(holder=self._token, lease=lease))

    def _go_on(self, ends: threading.Event) -> None:
        while not ends.wait(LEASE_S / 4):
            with self._changing:
                try:
                    if not ends.is_set():
                        self._renew()
                except StoreError as error:
                    log.warning("the lease of this process is not renewed yet: %s", error)


def _unnamed() -> str:
    """What stands for a name where this host's worker has none: it is none that a machine could have."""
    return f"/{socket.gethostname()}"


def _lives() -> sa.ColumnElement[bool]:
    """True of a lease that is not over, and of all for a while after a start of the server, which nobody could renew
    before."""
    return sa.or_(holders.c.lease > CLOCK, STARTED + round(1000 * LEASE_S) > CLOCK)


class Queue:
    """The queue of a store. All methods raise `StoreError`."""

    def __init__(self, database: Database, holders: Holders | Leases) -> None:
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

    def waits(self, machine: str = "") -> bool:
        with self._database.reading() as connection:
            return bool(read(connection, *_FREE, jobs.c.machine == machine))

    def next(self, machine: str = "") -> Work | None:
        """Take the first of what waits for a machine, or for any worker that was given no name; None where nothing
        does, or nothing new is to be begun. Workers that ask at the same time wait for nobody: each passes over the row
        that another one takes."""
        holder = self._holders.hold()
        first = sa.select(jobs.c.id).where(*_FREE, _OPEN, jobs.c.machine == machine).order_by(*_IN_ORDER).limit(1)
        with self._database.writing(in_turn=False) as connection:
            chosen = connection.execute(first.with_for_update(skip_locked=True)).scalar()
            for work in read(connection, jobs.c.id == chosen):
                begun = {"holder": holder, "begun": now_ms(connection)}
                connection.execute(sa.update(jobs).where(jobs.c.id == chosen).values(begun))
                return work
        return None

    def stand(self, work_id: str, standing: Standing, passed_s: float) -> None:
        """Tell how far it is, and for how long it has been measured by now."""
        mine = self._mine(work_id)
        with self._database.writing() as connection:
            values = {"standing": msgspec.json.encode(standing), "begun": now_ms(connection) - round(1000 * passed_s)}
            connection.execute(sa.update(jobs).where(*mine).values(values))

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
            stale = (jobs.c.answer.is_not(None), jobs.c.begun < now_ms(connection) - _STALE_MS)
            connection.execute(sa.delete(jobs).where(*stale))

    def _mine(self, work_id: str) -> tuple[sa.ColumnElement[bool], ...]:
        return jobs.c.id == work_id, jobs.c.holder == self._holders.hold()

    def spend(self, address: str, seconds: float) -> None:
        """Count what was measured for an address today; what was counted before goes."""
        with self._database.writing() as connection:
            today = place.utc(now_ms(connection)).partition("T")[0]
            its = (spent.c.day == today, spent.c.address == address)
            connection.execute(sa.delete(spent).where(spent.c.day < today))
            if not connection.execute(sa.update(spent).where(*its).values(seconds=spent.c.seconds + seconds)).rowcount:
                connection.execute(sa.insert(spent).values(day=today, address=address, seconds=seconds))

    # --- the worker itself -------------------------------------------------------------------------------------------

    def tell(self, state: WorkerState) -> None:
        """Tell how a worker stands, which is this process."""
        machine = state.machine or _unnamed()
        holder = self._holders.hold()
        with self._database.writing() as connection:
            row = {"holder": holder, "beat": (now := now_ms(connection)), "state": msgspec.json.encode(state)}
            if not connection.execute(sa.update(workers).where(workers.c.machine == machine).values(row)).rowcount:
                # A container has another name each time that it is started.
                connection.execute(sa.delete(workers).where(workers.c.beat < now - _GONE_MS))
                connection.execute(sa.insert(workers).values(row | {"machine": machine}))

    def worker(self) -> WorkerState | None:
        """How the worker of this machine stands that has no name; None where there is none, or it is gone."""
        return next(iter(self._workers(workers.c.machine == _unnamed())), None)

    def machines(self) -> dict[str, WorkerState]:
        """How the workers stand that were given names, by these."""
        return {state.machine: state for state in self._workers() if state.machine}

    def _workers(self, *where: sa.ColumnElement[bool]) -> list[WorkerState]:
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(workers).where(*where).order_by(workers.c.machine)).all()
        states = []
        for row in rows:
            if not self._holders.is_gone(row.holder, is_here=True):
                try:
                    states.append(msgspec.json.decode(row.state, type=WorkerState))
                except msgspec.DecodeError:
                    states.append(WorkerState("failed", "the worker is one of another version: restart it"))
        return states

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
