"""Every frozen run file opens and is written as before; what is damaged is refused, whatever the sentence."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from measure.__main__ import main
from tests.browser import ROOT
from tests.golden.renew import differences, golden

# Whatever lies in tests/data and says that it is one, and the two that come with the app, one of them of claims.
FILES = [path for path in sorted((ROOT / "tests/data").glob("*.json")) if b'"mapbench.run/1"' in path.read_bytes()]
FILES += [ROOT / "views/example_run.json", ROOT / "views/example_claims.json"]


def exported(path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> bytes:
    """The run file that the command line writes of this one."""
    assert main(["export", str(path), "--json", "--into", "-"]) == 0
    printed = capfdbinary.readouterr()
    assert printed.err == b""
    return printed.out


def without_options(document: Any) -> Any:
    """The document with the value of a swept option taken out of its strategies' names, as files once had them."""
    return json.loads(re.sub(r"\?chunk=\d+", "", json.dumps(document)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_frozen_file_opens_and_is_written_as_before(
    path: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Fields that older files do not have are new in what is written, always the same ones; where there are none, the
    file is written byte for byte."""
    then, written, new = path.read_bytes(), exported(path, capfdbinary), golden("fields")[path.name]
    changed = differences(*map(without_options, map(json.loads, (then, written))))
    assert sorted({re.sub(r"\[\d+\]", "", each) for each in changed}) == new
    if not new and path.name != "option_1.json":
        assert written == then.rstrip(b"\n") + b"\n"
    again = tmp_path / "again.json"
    again.write_bytes(written)
    assert exported(again, capfdbinary) == written


def test_what_is_damaged_or_not_valid_is_refused_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole = (ROOT / "tests/data/run_1.json").read_bytes()
    for old, new in (
        (whole, b""),
        (whole, whole[:-100]),
        (whole, b"[" * 100_000),
        (whole, b"\xff\xfe{}"),
        (b'"mapbench.run/1"', b'"mapbench.run/2"'),
        (b'"kind"', b'"surprise": 1, "kind"'),
        (b'"kind"', b'"id": "0", "kind"'),
        (b'"budget_s": ', b'"budget_s": -'),
        (b'"budget_s": ', b'"budget_s": NaN, "was": '),
        (b'"twin_of": null', b'"twin_of": "nobody"'),
        (b'"samples_s": [', b'"samples_s": [-1.0,'),
        (b'"id": "', b'"id": "../'),
    ):
        assert old in whole, old
        damaged = tmp_path / "damaged.json"
        damaged.write_bytes(whole.replace(old, new, 1))
        assert main(["export", str(damaged), "--csv", "--into", "-"]) == 2, new[:60]
        printed = capfd.readouterr()
        assert printed.out == "" and printed.err.startswith("error: ") and printed.err.count("\n") == 1
