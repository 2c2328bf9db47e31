"""Visitors of a hosted server, and what they must not meet there.

They speak a browser's protocol (`tests.streamlit_client`), each from an address of its own: they choose, run, watch,
cancel, open links, export, import and leave. The hostile ones ask for the most that can be asked for, flood the server
with reruns and garbage, import files at the limit, and reload.
"""

import asyncio
import contextlib
import itertools
import json
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode

from measure.model.place import utc_now
from measure.model.run import Run
from measure.store.store import Store
from tests.browser import ROOT
from tests.streamlit_client import Refused, Session

SEED = 7
# What is logged of bytes that are no message, by Streamlit: a warning with its cause.
_GARBAGE = re.compile(r"^.*Error deserializing back message\n(?:.*\n)*?.*DecodeError: .*$", re.MULTILINE)
# Of the server; small enough that imports at the limit reach it.
STORE_MIB = 128
RUN_S, SWEEP_S = 60.0, 300.0
# From one run's end to the next one's start: what is written, and subjects that are ended.
_BETWEEN_S = 5.0
# The words on a page for a place in the queue.
_LINE = re.compile(r"before this one, about [^,]+, ([^.]+) at most")
_ASKED = (
    {"workload": "square", "size_batch": "1000", "strategies": ["batched.graph", "map_fn.graph"], "budget": "1"},
    {"workload": "image_sqrt", "size_batch": "20", "strategies": ["batched.eager", "loop.eager"], "budget": "2"},
    {"workload": "outer_product", "strategies": ["vectorized_map.graph", "batched.xla"], "budget": "2"},
    {"workload": "per_example_gradients", "size_batch": "32", "strategies": ["map_fn.graph"], "budget": "1"},
)
_LARGEST = (
    {"workload": "square", "size_batch": "1000000", "strategies": ["loop.eager"], "budget": "1"},
    {"workload": "square", "size_batch": "2147483647", "strategies": ["all"], "budget": "30"},
    {"workload": "outer_product", "strategies": ["all"], "budget": "30", "threads": "16"},
    {"workload": "image_sqrt", "size_batch": "100000", "strategies": ["all"], "budget": "1e9", "threads": "10000"},
    {"workload": "repeat_sum", "strategies": [f"chunked.graph?chunk={n}" for n in range(1, 300)], "budget": "30"},
)


@dataclass
class Ledger:
    """What visitors have done and seen. ``own``: run → whose it is; ``cancelled``: runs that their owner cancelled;
    ``lines``: run → what the page said of its place in the queue."""

    own: dict[str, int] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    slow_s: list[float] = field(default_factory=list)
    lines: dict[str, "Line"] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """What the page said of a run in the queue when it was asked for: it waits ``most_s`` at most."""

    at: str
    most_s: float


# --- what visitors do ------------------------------------------------------------------------------------------------


class Visitor:
    """One person with a browser. ``until``: when to leave for good, by the monotonic clock."""

    def __init__(self, number: int, url: str, ledger: Ledger, until: float) -> None:
        self.number, self.ledger, self.until = number, ledger, until
        self.chance = random.Random(SEED * 1_000 + number)
        self.session = Session(url, f"10.0.{number // 250}.{1 + number % 250}")

    @property
    def stays(self) -> bool:
        return time.monotonic() < self.until

    async def come(self, *doing: Callable[["Visitor"], Awaitable[None]]) -> None:
        """Do these in turn until it is time to leave; what goes wrong at the server's side is a problem."""
        await asyncio.sleep(self.chance.uniform(0, 5))
        for do in itertools.cycle(doing):
            if not self.stays:
                break
            try:
                await do(self)
            except Refused as error:
                self.ledger.done["refused by the web server"] += 1
                if str(error).startswith("5"):
                    self.ledger.problems.append(f"{do.__name__}: {error}")
            except (OSError, TimeoutError, ConnectionError) as error:
                self.ledger.problems.append(f"{do.__name__}: {type(error).__name__}: {error}")
            self.ledger.problems += self.session.problems
            self.session.problems.clear()
        self.ledger.slow_s.append(self.session.slowest_s)
        self.ledger.done["reruns"] += self.session.reruns
        await self.session.close()

    async def think(self, most_s: float = 3.0) -> None:
        await asyncio.sleep(self.chance.uniform(0.2, most_s))

    async def ask(self, choices: dict[str, object], page: str = "") -> str:
        """Ask for a run; its id, or nothing where the page refuses it."""
        await self.session.open(page, urlencode(choices, doseq=True))
        before = self.session.run_id
        if not await self.session.click("run") or self.session.run_id in ("", before):
            self.ledger.done["refused"] += 1
            return ""
        run_id = self.session.run_id
        if run_id in self.ledger.own:
            self.ledger.done["answered by a recent run"] += 1
        else:
            self.ledger.done["runs"] += 1
            self.ledger.own[run_id] = self.number
            if (most_s := most_of_line(self.session.text)) is not None:
                self.ledger.lines[run_id] = Line(utc_now(), most_s)
        return run_id

    async def watch(self) -> None:
        """Look on until the run has finished."""
        end = time.monotonic() + 13 * RUN_S
        while self.session.find("again") is None and time.monotonic() < end:
            await self.session.watch_once()


