"""A memo of frames and tables: every change of a widget draws the same ones again.

`st.cache_data` would copy each of them at every look, and both of Streamlit's caches would hash a whole run to find it.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_T = TypeVar("_T")
_MOST = 64


class Memo:
    """A bounded cache, least recently used out first. For values that nobody changes."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()  # outside of the lock: at worst two sessions compute the same
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value


def packed(frame: "pd.DataFrame") -> "pa.Table":
    """Return a frame in the form in which it is sent, so that this work is done once and not at every change of a
    widget."""
    import pyarrow as pa  # not needed by the choices, which are on the page before anything is packed

    return pa.Table.from_pandas(frame, preserve_index=False)
