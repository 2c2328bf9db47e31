"""What is kept in memory is bounded in bytes."""

import sys
import threading

from measure.model.cache import Cache, weight

MIB = 2**20


def test_a_value_is_made_once_and_the_one_that_was_asked_for_longest_ago_goes_first() -> None:
    made: list[str] = []

    def get(name: str) -> bytes:
        def make() -> bytes:
            made.append(name)
            return bytes(MIB)

        return kept.get(name, make)

    kept = Cache(3 * MIB)
    for name in ("a", "b", "a", "c", "a", "b"):
        get(name)
    assert made == ["a", "b", "c", "b"], "two and their keys fit, three do not"
    assert 2 * MIB < kept.bytes <= 3 * MIB


def test_a_value_that_is_larger_than_all_room_is_not_kept_and_moves_nobody_out() -> None:
    kept = Cache(MIB)
    small = kept.get("small", lambda: bytes(1000))
    assert len(kept.get("large", lambda: bytes(2 * MIB))) == 2 * MIB
    assert kept.get("small", lambda: b"") is small and kept.bytes < 2000


def test_a_value_weighs_what_it_refers_to_as_well() -> None:
    """What is there anyway does not count, nor does one object twice."""
    for value, least in (({"samples": [0.5] * 1000}, 32_000), ([[str(number) for number in range(1000)]], 50_000)):
        assert least < weight(value, MIB) < 4 * least
    assert weight([bytes(1000)] * 100, MIB) < 3000
    assert weight([sys, threading.Thread, Cache], MIB) < 200
