"""Mapbench in Python: what is sent of functions, of elements, of a title and of presets."""

import copy
import functools
import importlib
import math
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mapbench import given as sending
from mapbench.given import NotSendable, given
from workloads.functions import Given

HALF = 0.5
SIZES = (2, 3)
NOTHING = -math.inf
LOCK = threading.Lock()
LARGE = np.zeros(2**20 + 1)
TITLE = "Titled here"


def halve(x):
    return math.fsum(SIZES) * x * HALF


def twice_halved(x):
    return halve(halve(x))


def triple_by(factor):
    triple = lambda x: x * factor  # noqa: E731
    return triple


def least(x):
    return min(x, NOTHING)


def same(x):
    return x


def titled(x):
    return TITLE and x


def numbers(batch=6, width=2):
    return np.ones((batch, width), np.float32)


def executed(sent: Given) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(sent.code, space)
    return space


def test_a_function_goes_as_source_with_what_it_uses():
    sent = given(twice_halved, numbers, same, same)
    assert (sent.function, sent.elems, sent.batched, sent.reference) == ("twice_halved", "numbers", "same", "same")
    assert "cloudpickle" not in sent.code and "HALF = 0.5" in sent.code and sent.code.startswith("import math\n")
    space = executed(sent)
    assert space["twice_halved"](8.0) == twice_halved(8.0)
    assert space["numbers"](batch=3).shape == (3, 2)
    assert executed(given(least, numbers, None, None))["least"](1.0) == -math.inf, "whose text is no code"


def test_what_has_no_source_is_pickled_below_what_can_be_read_of_it():
    factor = 3.0
    assert "\n# triple = lambda x: x * factor" in given(triple_by(factor), numbers, None, None).code
    for fn in (lambda x: x * 3.0, lambda x: x * factor, functools.partial(np.multiply, 3.0)):
        sent = given(fn, numbers, None, None)
        assert "cloudpickle" in sent.code and sent.function == "fn"
        assert executed(sent)[sent.function](2.0) == 6.0


def test_modules_of_the_callers_own_are_not_needed_elsewhere_and_keep_their_constants_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "module_of_mine.py").write_text("def helped(x): return x * 3.0\n\nmapped = lambda x: helped(x)\n")
    for name, factor in (("scaled", 2.0), ("scaled_batch", 3.0)):
        text = f"FACTOR = {factor}\n\n\ndef {name}(x):\n    return x * FACTOR\n"
        (tmp_path / f"module_of_{name}.py").write_text(text)
    names = ("module_of_mine", "module_of_scaled", "module_of_scaled_batch")
    with monkeypatch.context() as here:
        here.syspath_prepend(tmp_path)
        mine, one, other = map(importlib.import_module, names)
        pickled, sent = given(mine.mapped, numbers, None, None), given(one.scaled, numbers, other.scaled_batch, None)
    for name in names:
        del sys.modules[name]
    assert executed(pickled)[pickled.function](2.0) == 6.0
    space = executed(sent)
    assert (space[sent.function](1.0), space[sent.batched](1.0)) == (2.0, 3.0)


def test_a_function_of_a_library_is_imported_by_its_name_or_by_another_where_that_is_taken():
    sent = given(np.sqrt, numbers, np.emath.sqrt, copy.copy)
    assert "cloudpickle" not in sent.code and "from numpy import sqrt as sqrt\n" in sent.code
    space = executed(sent)
    assert [space[name] for name in ("sqrt", "batched", "copy")] == [np.sqrt, np.emath.sqrt, copy.copy]
    assert (sent.function, sent.batched, sent.reference) == ("sqrt", "batched", "copy")


def test_what_cannot_be_sent_is_named():
    for fn, elems, sentence in (
        (lambda x: LOCK, numbers, "^fn cannot be sent to another process: TypeError: cannot pickle"),
        (lambda x: x + LARGE, numbers, "^the functions hold 11 MiB of values, and at most 4 MiB can be sent"),
        (halve, [[1.0], [[1.0, 2.0]]], "^the elements differ in more than their lengths: give them as a tf.Ragged"),
        (halve, [object()], "^the elements hold object: numbers or text are needed"),
        (halve, {"a": {0: LARGE}}, "^the elements have the keys 0: text is needed$"),
    ):
        with pytest.raises(NotSendable, match=sentence):
            given(fn, elems, None, None)


X, Y = np.arange(6.0).reshape(3, 2), np.full((3, 2), 7.0)


def of(elems: Any) -> Any:
    sent = given(halve, elems, None, None)
    return executed(sent)[sent.elems]


def test_nests_of_arrays_are_kept_in_a_file_that_every_process_reads():
    assert np.array_equal(of(X), X)
    # The same elements are the same file, and so the same workload.
    assert given(halve, X.copy(), None, None).slug == given(halve, X, None, None).slug
    made = of({"a": {"b": X}, "c": (Y, {"d": X, "an 'e'": [b"x", b"yz", b""]}), "file": (X,)})
    assert made.keys() == {"a", "c", "file"} and isinstance(made["file"], tuple)
    assert np.array_equal(made["a"]["b"], X) and np.array_equal(made["c"][0], Y)
    assert np.array_equal(made["c"][1]["d"], X) and np.array_equal(made["file"][0], X)
    assert made["c"][1]["an 'e'"].tolist() == [b"x", b"yz", b""]
    x, (y, z) = of((X, (Y, X + 1)))
    assert np.array_equal(x, X) and np.array_equal(y, Y) and np.array_equal(z, X + 1)


def test_elements_of_different_lengths_are_kept_too(tf: Any):
    rows = [np.arange(3.0), np.zeros(0), np.arange(2.0)]
    made = of(({"deep": tf.ragged.constant([[["a"], ["b", "c"]], []])}, rows))
    assert made[0]["deep"].to_list() == [[[b"a"], [b"b", b"c"]], []]
    assert made[1].to_list() == [[0.0, 1.0, 2.0], [], [0.0, 1.0]]


def test_elements_that_are_too_many_are_refused_before_they_are_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def saved(*_: Any, **__: Any) -> None:
        raise AssertionError("they were saved")

    monkeypatch.setattr(sending.np, "savez", saved)
    rows = np.lib.format.open_memmap(tmp_path / "sparse.npy", "w+", np.float32, (5, 2**28))
    for nest in (rows, {"a": {"b": (X, rows)}}):
        with pytest.raises(NotSendable, match=r"^the elements hold \d+\.0 GiB, and at most 4 GiB can be measured"):
            given(halve, nest, None, None)


def test_title_and_presets_are_written_as_code_or_refused():
    presets = {"Small": {"batch": np.int64(2)}, "Wide": {"batch": 2, "width": 5}}
    space = executed(given(same, numbers, None, None, 'The "same"', presets))
    assert (space["TITLE"], space["PRESETS"]) == ('The "same"', presets)
    space = executed(sent := given(titled, numbers, None, None, "Another"))
    assert (space["TITLE"], space[sent.function](1)) == ("Another", 1), "it has one of its own"
    with pytest.raises(NotSendable, match=r"^presets are not valid: 'object' object cannot be interpreted"):
        given(same, numbers, None, None, "", {"Small": {"batch": object()}})  # type: ignore[dict-item]
