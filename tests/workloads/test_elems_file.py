"""Elements that come as a file: what is kept of it, what is refused before, and what its code says elsewhere."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from measure.engine.deriving import Deriving
from measure.engine.host_launcher import HostLauncher
from measure.model.request import RequestError
from measure.subject import limits
from workloads import elems_file
from workloads.discovery import DiscoveryError
from workloads.functions import Given


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
    code = elems_file.kept(str(tmp_path / "rows.npy"))
    assert elems_file.kept(str(tmp_path / "rows.npy")) == code
    np.save(tmp_path / "rows.npy", np.zeros(6))
    assert elems_file.kept(str(tmp_path / "rows.npy")) != code
    assert executed(code).tolist() == [0, 1, 2, 3, 4, 5]
    kept = sorted(path.name for path in (home / "elems").iterdir())
    assert len(kept) == 2 and all(name.startswith("rows-") and name.endswith(".npy") for name in kept)
    assert str(tmp_path) not in code


def test_the_oldest_copies_go_where_they_take_too_much(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch):
    codes = []
    for age, name in enumerate(("oldest", "older", "newest")):
        np.save(tmp_path / f"{name}.npy", np.full(1_000, age))
        monkeypatch.setattr(elems_file, "KEPT_BYTES", 20_000)
        codes.append(elems_file.kept(str(tmp_path / f"{name}.npy")))
        for copy in (home / "elems").glob(f"{name}-*"):
            os.utime(copy, (age, age))
    assert sorted(path.name.partition("-")[0] for path in (home / "elems").iterdir()) == ["newest", "older"]
    assert executed(codes[1])[0] == 1
    with pytest.raises(
        FileNotFoundError, match="they stayed where it was measured, or newer ones have taken their room"
    ):
        executed(codes[0])


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    suffix: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    def read(*_: Any) -> None:
        raise AssertionError("the file was read")

    file = tmp_path / f"large{suffix}"
    with file.open("wb") as sparse:
        sparse.truncate(elems_file.MOST_BYTES + 1)
    monkeypatch.setattr(Path, "read_bytes", read)
    monkeypatch.setattr(elems_file.shutil, "copyfile", read)
    with pytest.raises(DiscoveryError) as refused:
        elems_file.kept(str(file))
    assert str(refused.value) == (
        f"{file} holds 4.0 GiB, and at most 4 GiB can be measured: give fewer or smaller elements"
    )
    assert not home.exists()


def test_no_more_is_kept_than_can_be_derived():
    assert elems_file.MOST_BYTES == limits.MOST_BYTES


def test_where_the_copy_is_not_its_code_says_so(tmp_path: Path, home: Path, host: HostLauncher):
    np.save(tmp_path / "rows.npy", np.arange(6.0))
    code = elems_file.kept(str(tmp_path / "rows.npy"))
    (copy,) = (home / "elems").iterdir()
    copy.unlink()
    sentence = elems_file._AWAY
    with pytest.raises(FileNotFoundError, match=f"^{sentence}$"):
        executed(code)
    own = Given(code=f"{code}\n\n\ndef f(x):\n    return x\n", function="f", elems=elems_file.NAME)
    with pytest.raises(RequestError, match=f"FileNotFoundError: {sentence}$"):
        Deriving(host, "a test", patient=True).give(own, {}, 0)
