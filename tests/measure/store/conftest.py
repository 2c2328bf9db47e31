"""Stores in SQLite and in PostgreSQL, as several processes have them open."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from measure.store.store import Store
from tests.postgresql import PG_CTL, Server, running


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    if PG_CTL is None:
        pytest.skip("no PostgreSQL server is installed")
    with running() as server:
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "home"


@pytest.fixture(params=["sqlite", "postgresql"])
def new(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Store]]:
    """``new(most_bytes=None)`` opens the database of a test once more, in PostgreSQL a schema of `MAPBENCH_STORE`."""
    if request.param == "postgresql":
        server: Server = request.getfixturevalue("postgresql")
        server.execute("DROP SCHEMA IF EXISTS test CASCADE", "CREATE SCHEMA test")
        url = server.url.update_query_dict({"options": "-csearch_path=test"})
        monkeypatch.setenv("MAPBENCH_STORE", url.render_as_string(hide_password=False))

    def make(most_bytes: int | None = None) -> Store:
        stores.append(Store(home if request.param == "sqlite" else None, most_bytes))
        return stores[-1]

    stores: list[Store] = []
    yield make
    for one in stores:
        one.close()


@pytest.fixture
def kept(new: Callable[..., Store]) -> Store:
    return new()


@pytest.fixture
def other(new: Callable[..., Store]) -> Store:
    """The same database, as another process has it open."""
    return new()


def execute(kept: Store, *statements: str, **values: object) -> None:
    """Change the database without the store."""
    with sa.create_engine(kept._database._url, poolclass=sa.NullPool).begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement), values)
