"""A machine of 2 GB: ``python -m tests.benchmarks.small_machine [--mib 2048]``; about 2 minutes.

The server with its page, its host and all subjects are in one memory cgroup of that size, where this process may make
one; else each of their processes is held to it by rlimits, which is said. The default comparisons of three workloads
are started on the page and have to end with a verdict. Exits with 1 where one does not.
"""

import argparse
import asyncio
import contextlib
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from measure.model.run import Run
from measure.store.store import Store
from tests.benchmarks import common
from tests.benchmarks.common import Figure, megabytes, say
from tests.browser import ROOT, AppServer
from tests.memory_group import Group, group_of
from tests.streamlit_client import Session

_LOOK_S = 0.1
_MOST_S = 300.0


class Peaks:
    """The most memory of the server, the host, any subject, and all of them at once, as processes come and go."""

    def __init__(self, server: int) -> None:
        self.most = dict.fromkeys(("server", "host", "subject", "all"), 0)
        self._server, self._over = server, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Peaks":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_S):
            with contextlib.suppress(psutil.Error):
                server = psutil.Process(self._server)
                hosts = server.children()
                subjects = [child for host in hosts for child in host.children(recursive=True)]
                held = {"server": [server], "host": hosts, "subject": subjects}
                for name, processes in held.items():
                    self._note(name, max(map(_resident, processes), default=0))
                # What forks share is counted once.
                self._note("all", sum(map(_proportional, (server, *hosts, *subjects))))

    def _note(self, name: str, value: int) -> None:
        self.most[name] = max(self.most[name], value)


def _resident(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def _proportional(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error, OSError):
        return int(process.memory_full_info().pss)
    return 0


async def measure(url: str, home: Path) -> list[Run]:
    """Start each comparison on the page, and look on until it has ended."""
    session, runs = Session(url, "127.0.0.1"), []
    kept = Store(home)
    for workload in common.DEFAULT_WORKLOADS:
        await session.open(query=f"workload={workload}")
        await session.click("run")
        if not session.run_id:
            raise RuntimeError(f"{workload} is refused: {session.text[-500:]}")
        end = time.monotonic() + _MOST_S
        while session.find("again") is None and time.monotonic() < end:
            await session.watch_once()
        run = kept.load(session.run_id)
        if run is None:
            raise RuntimeError(f"the run of {workload} is gone")
        say(f"{workload}: {run.status}, {run.verdict}")
        runs.append(run)
    await session.close()
    kept.close()
    return runs


def limited(mib: int, group: Group | None) -> Callable[[], None]:
    """What a server does before it is one."""

    def enter() -> None:
        if group is not None:
            group.enter()
        else:
            resource.setrlimit(resource.RLIMIT_DATA, (mib * 2**20, mib * 2**20))

    return enter


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=2_048, help="memory of the machine in MiB (2048)")
    parser.add_argument("--home-server", action="store_true", help="not hosted")
    arguments = parser.parse_args()
    common.start(f"A machine of {arguments.mib} MiB")
    hosted = {} if arguments.home_server else {"MAPBENCH_HOSTED": "1"}
    with common.own_folders() as folder, group_of(arguments.mib) as group:
        print("held by a memory cgroup" if group else "held by RLIMIT_DATA of each process: no cgroup can be made here")
        begun = limited(arguments.mib, group)
        server = AppServer.start(ROOT / "app.py", folder / "home", {**hosted}, before=begun)
        try:
            with Peaks(server.process.pid) as peaks:
                runs = asyncio.run(measure(server.url, server.home))
            log = server.log()
        finally:
            server.stop()
        peak, failures = group.figures() if group else (0, "")
    figures = [Figure(f"{name}: most memory", value, show=megabytes) for name, value in peaks.most.items()]
    if group:
        figures.append(Figure("cgroup: most memory, page cache included", peak, arguments.mib * 2**20, show=megabytes))
    rows = []
    for run in runs:
        outcomes = [item.outcome for item in run.measurements if not item.twin_of]
        rows.append((run.request.workload, run.status, f"{outcomes.count('ok')} of {len(outcomes)} ok", run.verdict))
    print(common.table(("workload", "status", "strategies", "verdict"), rows), end="\n\n")
    print(common.figures(figures))
    if failures:
        print(f"\nThe kernel counts: {failures}")
    right = all(run.status in ("complete", "budget") and run.verdict and run.ranking for run in runs)
    print("All ended with a verdict" if right and "Traceback" not in log else f"WRONG\n{log[-2_000:]}")
    return 0 if right and "Traceback" not in log else 1


if __name__ == "__main__":
    sys.exit(main())
