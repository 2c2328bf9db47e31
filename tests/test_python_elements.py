"""Mapbench in Python: nests of elements, and elements that are too many."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mapbench import elements
from mapbench.elements import NotSendable, kept
from workloads import elems_file


def executed(elems: Any) -> Any:
    space: dict[str, Any] = {}
    # The code of ragged elements has this import before it.
    exec(f"import tensorflow\n{text}" if "tensorflow." in (text := kept(elems)) else text, space)
    return space[elems_file.NAME]


X, Y, Z = np.arange(6.0).reshape(3, 2), np.full((3, 2), 7.0), np.full((3, 2), 8.0)


def test_a_tuple_of_a_tuple_is_a_nest_and_not_stacked():
    x, (y, z) = executed((X, (Y, Z)))
    assert np.array_equal(x, X) and np.array_equal(y, Y) and np.array_equal(z, Z)


def test_dicts_and_tuples_may_be_in_each_other():
    made = executed({"a": {"b": X}, "c": (Y, {"d": Z, "an 'e'": [b"x", b"yz", b""]}), "file": (X,)})
    assert made.keys() == {"a", "c", "file"}
    assert np.array_equal(made["a"]["b"], X) and np.array_equal(made["c"][0], Y)
    assert np.array_equal(made["c"][1]["d"], Z)
    assert made["c"][1]["an 'e'"].tolist() == [b"x", b"yz", b""]
    assert isinstance(made["file"], tuple) and np.array_equal(made["file"][0], X)


def test_ragged_elements_may_be_deep_in_a_nest():
    made = executed(({"words": [np.arange(2.0), np.zeros(0), np.arange(1.0)]}, X))
    assert made[0]["words"].to_list() == [[0.0, 1.0], [], [0.0]]
    assert np.array_equal(made[1], X)


def test_a_key_that_is_no_text_is_refused():
    with pytest.raises(NotSendable, match=r"^the elements have 0 of type int as a key: text is needed$"):
        kept({"a": {0: X}})


class Tensor:
    """A tensor of no library: it tells its shape and dtype, and is never to be converted."""

    shape = (2**20, 2**11)
    dtype = type("DType", (), {"size": 4})

    def __array__(self, *_: Any) -> None:
        raise AssertionError("it was copied")


@pytest.mark.parametrize("nest", [lambda x: x, lambda x: {"a": {"b": (X, x)}}, lambda x: (X, [x, x])])
def test_elements_that_are_too_many_are_refused_before_they_are_copied(
    nest: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def saved(*_: Any, **__: Any) -> None:
        raise AssertionError("they were saved")

    monkeypatch.setattr(elements.np, "save", saved)
    monkeypatch.setattr(elements.np, "savez", saved)
    monkeypatch.setattr(elements, "_array", saved)
    rows = np.lib.format.open_memmap(tmp_path / "sparse.npy", "w+", np.float32, (5, 2**28))
    with pytest.raises(NotSendable, match=r"^the elements hold \d+\.0 GiB, and at most 4 GiB can be measured: give"):
        kept(nest(rows))


def test_a_tensor_that_is_too_large_is_not_converted():
    with pytest.raises(NotSendable, match=r"^the elements hold 8\.0 GiB"):
        kept({"a": Tensor()})


def test_a_list_of_too_many_numbers_is_refused_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(elems_file, "MOST_BYTES", 2**10)
    assert executed([1.0] * 100).tolist() == [1.0] * 100
    with pytest.raises(NotSendable, match=r"^the elements hold"):
        kept([1.0] * 129)
