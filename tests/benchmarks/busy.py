"""Default comparisons beside a load that comes and goes: ``python -m tests.benchmarks.busy``; 45 minutes.

A page of a real server is asked for comparisons of six workloads, each with other inputs: first one of each alone on
the machine, for 60 s, then all of them beside a load that takes all cores for 0.5 to 3 s, 70% of the time. Counted are
usable verdicts (clear, or a tie), those that contradict the same comparison alone, and how long runs took against what
the page said at their start. ``--quiet`` has no load, and counts seconds to the verdict. The exit status is 1 if a
figure is outside its limit.
"""

import argparse
import asyncio
import itertools
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs

from measure.judge.findings import Findings, findings
from measure.run.run import Run
from measure.run.text import percent
from measure.store.store import Store
from tests.benchmarks.common import ROOT, Figure, report, say, start
from tests.benchmarks.sharpness import WORKLOADS
from tests.browser import AppServer
from tests.websocket import Page

_ALONE_S, _LOAD_S, _DUTY = 60, (0.5, 3.0), 0.7
_LOOK_S = 0.5


def burn(seed: int) -> None:
    """Use a processor 70% of the time, in bursts that are those of all processes with this seed."""
    own = random.Random(seed)
    while True:
        end_s = time.monotonic() + own.uniform(*_LOAD_S)
        while time.monotonic() < end_s:
            sum(range(1_000))
        time.sleep(own.uniform(*_LOAD_S) * (1 - _DUTY) / _DUTY)


@dataclass(frozen=True)
class Measured:
    """A run with the seconds that it was said to take at most as it began, and those that it took, from the press of
    Run to its end."""

    run: Run
    said_s: float
    took_s: float

    @property
    def verdict_s(self) -> float:
        """Seconds from its start to its last sample."""
        ends_s = [replica.at_s[-1] for item in self.run.measurements for replica in item.replicas if replica.at_s]
        return max(ends_s, default=0.0)


async def measure(server: AppServer, store: Store, query: str) -> Measured:
    """Open a page, press Run and watch the run until its end, as a browser does."""
    page = await Page.open(server.url, query=query)
    begun_s = time.monotonic()
    await page.press("run")
    run_id = parse_qs(page.query)["run"][0]
    said_s = next(work.bound_s or 0.0 for work in store.queue.all() if work.id == run_id) / 1.5
    while (snapshot := store.look(run_id)) is None or snapshot.state != "finished":
        await asyncio.sleep(_LOOK_S)
    await page.close()
    return Measured(snapshot.run, said_s, time.monotonic() - begun_s)


def contradictions(busy: Findings, alone: Findings) -> tuple[bool, list[bool]]:
    """Whether two runs have no fastest strategy in common, and of each ratio to the baseline whether their intervals
    overlap."""
    leaders = [{row.slug for row in of.leaders} for of in (busy, alone)]
    factors = [
        {row.slug: row.factor for row in of.rows if row.factor and row.slug != of.baseline} for of in (busy, alone)
    ]
    both = [(factors[0][slug], factors[1][slug]) for slug in factors[0] if slug in factors[1]]
    return not leaders[0] & leaders[1], [a.low <= b.high and b.low <= a.high for a, b in both]


def shown(one: Measured) -> str:
    found = findings(one.run)
    times = f"verdict {one.verdict_s:.1f} s, end {one.took_s:.1f} s of {one.said_s:.0f} s"
    return f"{found.word}, {times}: {one.run.verdict[:120]}"


async def measure_all(server: AppServer, runs: int, *, is_quiet: bool, keep: Path | None) -> int:
    store = Store(server.home)
    page = await Page.open(server.url)
    while "run" not in page.widgets() or store.queue.worker() is None or store.queue.worker().state != "ready":
        await asyncio.sleep(_LOOK_S)
    await page.close()
    alone = dict[str, Findings]()
    for workload in () if is_quiet else WORKLOADS:
        one = await measure(server, store, f"workload={workload}&budget={_ALONE_S}")
        alone[workload] = findings(one.run)
        say(f"{workload} alone: {shown(one)}")
    for _ in range(0 if is_quiet else os.cpu_count() or 1):
        multiprocessing.get_context("spawn").Process(target=burn, args=(0,), daemon=True).start()
    measured = list[Measured]()
    for seed, workload in zip(range(runs), itertools.cycle(WORKLOADS), strict=False):
        measured.append(one := await measure(server, store, f"workload={workload}&seed={seed}"))
        say(f"{workload}, {seed + 1} of {runs}: {shown(one)}")
    found = [findings(one.run) for one in measured]
    count = "{:.0f}".format
    figures = [
        Figure(
            f"of {runs} comparisons, with a usable verdict",
            sum(one.is_usable for one in found),
            0.9 * runs,
            count,
            True,
        ),
        Figure(
            "seconds over those said at their start, the most",
            max(one.took_s / one.said_s for one in measured),
            1.5,
            "{:.2f}".format,
        ),
        Figure(
            "until the verdict: median",
            statistics.median(one.verdict_s for one in measured),
            12.0 if is_quiet else None,
        ),
        Figure("until the end: median", statistics.median(one.took_s for one in measured)),
        Figure("until the end: longest", max(one.took_s for one in measured)),
    ]
    if not is_quiet:
        compared = [contradictions(one, alone[one.run.request.workload]) for one in found if one.is_usable]
        overlaps = [is_so for _, each in compared for is_so in each]
        figures += [
            Figure("usable verdicts with no leader of the run alone", sum(no for no, _ in compared), 0, count),
            Figure(
                "ratios whose interval overlaps that of the run alone", statistics.fmean(overlaps), 0.95, percent, True
            ),
        ]
    return report(figures)


def main() -> int:
    parser = argparse.ArgumentParser(description="Default comparisons beside a load that comes and goes.")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--quiet", action="store_true", help="without a load")
    asked = parser.parse_args()
    start(f"{asked.runs} default comparisons {'alone' if asked.quiet else 'beside a load'}")
    with tempfile.TemporaryDirectory() as temporary:
        server = AppServer.start(ROOT / "app.py", Path(temporary).resolve() / "home")
        try:
            return asyncio.run(measure_all(server, asked.runs, is_quiet=asked.quiet, keep=None))
        finally:
            server.stop()


if __name__ == "__main__":
    sys.exit(main())
