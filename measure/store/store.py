"""Runs that last: every run as it happens, in one database for all Mapbenches of a machine.

A run is written part by part while it grows, by the process that measures it. Whoever opens the store and finds a run
whose process is gone closes it as interrupted, with what was measured. A run is stored as documents: its head, and one
for each measurement; of a sweep for each point, and of claims for each piece of evidence. So a result that arrives
costs what it weighs, not what the whole run does.
"""

import contextlib
import operator
import threading
import zlib
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import sqlalchemy as sa
from msgspec.structs import asdict, replace

from measure.claims.tries import CLOSE
from measure.run import place, text
from measure.run.encoding import decode, upgraded
from measure.run.place import StoreError
from measure.run.run import Decision, Evidence, Measurement, Point, Run, Status
from measure.run.why import Why
from measure.store import database, entries, queue
from measure.store.database import GOES_ON, MARKED, PINNED, Database, artifacts, jobs, log, marks, parts, runs
from measure.store.entries import Entry, Query
from measure.store.queue import Holders, Leases, Order, Queue, Standing, Work
from workloads import elems_file

# Documents of runs that stay in memory as well, decoded, which takes some three times as much; and one run in any case.
_DECODED_BYTES = 8 * 2**20
_FAULT = "a fault in Mapbench ended the run; what was measured is kept"
_DAMAGED = "what is stored of it is damaged"
_HOLDER_GONE = "the process that measured it ended unexpectedly; what was measured is kept"
# The write-ahead log, and what is written before the next run has ended, need room as well.
_RESERVE_BYTES, _RESERVE_SHARE = 48 * 2**20, 1 / 3
# The field of a run of a kind whose items are documents of their own, and their type.
_ITEMS: dict[str, tuple[str, type[Measurement | Point | Evidence]]] = {
    "compare": ("measurements", Measurement),
    "sweep": ("points", Point),
    "claims": ("evidence", Evidence),
}


class Snapshot(Standing, frozen=True):
    """A stored run, and how the work on it stands."""

    run: Run
    state: Literal["queued", "running", "finished"] = "finished"
    position: int = 0  # pieces of work that are done before it
    wait_s: float = 0.0  # what these take by forecast
    wait_most_s: float = 0.0  # and at the most
    elapsed_s: float | None = None
    remaining_s: float | None = None
    version: int = 0  # grows with each new result
    imported: bool = False
    documents_bytes: int = 0
    owner: str = ""  # the visitor that has started it, who alone may end, explain or delete it


class _Decoded(NamedTuple):
    run: Run
    bytes: int  # of its documents
    version: int


