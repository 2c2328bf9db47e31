"""Every frozen run file opens and is written as before; what is damaged is refused, whatever the sentence."""

import contextlib
import io
import json
import re
import tempfile
from pathlib import Path

import pytest

from measure.__main__ import main
from tests.browser import ROOT
from tests.golden.renew import differences, golden

# Whatever lies in tests/data and says that it is one, and the claims that come with the app.
FILES = [path for path in sorted((ROOT / "tests/data").glob("*.json")) if b'"mapbench.run/1"' in path.read_bytes()]
FILES += [ROOT / "views/example_claims.json"]


def written(path: Path) -> bytes:
    """The run file that the command line writes of this one."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        assert main(["export", str(path), "--json", "--into", folder]) == 0
        return Path(folder, path.name).read_bytes()


def fields() -> dict[str, list[str]]:
    """File → how what is written differs from it, without places in lists."""
    made = {}
    for path in FILES:
        changed = differences(json.loads(path.read_bytes()), json.loads(written(path)))
        made[path.name] = sorted({re.sub(r"\[\d+\]", "", each) for each in changed})
    return made


def test_frozen_files_open_and_are_written_as_before(tmp_path: Path) -> None:
    """Older files get the fields that they do not have, and once left swept options out of strategies' names: what
    differs is always the same. Where nothing does, the file is written byte for byte."""
    assert fields() == golden("fields")
    for path in FILES:
        now, again = written(path), tmp_path / "again.json"
        assert golden("fields")[path.name] or now == path.read_bytes().rstrip(b"\n") + b"\n", path
        again.write_bytes(now)
        assert written(again) == now, path


def test_what_is_damaged_or_not_valid_is_refused_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole = (ROOT / "tests/data/run_1.json").read_bytes()
    for old, new in (
        (whole, b""),
        (whole, whole[:-100]),
        (whole, b"[" * 100_000),
        (whole, b"\xff\xfe{}"),
        (b'"mapbench.run/1"', b'"mapbench.run/2"'),
        (b'"kind"', b'"surprise": 1, "kind"'),
        (b'"samples_s": [', b'"samples_s": [-1.0,'),
        (b'"id": "', b'"id": "../'),
    ):
        assert old in whole, old
        damaged = tmp_path / "damaged.json"
        damaged.write_bytes(whole.replace(old, new, 1))
        assert main(["export", str(damaged), "--csv", "--into", "-"]) == 2, new[:60]
        printed = capfd.readouterr()
        assert printed.out == "" and printed.err.startswith("error: ") and printed.err.count("\n") == 1
