"""A few of the files and links of `fuzz`: each is refused or shown."""

from tests.benchmarks import fuzz
from views.pages import opening


def test_files_and_links_that_nobody_would_make_are_refused_or_shown(tmp_path):
    with fuzz.hosted(tmp_path):
        assert [one for one in map(fuzz.attempt, range(40)) if one[2]] == []


def test_what_is_raised_and_what_a_page_has_caught_are_faults(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz.imports, "read", lambda *_: 1 / 0)
    monkeypatch.setattr(opening, "find", lambda *_: 1 / 0)
    with fuzz.hosted(tmp_path):
        faults = [fuzz.attempt(seed)[2] for seed in range(40)]
    assert all("ZeroDivisionError" in fault for fault in faults[1::2]) and any(faults[::2])
