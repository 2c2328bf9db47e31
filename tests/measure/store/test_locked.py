"""A store that others hold, or whose address is wrong: readers are answered, and no password is shown."""

import contextlib
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import filelock
import pytest
import sqlalchemy as sa

from measure.run.place import StoreError
from measure.store import database, store
from tests import synthetic
from tests.keeping import put

ID = "0123456789abcdef01234567"
PASSWORD = "Tr0ub4dor"


@pytest.fixture
def kept(tmp_path: Path) -> store.Store:
    return store.Store(tmp_path)


@contextlib.contextmanager
def written_by_another(home: Path) -> Iterator[None]:
    """As long as this lasts, another process writes into the database, and nobody else can."""
    with contextlib.closing(sqlite3.connect(home / "runs.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def test_who_reads_waits_for_nobody_who_writes(kept: store.Store, tmp_path: Path):
    put(kept, synthetic.run(ID))
    with written_by_another(tmp_path):
        assert kept.load(ID) == synthetic.run(ID) and [entry.id for entry in kept.entries()] == [ID]
        assert kept.count() == 1 and kept.values() and kept.load("e" * 24) is None


def test_while_another_writes_a_run_whose_process_is_gone_is_shown_as_it_was(
    kept: store.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    put(kept, synthetic.partial(4), live=True)
    run_id = synthetic.partial(4).id
    other = store.Store(tmp_path)
    kept.close()
    monkeypatch.setattr(database, "READING_S", 0.01)
    with written_by_another(tmp_path):
        seen = other.look(run_id)
        assert seen is not None and seen.run == synthetic.partial(4)
        assert [entry.status for entry in other.entries()] == ["running"]
    assert other.look(run_id).run.status == "interrupted"


def test_a_store_that_another_process_opens_for_long_is_said(
    kept: store.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(database, "READING_S", 0.01)
    with (
        filelock.FileLock(tmp_path / "runs.db.lock"),
        pytest.raises(StoreError, match="another Mapbench is opening it"),
    ):
        kept.ids()
    assert kept.ids() == []


def test_no_address_shows_its_password(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    def said(written: str) -> str:
        monkeypatch.setenv("MAPBENCH_STORE", written)
        with caplog.at_level(logging.DEBUG), pytest.raises(StoreError) as caught:
            store.Store().ids()
        return f"{caught.value}{caught.value.__cause__}{caplog.text}"

    def refuse(address: sa.URL) -> sa.Engine:  # a driver says more than it should
        raise sa.exc.OperationalError("", {}, Exception(f"could not connect to {address!r} or {PASSWORD}"))

    for written in ("postgresql:/user:{}@host/name", "postgresql://user:{}@host:port/name", "{}@host"):
        assert PASSWORD not in said(written.format(PASSWORD))
    monkeypatch.setattr(database, "connect", refuse)
    printed = said(f"postgresql://user:{PASSWORD}@host/name")
    assert PASSWORD not in printed and "postgresql cannot be used (OperationalError)" in printed
