"""Other machines by Dask: ``python -m tests.benchmarks.machines``; some five minutes. All are processes of this one.

- Ten pairs of a comparison, in alternation by the dashboard's own worker and by a machine's: the ratios to a baseline
  there over those here, as the median of the pairs, of the strategy that differs most; and what Dask adds to the memory
  of the dashboard's two processes, those of pages and of its worker.
- 200 runs on simulated subjects for three machines, asked for from 20 threads with a client each; the scheduler is
  killed and started again meanwhile. Each is to be measured once.

The exit status is 1 if a limit does not hold.
"""

import argparse
import itertools
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
from msgspec.structs import replace

from measure.client import Client
from measure.judge import pair
from measure.run.request import parse
from measure.store.store import Store
from tests.benchmarks.common import Disturbances, Figure, report, say, start
from tests.cluster import Cluster
from tests.engine import eventually, small_request

_PAIRS, _RUNS, _SESSIONS, _MACHINES = 10, 200, 20, ("ann", "bob", "cid")
_MIB = 2**20
_START_S, _ALL_S = 120.0, 1_200.0
_REQUEST = {
    "workload": "outer_product", "strategies": "map_fn.graph,vectorized_map.graph,batched.graph", "budget_s": 20.0,
}  # fmt: skip


@contextmanager
def cluster(*names: str, simulated: bool, **variables: str) -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory() as folder:
        made = Cluster(Path(folder), simulated=simulated, lock="" if simulated else f"{folder}/measure.lock")
        try:
            for name in ("scheduler", "dashboard", *names):
                made.start(name, **variables)
            # Of this machine and each other one, and of all of them.
            count = 1 + len(names) + (1 if names else 0)
            eventually(lambda: len(made.client.places()) >= count, "all are there", _START_S)
            yield made
        finally:
            made.end()


def bytes_of(made: Cluster) -> int:
    """The memory of the server of the pages and of its worker, without the processes that measure."""
    server = psutil.Process(made.processes["dashboard"].pid)
    return sum(process.memory_info().rss for process in (server, *server.children()))


def pairs(count: int) -> Iterator[Figure]:
    request = parse(_REQUEST)
    with cluster(simulated=False, MAPBENCH_SCHEDULER="") as alone:
        alone.ended(alone.client.submit(request))
        before_bytes = bytes_of(alone)
    logs: dict[str, list[float]] = {}
    with cluster("box", simulated=False) as made:
        here, there = request, replace(request, machine="box")
        for number in range(count):
            order = (here, there) if number % 2 else (there, here)
            # A parent, since an equal run of a minute ago would be the answer.
            ended = {asked.place: made.ended(made.client.submit(asked, parent="0" * 24)) for asked in order}
            for change in pair.of(ended[here.place], ended[there.place], "map_fn.graph").changes:
                if change.relative is not None:
                    logs.setdefault(change.strategy, []).append(change.relative.log_mean)
            say(f"{number + 1} of {count}: {', '.join(f'{slug} {math.exp(of[-1]):.3f}' for slug, of in logs.items())}")
        grown_bytes = bytes_of(made) - before_bytes
    differ = max(abs(math.expm1(statistics.median(of))) for of in logs.values())
    yield Figure(f"ratios there over ratios here, median of {count} pairs: differ by", differ, 0.05, "{:.1%}".format)
    scatter = max(statistics.stdev(of) for of in logs.values())
    yield Figure("the same, one pair: standard deviation", scatter, show="{:.1%}".format)
    yield Figure("the dashboard grows by Dask", grown_bytes / _MIB, 60, "{:.0f} MiB".format)


def queued() -> Iterator[Figure]:
    with cluster(*_MACHINES, simulated=True) as made:
        request = small_request("batched.eager", "loop.eager")

        def ask(number: int) -> list[str]:
            client = Client(Store(made.folder / "dashboard"))
            names = itertools.islice(itertools.cycle(_MACHINES), number, number + _RUNS // _SESSIONS)
            return [client.submit(replace(request, machine=name)) for name in names]

        begun_s = time.monotonic()
        with ThreadPoolExecutor(_SESSIONS) as threads:
            ids = [run_id for asked in threads.map(ask, range(_SESSIONS)) for run_id in asked]
        eventually(lambda: len(made.client.queue()) < _RUNS * 2 / 3, "a third is measured", _ALL_S)
        say("the scheduler is killed, and started again")
        made.kill("scheduler")
        made.start("scheduler")
        eventually(lambda: not made.client.queue(), "all are measured", _ALL_S)
        taken_s = time.monotonic() - begun_s
        runs = [snapshot.run for run_id in ids if (snapshot := made.client.snapshot(run_id))]
        # As the machines themselves have counted, which is told with a delay of some seconds.
        counted = eventually(
            lambda: (
                (sum(sum(state.runs.values()) for state in made.client.machines().values()) >= _RUNS)
                and {name: dict(state.runs) for name, state in made.client.machines().items()}
            ),
            "the machines tell what they measured",
        )
    say(f"measured: {counted}")
    complete = sum(run.status == "complete" for run in runs)
    measured = sum(count for of in counted.values() for count in of.values())
    yield Figure("runs asked for from 20 threads, that are complete", complete, _RUNS, "{:,}".format, at_least=True)
    yield Figure("runs that the machines have measured", measured, _RUNS, "{:,}".format)
    yield Figure("until all were", taken_s)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("pairs", "queued"))
    only = parser.parse_args().only
    os.environ["MAPBENCH_RUN_S"] = os.environ["MAPBENCH_SWEEP_S"] = "86400"
    start("Other machines")
    disturbed = Disturbances()
    status = report([*(pairs(_PAIRS) if only != "queued" else ()), *(queued() if only != "pairs" else ())])
    disturbed.look()
    print(f"\n{disturbed.sentence()}")
    return status


if __name__ == "__main__":
    sys.exit(main())
