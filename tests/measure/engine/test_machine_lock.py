"""The machine's lock in a folder in which anybody may have put anything."""

import os
import tempfile
from pathlib import Path

import pytest

from measure.engine.machine_lock import machine_lock
from measure.run.request import RequestError


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("MAPBENCH_LOCK", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"mapbench-{os.getuid()}.lock"


def held() -> bool:
    with machine_lock("ann", lambda: False, lambda words: None) as is_held:
        return is_held


def test_one_holds_it_and_others_see_who(path: Path):
    words: list[str] = []
    with machine_lock("ann", lambda: False, words.append):
        assert path.stat().st_mode & 0o777 == 0o600 and [path] == [*path.parent.iterdir()]
        with machine_lock("bob", lambda: bool(words), words.append) as is_held:
            assert not is_held and words[0].startswith(f"waiting for ann (process {os.getpid()} on ")
        path.write_bytes(b"\x1b[2J\xff" + b"x" * 10**6)
        words.clear()
        with machine_lock("bob", lambda: bool(words), words.append):
            assert words[0].isprintable() and len(words[0]) < 300
    assert held() and path.read_bytes() == b""


def test_no_link_and_nobody_elses_file_is_used_but_one_that_is_named(path: Path, monkeypatch: pytest.MonkeyPatch):
    precious, named, owner = path.parent / "precious", path.parent / "named", os.getuid()
    precious.write_bytes(b"of somebody")
    for put in (path.symlink_to, path.hardlink_to):
        put(precious)
        with pytest.raises(RequestError, match="MAPBENCH_LOCK"):
            held()
        path.unlink()
    monkeypatch.setenv("MAPBENCH_LOCK", str(named))
    assert held() and named.stat().st_mode & 0o777 == 0o666
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert held(), "it is for all accounts"
    monkeypatch.delenv("MAPBENCH_LOCK")
    path.with_stem(f"mapbench-{owner + 1}").touch()
    with pytest.raises(RequestError, match="another account's"):
        held()
    assert precious.read_bytes() == b"of somebody"
