"""Metrics for who operates a server: in Prometheus' text format, at an address of their own."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence

import psutil
from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from measure import runner
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
    """The figures of this process' runner, taken when they are asked for: the first time starts it."""

    def collect(self) -> Iterator[Metric]:
        own = runner.shared()
        host, queue, tally = own.host(), own.queue(), own.admission.tally
        yield _gauge("info", "The version that runs.", [((VERSION,), 1)], "version")
        ready = host.state in ("ready", "absent")
        yield _gauge(
            "ready", "1 if this server does what it is for: measures, or shows runs as a viewer.", [((), ready)]
        )
        yield _gauge("queue_length", "Runs and explanations that are going or waiting.", [((), len(queue))])
        runs = tally.runs().items()
        yield _counter("runs", "Runs that have ended, by kind and status.", runs, "kind", "status")
        outcomes = [((outcome,), count) for outcome, count in tally.outcomes().items()]
        yield _counter("strategies", "Strategies of runs that have ended, by outcome.", outcomes, "outcome")
        refusals = [((reason,), count) for reason, count in tally.refusals().items()]
        yield _counter("refusals", "Requests that were not accepted, by reason.", refusals, "reason")
        yield _counter("measured_seconds", "Seconds in which something was measured.", [((), tally.measured_s)])
        yield _counter("host_restarts", "Ends of the measuring process that was to go on.", [((), host.restarts)])
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
    """The memory of this process, of the measuring one, and of its subjects. Pages that a subject shares with the one
    that it was forked from count in both."""
    server = psutil.Process()
    hosts = server.children()
    below = [process for process in server.children(recursive=True) if process not in hosts]
    return [(("server",), _resident([server])), (("host",), _resident(hosts)), (("subjects",), _resident(below))]


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
