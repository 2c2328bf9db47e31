"""Many visitors of a hosted server, some of them hostile: ``python -m tests.benchmarks.load``; some 12 minutes.

Each has a WebSocket and an address of its own. A well-behaved visitor does one of `ACTS` every 10 to 20 s, the hostile
do what `HOSTILE` lists as fast as the server lets them. One visitor more has the same comparison measured three times
on the server alone, and three times beside the others. The exit status is 1 if a figure is outside its limit.
"""

import argparse
import asyncio
import json
import math
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import psutil
import requests
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import StringArray
from websockets.exceptions import WebSocketException

from measure.run.text import percent
from measure.store.store import Store
from tests.benchmarks.common import ROOT, Figure, report, say, start
from tests.benchmarks.sharp_figures import latencies_s
from tests.browser import TRACEBACK, AppServer
from tests.deadlines import ANSWER_S
from tests.keeping import ids
from tests.websocket import PRESSED, Page

_MIB = 2**20
_STORE_MIB, _UPLOAD_MIB, _REFERENCES = 64, 16, 3
# Strategies that are all bound by the dispatch of ops, in one thread: their ratios scatter least.
_REFERENCE = "workload=outer_product&budget=20&threads=1&strategies=loop.eager,map_fn.graph,loop.graph"
_SMALL = "workload=square&strategies=batched.graph,map_fn.graph&budget=2"
_RUN_FILE = json.loads((ROOT / "tests/data/example_run.json").read_bytes())


@dataclass
class Server:
    """The server, and what its store says. Times are those of `time.monotonic`."""

    app: AppServer
    store: Store
    owners: dict[str, "Visitor"] = field(default_factory=dict)  # by the runs that they have asked for
    latest_s: dict[str, float] = field(default_factory=dict)  # when a run was to begin at the latest, as it was queued
    begun_s: dict[str, float] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)  # of all runs
    memory: list[int] = field(default_factory=list)
    disk: list[int] = field(default_factory=list)
    did: Counter[str] = field(default_factory=Counter)

    async def watch(self) -> None:
        process = psutil.Process(self.app.process.pid)
        while True:
            works, now_s = await asyncio.to_thread(self.store.queue.all), time.monotonic()
            for place, work in enumerate(works):
                if work.holder is None:
                    self.latest_s.setdefault(work.id, now_s + sum(one.most_s for one in works[:place]))
                else:
                    self.begun_s.setdefault(work.id, now_s - work.passed_s)
            self.ids = await asyncio.to_thread(ids, self.store)
            self.memory.append(process.memory_info().rss)
            self.disk.append(sum(path.stat().st_size for path in self.app.home.glob("runs.db*")))
            await asyncio.sleep(0.2)


class Visitor:
    """A browser with its cookies and an address of its own, and the page that it has open."""

    def __init__(self, server: Server, number: int, is_hostile: bool = False) -> None:
        self.server, self.is_hostile, self.any = server, is_hostile, random.Random(number)
        self.browser, self.page, self.run_id = requests.Session(), None, ""
        self.browser.headers["X-Forwarded-For"] = f"10.0.0.{number + 1}"

    def somebodys(self) -> str:
        return self.any.choice(self.server.ids or ["0" * 24])

    def file(self, **changes: object) -> bytes:
        return json.dumps({**_RUN_FILE, "id": f"{self.any.getrandbits(96):024x}", **changes}).encode()

    async def get(self, path: str) -> None:
        await asyncio.to_thread(self.browser.get, f"{self.server.app.url}/{path}", timeout=4 * ANSWER_S)

    async def open(self, query: str = "", name: str = "", **states: dict[str, object]) -> Page:
        """Open a page in place of the one before, and change the states of its widgets, by key."""
        if self.page is not None:
            await self.page.close()
        if not self.browser.cookies:
            await self.get("")
            await self.get("_stcore/health")  # with the token by which files are uploaded
        cookies = "; ".join(f"{one.name}={one.value}" for one in self.browser.cookies)
        headers = {"X-Forwarded-For": str(self.browser.headers["X-Forwarded-For"]), "Cookie": cookies}
        self.page = await Page.open(self.server.app.url, name, query, headers)
        if states:
            await self.page.rerun({self.page.widgets()[key]: state for key, state in states.items()})
        return self.page

    async def measure(self, query: str = _SMALL) -> bool:
        """Have something measured; False where it is refused."""
        page = await self.open(f"{query}&seed={self.any.randrange(2**32)}")
        await page.press("run")
        if run_id := parse_qs(page.query).get("run", [""])[0]:
            self.run_id, self.server.owners[run_id] = run_id, self
        return bool(run_id)

    async def upload(self, data: bytes) -> None:
        await (await self.open(name="runs")).upload("runs_upload_0", self.server.app.url, self.browser, data)

    async def visit(self) -> None:
        """Do one act after another; who the server lets go comes again."""
        acts = HOSTILE if self.is_hostile else ACTS
        while True:
            await asyncio.sleep(0.05 if self.is_hostile else self.any.uniform(10.0, 20.0))
            (name,) = self.any.choices([*acts], [often for often, _ in acts.values()])
            try:
                await acts[name][1](self)
            except (OSError, TimeoutError, KeyError, WebSocketException) as error:
                name += f": {type(error).__name__}"
            self.server.did[name] += 1


