"""Fifty visitors of a hosted server, five of them hostile: ``python -m tests.benchmarks.load [--minutes 10]
[--sessions 50]``; 10 minutes, and 4 more for the reference runs before and after them.

Who the visitors are and what they do is in `tests.visitors`. All of it stays on this machine. Processes of one strategy
differ by more than the visitors may cost, and the machine's pace changes: the reference runs are repeated before the
visitors, after them, and beside them by one guest for each of three workloads, who wait in the queue as all others do.
Exits with 1 where a figure is outside of its limit.
"""

import argparse
import asyncio
import contextlib
import math
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import psutil

from measure.model.run import Run
from measure.statistics.intervals import Level, level, spread_of
from measure.statistics.levels import log_quartile
from measure.store.store import Store
from tests import visitors
from tests.benchmarks import common
from tests.benchmarks.common import Figure, megabytes, say, whole_seconds
from tests.browser import ROOT, AppServer
from tests.visitors import DOES_HOSTILE, STORE_MIB, Ledger, Visitor

HOSTILE = 5
# Beside what the store keeps: the database's journal and free pages, logs, and locks.
_BESIDE_MIB = 64
_LOOK_S = 5.0
_GROWS_BYTES = 15e6
_SAME = 0.10
# Strategies that are near each other, so that a run has several processes of each; and whose processes differ by a
# quarter, so that 10 % can be told. Those of outer_product differ by a factor of two, with visitors or without.
_REFERENCES = (
    ("image_sqrt", {"size_batch": "100"}, ("batched.eager", "batched.graph", "batched.xla")),
    ("per_example_gradients", {"size_batch": "64"}, ("batched.graph", "vectorized_map.graph", "vectorized_map.xla")),
    ("matmul_chain", {"size_batch": "64"}, ("batched.graph", "map_fn.graph", "vectorized_map.graph")),
)
_ALONE = 4  # times before the visitors, and as often after them
_GUESTS = 1_000  # their numbers are from here on
_SURE = 1.96  # standard errors to either side of a mean that make an interval of 95 %


@dataclass
class Look:
    at_s: float
    rss: int
    threads: int
    descriptors: int
    processes: int
    disk: int


# --- reference runs --------------------------------------------------------------------------------------------------


async def reference(guest: Visitor, number: int, seed: int) -> str:
    """Have one of the reference runs measured, however long it has to wait; its id."""
    workload, size, slugs = _REFERENCES[number]
    choices: dict[str, object] = {"workload": workload, **size, "strategies": list(slugs), "budget": "6"}
    while not (run_id := await guest.ask(choices | {"seed": str(seed)})):
        await asyncio.sleep(2.0)
    await guest.watch()
    return run_id


async def repeated(guest: Visitor, number: int, seed: int) -> list[str]:
    """Have one of them measured again and again, until it is time to leave; the ids."""
    ids = []
    while guest.stays:
        ids.append(await reference(guest, number, seed + len(ids)))
    await guest.session.close()
    return ids


@dataclass(frozen=True)
class Ratio:
    """Latencies beside the visitors over those without them: the geometric mean over the strategies of a workload, its
    interval of 95 % from how much processes differ, and the number of processes without and beside them."""

    ratio: float
    low: float
    high: float
    alone: int
    beside: int


def latency_ratios(alone: Iterable[Run], beside: Iterable[Run]) -> dict[str, Ratio]:
    """Workload → how much slower its strategies are beside the visitors."""
    first, second = _levels(alone), _levels(beside)
    found = {}
    for workload in sorted({key[0] for key in first.keys() & second.keys()}):
        pairs = [(first[key], second[key]) for key in first.keys() & second.keys() if key[0] == workload]
        mean = statistics.fmean(two.log_mean - one.log_mean for one, two in pairs)
        half = _SURE * math.sqrt(sum(one.variance + two.variance for one, two in pairs)) / len(pairs)
        counts = (sum(pair[side].processes for pair in pairs) for side in (0, 1))
        found[workload] = Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), *counts)
    return found


