"""Runs that are deleted, or cannot be written, while they end: nothing is lost, and measuring goes on."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from measure import jobs, unwritten
from measure.engine.record import View
from measure.job import Job
from measure.jobs import Jobs
from measure.model.kept import weight
from measure.model.place import StoreError
from measure.model.run import Run
from measure.store import store
from tests import synthetic
from tests.engine import eventually, measure, running, small_request
from tests.subjects import Subjects

_RUN = synthetic.run("0" * 24)


def test_a_run_may_be_forgotten_at_every_moment(tmp_path: Path):
    kept = store.Store(tmp_path)
    for moment in ("queued", "starting", "running", "finished"):
        every = Jobs(lambda: kept)
        job = _job(synthetic.partial(0))
        run_id = job.view.run.id
        every.add(run_id, job)
        if moment != "queued":
            assert every.next() == (run_id, job)
        if moment in ("running", "finished"):
            job.state = "running"
        if moment == "finished":
            every.finish(job, job.view.run)
        every.forget(run_id)
        every.take(run_id, job.view)
        if moment != "finished":
            every.finish(job, job.view.run)
        every.take(run_id, job.view)
        assert every.queue() == () and every.get(run_id) is None and job.finished.is_set(), moment


def _job(run: Run) -> Job:
    measuring: Any = SimpleNamespace(cancelled=False, warn=lambda warning: None)
    return Job(measuring, View(run, {}, "", 1))


def _finish(known: Jobs, count: int) -> None:
    for number in range(count):
        run = replace(_RUN, id=f"{number:024x}")
        known.add(run.id, job := _job(run))
        known.finish(job, run)


def test_finished_runs_are_kept_in_memory_while_there_is_room_for_their_bytes_or_they_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """They are in the store: the newest stay, for who is about to look."""
    monkeypatch.setattr(jobs, "_FINISHED_BYTES", int(3.5 * weight(_RUN, 2**30)))
    kept = store.Store(tmp_path)
    _finish(known := Jobs(lambda: kept), 6)
    assert [run.id[-1] for run in known.finished()] == ["3", "4", "5"] and len(kept.ids()) == 6
    monkeypatch.setattr(jobs, "_FINISHED_BYTES", 0)
    full = _FullDisk(tmp_path)
    _finish(known := Jobs(lambda: full), 2)
    assert len(known.finished()) == 2


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