# --- acts ------------------------------------------------------------------------------------------------------------


async def _press_others_buttons(one: Visitor) -> None:
    """Press, on the pages of others' runs, what only their owners have: a button's id is the same for all."""
    await one.measure()
    _buttons.update({key: id_ for key, id_ in one.page.widgets().items() if key in ("cancel", "stop", "explain")})
    for run_id in [run_id for run_id, owner in one.server.owners.items() if not owner.is_hostile][-5:]:
        await (await one.open(f"run={run_id}&tab=Why")).rerun(dict.fromkeys(_buttons.values(), PRESSED))


async def _delete_all(one: Visitor) -> None:
    page, rows = await one.open(name="runs"), json.dumps({"selection": {"rows": [*range(50)], "columns": []}})
    await page.rerun({id_: {"string_value": rows} for key, id_ in page.widgets().items() if "runs_table" in key})
    await page.press("runs_delete_yes")


async def _forge_values(one: Visitor) -> None:
    page = await one.open(name=one.any.choice(["", "sweep", "claims", "runs"]))
    await page.rerun({widget: one.any.choice(_FORGED) for widget in one.any.choices([*page.widgets().values()], k=3)})


async def _send_garbage(one: Visitor) -> None:
    page = await one.open()
    orders = BackMsg(), BackMsg(clear_cache=True), BackMsg(stop_script=True), BackMsg(debug_shutdown_runtime=True)
    messages = page.message({"x" * 10_000: PRESSED}), page.message(fragment="f"), *orders
    garbage = [one.any.randbytes(1_000), "a text", bytes(_MIB), *(one.SerializeToString() for one in messages)]
    await page.socket.send(one.any.choice(garbage))


async def _open_link(one: Visitor) -> None:
    """In a session of its own."""
    one.browser.cookies.clear()
    await one.open(*one.any.choice(_LINKS))


_buttons: dict[str, str] = {}
_FORGED = (
    PRESSED, {"string_value": "{"}, {"json_value": "{" * 9_999}, {"int_value": -(2**62)}, {"double_value": math.nan},
    {"bytes_value": bytes(_MIB)}, {"string_array_value": StringArray(data=["x", "y"])},
)  # fmt: skip
_LINKS = (
    ("workload=image_sqrt&sweep=batch&sweep_2=height&points=18&points_2=18&strategies=all", "sweep"),
    ("workload=square&strategies=" + ",".join(f"chunked.graph?chunk={number}" for number in range(1, 1_001)),),
    (f"workload=square&size_batch={'9' * 5_000}&{'&'.join(f'p{number}=1' for number in range(900))}",),
    ("claim=" + "x" * 10_000, "claims"),
)  # fmt: skip
_BOMBS = (
    {"warnings": ["x" * (_UPLOAD_MIB * _MIB - 100_000)]}, {"warnings": ["x"] * 100_000},
    {"measurements": _RUN_FILE["measurements"] * 40}, {"environment": {f"key {n}": n for n in range(8_000)}},
)  # fmt: skip
# Name → how often it is done, and how.
ACTS: dict[str, Any] = {
    "look at a run": (6, lambda one: one.open(f"run={one.somebodys()}&tab={one.any.choice(['Why', 'Samples'])}")),
    "look for a run": (3, lambda one: one.open(name="runs", runs_text={"string_value": "square"})),
    "change a choice": (4, lambda one: one.open(name="sweep", seed={"double_value": 7.0})),
    "measure": (2, lambda one: one.measure()),
    "export": (1, lambda one: one.get(f"export/{one.somebodys()}/{one.any.choice(['json', 'figures.zip'])}")),
    "import": (1, lambda one: one.upload(one.file())),
    "stay, as the page looks by itself": (6, lambda one: asyncio.sleep(0)),
}
HOSTILE: dict[str, Any] = {
    "hostile: press others' buttons": (1, _press_others_buttons),
    "hostile: delete all": (1, _delete_all),
    "hostile: forge values": (3, _forge_values),
    "hostile: send garbage": (3, _send_garbage),
    "hostile: open a link": (3, _open_link),
    "hostile: get previews": (6, lambda one: asyncio.gather(*(one.get(f"?run={one.somebodys()}") for _ in range(4)))),
    "hostile: upload a bomb": (1, lambda one: one.upload(one.file(**one.any.choice(_BOMBS)))),
}


