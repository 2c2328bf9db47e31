"""Times of day in the reader's zone."""

from types import SimpleNamespace

import pytest
import streamlit as st

from views.ui import times


@pytest.mark.parametrize(
    ("zone", "told", "named"),
    [
        ("Europe/Berlin", "2025-01-15 10:30", "Europe/Berlin"),
        ("Asia/Kolkata", "2025-01-15 15:00", "Asia/Kolkata"),
        ("America/New_York", "2025-01-15 04:30", "America/New_York"),
        (None, "2025-01-15 09:30", "UTC"),
        ("Mars/Olympus", "2025-01-15 09:30", "UTC"),
        ("../etc", "2025-01-15 09:30", "UTC"),
    ],
)
def test_a_time_is_in_the_readers_zone_which_is_named(monkeypatch, zone, told, named):
    monkeypatch.setattr(st, "context", SimpleNamespace(timezone=zone))
    assert [times.local(f"2025-01-15T09:30:12{ending}") for ending in ("Z", "+00:00", "")] == [told] * 3
    assert times.zone() == named


def test_a_text_that_is_no_time_stays():
    assert times.local("some day") == "some day"
