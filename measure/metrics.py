"""Metrics for who operates a server: in Prometheus' text format, at an address of their own."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.core import CounterMetricFamily as _Counter
from prometheus_client.core import GaugeMetricFamily as _Gauge
from prometheus_client.registry import Collector

from measure import client
from measure.machine.environment import VERSION
from measure.run import place

# The values of a sample's labels → its own.
Values = Mapping[tuple[str, ...], float]


def serve(address: str, port: int) -> None:
    """Answer at an address until the process ends. Raises OSError where that cannot be had."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Server())
    start_http_server(port, address, registry)


class _Server(Collector):
    """The figures of this server and its worker, taken when they are asked for."""

    def collect(self) -> Iterator[Metric]:
        own = client.shared()
        worker, queue = own.host(), own.queue()
        is_ready = worker.state in ("ready", "absent")
        runs: Values = {tuple(name.split()): count for name, count in worker.runs.items()}
        outcomes: Values = {(outcome,): count for outcome, count in worker.outcomes.items()}
        refusals: Values = {(reason,): count for reason, count in own.refusals.items()}
        home: Values = {(): sum(_bytes(path) for path in place.home().rglob("*") if not path.is_dir())}
        yield _metric(_Gauge, "info", "The version that runs.", {(VERSION,): 1}, "version")
        yield _metric(_Gauge, "ready", "1 if this server measures, or shows runs as a viewer.", {(): is_ready})
        yield _metric(_Gauge, "queue_length", "Runs and explanations that are going or waiting.", {(): len(queue)})
        yield _metric(_Counter, "runs", "Runs that have ended, by kind and status.", runs, "kind", "status")
        yield _metric(_Counter, "strategies", "Strategies of runs that have ended, by outcome.", outcomes, "outcome")
        yield _metric(_Counter, "refusals", "Requests that were not accepted, by reason.", refusals, "reason")
        yield _metric(_Counter, "measured_seconds", "Seconds in which something was measured.", {(): worker.measured_s})
        yield _metric(
            _Counter, "host_restarts", "Ends of the measuring process that was to go on.", {(): worker.restarts}
        )
        yield _metric(_Gauge, "resident_bytes", "Resident memory of processes.", _resident_bytes(), "process")
        yield _metric(_Gauge, "home_bytes", "Files in the folder of all that is kept.", home)


def _metric(kind: type[_Gauge] | type[_Counter], name: str, about: str, values: Values, *labels: str) -> Metric:
    family = kind(f"mapbench_{name}", about, labels=labels)
    for keys, value in values.items():
        family.add_metric(keys, value)
    return family


def _resident_bytes() -> Values:
    """The memory of this process, of its worker, of the host, and of its subjects. Pages that a subject shares with the
    host that it was forked from count in both."""
    server = psutil.Process()
    workers = server.children()
    hosts = [process for worker in workers for process in worker.children()]
    below = [process for process in server.children(recursive=True) if process not in (*workers, *hosts)]
    groups = {"server": [server], "worker": workers, "host": hosts, "subjects": below}
    return {(name,): sum(_resident(process) for process in processes) for name, processes in groups.items()}


def _resident(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):  # it has ended meanwhile
        return int(process.memory_info().rss)
    return 0


def _bytes(path: Path) -> int:
    with contextlib.suppress(OSError):  # it is gone again
        return path.lstat().st_size
    return 0