class Store:
    """The runs in a database; safe to use from any thread. All methods but `close` raise `StoreError`."""

    def __init__(self, home: Path | None = None, most_bytes: int | None = None) -> None:
        """``home``: a folder of its own in place of Mapbench's, with the database in it; ``most_bytes``: of all runs,
        the oldest of which go when there are more."""
        url = database.address() if home is None else sa.make_url(f"sqlite:///{home / 'runs.db'}")
        file = database.file_of(url)
        self._database, self._most_bytes = Database(url, self.recover), most_bytes
        # Beside an SQLite file, so that all who share the file see the locks of its holders.
        locks = Holders((file.parent if file else place.home()) / "holders", all_are_here=file is not None)
        self._holders = Leases(self._database) if url.get_backend_name() == "postgresql" else locks
        self.queue = Queue(self._database, self._holders)
        # The items of each run that grows, as they were last written.
        self._written: dict[str, Sequence[object]] = {}
        # A page asks for the run that it shows at every interaction. By id, the least recently used first.
        self._decoded: OrderedDict[str, _Decoded] = OrderedDict()
        self._decoding = threading.Lock()

    # --- writing -----------------------------------------------------------------------------------------------------

    def ask(self, work: Work, run: Run | None = None) -> None:
        """Queue work, and write the run that is to be measured by it."""
        with self._database.writing() as connection:
            if run is not None:
                _insert(connection, run, _rows(run), work.owner)
            queue.add(connection, work)

    def begin(self, run: Run, *, owner: str = "") -> None:
        """Write a run that this process measures at once."""
        self.ask(Work(run.id, "measure", run.id, owner=owner, holder=self._holders.hold()), run)

    def save(self, run: Run, *, ended: bool = False) -> bool:
        """Write what is new of a run that this process measures, in one transaction. False where somebody has deleted
        or closed the run meanwhile. ``ended``: this is its final form, and its work leaves the queue."""
        mine = (jobs.c.id == run.id, jobs.c.holder == self._holders.hold())
        with self._database.writing() as connection:
            is_mine = connection.execute(sa.select(jobs.c.id).where(*mine)).first() is not None
            if is_mine:
                _write(connection, run, self._written.get(run.id, ()))
            if ended:
                connection.execute(sa.delete(jobs).where(*mine))
        if is_mine and not ended:
            self._written[run.id] = _items(run)
        else:
            self._written.pop(run.id, None)
            with contextlib.suppress(StoreError):  # it is tried again when the next run has ended
                self._make_room(run.id)
        return is_mine

    def close_own(self) -> None:
        """Close all work that this process has begun, after a fault ended the doing of it."""
        holder = self._holders.hold()
        with self._database.writing() as connection:
            _close_work_of(connection, holder, _FAULT)
        self._written.clear()

    def end(self, work_id: str, order: Order = "cancel") -> bool:
        """Have whoever does this work end it. What waits and is cancelled goes out of the queue, a run as one that was
        not begun: True then."""
        with self._database.writing() as connection:
            waiting, begun = (jobs.c.id == work_id, jobs.c.holder.is_(None)), jobs.c.holder.is_not(None)
            for work in queue.read(connection, jobs.c.id == work_id):
                # A worker may take it at this moment, which is no matter of turns: then it has begun.
                if order == "cancel" and connection.execute(sa.delete(jobs).where(*waiting)).rowcount:
                    if work.kind == "measure":
                        _write(connection, closed(_read(connection, work_id), "cancelled", "cancelled before it began"))
                    return True
                connection.execute(sa.update(jobs).where(jobs.c.id == work_id, begun).values(order=order))
        return False

    def add(self, run: Run, owner: str = "") -> bool:
        """Keep a run that comes from elsewhere; False where it is here already, which stays as it is. ValueError where
        another has its id, or there is no room for it."""
        rows = _rows(run)
        size = sum(len(row["document"]) for row in rows)
        if self.entry(run.id) is None and not self._make_room(run.id, size):
            raise ValueError(f"there is no room for it here: it takes {text.size(size)}")
        with self._database.writing() as connection:
            is_new = connection.execute(sa.select(runs.c.id).where(runs.c.id == run.id)).first() is None
            if is_new:
                _insert(connection, run, rows, owner, imported=True)
        if not is_new and _measured(self.load(run.id) or run) != _measured(run):
            raise ValueError(f"another run with the id {run.id} is here already: delete it before this one is imported")
        return is_new

    def delete(self, ids: Iterable[str], owner: str | None = None) -> list[str]:
        """Delete runs that have ended, of all owners or of one; the ids of those that are gone."""
        with self._database.writing() as connection:
            chosen = _ended(connection, ids, owner)
            arrays = _arrays(connection, runs.c.id.in_(chosen), sa.not_(runs.c.imported))
            _remove(connection, chosen)
            arrays -= _arrays(connection) if arrays else set()
        elems_file.remove(arrays)
        return chosen

    def pin(self, ids: Iterable[str], pinned: bool, owner: str | None = None) -> list[str]:
        """Have runs that have ended stay when room is made, or not any more; the ids of those that are here. ``owner``:
        only those of one. Raises ValueError where an owner's pins would leave too little room for others."""
        with self._database.writing() as connection:
            chosen = _ended(connection, ids, owner)
            connection.execute(sa.delete(marks).where(marks.c.run.in_(chosen)))
            if pinned and chosen:
                connection.execute(sa.insert(marks), [{"run": run_id} for run_id in chosen])
            if pinned and owner is not None and self._most_bytes is not None:
                pins = set(connection.execute(sa.select(marks.c.run).where(marks.c.pinned)).scalars())
                if sum(size for run_id, size in _sizes(connection).items() if run_id in pins) > self._most_bytes / 2:
                    raise ValueError("pinned runs would take more than half of this server's room")
        return chosen

    def explain(self, run_id: str, slug: str, why: Why, left: Mapping[str, bytes]) -> bool:
        """Keep why a strategy of a run is as it is, and the artifacts of that, if there is room for them; False where
        the run is gone."""
        packed = {name: zlib.compress(data, 6) for name, data in left.items()}
        if packed and not self._make_room(run_id, sum(map(len, packed.values()))):
            log.warning("there is no room for what the explanation of run %s leaves", run_id)
            packed = {}
        with self._database.writing() as connection:
            if connection.execute(sa.select(runs.c.id).where(runs.c.id == run_id)).first() is None:
                return False
            run = _read(connection, run_id)
            items = [replace(item, why=why) if item.strategy == slug else item for item in run.measurements]
            _write(connection, replace(run, measurements=items), run.measurements)
            connection.execute(sa.delete(artifacts).where(artifacts.c.run == run_id, artifacts.c.strategy == slug))
            for name, data in packed.items():
                row = {"run": run_id, "strategy": slug, "name": name, "document": data}
                connection.execute(sa.insert(artifacts).values(row))
        return True

    def decide(self, run_id: str, decision: Decision | msgspec.UnsetType, owner: str | None = None) -> bool:
        """Write a decision on a run that has ended, or remove the one that is there. ``owner``: only of their
        runs. False where there is no such run; ValueError where what is stored is damaged."""
        with self._database.writing() as connection:
            if not _ended(connection, [run_id], owner):
                return False
            run = _read(connection, run_id)
            _write(connection, replace(run, decision=decision), _items(run))
        return True

    # --- reading -----------------------------------------------------------------------------------------------------

    def load(self, run_id: str) -> Run | None:
        """The run, or None where there is none of that id. ValueError where what is stored is damaged."""
        stored = self.look(run_id)
        return stored.run if stored is not None else None

    def look(self, run_id: str, explained_by: str | None = None) -> Snapshot | None:
        """The run as `load` has it, with what the store knows of it. ``explained_by``: the work that explains it, of
        which is told how it stands."""
        if not place.is_id(run_id):
            return None
        work_id = explained_by or run_id
        row, works = self._row(run_id)
        holders = [work.holder for work in works if work.id == work_id and work.holder is not None]
        if holders and self.recover(holders):
            row, works = self._row(run_id)
        if row is None:
            return None
        run, documents_bytes = self._decode(run_id, row.version)
        snapshot = Snapshot(
            run, version=row.version, imported=row.imported, owner=row.owner, documents_bytes=documents_bytes
        )
        machine = next((work.machine for work in works if work.id == work_id), "")
        works = [work for work in works if work.machine == machine]
        for position, work in enumerate(works):
            if work.id == work_id and work.holder is None:
                before = works[:position]
                waits = {"wait_s": sum(w.left_s for w in before), "wait_most_s": sum(w.most_s for w in before)}
                return replace(snapshot, state="queued", position=position, owner=work.owner, **waits)
            if work.id == work_id:
                left_s, now = max(0.0, work.end_s - work.passed_s), asdict(work.standing)
                times = {"elapsed_s": work.passed_s, "remaining_s": left_s}
                return replace(snapshot, state="running", owner=work.owner, **times, **now)
        return snapshot

    def artifacts(self, run_id: str, slug: str) -> list[str]:
        asked = sa.select(artifacts.c.name).where(artifacts.c.run == run_id, artifacts.c.strategy == slug)
        with self._database.reading() as connection:
            return sorted(connection.execute(asked).scalars())

    def artifact(self, run_id: str, slug: str, name: str) -> bytes | None:
        chosen = (artifacts.c.run == run_id, artifacts.c.strategy == slug, artifacts.c.name == name)
        with self._database.reading() as connection:
            document = connection.execute(sa.select(artifacts.c.document).where(*chosen)).scalar()
        return zlib.decompress(document) if document is not None else None

    def count(self, query: Query | None = None) -> int:
        chosen = entries.select(query or Query()).subquery()
        with self._database.reading() as connection:
            return int(connection.execute(sa.select(sa.func.count()).select_from(chosen)).scalar_one())

    def entries(self, query: Query | None = None, first: int = 0, most: int | None = None) -> list[Entry]:
        """The runs that a query finds, the newest first, from number ``first`` on and at most so many."""
        self.recover()
        chosen = entries.select(query or Query()).offset(first).limit(most)
        with self._database.reading() as connection:
            return [Entry(*row) for row in connection.execute(chosen)]

    def entry(self, run_id: str) -> Entry | None:
        """The run's line in the list, of which no document is read; None where there is none of that id."""
        with self._database.reading() as connection:
            row = connection.execute(entries.select(Query()).where(runs.c.id == run_id)).one_or_none()
        return None if row is None else Entry(*row)

    def alike(self, run: Run, since: datetime) -> list[Run]:
        """The runs that were asked for as this one is, here and not elsewhere, and changed since then: the newest
        first, each without what was measured; damaged ones are left out."""
        row, same = entries.row(run), ("workload", "size", "device")
        chosen = sa.select(parts.c.document).join(runs).where(parts.c.place == 0, sa.not_(runs.c.imported))
        chosen = chosen.where(runs.c.version >= since.timestamp() * 1000, *(runs.c[name] == row[name] for name in same))
        with self._database.reading() as connection:
            documents = connection.execute(chosen.order_by(runs.c.created.desc())).scalars().all()
        others, asked = list[Run](), operator.attrgetter("kind", "request", "axes", "claims")
        for document in documents:
            with contextlib.suppress(zlib.error, ValueError):
                others.append(decode(zlib.decompress(document)))
        return [other for other in others if asked(other) == asked(run)]

    def values(self) -> dict[str, list[str]]:
        """The workloads and devices that occur, for those who filter by them."""
        with self._database.reading() as connection:
            return {
                column.name: list(connection.execute(sa.select(column).distinct().order_by(column)).scalars())
                for column in (runs.c.workload, runs.c.device)
            }

    def sizes(self) -> dict[str, int]:
        with self._database.reading() as connection:
            return _sizes(connection)

    def recover(self, names: Collection[str] | None = None) -> bool:
        """Close what those of these holders, or of all that there are, had begun that are gone; True if there was one.
        Where another process writes, it stays as it is until somebody looks again."""
        if names is None:
            names = {work.holder for work in self.queue.all() if work.holder is not None}
        gone_ones = [holder for holder in names if self._holders.is_gone(holder)]
        try:
            for holder in gone_ones:
                with self._database.writing(database.READING_S) as connection:
                    _close_work_of(connection, holder)
        except StoreError as error:
            log.warning("runs of a process that is gone are not closed yet: %s", error)
            return False
        return bool(gone_ones)

    def close(self) -> None:
        """Let go of the lock or the lease, and of the database; the next use opens it again."""
        self._holders.release()
        self._database.close()
        self._written.clear()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _row(self, run_id: str) -> tuple[Any, list[Work]]:
        """A run's row beside its documents, and the work that is not done."""
        with self._database.reading() as connection:
            row = connection.execute(
                sa.select(runs.c.version, runs.c.imported, runs.c.owner).where(runs.c.id == run_id)
            ).first()
            return row, queue.read(connection)

    def _decode(self, run_id: str, version: int) -> tuple[Run, int]:
        """The run as it is stored now, at this version or a later one, and the bytes of its documents. One is decoded
        at a time, since the large ones take several times what they hold."""
        with self._decoding:
            if run_id not in self._decoded or self._decoded[run_id].version != version:
                self._decoded.pop(run_id, None)
                with self._database.reading() as connection:
                    documents = _documents(connection, run_id)
                self._decoded[run_id] = _Decoded(_made(documents), sum(map(len, documents)), version)
            self._decoded.move_to_end(run_id)
            while len(self._decoded) > 1 and sum(one.bytes for one in self._decoded.values()) > _DECODED_BYTES:
                self._decoded.popitem(last=False)
            return self._decoded[run_id][:2]

    def _make_room(self, spared: str, coming: int = 0) -> bool:
        """Remove the oldest runs that are not pinned, but for ``spared``, until so many bytes more have room. False if
        the removal of all would not do for what is coming: then none is removed."""
        if self._most_bytes is None:
            return True
        # What is written is in the write-ahead log as well for a while.
        most = self._most_bytes - min(_RESERVE_BYTES, self._most_bytes * _RESERVE_SHARE) - 2 * coming
        chosen = sa.select(runs.c.id).select_from(MARKED).where(sa.not_(GOES_ON), sa.not_(PINNED))
        oldest = chosen.where(runs.c.id != spared).order_by(runs.c.version, runs.c.id)
        with self._database.reading() as connection:
            if (used := _used(connection)) <= most:
                return True
            sizes, ids = _sizes(connection), connection.execute(oldest).scalars().all()
        if coming and used - sum(sizes[run_id] for run_id in ids) > most:
            return False
        for run_id in ids:  # one by one, since all that a transaction moves is in the log
            with self._database.writing() as connection:
                if _used(connection) <= most:
                    break
                # Somebody may have pinned it meanwhile.
                _remove(connection, connection.execute(chosen.where(runs.c.id == run_id)).scalars().all())
        return True


