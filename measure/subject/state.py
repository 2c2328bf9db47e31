"""State that code keeps from one call of its functions to the next, as values that can be compared."""

import collections
import contextlib
import functools
import hashlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from workloads.own import without_addresses

_PLAIN = (int, float, complex, str, bytes, list, tuple, dict, set, collections.deque)
# The state of a `tf.random.Generator`, which a batch of draws advances otherwise, and what an assignment returns.
_NOT_STATE = ("StateVar", "UnreadVariable")
# The module that classes name which were pickled with all that they are.
_PICKLED = "__main__"


def of_python(module: ModuleType) -> dict[str, str]:
    """Name → text of what the code holds in plain Python and NumPy, attributes of its own classes among it."""
    texts = {}
    for name, value in _held(module).items():
        if name.startswith("__"):
            continue
        kind = value if isinstance(value, type) else type(value)
        if kind.__module__ in (module.__name__, _PICKLED) and hasattr(value, "__dict__"):
            value = {key: part for key, part in vars(value).items() if isinstance(part, _PLAIN) and key[:2] != "__"}
        if isinstance(value, np.ndarray):
            texts[name] = hashlib.sha256(value.tobytes()).hexdigest()
        elif isinstance(value, _PLAIN) and "<tf.Variable" not in (text := repr(value)):
            texts[name] = without_addresses(text)
    return texts


def _held(module: ModuleType) -> dict[str, Any]:
    """Name → value of what the code holds: in its module, in closures, and in the globals that functions of it use
    where these are of no module, as those of pickled functions are."""
    held = dict(vars(module))
    owners = dict.fromkeys(held, id(vars(module)))
    waiting, seen = list(held.values()), set[int]()
    while waiting:
        value = waiting.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, functools.partial):
            waiting.append(value.func)
        elif isinstance(value, MethodType):
            waiting.append(value.__func__)
            held.setdefault(f"the object of {value.__name__}", value.__self__)
        elif isinstance(value, FunctionType) and not _is_of_a_library(value, module):
            for name, owner, part in _beside(value, module):
                if owners.setdefault(name, owner) != owner:
                    name = f"{name} of {value.__name__}"
                held[name] = part
                waiting.append(part)
    return held


def _is_of_a_library(function: FunctionType, module: ModuleType) -> bool:
    # Of its globals, since a decorator of a library's gives its function the name and the module of another.
    there = sys.modules.get(function.__globals__.get("__name__", ""))
    return there is not None and there is not module and function.__globals__ is vars(there)


def _beside(function: FunctionType, module: ModuleType) -> Iterator[tuple[str, int, Any]]:
    """Name, where it is bound, and value of what a function uses that is not the module's."""
    space = function.__globals__
    if space is not vars(module):
        yield from ((name, id(space), space[name]) for name in sorted(_names(function.__code__) & set(space)))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # it is empty yet
            yield name, id(cell), cell.cell_contents


def _names(code: CodeType) -> set[str]:
    """The names that code uses, those of the functions in it too."""
    inner = (_names(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*inner)


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

    named, held = [], _held(module)
    for name, value in held.items():
        if isinstance(value, tf.lookup.experimental.MutableHashTable | tf.lookup.experimental.DenseHashTable):
            keys, values = map(np.asarray, value.export())
            order = sorted(range(len(keys)), key=lambda at: keys[at].tolist())
            named += [(f"the keys of {name}", keys[order]), (f"the values of {name}", values[order])]
    names = {id(value): name for name, value in held.items()}
    for variable in made:
        name = str(variable.name).partition(":")[0]
        if not name.startswith(_NOT_STATE):
            named.append((names.get(id(variable), name), np.array(variable)))
    return named
