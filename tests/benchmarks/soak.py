"""Runs without a pause: ``python -m tests.benchmarks.soak [--minutes 120]``.

One server measures for visitors, one run after the other: comparisons, every tenth a sweep, every fifteenth one that is
cancelled, and each is looked at, exported and, in the end, deleted or kept. Memory, descriptors, threads, processes and
files of the server and of its host are looked at between runs, when nothing is measured. Exits with 1 where one grows.
"""

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import psutil

from measure.store.store import Store
from tests import visitors
from tests.benchmarks import common
from tests.benchmarks.common import Figure, say
from tests.browser import ROOT, AppServer
from tests.visitors import Ledger, Visitor

_EVERY_SWEEP, _EVERY_CANCEL = 10, 15
# Streamlit keeps a page that was left for two minutes, with an event loop of three descriptors.
_KEPT_S, _OF_A_PAGE = 120.0, 3
# The first runs fill caches, and load what only a run needs.
_SETTLES_S = 60.0 + _KEPT_S
# From the first third of what follows to the last one.
_GROWS_BYTES, _GROWS = 25e6, 8.0
_CASES = "mapbench-case-"


@dataclass(frozen=True)
class State:
    """The server and its host between two runs. ``server_descriptors``: without those of kept pages; ``files``: in the
    home; ``left``: temporary folders of runs."""

    at_s: float
    server_bytes: int
    host_bytes: int
    server_threads: int
    host_threads: int
    server_descriptors: int
    host_descriptors: int
    processes: int
    files: int
    left: int


def look(server: AppServer, at_s: float, pages: int) -> State | None:
    """How things stand, with so many pages that are kept; None where a process is just ending. Without a host, its
    figures are 0."""
    process = psutil.Process(server.process.pid)
    with contextlib.suppress(psutil.Error):
        host = next((child for child in process.children() if "measure.engine.host" in " ".join(child.cmdline())), None)
        return State(
            at_s,
            process.memory_info().rss,
            host.memory_info().rss if host else 0,
            process.num_threads(),
            host.num_threads() if host else 0,
            process.num_fds() - _OF_A_PAGE * pages,
            host.num_fds() if host else 0,
            len(process.children(recursive=True)),
            sum(path.is_file() for path in server.home.rglob("*")),
            len(list(Path(tempfile.gettempdir()).glob(f"{_CASES}{server.process.pid}-*"))),
        )
    return None


def growth(states: list[State]) -> dict[str, float]:
    """By how much each figure has grown: the median of the last third less that of the first, once it has settled."""
    settled = [state for state in states if state.at_s >= _SETTLES_S]
    third = max(1, len(settled) // 3)
    first, last = (
        [statistics.median(each) for each in zip(*map(astuple, part), strict=True)]
        for part in (settled[:third], settled[-third:])
    )
    names = (field.name for field in fields(State))
    return {name: after - before for name, before, after in zip(names, first, last, strict=True)}


async def soak(server: AppServer, minutes: float) -> tuple[list[State], Ledger]:
    """Measure without a pause, and look between two runs."""
    ledger, states = Ledger(), []
    visitor = Visitor(1, server.url, ledger, time.monotonic() + 60 * minutes)
    number, begun, opened_s = 0, time.monotonic(), list[float]()
    while visitor.stays:
        number += 1
        opened_s.append(time.monotonic() - begun)
        choices: dict[str, object] = {
            "workload": "square", "strategies": ["batched.graph", "map_fn.graph", "loop.eager"], "budget": "1",
            "seed": str(number),
        }  # fmt: skip
        if number % _EVERY_SWEEP == 0:
            run_id = await visitor.ask(choices | {"from": "1", "to": "100", "points": "3", "budget": "5"}, "sweep")
        else:
            run_id = await visitor.ask(choices | {"size_batch": str(1 + number % 50)})
        if not run_id:
            raise RuntimeError(f"run {number} is refused: {visitor.session.text[-300:]}")
        if number % _EVERY_CANCEL == 0 and await visitor.session.click("cancel"):
            ledger.cancelled.add(run_id)
        await visitor.watch()
        if await visitor.session.set("export", bool_value=True):
            for link in visitor.session.links():
                if link.endswith(("json", "csv")):
                    await visitor.session.fetch(link)
        now_s = time.monotonic() - begun
        if (state := look(server, now_s, sum(at_s > now_s - _KEPT_S for at_s in opened_s))) is not None:
            states.append(state)
        if number % 20 == 0:
            say(f"{number} runs")
    await visitor.session.close()
    ledger.problems += visitor.session.problems
    return states, ledger


def figures(states: list[State]) -> list[Figure]:
    grown = growth(states)
    found = []
    for field in fields(State)[1:]:
        in_bytes = field.name.endswith("bytes")
        name = field.name.replace("_", ": ", 1).replace("bytes", "memory")

        def show(value: float, in_bytes: bool = in_bytes) -> str:
            return f"{value / 1e6:+.1f} MB" if in_bytes else f"{value:+.0f}"

        at_end = getattr(states[-1], field.name)
        at_end = f"{at_end / 1e6:.0f} MB" if in_bytes else str(at_end)
        found.append(Figure(f"{name} ({at_end} at the end)", grown[field.name], _GROWS_BYTES if in_bytes else _GROWS,
                            show=show))  # fmt: skip
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0, help="for how long, from 6 on (120)")
    parser.add_argument("--simulated", action="store_true", help="with subjects that measure nothing")
    arguments = parser.parse_args()
    common.start(f"Runs without a pause for {arguments.minutes:g} minutes")
    with common.own_folders() as folder:
        # Nobody is refused for what they have had today.
        env = visitors.settings(folder) | {"MAPBENCH_ADDRESS_DAY_S": "86400", "MAPBENCH_RECENT_S": "0"}
        module = "tests.simulated_server" if arguments.simulated else "streamlit"
        server = AppServer.start(ROOT / "app.py", folder / "home", env, module)
        try:
            states, ledger = asyncio.run(soak(server, arguments.minutes))
            kept = Store(server.home)
            runs = [run for run_id in ledger.own if (run := kept.load(run_id)) is not None]
            wrong = visitors.judged(ledger, runs, server.log())
        finally:
            outlived = server.stop()
    wrong += [f"outlived the server: {each}" for each in outlived]
    print(
        f"{len(ledger.own)} runs, looked at {len(states)} times between them; growth from the first to the last third"
    )
    found = figures(states)
    print(common.figures(found))
    print(f"\nWrong: {len(wrong)}")
    for sentence in wrong[:20]:
        print(f"  {sentence[:300]}")
    return 1 if wrong or any("OUTSIDE" in figure.verdict() for figure in found) else 0


if __name__ == "__main__":
    sys.exit(main())