async def measure(visitor: Visitor) -> None:
    # Some ask for what others ask for too.
    choices = dict(visitor.chance.choice(_ASKED))
    if visitor.chance.random() < 0.7:
        choices["seed"] = str(visitor.chance.randrange(10_000))
    run_id = await visitor.ask(choices)
    if not run_id:
        await visitor.think(8.0)
        return
    if visitor.chance.random() < 0.3:
        await visitor.think()
        if visitor.ledger.own.get(run_id) == visitor.number and await visitor.session.click("cancel"):
            visitor.ledger.cancelled.add(run_id)
            visitor.ledger.done["cancelled"] += 1
    await visitor.watch()
    await visitor.think()


async def open_a_link(visitor: Visitor) -> None:
    if visitor.ledger.own:
        run_id = visitor.chance.choice(sorted(visitor.ledger.own))
        await visitor.session.open(query=f"run={run_id}")
        visitor.ledger.done["links"] += 1
        if visitor.session.find("cancel") is not None and visitor.ledger.own[run_id] != visitor.number:
            visitor.ledger.problems.append(f"the run {run_id} of another can be cancelled")
    await visitor.think()


async def take(visitor: Visitor, link: str) -> bytes:
    """A file, again in a moment where the server says so; nothing once it is time to leave."""
    while visitor.stays:
        try:
            data = await visitor.session.fetch(link)
        except Refused as error:
            if "try again in a moment" not in str(error):
                raise
            visitor.ledger.done["exports put off"] += 1
            await visitor.think()
        else:
            visitor.ledger.done["exports"] += 1
            return data
    return b""


async def export_and_import(visitor: Visitor) -> None:
    session = visitor.session
    if not await session.set("export", bool_value=True):
        return
    data = b""
    files = [link for link in session.links() if session.run_id in link and "/export/" in link]
    pictures = [link for link in files if link.endswith(("svg", "png"))]
    # A person takes the files, and a picture at the most, each of which is drawn for seconds.
    for link in [
        *(each for each in files if each not in pictures),
        *visitor.chance.sample(pictures, len(pictures) > 0),
    ]:
        found = await take(visitor, link)
        data = found if link.endswith("json") else data
    if data:
        await session.open("runs")
        await session.upload("runs_upload", "run.json", data)
        visitor.ledger.done["imports"] += 1
    await visitor.think()


async def leave(visitor: Visitor) -> None:
    await visitor.session.close()
    await visitor.think(10.0)


DOES = (measure, export_and_import, open_a_link, export_and_import, leave)


# --- what hostile ones do --------------------------------------------------------------------------------------------


async def ask_for_the_most(visitor: Visitor) -> None:
    run_id = await visitor.ask(dict(visitor.chance.choice(_LARGEST)))
    if not run_id and visitor.chance.random() < 0.3:
        axes = {"workload": "outer_product", "axis": "batch", "from": "1", "to": "100000", "points": "1000"}
        await visitor.ask(dict(axes, strategies=["all"], budget="100000"), "sweep")
        await visitor.session.open("claims")
        await visitor.session.click("claims_try_all")
    await visitor.think(5.0)


async def flood(visitor: Visitor) -> None:
    session = visitor.session
    await session.open(query=urlencode(_ASKED[1], doseq=True))
    for _ in range(100):
        await session.rerun(wait=False)
    await session.rerun()
    for _ in range(20):
        await session.click("run")
    if session.run_id:
        visitor.ledger.own.setdefault(session.run_id, visitor.number)
    for data in (b"\xff" * 64, b"", random.Random(visitor.number).randbytes(2**16)):
        await session.say(data)
    visitor.ledger.done["floods"] += 1
    await visitor.think(5.0)


async def import_at_the_limit(visitor: Visitor) -> None:
    chance = visitor.chance
    text = (ROOT / "tests" / "data" / "run_1.json").read_text()
    filler = {
        "keys": "{" + ",".join(f'"k{n}":{n}' for n in range(1_200_000)) + "}",
        "depth": "[" * 100_000 + "]" * 100_000,
        "text": '"' + "x" * (15 * 2**20) + '"',
        "numbers": "[" + ",".join(["1e308"] * 2_000_000) + "]",
    }[chance.choice(["keys", "depth", "text", "numbers"])]
    data = re.sub(r'"environment"\s*:\s*\{', lambda found: f'{found[0]}"filler":{filler},', text, count=1)
    if chance.random() < 0.5:  # one that is right, and new
        record = json.loads(text)
        record["id"] = f"{chance.getrandbits(96):024x}"
        data = json.dumps(record) + " " * (15 * 2**20)
    await visitor.session.open("runs")
    begun = time.monotonic()
    await visitor.session.upload("runs_upload", "large.json", data.encode()[: 16 * 2**20])
    visitor.ledger.done["imports at the limit"] += 1
    if time.monotonic() - begun > RUN_S:
        visitor.ledger.problems.append(f"an import took {time.monotonic() - begun:.0f} s")
    await visitor.think(5.0)


