"""A store that others hold, or whose address is wrong: readers are answered, and no password is shown."""

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import filelock
import pytest
import sqlalchemy as sa

from measure.model.place import StoreError
from measure.store import database, store, url
from tests import synthetic
from tests.engine import DEADLINE_S

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


def test_who_reads_waits_for_nobody_who_waits_to_write(
    kept: store.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kept.save(synthetic.run(ID))
    waits = threading.Event()

    def note(connection: sa.Connection) -> None:
        if connection.get_execution_options().get("writes"):
            waits.set()

    real = database.for_writing
    monkeypatch.setattr(database, "for_writing", lambda engine, _: real(engine, 10 * DEADLINE_S))
    sa.event.listen(sa.Engine, "begin", note)
    try:
        with written_by_another(tmp_path):
            writer = threading.Thread(target=kept.save, args=(synthetic.run("f" * 24),), daemon=True)
            writer.start()
            assert waits.wait(DEADLINE_S)
            assert kept.load(ID) == synthetic.run(ID) and [entry.id for entry in kept.entries()] == [ID]
            assert kept.count() == 1 and kept.values() and kept.load("e" * 24) is None
            assert writer.is_alive(), "and it waits still"
        writer.join(DEADLINE_S)
    finally:
        sa.event.remove(sa.Engine, "begin", note)
    assert kept.count() == 2, "who writes has its turn in the end"


@pytest.mark.parametrize("opened", [True, False])
def test_while_another_writes_a_run_whose_process_is_gone_is_shown_as_it_was(
    kept: store.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: bool
):
    kept.save(synthetic.partial(4), live=True)
    run_id = synthetic.partial(4).id
    other = store.Store(tmp_path)
    if opened:
        other.count()
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


WRONG = [
    f"postgresql:/user:{PASSWORD}@host/name",
    f"postgresql//user:{PASSWORD}@host/name",
    f"postgresql://user:{PASSWORD}@host:port/name",
    f"user:{PASSWORD}@host",
    f"{PASSWORD}@host",
    f"sqlite://user:{PASSWORD}@host/name",
]


@pytest.mark.parametrize("written", WRONG)
def test_an_address_that_cannot_be_read_shows_no_password(
    written: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("MAPBENCH_STORE", written)
    with caplog.at_level(logging.DEBUG), pytest.raises(StoreError) as caught:
        store.Store().ids()
    assert PASSWORD not in f"{caught.value}{caught.value.__cause__}{caplog.text}"


@pytest.mark.parametrize(
    "written",
    [
        f"postgresql://user:{PASSWORD}@host/name",
        f"postgresql://user:x@{PASSWORD}@host/name",
        f"postgresql://host/name?password={PASSWORD}",
    ],
)
def test_what_a_driver_says_shows_no_password(
    written: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def refuse(address: sa.URL) -> sa.Engine:
        raise sa.exc.OperationalError("", {}, Exception(f"could not connect to {written} or {PASSWORD}"))

    monkeypatch.setenv("MAPBENCH_STORE", written)
    monkeypatch.setattr(database, "connect", refuse)
    with caplog.at_level(logging.DEBUG), pytest.raises(StoreError) as caught:
        store.Store().ids()
    assert PASSWORD not in f"{caught.value}{caught.value.__cause__}{caplog.text}"


def test_what_cannot_be_a_password_is_shown():
    for word in ("nonsense", "/data/runs.db"):
        with pytest.raises(StoreError, match=f"MAPBENCH_STORE='{word}' is not an URL"):
            url.parsed(word)
