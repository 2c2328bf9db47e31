"""Values that are kept in memory while there is room for them: bounded in bytes, least recently used out first."""

import gc
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

_T = TypeVar("_T")
# These are there whether somebody keeps a value or not.
_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
# A number with its place in a list: lists of samples are nearly all of a run.
_NUMBER_BYTES = 32


class Cache:
    """A cache of values that nobody changes, of at most so many bytes. Safe to use from any thread.

    A value that alone takes more is made anew for everyone who asks."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """The bytes that are kept now."""
        return self._bytes

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        value = make()  # outside of the lock: at worst two threads make the same
        size = weight((key, value), self._most_bytes)
        with self._lock:
            self._drop(key)
            self._values[key] = (value, size)
            self._bytes += size
            while self._bytes > self._most_bytes:
                self._drop(key if size > self._most_bytes else next(iter(self._values)))
        return value

    def _drop(self, key: Hashable) -> None:
        self._bytes -= self._values.pop(key, (None, 0))[1]


def weight(value: object, most: int) -> int:
    """The bytes that a value takes with all that it refers to; beyond ``most`` they are counted no further."""
    total, seen, waiting = 0, set[int](), [value]
    while waiting and total <= most:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, _SHARED):
            continue
        seen.add(id(item))
        total += sys.getsizeof(item)
        if type(item) is list and item and type(item[0]) in (float, int):
            total += _NUMBER_BYTES * len(item)
        else:
            waiting += gc.get_referents(item)
    return total
