"""`python -m measure admin`: an operator's commands on the runs that are kept, and on the server that measures.

Each works through the store alone, so that the server may be another process, in another container too.
"""

import argparse
import hashlib
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from measure.model.place import StoreError
from measure.model.request import RequestError
from measure.model.text import size as in_words
from measure.recording import unmeasured
from measure.store.entries import RUNNING
from measure.store.store import Store

DONE, FAULT = 0, 1
WAITING = "waiting"
_ORIGIN_SIGNS = 12
_WAIT_S = 0.5
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@dataclass(frozen=True)
class Listed:
    """A run as an operator sees it. ``origin``: who asked for it, as a hash; empty for whoever is at home."""

    id: str
    created: str
    state: str
    origin: str
    imported: bool
    pinned: bool
    bytes: int
    workload: str
    size: str


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked, and say on stdout what was done. Raises `RequestError` where it is not valid."""
    orders: dict[str, Callable[[Store, argparse.Namespace], None]] = {
        "list": _list, "cancel": _cancel, "delete": _delete, "pin": _pin, "unpin": _pin, "prune": _prune,
        "drain": _drain, "resume": _resume,
    }  # fmt: skip
    try:
        orders[arguments.order](Store(), arguments)
    except StoreError as error:
        print(f"error: the store cannot be used: {error}", file=sys.stderr)
        return FAULT
    return DONE


def listed(store: Store) -> list[Listed]:
    """All runs, the newest first."""
    sizes, waits = store.keeping.sizes(), {work.id for work in store.queue.all() if work.holder is None}
    return [
        Listed(
            id=entry.id,
            created=entry.created,
            state=WAITING if entry.status == RUNNING and entry.id in waits else entry.status,
            origin=hashlib.sha256(entry.owner.encode()).hexdigest()[:_ORIGIN_SIGNS] if entry.owner else "",
            imported=entry.imported,
            pinned=entry.pinned,
            bytes=sizes.get(entry.id, 0),
            workload=entry.workload,
            size=entry.size,
        )
        for entry in store.entries()
    ]


def chosen(
    every: Sequence[Listed],
    now: datetime,
    older_than: timedelta | None = None,
    origin: str | None = None,
    larger_than: int | None = None,
    keep_bytes: int | None = None,
) -> list[Listed]:
    """The runs that match all of this, the oldest first; of those that would, as many as have to go for ``keep_bytes``
    of all runs. None of them is pinned or goes on."""
    matching = [
        one
        for one in reversed(every)
        if one.state not in (RUNNING, WAITING)
        and not one.pinned
        and (older_than is None or datetime.fromisoformat(one.created) < now - older_than)
        and (origin is None or (one.origin.startswith(origin) and one.origin))
        and (larger_than is None or one.bytes > larger_than)
    ]
    if keep_bytes is None:
        return matching
    too_much, going = sum(one.bytes for one in every) - keep_bytes, []
    for one in matching:
        if too_much <= 0:
            break
        too_much -= one.bytes
        going.append(one)
    return going


def _list(store: Store, arguments: argparse.Namespace) -> None:
    every = listed(store)
    if arguments.json:
        print(msgspec.json.format(msgspec.json.encode([asdict(one) for one in every]), indent=1).decode())
        return
    print(f"{len(every):,} runs, {in_words(sum(one.bytes for one in every))}")
    _print(every)


def _cancel(store: Store, arguments: argparse.Namespace) -> None:
    kept = store.look(arguments.id)
    if kept is None or kept.work is None:
        raise RequestError(f"run {arguments.id} {'has ended' if kept else 'is not known here'}: nothing is cancelled")
    if store.withdraw(unmeasured(kept.run)):
        print("it waited, and is cancelled")
    else:
        store.queue.order(arguments.id, "cancel")
        print("it ends in about a second")


def _delete(store: Store, arguments: argparse.Namespace) -> None:
    _said("deleted", store.delete(arguments.id), arguments.id)


def _pin(store: Store, arguments: argparse.Namespace) -> None:
    pinned = arguments.order == "pin"
    _said("pinned" if pinned else "unpinned", store.keeping.pin(arguments.id, pinned), arguments.id)


def _prune(store: Store, arguments: argparse.Namespace) -> None:
    if all(
        value is None for value in (arguments.older_than, arguments.origin, arguments.larger_than, arguments.keep_bytes)
    ):
        raise RequestError("prune needs at least one of --older-than, --origin, --larger-than and --keep-bytes")
    going = chosen(
        listed(store),
        datetime.now(UTC),
        _age(arguments.older_than),
        arguments.origin,
        _bytes("--larger-than", arguments.larger_than),
        _bytes("--keep-bytes", arguments.keep_bytes),
    )
    if not arguments.dry_run:
        gone = set(store.delete([one.id for one in going]))
        going = [one for one in going if one.id in gone]
    said = "would be deleted" if arguments.dry_run else "deleted"
    print(f"{len(going):,} runs {said}, {in_words(sum(one.bytes for one in going))}")
    _print(going)


def _drain(store: Store, arguments: argparse.Namespace) -> None:
    store.queue.drain()
    print("no new runs are taken: «resume» takes them again, also after a restart")
    while (going := [one.id for one in listed(store) if one.state == RUNNING]) and arguments.wait:
        time.sleep(_WAIT_S)
    waits = sum(work.holder is None for work in store.queue.all())
    print(f"{len(going):,} runs are measured and end, {waits:,} wait and are kept for the next server")


def _resume(store: Store, arguments: argparse.Namespace) -> None:
    print("new runs are taken again" if store.queue.resume() else "new runs were taken all the time")


def _said(done: str, ids: Sequence[str], asked: Sequence[str]) -> None:
    """Print which runs it was done to. Raises `RequestError` where one is left over."""
    for run_id in ids:
        print(f"{done} {run_id}")
    if left := [run_id for run_id in asked if run_id not in ids]:
        raise RequestError(f"{', '.join(left)}: not known here, or not ended yet")


def _print(every: Iterable[Listed]) -> None:
    for one in every:
        marks = [name for name, is_so in (("imported", one.imported), ("pinned", one.pinned)) if is_so]
        about = f"{one.workload} {one.size}".strip()
        state = ", ".join([one.state, *marks])
        print(f"{one.id}  {one.created}  {in_words(one.bytes):>9}  {one.origin or '–':<12}  {state}  {about}")


def _age(text: str | None) -> timedelta | None:
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,5})([mhdw])", text)
    if match is None:
        raise RequestError(f"--older-than {text!r} is not valid: a number with m, h, d or w is needed, as 30d")
    return int(match[1]) * _UNITS[match[2]]


def _bytes(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,12})(B|KiB|MiB|GiB)", text)
    if match is None:
        raise RequestError(f"{option} {text!r} is not valid: a number with B, KiB, MiB or GiB is needed, as 10MiB")
    return int(match[1]) * _SIZES[match[2]]
