"""The right results on disk: a process computes them once, and those that check a strategy read them."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from measure.subject import ragged

_NAMES = "reference.pickle"


def save(folder: Path, results: Any) -> None:
    """Write a nest of arrays, each into a file of its own."""
    import tensorflow as tf

    numbers = iter(range(10**6))

    def save_one(leaf: Any) -> Any:
        if (parts := ragged.parts(leaf)) is not None:
            return tf.nest.map_structure(save_one, parts)
        path = folder / f"reference_{next(numbers)}.npy"
        np.save(path, np.asarray(leaf))
        return path.name

    (folder / _NAMES).write_bytes(pickle.dumps(tf.nest.map_structure(save_one, results)))


def read(folder: Path) -> Any:
    """Return the nest: memory maps, but for text, which NumPy keeps as Python objects."""
    import tensorflow as tf

    def read_one(name: str) -> np.ndarray:
        path = folder / name
        try:
            return np.load(path, mmap_mode="r")
        except ValueError:
            return np.load(path, allow_pickle=True)

    return tf.nest.map_structure(read_one, pickle.loads((folder / _NAMES).read_bytes()))
