"""State that code keeps from one call of its functions to the next, as values that can be compared."""

import collections
import contextlib
import hashlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from workloads.own import without_addresses

_PLAIN = (int, float, complex, str, bytes, list, tuple, dict, set, collections.deque)
# The state of a `tf.random.Generator`, which a batch of draws advances otherwise, and what an assignment returns.
_NOT_STATE = ("StateVar", "UnreadVariable")


def of_python(module: ModuleType) -> dict[str, str]:
    """Name → text of what the code holds in plain Python and NumPy, attributes of its own classes among it."""
    texts = {}
    for name, value in vars(module).items():
        if name.startswith("__"):
            continue
        kind = value if isinstance(value, type) else type(value)
        if kind.__module__ == module.__name__:
            value = {key: part for key, part in vars(value).items() if isinstance(part, _PLAIN) and key[:2] != "__"}
        if isinstance(value, np.ndarray):
            texts[name] = hashlib.sha256(value.tobytes()).hexdigest()
        elif isinstance(value, _PLAIN) and "<tf.Variable" not in (text := repr(value)):
            texts[name] = without_addresses(text)
    return texts


@contextlib.contextmanager
def variables_made() -> Iterator[list[Any]]:
    """Collect the variables of TensorFlow, Keras' among them, that are made meanwhile."""
    from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

    made: list[Any] = []
    original = BaseResourceVariable.__init__

    def watching(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        made.append(self)

    BaseResourceVariable.__init__ = watching
    try:
        yield made
    finally:
        BaseResourceVariable.__init__ = original


def of_tensorflow(module: ModuleType, made: list[Any]) -> list[tuple[str, np.ndarray]]:
    """Names and values of the tables that the code holds, and of the variables that were made for it; in the same order
    each time, since Keras numbers its layers on."""
    import tensorflow as tf

    named = []
    for name, value in vars(module).items():
        if isinstance(value, tf.lookup.experimental.MutableHashTable | tf.lookup.experimental.DenseHashTable):
            keys, values = map(np.asarray, value.export())
            order = sorted(range(len(keys)), key=lambda at: keys[at].tolist())
            named += [(f"the keys of {name}", keys[order]), (f"the values of {name}", values[order])]
    names = {id(value): name for name, value in vars(module).items()}
    for variable in made:
        name = str(variable.name).partition(":")[0]
        if not name.startswith(_NOT_STATE):
            named.append((names.get(id(variable), name), np.array(variable)))
    return named