# --- what is measured ------------------------------------------------------------------------------------------------


async def references(visitor: Visitor, minutes: float = 0.0) -> list[dict[str, float]]:
    """The latencies of three runs of the same comparison, begun evenly over a time."""
    store, timed, began_s = visitor.server.store, list[dict[str, float]](), time.monotonic()
    while len(timed) < _REFERENCES:
        if await visitor.measure(_REFERENCE):
            while any(work.id == visitor.run_id for work in await asyncio.to_thread(store.queue.all)):
                await asyncio.sleep(1)
            run = store.load(visitor.run_id)
            timed.append(latencies_s(run))
            say(f"reference run {len(timed)}: {run.status}, {run.verdict}")
        await asyncio.sleep(max(1.0, began_s + 60 * minutes * len(timed) / _REFERENCES - time.monotonic()))
    return timed


def ratios(timed: list[dict[str, float]]) -> dict[str, float]:
    """Of each strategy's latency to that of the fastest; of the runs, the median."""
    return {name: statistics.median(one[name] / min(one.values()) for one in timed) for name in timed[0]}


def figures(server: Server, alone: dict[str, float], beside: dict[str, float]) -> list[Figure]:
    count, megabytes = "{:,.0f}".format, lambda value: f"{value / 1e6:.0f} MB"
    runs = [server.store.load(run_id) for run_id, owner in server.owners.items() if not owner.is_hostile]
    by_others = [run for run in runs if run is None or run.status not in ("complete", "budget")]
    waited_s = [server.begun_s[one] - latest_s for one, latest_s in server.latest_s.items() if one in server.begun_s]
    quarter = len(server.memory) // 4
    before, last = (statistics.median(server.memory[-part * quarter :][:quarter]) for part in (2, 1))
    moved = max(abs(beside[name] / alone[name] - 1) for name in alone)
    return [
        Figure(f"of {len(runs)} runs, ended by others", len(by_others), 0, count),
        Figure(f"of {len(waited_s)} waits, the longest beyond the line's most", max(waited_s, default=0.0), 1.0),
        Figure("exceptions in the server's log", server.app.log().count(TRACEBACK), 0, count),
        Figure("memory of the page's process, most", max(server.memory), 400e6, megabytes),
        Figure("its growth in the last quarter", last / before - 1, 0.05, percent),
        Figure("the store, most", max(server.disk), _STORE_MIB * _MIB, megabytes),
        Figure("ratios of the reference, beside the others and alone", moved, 0.15, percent),
    ]


async def load(server: Server, sessions: int, hostile: int, minutes: float) -> list[Figure]:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2 * sessions))
    asks = Visitor(server, sessions)
    alone = await references(asks)
    say(f"{sessions} visitors come, {hostile} of them hostile")
    async with asyncio.TaskGroup() as group:  # whose end is that of all, where one of them fails
        visitors = [Visitor(server, number, number < hostile) for number in range(sessions)]
        tasks = [group.create_task(one) for one in (server.watch(), *(visitor.visit() for visitor in visitors))]
        beside = await references(asks, minutes)
        for task in tasks:
            task.cancel()
    while server.store.queue.all():
        await asyncio.sleep(1)
    return figures(server, ratios(alone), ratios(beside))


def main() -> int:
    parser = argparse.ArgumentParser(description="Many visitors of a hosted server, some of them hostile.")
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--hostile", type=int, default=5, help="of the sessions")
    parser.add_argument("--minutes", type=float, default=10.0)
    asked = parser.parse_args()
    start(f"{asked.sessions} visitors, {asked.hostile} of them hostile, for {asked.minutes:g} min")
    with tempfile.TemporaryDirectory() as folder:
        settings = {"HOSTED": 1, "TRUSTED_PROXIES": "127.0.0.1", "STORE_MIB": _STORE_MIB, "UPLOAD_MIB": _UPLOAD_MIB}
        settings["LOCK"] = f"{folder}/lock"
        environment = {"TMPDIR": folder, **{f"MAPBENCH_{name}": str(value) for name, value in settings.items()}}
        app = AppServer.start(ROOT / "app.py", Path(folder) / "home", environment)
        try:
            server = Server(app, Store(app.home))
            made = asyncio.run(load(server, asked.sessions, asked.hostile, asked.minutes))
        finally:
            app.stop()
        if TRACEBACK in app.log():
            print(app.log())
    status = report(made)
    print("\nwhat was done:")
    print(*(f"{count:6,} {name}" for name, count in server.did.most_common()), sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