def _levels(runs: Iterable[Run]) -> dict[tuple[str, str], Level]:
    """(workload, strategy) → its latency as a run would show it that had the processes of all of these."""
    logs: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        for item in run.measurements:
            quartiles = [log_quartile(replica.samples_s) for replica in item.replicas if replica.samples_s]
            logs.setdefault((run.request.workload, item.twin_of or item.strategy), []).extend(quartiles)
    several = {key: np.array(values) for key, values in logs.items() if len(values) > 1}
    spread = spread_of(list(several.values()))
    return {key: level(values, spread) for key, values in several.items()}


# --- the server ------------------------------------------------------------------------------------------------------


def look(server: AppServer, begun: float) -> Look:
    process = psutil.Process(server.process.pid)
    disk = 0
    for path in server.home.rglob("*"):
        with contextlib.suppress(OSError):
            disk += path.stat().st_blocks * 512
    return Look(
        time.monotonic() - begun, process.memory_info().rss, process.num_threads(), process.num_fds(),
        len(process.children(recursive=True)), disk,
    )  # fmt: skip


def growth(looks: list[Look], last_s: float) -> float:
    """Bytes by which the server's memory has grown over the last seconds: medians of its first and its last fifth."""
    late = [each.rss for each in looks if each.at_s >= looks[-1].at_s - last_s]
    fifth = max(1, len(late) // 5)
    return statistics.median(late[-fifth:]) - statistics.median(late[:fifth])


# --- all of it -------------------------------------------------------------------------------------------------------


async def visit(
    server: AppServer, sessions: int, minutes: float, *, with_references: bool
) -> tuple[Ledger, list[Look], dict[str, Ratio]]:
    """Have visitors come; what they saw, how the server stood meanwhile, and the ratios of the reference runs."""
    ledger, numbers = Ledger(), range(len(_REFERENCES) if with_references else 0)
    first = Visitor(_GUESTS - 1, server.url, ledger, math.inf)
    alone = _kept(server, [await reference(first, number, seed) for seed in range(_ALONE) for number in numbers])
    begun = time.monotonic()
    until = begun + 60 * minutes
    say(f"{sessions} visitors come")
    hostile = min(HOSTILE, sessions // 2)
    looks: list[Look] = []

    async def watch_server() -> None:
        while True:
            looks.append(await asyncio.to_thread(look, server, begun))
            await asyncio.sleep(_LOOK_S if minutes > 1 else 1.0)

    watching = asyncio.create_task(watch_server())
    tasks = [
        asyncio.create_task(
            visitor.come(DOES_HOSTILE[number % len(DOES_HOSTILE)]) if number < hostile else visitor.come(*visitors.DOES)
        )
        for number in range(sessions)
        for visitor in (Visitor(number + 1, server.url, ledger, until),)
    ]
    guests = [Visitor(_GUESTS + number, server.url, ledger, until) for number in numbers]
    ids = await asyncio.gather(*(repeated(guest, number, _GUESTS) for number, guest in enumerate(guests)))
    await asyncio.gather(*tasks)
    looks.append(look(server, begun))
    watching.cancel()
    say("they have left")
    more = [await reference(first, number, _ALONE + seed) for seed in range(_ALONE) for number in numbers]
    await first.session.close()
    alone += _kept(server, more)
    beside = _kept(server, [run_id for each in ids for run_id in each])
    return ledger, looks, latency_ratios(alone, beside)


def _kept(server: AppServer, ids: Iterable[str]) -> list[Run]:
    kept = Store(server.home)
    runs = [run for run_id in ids if (run := kept.load(run_id)) is not None]
    kept.close()
    return runs


def figures(ledger: Ledger, looks: list[Look], ratios: dict[str, Ratio], runs: list[Run]) -> list[Figure]:
    waited = visitors.waits(ledger, runs)
    longest = max((wait for wait, _ in waited), default=0.0)
    beyond = max((wait - said for wait, said in waited), default=0.0)
    counted = lambda value: f"{value:.0f}"  # noqa: E731
    percent = lambda value: f"{100 * value:.1f} %"  # noqa: E731
    return [
        Figure("server: memory at the end", looks[-1].rss, 600e6, show=megabytes),
        Figure("server: most memory", max(each.rss for each in looks), show=megabytes),
        Figure("server: growth over the last half, 5 min at most", growth(looks, min(300.0, looks[-1].at_s / 2)),
               _GROWS_BYTES, show=lambda value: f"{value / 1e6:+.0f} MB"),
        Figure("server: threads at the end", looks[-1].threads, 200, show=counted),
        Figure("server: descriptors at the end", looks[-1].descriptors, 900, show=counted),
        Figure("home on disk: most", max(each.disk for each in looks), (STORE_MIB + _BESIDE_MIB) * 2**20,
               show=megabytes),
        Figure("longest wait in the queue", longest, show=whole_seconds),
        Figure("runs whose page said how long they wait", len(waited), 1 if ratios else None, show=counted,
               at_least=True),
        Figure("longest wait beyond what the page said", max(0.0, beyond), 0.0, show=whole_seconds),
        Figure("slowest rerun of a visitor", max(ledger.slow_s, default=0.0), show=whole_seconds),
        *(Figure(f"latencies of {workload}: difference beside the visitors", abs(ratio.ratio - 1), _SAME, show=percent)
          for workload, ratio in ratios.items()),
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for how long they come (10)")
    parser.add_argument("--sessions", type=int, default=50, help="how many visitors there are (50)")
    parser.add_argument("--simulated", action="store_true", help="with subjects that measure nothing")
    arguments = parser.parse_args()
    common.start(f"{arguments.sessions} visitors for {arguments.minutes:g} minutes")
    with common.own_folders() as folder:
        module = "tests.simulated_server" if arguments.simulated else "streamlit"
        server = AppServer.start(ROOT / "app.py", folder / "home", visitors.settings(folder), module)
        common.give_way()  # visitors have machines of their own: here they take what the server leaves of this one
        try:
            ledger, looks, ratios = asyncio.run(
                visit(server, arguments.sessions, arguments.minutes, with_references=not arguments.simulated)
            )
            own = visitors.at_rest(server.home, ledger)
            log = server.log()
        finally:
            outlived = server.stop()
    wrong = visitors.judged(ledger, own, log) + [f"outlived the server: {each}" for each in outlived]
    found_figures = figures(ledger, looks, ratios, own)
    print(common.table(("what visitors did", "times"), sorted(ledger.done.items())))
    print()
    print(common.table(("minute", "memory", "threads", "descriptors", "processes", "disk"), [
        (f"{each.at_s / 60:.1f}", megabytes(each.rss), each.threads, each.descriptors, each.processes,
         megabytes(each.disk))
        for each in looks[:: max(1, len(looks) // 20)]
    ]))  # fmt: skip
    print()
    print(common.table(("latencies beside them", "over without", "95 % interval", "processes without", "beside"), [
        (workload, f"{one.ratio:.3f}", f"[{one.low:.3f}, {one.high:.3f}]", one.alone, one.beside)
        for workload, one in ratios.items()
    ]))  # fmt: skip
    print()
    print(common.figures(found_figures))
    statuses = Counter(run.status for run in own)
    print(f"\nRuns: {', '.join(f'{count} {status}' for status, count in statuses.most_common())}")
    print(f"Wrong: {len(wrong)}")
    for sentence in wrong[:40]:
        print(f"  {sentence[:300]}")
    return 1 if wrong or any("OUTSIDE" in figure.verdict() for figure in found_figures) else 0


if __name__ == "__main__":
    sys.exit(main())
