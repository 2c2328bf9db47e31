"""Metrics for operators: read over HTTP, and parsed as Prometheus does."""

import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from measure import hosting, metrics, runner
from measure.admission import Visitor
from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.hosting import Limits, SettingError
from measure.model.request import RequestError
from measure.runner import Runner
from measure.store.store import Store
from tests.browser import ROOT, AppServer, free_port
from tests.engine import DEADLINE_S, QUICK, eventually, small_request
from tests.subjects import Subjects

ANN = Visitor("ann", "ann", "here")
Figures = dict[tuple[str, ...], float]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    """A runner that measures nothing but takes every step, as the one of this process."""
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    own = Runner(
        store_=Store(tmp_path),
        launcher_=Subjects(),
        settings=Settings(rules=QUICK, probes=False, process_peaks_s=0.0),
        limits_=Limits(most_threads=4, address_day_s=600),
    )
    monkeypatch.setattr(runner, "shared", lambda: own)
    yield own
    own.close()


@pytest.fixture
def figures(own: Runner) -> Callable[[], Figures]:
    port = free_port()
    metrics.serve("127.0.0.1", port)
    return lambda: read(f"http://127.0.0.1:{port}/metrics")


def read(address: str) -> Figures:
    """The figures at an address, by name and the values of labels."""
    with urllib.request.urlopen(address, timeout=DEADLINE_S) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    assert all(family.documentation and family.type in ("gauge", "counter") for family in families)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def test_what_was_measured_and_what_was_refused_is_counted(own: Runner, figures: Callable[[], Figures]):
    before = figures()
    assert before["mapbench_ready",] == 1 and before["mapbench_queue_length",] == 0
    assert before["mapbench_measured_seconds_total",] == 0
    assert own.wait(own.submit(small_request("batched.eager", "map_fn.eager"), visitor=ANN), DEADLINE_S)
    with pytest.raises(RequestError):
        own.submit(small_request("batched.eager", threads=9), visitor=ANN)
    own.admission.is_drained = lambda: True
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


def test_a_host_that_ends_by_itself_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("measure.engine.host_launcher.command", lambda module: ["false"])
    launcher = HostLauncher(tmp_path / "host.log")
    try:
        eventually(lambda: launcher.state().restarts >= 1, "the end of the host is counted")
    finally:
        launcher.close()


@pytest.mark.parametrize(
    "text", ["9464", "localhost:9464", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:", ":9464", "x"]
)
def test_an_address_that_makes_no_sense_is_said(monkeypatch: pytest.MonkeyPatch, text: str):
    monkeypatch.setenv("MAPBENCH_METRICS", text)
    with pytest.raises(SettingError, match=r"an address of this machine and a port are needed, as 127\.0\.0\.1:9464"):
        hosting.check()


def test_addresses_of_both_families_are_taken(monkeypatch: pytest.MonkeyPatch):
    assert hosting.metrics() is None
    monkeypatch.setenv("MAPBENCH_METRICS", "127.0.0.1:9464")
    assert hosting.metrics() == ("127.0.0.1", 9464)
    monkeypatch.setenv("MAPBENCH_METRICS", "[::1]:9464")
    assert hosting.metrics() == ("::1", 9464)


def test_a_server_answers_at_the_address_alone_and_not_at_that_of_its_pages(tmp_path: Path):
    port = free_port()
    settings = {"MAPBENCH_VIEWER": "1", "MAPBENCH_METRICS": f"127.0.0.1:{port}"}
    server = AppServer.start(ROOT / "app.py", tmp_path / "home", settings)
    try:
        assert read(f"http://127.0.0.1:{port}/metrics")["mapbench_ready",] == 1
        with urllib.request.urlopen(f"{server.url}/metrics", timeout=DEADLINE_S) as page:
            assert b"mapbench_" not in page.read()
        with pytest.raises(RuntimeError, match=f"MAPBENCH_METRICS='127.0.0.1:{port}' cannot be had"):
            AppServer.start(ROOT / "app.py", tmp_path / "other", settings)
    finally:
        server.stop()