def closed(run: Run, status: Status, reason: str, finished: str | None = None) -> Run:
    """A run as it ends where something outside of the measuring has ended it, with all that was measured."""
    finished = finished or place.utc_now()
    with contextlib.suppress(Exception):  # what is at fault may be at fault here too
        return CLOSE[run.kind](run, status, reason, finished)
    return replace(run, status=status, finished=finished, stop_reason=reason)


# --- the rows of a run -----------------------------------------------------------------------------------------------


def _items(run: Run) -> Sequence[object]:
    return tuple(getattr(run, _ITEMS[run.kind][0]) or ())


def _measured(run: Run) -> object:
    """Return what no later analysis, explanation or decision changes."""
    bodies: list[Run | Point] = [run, *run.points]
    items = [(item.strategy, item.replicas) for body in bodies for item in body.measurements]
    return run.created, run.request, run.axes, items, run.evidence


def _read(connection: sa.Connection, run_id: str) -> Run:
    """The run as its documents make it. ValueError where they are damaged."""
    return _made(_documents(connection, run_id))


def _documents(connection: sa.Connection, run_id: str) -> list[bytes]:
    asked = sa.select(parts.c.document).where(parts.c.run == run_id).order_by(parts.c.place)
    try:
        return [zlib.decompress(document) for document in connection.execute(asked).scalars()]
    except zlib.error as error:
        raise ValueError(f"{_DAMAGED} ({error})") from None


