"""`python -m measure admin`: an operator's commands on the runs that are kept, and on the server that measures.

Each works through the store alone, so that the server may be another process, in another container too.
"""

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

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
# A row of the list of runs.
Row = Mapping[str, Any]


def add_to(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="order", required=True)
    commands.add_parser("list", help="all runs, the newest first").add_argument("--json", action="store_true")
    commands.add_parser("cancel", help="end a run, with what was measured").add_argument("id")
    for name, what in (("delete", "delete runs"), ("pin", "keep runs when room is made"), ("unpin", "no longer")):
        commands.add_parser(name, help=what).add_argument("id", nargs="+")
    prune = commands.add_parser("prune", help="delete all runs that match, but pinned ones and those that go on")
    prune.add_argument("--older-than", metavar="AGE", help="asked for longer ago: 30d, 12h, 2w")
    prune.add_argument("--origin", metavar="HASH", help="of one visitor, as the list names it")
    prune.add_argument("--larger-than", metavar="SIZE", help="10MiB")
    prune.add_argument("--keep-bytes", metavar="SIZE", help="the oldest, until all runs take no more")
    prune.add_argument("--dry-run", action="store_true", help="only say which")
    drain = commands.add_parser("drain", help="have the server take no new runs, as before a deployment")
    drain.add_argument("--wait", action="store_true", help="until nothing is measured any more")
    commands.add_parser("resume", help="have it take new runs again")


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked, and say on stdout what was done. Raises `RequestError` where it is not valid."""
    try:
        _follow(arguments, Store())
    except StoreError as error:
        print(f"error: the store cannot be used: {error}", file=sys.stderr)
        return FAULT
    return DONE


def _follow(arguments: argparse.Namespace, store: Store) -> None:
    match arguments.order:
        case "list" if arguments.json:
            print(json.dumps(_rows(store), indent=1, ensure_ascii=False))
        case "list":
            _print(_rows(store))
        case "cancel":
            snapshot = store.look(arguments.id)
            if snapshot is None or snapshot.state == "finished":
                ended = "is not known here" if snapshot is None else "has ended"
                raise RequestError(f"run {arguments.id} {ended}: nothing is cancelled")
            print("it waited, and is cancelled" if store.end(arguments.id) else "it ends in about a second")
        case "delete" | "pin" | "unpin" as order:
            ids = store.delete(arguments.id) if order == "delete" else store.pin(arguments.id, order == "pin")
            for run_id in ids:
                print(f"{order}{'d' if order == 'delete' else 'ned'} {run_id}")
            if left := [run_id for run_id in arguments.id if run_id not in ids]:
                raise RequestError(f"{', '.join(left)}: not known here, or not ended yet")
        case "prune":
            going = _matching(_rows(store), arguments)
            if not arguments.dry_run:
                gone = store.delete([row["id"] for row in going])
                going = [row for row in going if row["id"] in gone]
            _print(going, " would be deleted" if arguments.dry_run else " deleted")
        case "drain":
            store.queue.drain()
            print("no new runs are taken: «resume» takes them again, also after a restart")
            while (measured := sum(row["state"] == RUNNING for row in _rows(store))) and arguments.wait:
                time.sleep(_WAIT_S)
            waits = sum(work.holder is None for work in store.queue.all())
            print(f"{measured:,} runs are measured and end, {waits:,} wait and are kept for the next server")
        case "resume":
            print("new runs are taken again" if store.queue.resume() else "new runs were taken all the time")


def _rows(store: Store) -> list[Row]:
    """All runs, the newest first. ``origin``: who asked for it, as a hash; empty for whoever is at home."""
    sizes, waits = store.sizes(), {work.id for work in store.queue.all() if work.holder is None}
    return [
        {
            "id": entry.id,
            "created": entry.created,
            "state": WAITING if entry.status == RUNNING and entry.id in waits else entry.status,
            "origin": hashlib.sha256(entry.owner.encode()).hexdigest()[:_ORIGIN_SIGNS] if entry.owner else "",
            "imported": entry.imported,
            "pinned": entry.pinned,
            "bytes": sizes.get(entry.id, 0),
            "workload": entry.workload,
            "size": entry.size,
        }
        for entry in store.entries()
    ]


def _matching(rows: Sequence[Row], arguments: argparse.Namespace) -> list[Row]:
    """The runs that are to go, the oldest first."""
    older_s = _number("--older-than", arguments.older_than, _SECONDS, "m, h, d or w is needed, as 30d")
    larger = _number("--larger-than", arguments.larger_than, _BYTES, "B, KiB, MiB or GiB is needed, as 10MiB")
    most = _number("--keep-bytes", arguments.keep_bytes, _BYTES, "B, KiB, MiB or GiB is needed, as 10MiB")
    if older_s is None and arguments.origin is None and larger is None and most is None:
        raise RequestError("prune needs at least one of --older-than, --origin, --larger-than and --keep-bytes")
    now_s, going = time.time(), list[Row]()
    too_much = sum(row["bytes"] for row in rows) - (most or 0)
    for row in reversed(rows):
        if (
            row["state"] not in (RUNNING, WAITING)
            and not row["pinned"]
            and (older_s is None or now_s - datetime.fromisoformat(row["created"]).timestamp() > older_s)
            and (arguments.origin is None or (row["origin"] and row["origin"].startswith(arguments.origin)))
            and (larger is None or row["bytes"] > larger)
            and (most is None or too_much > 0)
        ):
            too_much -= row["bytes"]
            going.append(row)
    return going


def _number(option: str, text: str | None, units: Mapping[str, int], needed: str) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(rf"([0-9]{{1,12}})({'|'.join(units)})", text)
    if match is None:
        raise RequestError(f"{option} {text!r} is not valid: a number with {needed}")
    return int(match[1]) * units[match[2]]


def _print(rows: Sequence[Row], done: str = "") -> None:
    print(f"{len(rows):,} runs{done}, {in_words(sum(row['bytes'] for row in rows))}")
    for row in rows:
        state = row["state"] + ", imported" * row["imported"] + ", pinned" * row["pinned"]
        first = f"{row['id']}  {row['created']}  {in_words(row['bytes']):>9}  {row['origin'] or '–':<12}"
        print(f"{first}  {state}  {row['workload']} {row['size']}".rstrip())
