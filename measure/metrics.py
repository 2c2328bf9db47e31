"""Metrics for who operates a server: in Prometheus' text format, at an address of their own."""

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.core import CounterMetricFamily as _Counter
from prometheus_client.core import GaugeMetricFamily as _Gauge
from prometheus_client.registry import Collector

from measure import client


def serve(address: str, port: int) -> None:
    """Answer at an address until the process ends. Raises OSError where that cannot be had."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Server())
    start_http_server(port, address, registry)


class _Server(Collector):
    def collect(self) -> Iterator[Metric]:
        own = client.shared()
        worker, queue = own.host(), own.queue()
        yield _Gauge(
            "mapbench_ready",
            "1 if this server measures, or shows runs as a viewer.",
            worker.state in ("ready", "absent"),
        )
        yield _Gauge("mapbench_queue_length", "Runs and explanations that are going or waiting.", len(queue))
        yield _counted("runs", "Runs that have ended, by kind and status.", worker.runs, "kind", "status")
        yield _counted("refusals", "Requests that were not accepted, by reason.", own.refusals, "reason")
        yield _Counter("mapbench_measured_seconds", "Seconds in which something was measured.", worker.measured_s)
        yield _Counter("mapbench_host_restarts", "Ends of the measuring process that was to go on.", worker.restarts)


def _counted(name: str, about: str, counts: Mapping[str, int], *labels: str) -> Metric:
    """A counter with labels. ``counts``: the values of the labels, with spaces between them → the count."""
    family = _Counter(f"mapbench_{name}", about, labels=labels)
    for values, count in counts.items():
        family.add_metric(values.split(), count)
    return family
