"""Times of day in the reader's zone."""

from types import SimpleNamespace

import pytest
import streamlit as st

from views.ui import times


def test_a_time_is_in_the_readers_zone_which_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for zone, told, named in (
        ("Asia/Kolkata", "2025-01-15 15:00", "Asia/Kolkata"),
        ("America/New_York", "2025-01-15 04:30", "America/New_York"),
        (None, "2025-01-15 09:30", "UTC"),
        ("../etc", "2025-01-15 09:30", "UTC"),
    ):
        monkeypatch.setattr(st, "context", SimpleNamespace(timezone=zone))
        assert [times.local(f"2025-01-15T09:30:12{ending}") for ending in ("Z", "+00:00", "")] == [told] * 3
        assert times.zone() == named
    assert times.local("some day") == "some day", "a text that is no time stays"
