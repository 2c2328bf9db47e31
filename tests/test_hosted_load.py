"""A few visitors of a hosted server, two of them hostile, for some seconds, with subjects that measure nothing; fifty
of them come for ten minutes by ``python -m tests.benchmarks.load``."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from measure.model.run import Replica, Run
from tests import synthetic, visitors
from tests.benchmarks import load
from tests.benchmarks.load import Look
from tests.browser import ROOT, AppServer
from tests.visitors import Ledger, Line
from views.result import texts
from views.ui import look


def test_visitors_and_those_who_are_hostile_are_served_and_nobodys_run_is_ended_by_another(tmp_path: Path):
    server = AppServer.start(ROOT / "app.py", tmp_path / "home", visitors.settings(tmp_path), "tests.simulated_server")
    try:
        ledger, looks, _ = asyncio.run(load.visit(server, 5, 0.1, with_references=False))
        runs = visitors.at_rest(server.home, ledger)
        log = server.log()
    finally:
        outlived = server.stop()
    assert outlived == []
    assert visitors.judged(ledger, runs, log) == []
    assert ledger.done["runs"] and ledger.done["reruns"] and ledger.done["reloads"] + ledger.done["floods"]
    assert looks and ledger.own


def made(number: int, created: str, started: str | None, finished: str | None, status: str = "complete") -> Run:
    run = synthetic.run(f"{number:024x}")
    return replace(run, created=created, started=started, finished=finished, status=status)


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}.000Z"


def test_what_visitors_must_not_meet_is_noticed():
    fine = made(1, at(0), at(1), at(11))
    waiting = made(2, at(2), at(12), at(20))
    others = made(3, at(3), at(21), at(22), "cancelled")
    late = made(4, at(4), at(23), at(200))
    ledger = Ledger(own=dict.fromkeys([fine.id, waiting.id, others.id, late.id, "f" * 24], 1))
    wrong = visitors.judged(ledger, [fine, waiting, others, late], "2026 Traceback (most recent call last):\n")
    assert [sentence.partition(" ")[0] for sentence in wrong] == [others.id, late.id, "f" * 24, "log:"]
    ledger.lines = {waiting.id: Line(at(2), 60.0), late.id: Line(at(4), 18.0), "f" * 24: Line(at(5), 1.0)}
    assert visitors.waits(ledger, [fine, waiting, others, late]) == [(10.0, 60.0), (19.0, 18.0)]


def test_the_line_of_the_page_is_read_as_it_is_written():
    for wait_s, most_s in ((6.0, 0.4), (61.0, 125.2), (300.0, 600.0)):
        turn = texts.TURN.format(wait=look.duration(wait_s), most=look.duration(most_s))
        for words in (texts.ONE_BEFORE, texts.RUNS_BEFORE):
            said = visitors.most_of_line(words.format(count=2, turn=turn, now="The first one has begun."))
            assert said is not None and most_s <= said <= most_s + 1.5
    assert visitors.most_of_line(texts.ONE_BEFORE.format(turn="", now="x")) is None


def test_garbage_that_a_visitor_sends_is_no_fault_of_the_servers():
    log = (
        "2026 Error deserializing back message\nTraceback (most recent call last):\n  File\n"
        "google.protobuf.message.DecodeError: Error parsing message\nall is well\n"
    )
    assert visitors.judged(Ledger(), [], log) == []
    assert visitors.judged(Ledger(), [], log + "ValueError: x\n") == ["log: ValueError: x"]


def looks(*memory_mb: float, every_s: float = 5.0) -> list[Look]:
    return [
        Look(number * every_s, int(value * 1e6), threads=40, descriptors=90, processes=3, disk=10 * 2**20)
        for number, value in enumerate(memory_mb)
    ]


def test_growth_is_that_of_the_last_seconds_and_not_of_one_look():
    assert load.growth(looks(*[300.0] * 60), 150) == 0
    rising = looks(*(300.0 + number for number in range(60)))
    assert load.growth(rising, 295) == pytest.approx(48e6)
    assert load.growth(looks(*range(100, 400, 10), *[400.0] * 30), 140) == 0, "what grew before is over"
    assert load.growth(looks(*[300.0] * 59, 900.0), 150) == 0, "one look is none of the medians"


def slower(run: Run, factor: float) -> Run:
    """The run with each sample so many times as long."""

    def one(replica: Replica) -> Replica:
        return replace(replica, samples_s=[factor * value for value in replica.samples_s])

    items = [replace(item, replicas=[one(replica) for replica in item.replicas]) for item in run.measurements]
    return replace(run, measurements=items)


def test_latencies_beside_visitors_are_compared_by_strategy():
    run = synthetic.run("a" * 24, unhappy=False)
    (ratio,) = load.latency_ratios([run, run], [slower(run, 1.2), slower(run, 1.2)]).values()
    assert ratio.ratio == pytest.approx(1.2) and ratio.low < 1.2 < ratio.high
    assert ratio.alone == ratio.beside > 0
    other = replace(run, request=replace(run.request, workload="square"))
    assert load.latency_ratios([run, run], [other, other]) == {}


def test_what_is_outside_of_its_limit_is_said():
    ledger = Ledger(lines={"1" * 24: Line(at(0), 5.0)})
    waited = made(1, at(0), at(9), at(11))
    slow = {"square": load.Ratio(1.12, 1.0, 1.2, 8, 8)}
    outside = {
        figure.name
        for figure in load.figures(ledger, looks(*[700.0] * 60), slow, [replace(waited, id="1" * 24)])
        if "OUTSIDE" in figure.verdict()
    }
    assert outside == {
        "server: memory at the end",
        "longest wait beyond what the page said",
        "latencies of square: difference beside the visitors",
    }
    calm = {"square": load.Ratio(0.95, 0.9, 1.0, 8, 8)}
    inside = load.figures(Ledger(lines={waited.id: Line(at(0), 60.0)}), looks(*[500.0] * 60), calm, [waited])
    assert not [figure.name for figure in inside if "OUTSIDE" in figure.verdict()]