def _made(documents: Sequence[bytes]) -> Run:
    try:
        head, *others = documents
        run = decode(head)
        field, type_ = _ITEMS[run.kind]
        return upgraded(replace(run, **{field: [msgspec.json.decode(document, type=type_) for document in others]}))
    except msgspec.DecodeError as error:
        raise ValueError(f"{_DAMAGED} ({error})") from None


def _insert(
    connection: sa.Connection, run: Run, rows: list[dict[str, Any]], owner: str, *, imported: bool = False
) -> None:
    """``rows``: the run's, as `_rows` makes them."""
    more = {"version": database.now_ms(connection), "owner": owner, "imported": imported}
    connection.execute(sa.insert(runs).values(entries.row(run) | more))
    connection.execute(sa.insert(parts), rows)


def _write(connection: sa.Connection, run: Run, before: Sequence[object] = ()) -> None:
    """Write a run over what is stored of it: its head, and those of its items that are not the same objects as
    ``before``, as they were last written."""
    _update(connection, run.id, entries.row(run))
    rows = _rows(run, before)
    gone = sa.or_(parts.c.place > len(_items(run)), parts.c.place.in_([row["place"] for row in rows]))
    connection.execute(sa.delete(parts).where(parts.c.run == run.id, gone))
    connection.execute(sa.insert(parts), rows)


