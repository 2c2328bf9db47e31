"""What stands behind the pages: a client with nothing behind it, and one with a store."""

from pathlib import Path

import pytest

from measure import client
from measure.machine import environment
from tests.pages import FakeClient, StoredClient


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """A client without a store, on a machine with 8 GiB of memory."""
    fake = FakeClient()
    monkeypatch.setattr(client, "shared", lambda: fake)
    monkeypatch.setattr(environment, "available_memory", lambda: 8 * 2**30)
    return fake


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredClient:
    stored = StoredClient(tmp_path)
    monkeypatch.setattr(client, "shared", lambda: stored)
    monkeypatch.setattr(environment, "available_memory", lambda: 8 * 2**30)
    return stored
