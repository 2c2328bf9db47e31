"""A memo of frames and tables: every change of a widget draws the same ones again.

`st.cache_data` would copy each of them at every look, and both of Streamlit's caches would hash a whole run to find it.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_T = TypeVar("_T")
# Of all memos together, the least recently used out first: a page of a run asks for about ten.
_MOST_VALUES = 300
_values: OrderedDict[tuple[str, Hashable], Any] = OrderedDict()
# What is made of a run holds the run. The ids of those that were opened last and the bytes of their documents, of which
# there are as many as this, or one run.
_MOST_BYTES = 8 * 2**20
_runs: OrderedDict[str, int] = OrderedDict()
_lock = threading.Lock()


def opened(run_id: str, documents_bytes: int) -> None:
    """Make room for what is made of a run, which has keys that begin with its id."""
    with _lock:
        _runs[run_id] = documents_bytes
        _runs.move_to_end(run_id)
        while len(_runs) > 1 and sum(_runs.values()) > _MOST_BYTES:
            gone, _ = _runs.popitem(last=False)
            for place in [place for place in _values if isinstance(place[1], tuple) and place[1][0] == gone]:
                del _values[place]


@dataclass(frozen=True)
class Memo:
    """A place in the one memory of all pages, by its name: Streamlit runs a page's file anew at every interaction. For
    values that nobody changes."""

    name: str

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        place = (self.name, key)
        with _lock:
            if place in _values:
                _values.move_to_end(place)
                return _values[place]
        value = make()  # outside of the lock: at worst two sessions make the same
        with _lock:
            _values[place] = value
            if len(_values) > _MOST_VALUES:
                _values.popitem(last=False)
        return value


def packed(frame: "pd.DataFrame") -> "pa.Table":
    """The frame in the form in which it is sent: this work is done once, and not at every change of a widget."""
    import pyarrow as pa  # not needed by the choices, which are on the page before anything is packed

    return pa.Table.from_pandas(frame, preserve_index=False)
