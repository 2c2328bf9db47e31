"""The server and its page: how soon they are there, how much memory they take, and what watching a run costs."""

import contextlib
import statistics
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import psutil
from playwright.sync_api import Page, sync_playwright

from measure.model.run import Run
from measure.store.store import Store
from tests.benchmarks.common import Figure, megabytes, say, whole_seconds
from tests.browser import ROOT, AppServer, launch, wait_idle

_SERVERS = 5
_VISITS = 5
_CPU_LOOK_S = 0.05


def measure(folder: Path, runs: int) -> list[Figure]:
    """Starts of a server, visits of fresh browsers, memory, and what a watching page costs."""
    healthy, first_visits, visits = [], [], []
    watched, alone = [], []
    with sync_playwright() as playwright:

        @contextlib.contextmanager
        def fresh_page() -> Iterator[Page]:
            browser = launch(playwright)
            try:
                yield browser.new_page(viewport={"width": 1280, "height": 800})
            finally:
                browser.close()

        def visit(app: AppServer) -> float:
            with fresh_page() as page:
                begun = time.perf_counter()
                page.goto(app.url, wait_until="commit")
                page.get_by_role("combobox", name="Workload").first.wait_for(state="visible")
                return time.perf_counter() - begun

        for number in range(_SERVERS):
            say(f"server {number + 1} of {_SERVERS}")
            begun = time.perf_counter()
            app = AppServer.start(ROOT / "app.py", folder / f"server-{number}")
            try:
                healthy.append(time.perf_counter() - begun)
                first_visits.append(visit(app))
                if number < _SERVERS - 1:
                    continue
                visits = [visit(app) for _ in range(_VISITS)]
                for turn in range(2 * runs):
                    watching = bool(turn % 2)
                    say(f"a run {'with' if watching else 'without'} a page that watches it")
                    with fresh_page() as page:
                        share = _cpu_share_of_run(app, page, watching)
                    (watched if watching else alone).append(share)
                memory = psutil.Process(app.process.pid).memory_info().rss
                peak = _peak_bytes(app.process.pid)
                imported = holds_tensorflow(Path(f"/proc/{app.process.pid}/maps").read_text())
            finally:
                app.stop()
    extra = statistics.median(watched) - statistics.median(alone)
    return [
        Figure("server: process start to healthy", statistics.median(healthy), 1.5, 0.8, whole_seconds),
        Figure("page: a server's first visitor sees content", statistics.median(first_visits), 3.0, 2.2, whole_seconds),
        Figure("page: a fresh browser sees content", statistics.median(visits), 3.0, 2.2, whole_seconds),
        Figure(f"server: memory after {2 * runs} runs", memory, 300e6, 250e6, megabytes),
        Figure("server: most memory so far", peak, 300e6, 250e6, megabytes),
        Figure("server: files of TensorFlow in its memory map", imported, 0, 0, lambda value: f"{value:.0f}"),
        Figure("server: of a core while timing, unwatched", statistics.median(alone), show=_percent),
        Figure("server: of a core while timing, watched", statistics.median(watched), show=_percent),
        Figure("server: of a core that a watching page costs", extra, 0.02, 0.01, _percent),
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _peak_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ValueError("the kernel does not tell a process's peak")


def holds_tensorflow(maps: str) -> int:
    """The number of TensorFlow's files that a process has in its memory map."""
    paths = {line.split(maxsplit=5)[-1] for line in maps.splitlines() if "/" in line}
    return sum("/tensorflow/" in path or "libtensorflow" in path for path in paths)


def _cpu_share_of_run(app: AppServer, page: Page, watching: bool) -> float:
    """Processor time of the server over time, while the default comparison, started on the page, is sampled."""
    page.goto(app.url)
    wait_idle(page)
    page.locator(".st-key-run button").click()
    page.wait_for_url("**run=*")
    run_id = page.url.partition("run=")[2][:24]
    if not watching:
        page.close()
    process, store = psutil.Process(app.process.pid), Store(app.home)
    samples: list[tuple[float, float]] = []
    checked_s = time.time()
    while True:
        times = process.cpu_times()
        samples.append((time.time(), times.user + times.system))
        time.sleep(_CPU_LOOK_S)
        if time.time() - checked_s > 1.0:
            checked_s = time.time()
            run = store.load(run_id)
            if run is not None and run.finished:
                break
    assert run.status == "complete" or run.status == "budget", run.stop_reason
    return cpu_share(samples, *sampling_time(run))


def sampling_time(run: Run) -> tuple[float, float]:
    """When the first and the last sample were taken, in seconds since the epoch."""
    started_s = datetime.fromisoformat(str(run.started)).timestamp()
    at_s = [at for item in run.measurements for replica in item.replicas for at in replica.at_s]
    return started_s + min(at_s), started_s + max(at_s)


def cpu_share(samples: Sequence[tuple[float, float]], begin_s: float, end_s: float) -> float:
    """Cores used between two times, from (time, processor seconds so far)."""
    within = [sample for sample in samples if begin_s <= sample[0] <= end_s]
    return (within[-1][1] - within[0][1]) / (within[-1][0] - within[0][0])
