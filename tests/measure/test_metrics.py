"""Metrics for operators: read over HTTP, and parsed as Prometheus does."""

import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from measure import client, metrics
from measure.admission import Visitor
from measure.hosting import Limits
from measure.run.request import RequestError
from tests.browser import free_port
from tests.deadlines import ANSWER_S
from tests.engine import running, small_request
from tests.subjects import Subjects

ANN = Visitor("ann", "ann", "here")


def read(port: int) -> dict[tuple[str, ...], float]:
    """The figures by name and the values of labels."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # whatever proxy the environment names
    with direct.open(f"http://127.0.0.1:{port}/metrics", timeout=ANSWER_S) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    assert all(family.documentation and family.type in ("gauge", "counter") for family in families)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def test_what_was_measured_and_what_was_refused_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    metrics.serve("127.0.0.1", port := free_port())
    with running(Subjects(), tmp_path) as own:
        own.client.limits = Limits(most_threads=4)
        monkeypatch.setattr(client, "shared", lambda: own)
        before = read(port)
        assert before["mapbench_ready",] == 1 and before["mapbench_queue_length",] == 0
        assert before["mapbench_measured_seconds_total",] == 0
        own.submit(small_request("batched.eager", "map_fn.eager"), visitor=ANN)
        own.work()
        own.worker.tell()
        own.store.queue.drain()
        for asked in (small_request("batched.eager", threads=9), *[small_request("map_fn.eager")] * 2):
            with pytest.raises(RequestError):
                own.submit(asked, visitor=ANN)
        after = read(port)
        assert after["mapbench_runs_total", "compare", "complete"] == 1
        assert after["mapbench_refusals_total", "limit"] == 1 and after["mapbench_refusals_total", "drained"] == 2
        assert after["mapbench_measured_seconds_total",] > 0 == after["mapbench_host_restarts_total",]
