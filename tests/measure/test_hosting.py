"""The settings of a hosted server: defaults, what is valid, and one sentence where a value is not."""

import os
import re
import subprocess
import sys
from dataclasses import fields

import pytest

from measure import hosting
from measure.__main__ import INVALID, main
from measure.hosting import Limits
from tests.browser import ROOT


@pytest.fixture(autouse=True)
def _at_home(monkeypatch):
    for name in [name for name in os.environ if name.startswith("MAPBENCH_") and name[9:].lower() in _names()]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("MAPBENCH_HOSTED", raising=False)


def _names():
    return {field.name for field in fields(Limits)}


def test_at_home_nothing_is_limited_but_by_what_is_set(monkeypatch):
    assert hosting.limits() == Limits()
    monkeypatch.setenv("MAPBENCH_STORE_MIB", "500")
    assert hosting.limits() == Limits(store_mib=500)


def test_a_hosted_server_has_every_limit_and_a_setting_changes_it(monkeypatch):
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    monkeypatch.setenv("MAPBENCH_RUN_S", " 45 ")
    limits = hosting.limits()
    assert limits.run_s == 45 and limits.sweep_s == 300
    assert all(getattr(limits, name) is not None for name in _names())


@pytest.mark.parametrize("value", ["abc", "-1", "5", "1e3", "60.0", "86401", "９９", "9" * 30])
def test_a_value_that_is_not_valid_is_one_sentence(monkeypatch, value):
    monkeypatch.setenv("MAPBENCH_RUN_S", value)
    said = f"MAPBENCH_RUN_S={value!r} is not valid: a whole number of seconds from 10 to 86400 is needed"
    with pytest.raises(hosting.SettingError, match=re.escape(said)):
        hosting.limits()


def test_the_command_line_says_it_before_anything_is_started(monkeypatch, capsys):
    monkeypatch.setenv("MAPBENCH_ADDRESS_RUNS", "none")
    assert main(["compare", "square"]) == INVALID
    said = "error: MAPBENCH_ADDRESS_RUNS='none' is not valid: a whole number from 1 to 1000 is needed\n"
    assert capsys.readouterr().err == said


def test_the_server_says_it_and_does_not_start(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true", "--server.port", "0"],
        cwd=ROOT,
        env={**os.environ, "MAPBENCH_HOME": str(tmp_path), "MAPBENCH_STORE_MIB": "2 GB"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0
    assert ended.stderr.splitlines()[-1] == (
        "error: MAPBENCH_STORE_MIB='2 GB' is not valid: a whole number of MiB from 16 to 16777216 is needed"
    )
    assert "Traceback" not in ended.stdout + ended.stderr


def test_every_setting_is_documented_with_its_default(monkeypatch):
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    page = (ROOT / "docs" / "using.md").read_text(encoding="utf-8")
    told = {}
    for variables, default in re.findall(r"^\| (`MAPBENCH_[^|]*) \|[^|]*\| ([0-9, ]+) \|$", page, re.MULTILINE):
        told |= dict(zip(re.findall(r"`MAPBENCH_(\w+)`", variables), default.split(", "), strict=True))
    limits = hosting.limits()
    assert told == {name.upper(): str(getattr(limits, name)) for name in _names()}