async def reload(visitor: Visitor) -> None:
    for _ in range(10):
        if visitor.chance.random() < 0.5:
            visitor.session.cookies.clear()
        await visitor.session.open(visitor.chance.choice(["", "sweep", "claims", "runs"]))
        visitor.ledger.done["reloads"] += 1
    await visitor.think(5.0)


async def pry(visitor: Visitor) -> None:
    """Links that are none, and other people's runs."""
    known = sorted(visitor.ledger.own) or [""]
    run_id = visitor.chance.choice(known)
    for query in (
        f"run={run_id}",
        "run=../../etc/passwd",
        "run=" + "0" * 24,
        "workload=" + "x" * 50_000,
        "a=b&" * 5_000,
    ):
        await visitor.session.open(query=query)
        for key in ("cancel", "stop", "runs_delete_yes", "again"):
            if key != "again" and await visitor.session.click(key) and visitor.ledger.own.get(run_id) != visitor.number:
                visitor.ledger.problems.append(f"{key} of another's run {run_id}")
    for path in ("/media/x", "/_stcore/upload_file/x/y", "/static/../app.py", "/component/x/../../app.py"):
        with contextlib.suppress(Refused):
            await visitor.session.fetch(path)
    visitor.ledger.done["links that are none"] += 4
    await visitor.think(5.0)


DOES_HOSTILE = (ask_for_the_most, flood, import_at_the_limit, reload, pry)


# --- what is checked -------------------------------------------------------------------------------------------------


def seconds_between(first: str | None, second: str | None) -> float:
    if first is None or second is None:
        return 0.0
    return (datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds()


def bound_s(run: Run) -> float:
    return RUN_S if run.kind == "compare" else SWEEP_S


def waits(ledger: Ledger, runs: Iterable[Run]) -> list[tuple[float, float]]:
    """(seconds waited, seconds at most by the line on the page) of each run that began after it was in the queue."""
    return [
        (seconds_between(line.at, run.started), line.most_s)
        for run in runs
        if run.started is not None and (line := ledger.lines.get(run.id)) is not None
    ]


def most_of_line(text: str) -> float | None:
    """The seconds that a page says a run waits at most; None where it says nothing of it."""
    found = _LINE.search(text)
    if found is None:
        return None
    parts = re.findall(r"(\d+) (h|min|s)\b", found[1])
    rounded_s = 60.0 if any(unit == "h" for _, unit in parts) else 0.5
    return rounded_s + sum(int(count) * {"h": 3600, "min": 60, "s": 1}[unit] for count, unit in parts)


def judged(ledger: Ledger, runs: list[Run], log: str) -> list[str]:
    """What has gone wrong, a sentence each."""
    wrong = list(dict.fromkeys(ledger.problems))
    for run in runs:
        took_s = seconds_between(run.started, run.finished)
        if run.finished is None or run.status == "interrupted":
            wrong.append(f"{run.id} is {run.status}: {run.stop_reason}")
        if run.status == "cancelled" and run.id not in ledger.cancelled:
            wrong.append(f"{run.id} was cancelled by another: {run.stop_reason}")
        if took_s > bound_s(run) + _BETWEEN_S:
            wrong.append(f"{run.id} took {took_s:.0f} s")
    wrong += [f"{run_id} is lost" for run_id in ledger.own.keys() - {run.id for run in runs}]
    lines = _GARBAGE.sub("", log).splitlines()
    wrong += [f"log: {line}" for line in lines if re.search(r"Traceback|ERROR|CRITICAL|\w+Error:", line)]
    return wrong


def at_rest(home: Path, ledger: Ledger) -> list[Run]:
    """The visitors' runs, once all have ended, or when they should have by far."""
    kept = Store(home)
    end = time.monotonic() + 13 * SWEEP_S
    try:
        while any((known := kept.look(run_id)) and known.live for run_id in ledger.own) and time.monotonic() < end:
            time.sleep(0.2)
        return [run for run_id in ledger.own if (run := kept.load(run_id)) is not None]
    finally:
        kept.close()


def settings(folder: Path) -> dict[str, str]:
    return {
        "MAPBENCH_HOSTED": "1",
        "MAPBENCH_TRUSTED_PROXIES": "127.0.0.1",
        "MAPBENCH_STORE_MIB": str(STORE_MIB),
        "MAPBENCH_LOCK": str(folder / "lock"),
    }
