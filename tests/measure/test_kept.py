"""Runs that are deleted, or cannot be written, while they end: nothing is lost, and measuring goes on."""

import threading
from pathlib import Path
from typing import Any

import pytest

from measure import unwritten
from measure.job import Job
from measure.jobs import Jobs
from measure.model.place import StoreError
from measure.model.run import Run
from measure.store import store
from tests.engine import DEADLINE_S, eventually, measure, running, small_request
from tests.subjects import Subjects


class _Deleting(store.Store):
    """A store in which each run is deleted in the moment in which it has been written as ended."""

    own: Any = None

    def save(self, run: Run, *, live: bool = False, **more: Any) -> None:
        super().save(run, live=live, **more)
        if not live and self.own is not None:
            assert self.own.delete([run.id]) == [run.id]


def test_a_run_that_is_deleted_as_it_ends_ends_nothing_else(tmp_path: Path):
    kept = _Deleting(tmp_path)
    with running(Subjects(), tmp_path, kept) as own:
        kept.own = own
        run_id = own.submit(small_request("batched.eager"))
        assert own.wait(run_id, DEADLINE_S)
        assert own.snapshot(run_id) is None and own.queue() == () and own.finished() == []
        kept.own = None
        assert measure(own, small_request("batched.eager")).status == "complete", "the next one is measured"


@pytest.mark.parametrize("moment", ["queued", "starting", "running", "finished"])
def test_a_run_may_be_forgotten_at_every_moment(tmp_path: Path, moment: str):
    kept = store.Store(tmp_path)
    with running(Subjects(), tmp_path, kept) as own:
        own.close()  # nobody takes jobs but this test
    every = Jobs(lambda: kept)
    job = Job(_measuring := _Measuring(), _measuring.view())
    every.add(job.view.run.id, job)
    if moment != "queued":
        assert every.next() == (job.view.run.id, job)
    if moment in ("running", "finished"):
        job.state = "running"
    if moment == "finished":
        every.finish(job, job.view.run)
    every.forget(job.view.run.id)
    every.take(job.view.run.id, job.view)
    if moment != "finished":
        every.finish(job, job.view.run)
    every.take(job.view.run.id, job.view)
    assert every.queue() == () and every.get(job.view.run.id) is None and job.finished.is_set()


class _Measuring:
    """A comparison that does nothing."""

    def __init__(self) -> None:
        from measure.engine.record import View
        from tests import synthetic

        self._view = View(synthetic.partial(0), {}, "", 1, None)

    def view(self) -> Any:
        return self._view

    def warn(self, warning: object) -> None:
        pass


class _FullDisk(store.Store):
    """A store on a disk that is full until somebody makes room."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.room, self.refused = threading.Event(), 0

    def save(self, run: Run, **more: Any) -> None:
        if not self.room.is_set():
            self.refused += 1
            raise StoreError("database or disk is full")
        super().save(run, **more)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unwritten, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(unwritten, "LONGEST_PAUSE_S", 0.02)


def test_a_finished_run_is_written_again_until_it_is_and_shown_meanwhile(tmp_path: Path, quick: None):
    disk = _FullDisk(tmp_path)
    with running(Subjects(), tmp_path, disk) as own:
        runs = [measure(own, small_request("batched.eager", seed=seed)) for seed in (1, 2)]
        before = disk.refused
        eventually(lambda: disk.refused > before + 3, "it is tried again and again")
        for run in runs:
            snapshot = own.snapshot(run.id)
            assert snapshot.state == "finished" and not snapshot.saved and disk.load(run.id) is None
            assert "database or disk is full" in snapshot.run.warnings[-1].message
        disk.room.set()
        eventually(lambda: all(disk.load(run.id) for run in runs), "both are written")
        for run in runs:
            snapshot = eventually(lambda run=run: (now := own.snapshot(run.id)).saved and now, "it is said to be")
            assert snapshot.run == disk.load(run.id) and not disk.look(run.id).live
            assert "not_saved" not in [warning.code for warning in snapshot.run.warnings]


def test_what_could_not_be_written_is_tried_once_more_at_the_end(tmp_path: Path):
    disk = _FullDisk(tmp_path)
    with running(Subjects(), tmp_path, disk) as own:
        run = measure(own, small_request("batched.eager"))
        disk.room.set()
    assert own.snapshot(run.id).saved and store.Store(tmp_path).load(run.id).measurements == run.measurements


def test_a_fault_in_what_writes_costs_no_measurement(tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch):
    kept = store.Store(tmp_path)
    with running(Subjects(), tmp_path, kept) as own:
        with monkeypatch.context() as patch:
            patch.setattr("measure.store.entries.row", lambda run: 1 / 0)
            run = measure(own, small_request("batched.eager"))
            assert run.status == "complete" and "ZeroDivisionError" in run.warnings[-1].message
        eventually(lambda: kept.load(run.id), "it is written when it can be")
        assert measure(own, small_request("batched.eager")).status == "complete"


def test_who_cancels_what_waits_keeps_nobody_from_looking(tmp_path: Path):
    kept = store.Store(tmp_path)
    every = Jobs(lambda: kept)
    job = Job(_measuring := _Measuring(), _measuring.view())
    _measuring.cancel = lambda: None
    every.add("f" * 24, job)
    looked = threading.Event()

    def look_at(run: Run, **_: Any) -> None:
        looker = threading.Thread(target=lambda: (every.snapshot("f" * 24), looked.set()), daemon=True)
        looker.start()
        assert looked.wait(DEADLINE_S), "who looks waits for who writes"

    kept.save = look_at
    every.cancel("f" * 24, lambda run: run)
    assert looked.is_set() and job.state == "finished"