def _update(connection: sa.Connection, run_id: str, values: Mapping[str, Any]) -> None:
    """Change a row, and make its version a later one."""
    now = database.now_ms(connection)
    version = sa.case((runs.c.version >= now, runs.c.version + 1), else_=now)
    connection.execute(sa.update(runs).where(runs.c.id == run_id).values({**values, "version": version}))


def _rows(run: Run, before: Sequence[object] = ()) -> list[dict[str, Any]]:
    """The run's head and those of its items that are not the same objects as ``before``, as rows."""
    now = _items(run)
    changed: dict[int, object] = {0: replace(run, **{_ITEMS[run.kind][0]: []})}
    changed |= {
        number: item for number, item in enumerate(now, 1) if number > len(before) or before[number - 1] is not item
    }
    return [
        {"run": run.id, "place": number, "document": zlib.compress(msgspec.json.encode(part), 1)}
        for number, part in changed.items()
    ]


def _close_work_of(connection: sa.Connection, holder: str, reason: str = _HOLDER_GONE) -> None:
    """Take the work of a holder out of the queue. Its runs are interrupted, with what was measured; of one that is
    damaged only the status changes."""
    held = [work for work in queue.read(connection, jobs.c.holder == holder) if work.kind == "measure"]
    connection.execute(sa.delete(jobs).where(jobs.c.holder == holder, jobs.c.answer.is_(None)))
    for work in held:
        version = connection.execute(sa.select(runs.c.version).where(runs.c.id == work.id)).scalar_one()
        try:
            run = _read(connection, work.id)
            # The clock of the machine that has measured may be ahead of the database's.
            finished = max(place.utc(version), run.started or run.created)
            _write(connection, closed(run, "interrupted", reason, finished))
        except ValueError as error:
            log.warning("run %s: %s", work.id, error)
            _update(connection, work.id, {"status": "interrupted"})


