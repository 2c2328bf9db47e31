"""Metrics for operators: read over HTTP, and parsed as Prometheus does."""

import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from measure import client, metrics
from measure.admission import Visitor
from measure.hosting import Limits
from measure.run.request import RequestError
from tests.browser import free_port
from tests.deadlines import ANSWER_S
from tests.engine import Own, running, small_request
from tests.subjects import Subjects

ANN = Visitor("ann", "ann", "here")
Figures = dict[tuple[str, ...], float]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Own]:
    """The client of this process, whose worker measures nothing but takes every step."""
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    with running(Subjects(), tmp_path) as own:
        own.client.limits = Limits(most_threads=4)
        monkeypatch.setattr(client, "shared", lambda: own)
        yield own


# Whatever proxy the environment names.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@pytest.fixture
def figures(own: Own) -> Callable[[], Figures]:
    port = free_port()
    metrics.serve("127.0.0.1", port)
    return lambda: read(f"http://127.0.0.1:{port}/metrics")


def read(address: str) -> Figures:
    """The figures at an address, by name and the values of labels."""
    with DIRECT.open(address, timeout=ANSWER_S) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    assert all(family.documentation and family.type in ("gauge", "counter") for family in families)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def test_what_was_measured_and_what_was_refused_is_counted(own: Own, figures: Callable[[], Figures]):
    before = figures()
    assert before["mapbench_ready",] == 1 and before["mapbench_queue_length",] == 0
    assert before["mapbench_measured_seconds_total",] == 0
    own.submit(small_request("batched.eager", "map_fn.eager"), visitor=ANN)
    own.work()
    own.worker.tell()
    with pytest.raises(RequestError):
        own.submit(small_request("batched.eager", threads=9), visitor=ANN)
    own.store.queue.drain()
    for _ in range(2):
        with pytest.raises(RequestError):
            own.submit(small_request("map_fn.eager"), visitor=ANN)
    after = figures()
    assert after["mapbench_runs_total", "compare", "complete"] == 1
    assert after["mapbench_strategies_total", "ok"] == 2
    assert after["mapbench_refusals_total", "limit"] == 1 and after["mapbench_refusals_total", "drained"] == 2
    assert after["mapbench_measured_seconds_total",] > 0
    assert after["mapbench_home_bytes",] > 4_096
    assert after["mapbench_resident_bytes", "server"] > 2**20
    assert after["mapbench_host_restarts_total",] == 0
