"""Admission to a server that strangers share: its rules, and that what is refused is counted."""

import socket
import urllib.request
from collections import namedtuple
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from measure import client, metrics
from measure.admission import NOBODY, Refused, Visitor, admit, beyond, within
from measure.hosting import Limits
from measure.run.request import Request, RequestError, parse
from measure.run.sweep_request import parse_sweep
from tests.browser import free_port
from tests.deadlines import ANSWER_S
from tests.engine import running, small_request
from tests.subjects import Subjects

Going = namedtuple("Going", ["session", "address", "left_s"])
ANN, BOB, EVE = Visitor("ann", "ann", "here"), Visitor("bob", "bob", "there"), Visitor("eve", "eve")


def asked(**more: object) -> Request:
    return parse({"workload": "outer_product", "strategies": ["batched.graph"], **more})


def swept(points: int = 30, **more: object) -> object:
    axes = [{"kind": "size", "name": "batch", "values": list(range(1, points + 1))}]
    return parse_sweep({"workload": "outer_product", "strategies": ["batched", "map_fn"], "axes": axes, **more})


def test_a_request_beyond_a_cap_is_refused_with_what_was_asked_and_what_is_allowed():
    limits = Limits(budget_s=30, sweep_s=300, most_threads=16, memory_mib=2_048, most_strategies=80, most_cells=180)
    many = [f"chunked.graph?chunk={n}" for n in range(2, 1_002)]
    for request, named, allowed in (
        (asked(budget_s=86_400), "86400 s", "30 s"),
        (asked(threads=1_024), "1,024 threads", "16"),
        (asked(memory_limit_mib=4_096), "4,096 MiB", "2,048 MiB"),
        (asked(strategies=many), "1,000 strategies", "80"),
        (swept(budget_s=301), "301 s", "300 s"),
        (swept(31), "186 cells", "180"),
    ):
        sentence = beyond(request, limits) or ""
        assert named in sentence and sentence.endswith(f"this server allows {allowed}")
        assert beyond(request, Limits()) is None
    at_caps = (asked(budget_s=30, threads=16, memory_limit_mib=2_048, strategies=many[:80]), swept(budget_s=300))
    assert [beyond(request, limits) for request in at_caps] == [None, None]


def test_an_automatic_budget_goes_no_further_than_a_server_allows():
    request = asked()
    for budget_s, most_s in ((None, 60.0), (30, 30.0), (5, request.budget_s)):
        kept = within(request, Limits(budget_s=budget_s))
        assert kept.max_budget_s == most_s and kept.budget_s == request.budget_s
    fixed = asked(budget_s=20)
    assert within(fixed, Limits(budget_s=30)) == fixed and not fixed.max_budget_s


def refusal(visitor: Visitor, going: list[Going], needed_s: float, spent_s: float = 0.0, **limits: int) -> str | None:
    try:
        admit(visitor, Limits(**limits), going, needed_s, spent_s)
    except Refused as refused:
        return str(refused)
    return None


def test_sessions_addresses_and_the_queue_have_so_many_runs_each():
    rules = {"session_runs": 1, "address_runs": 2, "queue_length": 3}
    going, of_here = [Going("bob", "there", 20.2), Going("ann", "here", 60.0)], Visitor("eve", "eve", "here")
    neighbours = [Going(f"{n}", "here", 200.0) for n in range(2)]
    strangers = [Going(f"{n}", f"{n}", 30.0) for n in range(3)]
    for visitor, before, named in (
        (ANN, going, "1 run of yours is going or waiting, and this server allows 1: come again in about 80.2 s"),
        (of_here, going, None),
        (ANN, going[:1], None),
        (of_here, neighbours, "2 runs of your address are going or waiting, and this server allows 2"),
        (BOB, neighbours, None),
        (ANN, strangers, "3 runs are going or waiting, and this server allows 3"),
        (NOBODY, going * 50, None),  # a command line is not counted
    ):
        sentence = refusal(visitor, before, 9.0, **rules)
        assert sentence is None if named is None else sentence and sentence.startswith(named), (visitor, before)
    assert refusal(ANN, going * 50, 9e9) is None, "nothing is limited"


def test_the_seconds_of_an_address_or_without_one_of_a_session_end_at_its_day():
    going = [Going("ann", "here", 60.0), Going("eve", "", 60.0), Going("bob", "", 60.0)]
    for visitor, before, needed_s, spent_s, named in (
        (ANN, [], 29.5, 70.5, None),
        (ANN, [], 29.6, 70.5, "this takes about 29.6 s, and of the 100 s that this server measures for an address in"),
        (ANN, going, 9.0, 70.5, "0 s are left"),  # what goes on counts
        (BOB, going, 99.0, 0.0, None),
        (EVE, going, 21.0, 20.0, "a visitor in a day 20 s are left"),
    ):
        sentence = refusal(visitor, before, needed_s, spent_s, address_day_s=100)
        assert sentence is None if named is None else sentence and named in sentence, (visitor, spent_s)


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
        assert not {ANN.session, ANN.address} & {part for key in after for part in key}, "nothing of visitors"
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.2", port), ANSWER_S)
