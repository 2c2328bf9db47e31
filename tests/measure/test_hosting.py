"""The settings of a hosted server: defaults, what is valid, and one sentence where a value is not."""

import re
from dataclasses import fields

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
    assert all(getattr(limits, name) is not None for name in NAMES)


def test_a_value_that_is_not_valid_is_one_sentence_before_anything_is_started(monkeypatch, capsys):
    for value in ("abc", "-1", "5", "1e3", "60.0", "86401", "９９", "9" * 30):
        monkeypatch.setenv("MAPBENCH_RUN_S", value)
        said = f"MAPBENCH_RUN_S={value!r} is not valid: a whole number from 10 to 86400 is needed"
        with pytest.raises(hosting.SettingError, match=re.escape(said)):
            hosting.limits()
    assert main(["compare", "square"]) == INVALID
    assert capsys.readouterr().err == f"error: {said}\n"


def test_every_setting_is_documented_with_its_default(monkeypatch):
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    page = (ROOT / "docs" / "using.md").read_text(encoding="utf-8")
    told = {}
    for variables, default in re.findall(r"^\| (`MAPBENCH_[^|]*) \|[^|]*\| ([0-9, ]+) \|$", page, re.MULTILINE):
        told |= dict(zip(re.findall(r"`MAPBENCH_(\w+)`", variables), default.split(", "), strict=True))
    limits = hosting.limits()
    assert told == {name.upper(): str(getattr(limits, name)) for name in NAMES}


def test_an_address_of_metrics_is_of_either_family_or_said_to_make_no_sense(monkeypatch):
    assert hosting.metrics() is None
    for address, read in (("127.0.0.1:9464", ("127.0.0.1", 9464)), ("[::1]:9464", ("::1", 9464))):
        monkeypatch.setenv("MAPBENCH_METRICS", address)
        assert hosting.metrics() == read
    for text in ("9464", "localhost:9464", "127.0.0.1:0", ":9464"):
        monkeypatch.setenv("MAPBENCH_METRICS", text)
        with pytest.raises(hosting.SettingError, match=r"an address of this machine and a port are needed, as 127"):
            hosting.check()
