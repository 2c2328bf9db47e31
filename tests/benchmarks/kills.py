"""50 processes that are killed while they write results: ``python -m tests.benchmarks.kills``; some two minutes.

Each writes a sweep into PostgreSQL, or ``--sqlite``, point by point, and prints each that the store has taken, until it
is killed at a random moment. The exit status is 1 if one of these is missing then, or a run is not closed as
interrupted when the lease of its process is over, which is a second here.
"""

import argparse
import contextlib
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time

from msgspec.structs import replace

from measure.run import place
from measure.run.run import Point
from measure.store import queue
from measure.store.store import Store
from tests import postgresql, synthetic
from tests.benchmarks.common import ROOT, Figure, report, start
from tests.engine import eventually

# A process is killed so long after its first result at the latest.
_KILLS, _LEASE_S, _WRITES_S = 50, 1.0, 0.4
_MEASURED = synthetic.sweep().points[0]


def _samples(point: Point) -> list[list[float]]:
    return [replica.samples_s for item in point.measurements for replica in item.replicas]


def write(run_id: str) -> None:
    """Write a sweep without an end, and print the number of each point that is written."""
    queue.LEASE_S = _LEASE_S
    store, run = Store(), replace(synthetic.sweep(run_id), points=[], status="interrupted")
    store.begin(run)
    for number in itertools.count(1):
        run = replace(run, points=[*run.points, replace(_MEASURED, at={"batch": number})])
        assert store.save(run)
        print(number, flush=True)


def kill(store: Store) -> tuple[int, int, bool, float]:
    """The results that a process had written when it was killed; those of them that are missing; True if its run is
    closed as interrupted; and the seconds after which it was."""
    run_id = place.new_id()
    code = f"from tests.benchmarks.kills import write; write({run_id!r})"
    writer = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert writer.stdout is not None
    first = writer.stdout.readline()
    time.sleep(random.uniform(0.0, _WRITES_S))
    writer.kill()
    written, killed_s = int((first + writer.stdout.read()).split()[-1]), time.monotonic()
    run = eventually(lambda: (now := store.look(run_id)).state == "finished" and now.run, "its run is closed")
    stored = {point.at["batch"] for point in run.points if _samples(point) == _samples(_MEASURED)}
    missing = {*range(1, written + 1)} - stored
    return written, len(missing), run.status == "interrupted", time.monotonic() - killed_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sqlite", action="store_true")
    is_file = parser.parse_args().sqlite
    start(f"Processes that are killed while they write into {'SQLite' if is_file else 'PostgreSQL'}")
    queue.LEASE_S = _LEASE_S
    server = contextlib.nullcontext() if is_file else postgresql.running()
    with tempfile.TemporaryDirectory() as home, server as own:
        url = f"sqlite:///{home}/runs.db" if own is None else own.url.render_as_string(hide_password=False)
        os.environ["MAPBENCH_STORE"] = url
        store = Store()
        written, missing, closed, taken_s = zip(*(kill(store) for _ in range(_KILLS)), strict=True)
        store.close()
    figures = [
        Figure("results that were written", sum(written), show="{:,}".format),
        Figure("of these, missing", sum(missing), 0, "{:,}".format),
        Figure("runs that are not closed as interrupted", closed.count(False), 0, "{:,}".format),
        Figure("until a run is closed: longest", max(taken_s)),
    ]
    return report(figures)


if __name__ == "__main__":
    sys.exit(main())