def _ended(connection: sa.Connection, ids: Iterable[str], owner: str | None) -> list[str]:
    """The ones of these runs that have ended, of all owners or of one."""
    chosen = sa.select(runs.c.id).where(runs.c.id.in_(list(ids)), sa.not_(GOES_ON))
    if owner is not None:
        chosen = chosen.where(runs.c.owner == owner)
    return list(connection.execute(chosen).scalars())


def _remove(connection: sa.Connection, ids: Sequence[str]) -> None:
    for table in (artifacts, parts, marks, jobs):
        connection.execute(sa.delete(table).where(table.c.run.in_(ids)))
    connection.execute(sa.delete(runs).where(runs.c.id.in_(ids)))


def _arrays(connection: sa.Connection, *where: sa.ColumnElement[bool]) -> set[str]:
    """The names of the copies of arrays that functions of the runs which match are mapped over."""
    asked = sa.select(parts.c.document).join(runs, runs.c.id == parts.c.run).where(parts.c.place == 0, *where)
    names = set[str]()
    for document in connection.execute(asked).scalars():
        with contextlib.suppress(zlib.error):  # a damaged one is never measured again
            names |= elems_file.named(zlib.decompress(document))
    return names


def _sizes(connection: sa.Connection) -> dict[str, int]:
    """The bytes that each run takes with what its explanations have left."""
    total: Counter[str] = Counter()
    for table in (parts, artifacts):
        asked = sa.select(table.c.run, sa.func.sum(sa.func.length(table.c.document))).group_by(table.c.run)
        total.update({run_id: int(size) for run_id, size in connection.execute(asked)})
    return total


def _used(connection: sa.Connection) -> int:
    used = database.used(connection)
    return sum(_sizes(connection).values()) if used is None else used
