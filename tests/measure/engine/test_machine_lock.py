"""The machine's lock: who waits is told for whom, also where that one is in another container."""

import os
import socket
from pathlib import Path

import filelock
import msgspec
import pytest

from measure.engine.machine_lock import machine_lock


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "measure.lock"
    monkeypatch.setenv("MAPBENCH_LOCK", str(path))
    return path


def waits_for() -> list[str]:
    """The words for whoever holds the lock, for somebody who has enough after the first time; none where it is free."""
    said: list[str] = []
    with machine_lock("the second", lambda: bool(said), said.append) as free:
        assert free is not bool(said)
    return said


def test_a_process_is_named_by_its_number_to_those_who_can_look_it_up(lock: Path):
    with machine_lock("the first", lambda: False, lambda who: None) as free:
        assert free and waits_for() == [f"the first (process {os.getpid()})"]
    assert waits_for() == []


def test_a_number_that_means_nothing_here_is_not_told(lock: Path):
    """It is that of the other container's own processes, which share the lock as a file of a common volume."""
    container = f"the first (in another container, {socket.gethostname()})"
    with filelock.FileLock(lock):
        for where, said in (([socket.gethostname(), "pid:[1]"], container), ([], "another Mapbench")):
            written = {"pid": 1, "name": "the first", "where": where}
            lock.with_suffix(".holder").write_bytes(msgspec.json.encode(written))
            assert waits_for() == [said]
