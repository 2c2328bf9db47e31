"""Settings: those of a hosted server, their defaults, one sentence where a value is not valid; and all in the docs."""

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import pytest

from measure import hosting
from measure.__main__ import INVALID, main
from measure.hosting import Limits
from tests.browser import ROOT

NAMES = {field.name for field in fields(Limits)}


@pytest.fixture(autouse=True)
def _at_home(monkeypatch):
    for name in ("HOSTED", "METRICS", *(name.upper() for name in NAMES)):
        monkeypatch.delenv(f"MAPBENCH_{name}", raising=False)


def test_at_home_nothing_is_limited_but_by_what_is_set_and_on_a_hosted_server_all_is(monkeypatch):
    assert hosting.limits() == Limits()
    monkeypatch.setenv("MAPBENCH_STORE_MIB", "500")
    assert hosting.limits() == Limits(store_mib=500)
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    monkeypatch.setenv("MAPBENCH_RUN_S", " 45 ")
    limits = hosting.limits()
    assert (limits.run_s, limits.sweep_s, limits.store_mib) == (45, 300, 500)
    assert (limits.session_runs, limits.address_runs, limits.queue_length) == (1, 3, 30)


def test_a_value_that_is_not_valid_is_one_sentence_before_anything_is_started(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for name, values in {
        "RUN_S": ("abc", "-1", "5", "1e3", "60.0", "86401", "９９", "9" * 30),
        "METRICS": ("9464", "localhost:9464", "127.0.0.1:0", ":9464"),
        "TRUSTED_PROXIES": ("nginx", "10.0.0.1/8", "10.0.0.0/8;127.0.0.1", "300.1.1.1"),
        "FRAME_ANCESTORS": ("a; sandbox",),
        "TOKEN": ("too-short", "with a space between"),
        "SCHEDULER": ("dashboard:8786", "tcp://dashboard", "tcp://dashboard:8786"),  # the last one for want of Dask
    }.items():
        for value in values:
            with monkeypatch.context() as patch:
                patch.setenv(f"MAPBENCH_{name}", value)
                with pytest.raises(hosting.SettingError, match=f"^MAPBENCH_{name}") as refused:
                    hosting.check()
                assert (repr(value) in str(refused.value)) is (name != "TOKEN"), "a token is quoted nowhere"
    monkeypatch.setenv("MAPBENCH_RUN_S", "5")
    assert main(["compare", "square"]) == INVALID
    assert capsys.readouterr().err.startswith("error: MAPBENCH_RUN_S='5'")


def test_every_setting_is_documented_with_its_default(monkeypatch):
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    page = (ROOT / "docs" / "using.md").read_text(encoding="utf-8")
    told = {}
    for variables, default in re.findall(r"^\| (`MAPBENCH_[^|]*) \|[^|]*\| ([0-9, ]+) \|$", page, re.MULTILINE):
        told |= dict(zip(re.findall(r"`MAPBENCH_(\w+)`", variables), default.split(", "), strict=True))
    limits = hosting.limits()
    assert told == {name.upper(): str(getattr(limits, name)) for name in NAMES}


PAGES = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
TOPS = ("mapbench", "measure", "strategies", "views", "workloads")
SOURCES = (ROOT / "app.py", *(path for top in TOPS for path in (ROOT / top).rglob("*.py")))
# By which processes find their own, and what the tests' own commands read: no settings of the app.
OTHERS = {"MAPBENCH_FAMILY", "MAPBENCH_BROWSER", "MAPBENCH_VENV"}


def in_texts(paths: Iterable[Path]) -> set[str]:
    texts = "".join(path.read_text("utf-8") for path in paths)
    return set(re.findall(r"\bMAPBENCH_[A-Z_]*[A-Z]\b", texts)) - OTHERS


def test_settings_of_the_docs_are_those_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some names are put together of parts: every command looks those up."""
    looked_up: set[str] = set()
    getitem = type(os.environ).__getitem__
    noting = lambda own, name: looked_up.add(name) or getitem(own, name)  # noqa: E731
    monkeypatch.setattr(type(os.environ), "__getitem__", noting)
    assert main(["export", str(ROOT / "tests/data/run_1.json"), "--csv", "--into", "-"]) == 0
    read = in_texts(SOURCES) | {name for name in looked_up if name.startswith("MAPBENCH_")}
    assert len(read) > 20 and read == in_texts(PAGES)
    tables = "".join((ROOT / "docs" / page).read_text("utf-8") for page in ("using.md", "hosting.md"))
    assert sorted(name for name in read if f"`{name}" not in tables) == []


def test_addresses_are_of_either_family(monkeypatch):
    assert hosting.metrics() is None
    for address, read in (("127.0.0.1:9464", ("127.0.0.1", 9464)), ("[::1]:9464", ("::1", 9464))):
        monkeypatch.setenv("MAPBENCH_METRICS", address)
        assert hosting.metrics() == read
    monkeypatch.setenv("MAPBENCH_TRUSTED_PROXIES", " 127.0.0.1 , 10.0.0.0/8,2001:db8::/32,")
    assert list(map(str, hosting.proxies())) == ["127.0.0.1/32", "10.0.0.0/8", "2001:db8::/32"]
