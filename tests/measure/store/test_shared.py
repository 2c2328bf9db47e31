"""A store that several share, on one machine or on many: work that is done once, leases, connections that are lost."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from measure import making, worker
from measure.engine.comparison import Comparison
from measure.run import decision, place
from measure.run.place import StoreError
from measure.run.why import Explained
from measure.store import queue, store
from measure.store.queue import Work
from tests.deadlines import RUN_S
from tests.engine import eventually, running, small_request
from tests.keeping import ids, put
from tests.measure.store.conftest import execute
from tests.measure.store.test_store import ID, OTHER, New, a_run
from tests.measure.store.test_store import running as growing
from tests.postgresql import Server
from tests.subjects import Subjects

on_a_server = pytest.mark.parametrize("new", ["postgresql"], indirect=True)
LEASE_OVER = "UPDATE holders SET lease = 0"
END_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type ~ '^client'"
)


def at_once(count: int, do: Callable[[int], Any]) -> list[Any]:
    """What ``do(number)`` returns to as many threads, which begin together."""
    begin = threading.Barrier(count)
    with ThreadPoolExecutor(count) as threads:
        return [*threads.map(lambda number: (begin.wait(), do(number))[1], range(count))]


def test_several_that_make_the_tables_at_once_make_them_once(new: New):
    stores = [new() for _ in range(6)]
    assert at_once(6, lambda number: ids(stores[number])) == [[]] * 6


def test_work_that_several_ask_for_and_take_at_once_is_done_once_in_its_order(new: New):
    stores, ids = [new() for _ in range(4)], [place.new_id() for _ in range(40)]

    def ask(number: int) -> None:
        for run_id in ids[number::4]:
            stores[number].ask(Work(run_id, "measure", run_id), growing(0, run_id))

    def take(number: int) -> list[str]:
        return [work.id for work in iter(stores[number].queue.next, None)]

    at_once(4, ask)
    order = [work.id for work in stores[0].queue.all()]
    assert sorted(order) == sorted(ids)
    begun = at_once(4, take)
    assert sorted(run_id for own in begun for run_id in own) == sorted(order), "each of it by one"
    assert all(own == sorted(own, key=order.index) for own in begun)


@on_a_server
def test_who_takes_work_waits_for_no_writer_and_what_it_takes_is_not_cancelled_as_if_it_waited(
    kept: store.Store, other: store.Store
):
    for run_id in (ID, OTHER):
        kept.ask(Work(run_id, "measure", run_id), growing(0, run_id))
    other.queue.next("nothing of it")
    with kept._database.writing():
        assert other.queue.next().id == ID
    assert not kept.end(ID) and other.queue.ordered(ID) == "cancel" and kept.end(OTHER)
    assert kept.look(ID).state == "running" and kept.load(OTHER).status == "cancelled"


def test_nothing_that_two_write_into_one_run_at_once_is_lost(new: New):
    put(new(), a_run())
    slugs = [item.strategy for item in a_run().measurements] * 2

    def write(number: int) -> None:
        kept, made = new(), [decision.make(slug, str(count), "", "Ann") for count, slug in enumerate(slugs)]
        for slug, one in zip(slugs, made, strict=True):
            if number:
                assert kept.explain(ID, slug, Explained(note=slug), {"a.txt": slug.encode()})
            else:
                assert kept.decide(ID, one) and kept.load(ID).decision == one

    at_once(2, write)
    assert all(new().load(ID).measurement(slug).why.note == slug for slug in slugs)


@on_a_server
def test_a_holder_whose_lease_is_over_by_the_clock_of_the_database_is_gone_and_writes_nothing_more(
    kept: store.Store, other: store.Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(queue, "LEASE_S", 86_400.0)
    put(kept, growing(4), live=True)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert other.look(ID).state == "running", "whatever the time is here"
    execute(kept, LEASE_OVER)
    assert other.look(ID).state == "running", "nobody could renew a lease before the server was started"
    monkeypatch.setattr(queue, "LEASE_S", 0.0)
    run = other.load(ID)
    assert run.status == "interrupted" and "ended unexpectedly" in run.stop_reason and run.finished > "2026"
    assert not kept.save(a_run(), ended=True) and kept.queue.ordered(ID) is None and kept.load(ID) == run
    kept.ask(Work(OTHER, "measure", OTHER), growing(0, OTHER))
    assert kept.queue.next().id == OTHER and kept.save(growing(1, OTHER)), "it goes on with the next one"


@on_a_server
def test_a_lease_is_renewed_until_its_holder_ends_also_when_its_row_is_gone(
    kept: store.Store, other: store.Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(queue, "LEASE_S", 0.4)
    put(kept, growing(4), live=True)
    (work,) = kept.queue.all()
    for lost in (LEASE_OVER, "DELETE FROM holders"):
        execute(kept, lost)
        eventually(lambda: not other._holders.is_gone(work.holder), "it is renewed")
    kept.close()
    assert other._holders.is_gone(work.holder) and other.look(ID).run.status == "interrupted"


@on_a_server
def test_connections_that_are_lost_and_a_server_that_is_restarted_cost_no_result(
    new: New, postgresql: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "lock"))
    for owner, name in ((making, "LOOK_S"), (making, "_STAND_S"), (making, "_FIRST_PAUSE_S"), (worker, "_LOOK_S")):
        monkeypatch.setattr(owner, name, 0.01)
    real, measured = Comparison.run, threading.Event()

    def run(self: Comparison) -> Any:
        ended = real(self)
        measured.wait(RUN_S)
        return ended

    monkeypatch.setattr(Comparison, "run", run)
    with running(Subjects(), None) as own:
        own.begin()
        run_id = own.submit(small_request("batched.eager"))
        eventually(lambda: own.snapshot(run_id).state == "running", "it is measured")
        for _ in range(20):
            postgresql.execute(END_SESSIONS)
        postgresql.stop()
        with pytest.raises(StoreError, match=r"postgresql cannot be used \(OperationalError\)"):
            own.snapshot(run_id)
        measured.set()
        eventually(lambda: f"the run {run_id} is not written yet" in caplog.text, "it cannot be written")
        postgresql.start()
        assert own.wait(run_id, RUN_S) and own.snapshot(run_id).run.status == "complete"
