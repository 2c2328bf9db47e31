"""The memory of a hosted server that imports, shows and exports the largest runs that it lets in, over and over.

`python -m tests.benchmarks.server_memory --runs 12 --pages 6` prints the server's resident memory after each step; so
many pages stay open, each on a large run of its own. The server measures nothing.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import psutil
from msgspec.structs import replace

from measure.model.run import Run
from measure.model.run_file import encode
from tests import synthetic
from tests.benchmarks.common import megabytes
from tests.browser import ROOT, AppServer
from tests.streamlit_client import Session
from views.result import exports

_FILE_MIB = 15.5
_MOST_BYTES = 600e6
_EXPORTS = ("json", "csv", "samples.csv", "md", "latency.png")


def large(run_id: str, mib: float = _FILE_MIB) -> Run:
    """A run whose file takes so much, most of it samples, as those of runs that were measured."""
    run = synthetic.run("0" * 24)
    times = int(mib * 2**20 / sum(42 * len(r.samples_s) for m in run.measurements for r in m.replicas))
    measurements = [
        replace(
            item,
            replicas=[
                replace(
                    replica,
                    rounds=[number for number in replica.rounds for _ in range(times)],
                    at_s=[at + 1e-7 * number for at in replica.at_s for number in range(times)],
                    samples_s=[sample * (1 + 1e-7 * number) for sample in replica.samples_s for number in range(times)],
                )
                for replica in item.replicas
            ],
        )
        for item in run.measurements
    ]
    return replace(run, id=run_id, measurements=measurements)


async def _use(server: AppServer, runs: int, pages: int) -> list[int]:
    """The server's memory after each run that was imported, opened and exported."""
    process = psutil.Process(server.process.pid)
    open_pages: list[Session] = []
    looks = [process.memory_info().rss]
    print(f"at the start: {megabytes(looks[0])}", flush=True)
    for number in range(runs):
        session = Session(server.url, f"10.0.0.{number + 1}")
        open_pages.append(session)
        run = large(f"{number:024x}")
        data = encode(run)
        await session.open("runs")
        assert await session.upload("runs_upload", "large.json", data), "the page has no uploader"
        del run
        imported = process.memory_info().rss
        await session.open(query=f"run={number:024x}")
        assert await session.set("export", bool_value=True), "the run was not imported"
        shown = process.memory_info().rss
        sent = 0
        for ending in _EXPORTS:
            sent += len(await session.fetch(f"/{exports.of_run(f'{number:024x}', ending)}"))
        looks.append(process.memory_info().rss)
        assert not session.problems, session.problems
        print(
            f"run {number + 1:2} of {len(data) / 2**20:.1f} MiB: {megabytes(imported)} imported, {megabytes(shown)} "
            f"shown, {megabytes(looks[-1])} with exports of {sent / 2**20:.0f} MiB; {len(open_pages)} pages open",
            flush=True,
        )
        if len(open_pages) > pages:
            await open_pages.pop(0).close()
    await asyncio.gather(*(page.rerun() for page in open_pages))
    looks.append(process.memory_info().rss)
    print(f"after {len(open_pages)} pages ran at once: {megabytes(looks[-1])}")
    for page in open_pages:
        await page.close()
    return looks


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.server_memory", description=__doc__)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--pages", type=int, default=6)
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        server = AppServer.start(ROOT / "app.py", home, {"MAPBENCH_HOSTED": "1", "MAPBENCH_VIEWER": "1"})
        try:
            looks = asyncio.run(_use(server, chosen.runs, chosen.pages))
            status = Path(f"/proc/{server.process.pid}/status").read_text()
            log = server.log()
        finally:
            server.stop()
    peak = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))
    half = looks[len(looks) // 2 : -1]  # but for the pages that ran at once
    print(f"most: {megabytes(max(looks))}, for a moment {megabytes(peak)}; growth of the last half: "
          f"{megabytes(half[-1] - half[0])}")  # fmt: skip
    if "Traceback" in log:
        print(log, file=sys.stderr)
    return int(max(looks) > _MOST_BYTES or "Traceback" in log)


if __name__ == "__main__":
    sys.exit(main())
