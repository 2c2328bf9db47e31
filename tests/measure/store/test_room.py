"""The room that runs take: bounded, the oldest go first, what is pinned or looked at stays, what is gone is said."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from measure.run.run import Run
from measure.store import store
from tests import synthetic
from tests.keeping import put

MIB, MOST = 2**20, 24 * 2**20


def heavy(number: int) -> Run:
    """A run of some 1 MiB that nothing makes smaller."""
    return replace(synthetic.run(f"{number:024x}"), measurements=[], ranking=[], stop_reason=os.urandom(MIB).hex())


@pytest.fixture
def kept(tmp_path: Path) -> store.Store:
    return store.Store(tmp_path, most_bytes=MOST)


def numbers(kept: store.Store) -> list[int]:
    return sorted(int(run_id, 16) for run_id in kept.ids())


def on_disk(home: Path) -> int:
    return sum(path.stat().st_size for path in home.glob("runs.db*"))


def test_runs_and_imports_stay_under_their_bytes_and_the_oldest_go_first(kept: store.Store, tmp_path: Path):
    for number in range(24):
        put(kept, heavy(number)) if number % 2 else kept.add(heavy(number))
        assert on_disk(tmp_path) <= MOST
    left = numbers(kept)
    assert left == list(range(left[0], 24)) and 10 < len(left) < 20, "no more go than have to"
    assert kept.look(f"{0:024x}") is None


def test_without_a_bound_nothing_goes_and_the_room_of_what_is_deleted_is_given_back(tmp_path: Path):
    kept = store.Store(tmp_path)
    for number in range(10):
        put(kept, heavy(number))
    assert numbers(kept) == list(range(10))
    before = on_disk(tmp_path)
    kept.delete([f"{number:024x}" for number in range(10)])
    put(kept, synthetic.run("f" * 24))  # what is written next cuts the journal
    assert on_disk(tmp_path) < before / 2


def test_what_is_pinned_or_goes_on_stays(kept: store.Store):
    for number in range(5):
        put(kept, heavy(number), owner="ann")
    assert kept.pin([f"{0:024x}", "e" * 24], True) == [f"{0:024x}"]
    put(kept, synthetic.partial(2, "f" * 24), live=True)
    for number in range(5, 16):
        put(kept, heavy(number))
    left = numbers(kept)
    assert 0 in left and int("f" * 24, 16) in left and not {1, 2, 3} & set(left)
    assert [entry.id for entry in kept.entries() if entry.pinned] == [f"{0:024x}"]
    assert kept.pin([f"{0:024x}"], False) == [f"{0:024x}"]
    for number in range(16, 34):
        put(kept, heavy(number))
    assert 0 not in numbers(kept), "it goes in the end, as all others do"


def test_only_an_owner_pins_and_not_more_than_half_of_the_room(kept: store.Store):
    for number in range(12):
        put(kept, heavy(number), owner="ann")
    ids = [f"{number:024x}" for number in range(12)]
    assert kept.pin(ids, True, owner="bob") == []
    with pytest.raises(ValueError, match="more than half of this server's room"):
        kept.pin(ids, True, owner="ann")
    assert not any(entry.pinned for entry in kept.entries()), "none of them is"
    assert kept.pin(ids[:3], True, owner="ann") == ids[:3]
