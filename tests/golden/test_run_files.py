"""Every frozen run file opens and is written as before."""

import contextlib
import io
import json
import re
import tempfile
from pathlib import Path

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
