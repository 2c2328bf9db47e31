"""`python -m measure admin`: an operator's commands on the runs that are kept, and on the server that measures.

Each works through the store alone, so that the server may be another process, in another container too.
"""

import argparse
import hashlib
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.run.text import size as in_words
from measure.store.entries import RUNNING
from measure.store.store import Store

DONE, FAULT = 0, 1
WAITING = "waiting"
_ORIGIN_SIGNS = 12
_WAIT_S = 0.5
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


class Listed(msgspec.Struct, frozen=True):
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
    sizes, waits = store.room.sizes(), {work.id for work in store.queue.all() if work.holder is None}
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


def _list(store: Store, arguments: argparse.Namespace) -> None:
    every = listed(store)
    if arguments.json:
        print(msgspec.json.format(msgspec.json.encode(every), indent=1).decode())
        return
    print(f"{len(every):,} runs, {in_words(sum(one.bytes for one in every))}")
    _print(every)


def _cancel(store: Store, arguments: argparse.Namespace) -> None:
    snapshot = store.look(arguments.id)
    if snapshot is None or snapshot.state == "finished":
        ended = "is not known here" if snapshot is None else "has ended"
        raise RequestError(f"run {arguments.id} {ended}: nothing is cancelled")
    print("it waited, and is cancelled" if store.end(arguments.id) else "it ends in about a second")


def _delete(store: Store, arguments: argparse.Namespace) -> None:
    _report("deleted", store.delete(arguments.id), arguments.id)


def _pin(store: Store, arguments: argparse.Namespace) -> None:
    pinned = arguments.order == "pin"
    _report("pinned" if pinned else "unpinned", store.room.pin(arguments.id, pinned), arguments.id)


def _prune(store: Store, arguments: argparse.Namespace) -> None:
    older_s = _number("--older-than", arguments.older_than, _SECONDS, "m, h, d or w is needed, as 30d")
    larger = _number("--larger-than", arguments.larger_than, _BYTES, "B, KiB, MiB or GiB is needed, as 10MiB")
    most = _number("--keep-bytes", arguments.keep_bytes, _BYTES, "B, KiB, MiB or GiB is needed, as 10MiB")
    if older_s is None and arguments.origin is None and larger is None and most is None:
        raise RequestError("prune needs at least one of --older-than, --origin, --larger-than and --keep-bytes")
    every, now_s, going = listed(store), time.time(), list[Listed]()
    too_much = sum(one.bytes for one in every) - (most or 0)
    for one in reversed(every):
        if (
            one.state not in (RUNNING, WAITING)
            and not one.pinned
            and (older_s is None or now_s - datetime.fromisoformat(one.created).timestamp() > older_s)
            and (arguments.origin is None or (one.origin and one.origin.startswith(arguments.origin)))
            and (larger is None or one.bytes > larger)
            and (most is None or too_much > 0)
        ):
            too_much -= one.bytes
            going.append(one)
    if not arguments.dry_run:
        gone = set(store.delete([one.id for one in going]))
        going = [one for one in going if one.id in gone]
    done = "would be deleted" if arguments.dry_run else "deleted"
    print(f"{len(going):,} runs {done}, {in_words(sum(one.bytes for one in going))}")
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


def _report(done: str, ids: Sequence[str], asked: Sequence[str]) -> None:
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


def _number(option: str, text: str | None, units: Mapping[str, int], needed: str) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(rf"([0-9]{{1,12}})({'|'.join(units)})", text)
    if match is None:
        raise RequestError(f"{option} {text!r} is not valid: a number with {needed}")
    return int(match[1]) * units[match[2]]
