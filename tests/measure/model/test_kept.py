"""What is kept in memory is bounded in bytes."""

import sys
import threading

import pytest

from measure.model.kept import Kept, weight

MIB = 2**20


def test_a_value_is_made_once_and_the_one_that_was_asked_for_longest_ago_goes_first() -> None:
    made: list[str] = []

    def get(name: str) -> bytes:
        def make() -> bytes:
            made.append(name)
            return bytes(MIB)

        return kept.get(name, make)

    kept = Kept(3 * MIB)
    for name in ("a", "b", "a", "c", "a", "b"):
        get(name)
    assert made == ["a", "b", "c", "b"], "two and their keys fit, three do not"
    assert 2 * MIB < kept.bytes <= 3 * MIB


def test_a_value_that_is_larger_than_all_room_is_not_kept_and_moves_nobody_out() -> None:
    kept = Kept(MIB)
    small = kept.get("small", lambda: bytes(1000))
    assert len(kept.get("large", lambda: bytes(2 * MIB))) == 2 * MIB
    assert kept.get("small", lambda: b"") is small and kept.bytes < 2000


@pytest.mark.parametrize(
    ("value", "least"),
    [
        ({"samples": [0.5] * 1000}, 32_000),
        ([[str(number) for number in range(1000)]], 50_000),
        (type("Own", (), {})(), 40),
    ],
)
def test_a_value_weighs_what_it_refers_to_as_well(value: object, least: int) -> None:
    assert least < weight(value, MIB) < 4 * least


def test_what_is_there_anyway_does_not_count_nor_does_one_object_twice() -> None:
    shared = bytes(1000)
    assert weight([shared] * 100, MIB) < 3000
    assert weight([sys, pytest.fixture, Kept], MIB) < 200


def test_counting_ends_where_the_rest_does_not_matter() -> None:
    seen = []

    class Counted:
        def __sizeof__(self) -> int:
            seen.append(self)
            return MIB

    assert weight([Counted() for _ in range(1000)], 3 * MIB) > 3 * MIB and len(seen) < 6


def test_threads_that_ask_at_once_leave_the_count_right() -> None:
    kept = Kept(20_000)

    def ask() -> None:
        for number in range(500):
            kept.get(number % 37, lambda: bytes(1000))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = [kept.get(number, lambda: bytes(1000)) for number in range(37)]
    assert len(held) == 37 and 15_000 < kept.bytes <= 20_000
