"""Elements that come as a file: what is kept of it, what is refused before, and what its code says elsewhere."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from measure.subject import derive
from workloads import elems_file
from workloads.discovery import DiscoveryError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def executed(code: str) -> Any:
    space: dict[str, Any] = {}
    exec(code, space)
    return space[elems_file.NAME]


def test_a_copy_is_kept_whose_name_tells_its_content(tmp_path: Path, home: Path):
    np.save(tmp_path / "rows.npy", np.arange(6.0))
    code = elems_file.store(str(tmp_path / "rows.npy"))
    assert elems_file.store(str(tmp_path / "rows.npy")) == code
    np.save(tmp_path / "rows.npy", np.zeros(6))
    assert elems_file.store(str(tmp_path / "rows.npy")) != code
    assert executed(code).tolist() == [0, 1, 2, 3, 4, 5]
    kept = sorted(path.name for path in (home / "elems").iterdir())
    assert len(kept) == 2 and all(name.startswith("rows-") and name.endswith(".npy") for name in kept)
    assert str(tmp_path) not in code


def test_the_oldest_copies_go_where_they_take_too_much(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch):
    codes = []
    monkeypatch.setattr(elems_file, "KEPT_BYTES", 20_000)
    for age, name in enumerate(("oldest", "older", "newest")):
        np.save(tmp_path / f"{name}.npy", np.full(1_000, age))
        codes.append(elems_file.store(str(tmp_path / f"{name}.npy")))
        for copy in (home / "elems").glob(f"{name}-*"):
            os.utime(copy, (age, age))
    assert sorted(path.name.partition("-")[0] for path in (home / "elems").iterdir()) == ["newest", "older"]
    assert executed(codes[1])[0] == 1
    with pytest.raises(FileNotFoundError, match="oldest-"):
        executed(codes[0])


def test_a_file_that_is_too_large_is_refused_before_it_is_copied(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    assert elems_file.MOST_BYTES == derive.MOST_BYTES, "no more is kept than can be derived"
    monkeypatch.setattr(elems_file, "MOST_BYTES", 1_000)
    file = tmp_path / "large.npy"
    file.write_bytes(bytes(1_001))
    with pytest.raises(DiscoveryError, match=f"^{file} holds .* can be measured: give fewer or smaller elements$"):
        elems_file.store(str(file))
    assert not home.exists()
