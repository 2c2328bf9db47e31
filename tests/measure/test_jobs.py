"""The jobs of a runner, without a host: what of them is kept in memory."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from measure import jobs
from measure.engine.record import View
from measure.model.kept import weight
from measure.store.store import Store
from tests import synthetic

_RUN = synthetic.run("0" * 24)


def _finish(known: jobs.Jobs, count: int) -> None:
    for number in range(count):
        run = replace(_RUN, id=f"{number:024x}")
        measuring: Any = SimpleNamespace(cancelled=False, warn=lambda warning: None)
        job = jobs.Job(measuring, View(run, {}, "", 1))
        known.add(run.id, job)
        known.finish(job, run)


def test_finished_runs_are_kept_in_memory_while_there_is_room_for_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in the store: the newest stay, for who is about to look."""
    monkeypatch.setattr(jobs, "_FINISHED_BYTES", int(3.5 * weight(_RUN, 2**30)))
    store = Store(tmp_path)
    known = jobs.Jobs(lambda: store)
    _finish(known, 6)
    assert [run.id[-1] for run in known.finished()] == ["3", "4", "5"] and len(store.ids()) == 6


def test_a_run_that_could_not_be_written_stays_in_memory_whatever_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_FINISHED_BYTES", 0)

    class Full:
        def save(self, *_: object, **__: object) -> None:
            raise jobs.StoreError("no space left on device")

    full: Any = Full()
    known = jobs.Jobs(lambda: full)
    _finish(known, 2)
    assert len(known.finished()) == 2
