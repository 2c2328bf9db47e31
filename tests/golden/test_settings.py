"""Every setting that the documents name is read, and every one that is read is in the documents."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from measure.__main__ import main
from tests.browser import ROOT

PAGES = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
TOPS = ("mapbench", "measure", "strategies", "views", "workloads")
SOURCES = (ROOT / "app.py", *(path for top in TOPS for path in (ROOT / top).rglob("*.py")))
# By which processes find their own, and what the tests' own commands read: no settings of the app.
OTHERS = {"MAPBENCH_FAMILY", "MAPBENCH_BROWSER", "MAPBENCH_VENV"}


def names(paths: Iterable[Path]) -> set[str]:
    texts = "".join(path.read_text("utf-8") for path in paths)
    return set(re.findall(r"\bMAPBENCH_[A-Z_]*[A-Z]\b", texts)) - OTHERS


def test_settings_of_the_docs_are_those_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some names are put together of parts: every command looks those up."""
    looked_up: set[str] = set()
    getitem = type(os.environ).__getitem__

    def noting(own: Any, name: str) -> str:
        looked_up.add(name)
        return getitem(own, name)

    monkeypatch.setattr(type(os.environ), "__getitem__", noting)
    assert main(["export", str(ROOT / "tests/data/run_1.json"), "--csv", "--into", "-"]) == 0
    read = names(SOURCES) | {name for name in looked_up if name.startswith("MAPBENCH_")}
    assert len(read) > 20 and read == names(PAGES)
    table = "".join((ROOT / "docs" / page).read_text("utf-8") for page in ("using.md", "hosting.md"))
    assert sorted(name for name in read if f"`{name}" not in table) == []
