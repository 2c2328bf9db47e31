"""Elements that are alive here as a file that every process reads, and as the code that makes them of it."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workloads import elems_file
from workloads.discovery import without_addresses

_LOADED = elems_file.NAME


class NotSendable(ValueError):
    """A function or its elements cannot be handed to another process: the message names what and why."""

    def __init__(self, message: str) -> None:
        super().__init__(without_addresses(message))


def store(elems: Any) -> str:
    """Keep arrays or ragged tensors, or a nest of dicts and tuples of them; the code that makes them again, by the name
    of `elems_file.NAME`. Raises `NotSendable` with a sentence."""
    arrays: list[np.ndarray] = []
    made = _expression(elems, arrays)
    _check_bytes(arrays)
    with tempfile.TemporaryDirectory() as folder:
        if made == f'{_LOADED}["0"]':
            file = Path(folder, "elems.npy")
            np.save(file, arrays[0])
            return elems_file.store(str(file))
        file = Path(folder, "elems.npz")
        np.savez(file, **{str(place): array for place, array in enumerate(arrays)})  # type: ignore[arg-type]
        return f"{elems_file.store(str(file))}\n{_LOADED} = {made}"


def _check_bytes(arrays: Sequence[Any]) -> None:
    if (held := sum(getattr(array, "nbytes", 0) for array in arrays)) > elems_file.MOST_BYTES:
        raise NotSendable(f"the elements hold {elems_file.too_many(held)}")


def _expression(part: Any, arrays: list[np.ndarray], pad: str = "") -> str:
    """The code of a nest of what was loaded; its arrays are added to ``arrays``. ``pad`` is the indentation of the line
    that it stands in."""
    inner = f"{pad}    "

    def written(one: Any) -> str:
        return _expression(one, arrays, inner)

    if isinstance(part, dict):
        for name in part:
            if not isinstance(name, str):
                raise NotSendable(f"the elements have {name!r} of type {type(name).__name__} as a key: text is needed")
        return "{\n" + "".join(f"{inner}{name!r}: {written(one)},\n" for name, one in part.items()) + f"{pad}}}"
    if isinstance(part, tuple):
        return "(\n" + "".join(f"{inner}{written(one)},\n" for one in part) + f"{pad})"
    _check_bytes(part if isinstance(part, list) else [part])  # before they are copied
    if (values_and_splits := _ragged(part)) is not None:
        values, splits = values_and_splits
        held = _held(_array(values), arrays)
        rows = ", ".join(_held(one, arrays) for one in splits)
        return f"tensorflow.RaggedTensor.from_nested_row_splits({held}, [{rows}])"
    return _held(_array(part), arrays)


def _held(array: np.ndarray, arrays: list[np.ndarray]) -> str:
    """The code of one array of the file. Its name there is its place: what keys are called does not matter to NumPy."""
    arrays.append(array)
    return f'{_LOADED}["{len(arrays) - 1}"]'


def _ragged(part: Any) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """Return the values and row splits of a ``tf.RaggedTensor``, or of a list of arrays whose lengths differ; None for
    anything else."""
    if hasattr(part, "nested_row_splits"):
        return np.asarray(part.flat_values), [np.asarray(one) for one in part.nested_row_splits]
    try:
        if not isinstance(part, list) or len({np.shape(row) for row in part}) <= 1:
            return None
        rows = [np.asarray(row) for row in part]
        return np.concatenate(rows), [np.cumsum([0, *map(len, rows)])]
    except (TypeError, ValueError):
        raise NotSendable("the elements differ in more than their lengths: give them as a tf.RaggedTensor") from None


def _array(part: Any) -> np.ndarray:
    array = np.asarray(part)
    if array.dtype == object:
        if not all(isinstance(one, bytes | str) for one in array.flat):
            raise NotSendable(f"the elements hold {type(array.flat[0]).__name__}: numbers or text are needed")
        array = array.astype("S")
    return array.astype("S") if array.dtype.kind == "U" else array
