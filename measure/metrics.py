"""Metrics for who operates a server: in Prometheus' text format, at an address of their own."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence

import psutil
from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from measure import client
from measure.machine.environment import VERSION
from measure.model import place

# Of each sample its labels' values, in the order of the labels, and its own.
Values = Iterable[tuple[Sequence[str], float]]


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
        yield _gauge("info", "The version that runs.", [((VERSION,), 1)], "version")
        ready = worker.state in ("ready", "absent")
        yield _gauge(
            "ready", "1 if this server does what it is for: measures, or shows runs as a viewer.", [((), ready)]
        )
        yield _gauge("queue_length", "Runs and explanations that are going or waiting.", [((), len(queue))])
        runs = [(name.split(), count) for name, count in worker.runs.items()]
        yield _counter("runs", "Runs that have ended, by kind and status.", runs, "kind", "status")
        outcomes = [((outcome,), count) for outcome, count in worker.outcomes.items()]
        yield _counter("strategies", "Strategies of runs that have ended, by outcome.", outcomes, "outcome")
        refusals = [((reason,), count) for reason, count in own.refusals.items()]
        yield _counter("refusals", "Requests that were not accepted, by reason.", refusals, "reason")
        yield _counter("measured_seconds", "Seconds in which something was measured.", [((), worker.measured_s)])
        yield _counter("host_restarts", "Ends of the measuring process that was to go on.", [((), worker.restarts)])
        yield _gauge("resident_bytes", "Resident memory of processes.", _resident_bytes(), "process")
        yield _gauge("home_bytes", "Files in the folder of all that is kept.", [((), _home_bytes())])


def _gauge(name: str, about: str, values: Values, *labels: str) -> Metric:
    family = GaugeMetricFamily(f"mapbench_{name}", about, labels=labels)
    for keys, value in values:
        family.add_metric(keys, value)
    return family


def _counter(name: str, about: str, values: Values, *labels: str) -> Metric:
    family = CounterMetricFamily(f"mapbench_{name}", about, labels=labels)
    for keys, value in values:
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
    return [((name,), _resident(processes)) for name, processes in groups.items()]


def _resident(processes: list[psutil.Process]) -> float:
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            total += process.memory_info().rss
    return total


def _home_bytes() -> float:
    total = 0
    for folder, _, names in os.walk(place.home()):
        for name in names:
            with contextlib.suppress(OSError):  # it is gone again
                total += os.lstat(os.path.join(folder, name)).st_size
    return total
