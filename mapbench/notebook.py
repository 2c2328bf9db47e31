"""The notebook that this runs in, if any: IPython is asked where it is there already, and is not loaded to be asked."""

import importlib
import sys
from collections.abc import Callable
from typing import Any


def display() -> Callable[..., Any] | None:
    """Return IPython's function that shows things below a cell of a notebook; None where there is no notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):  # a terminal's shell has none
        return None
    shown: Callable[..., Any] = importlib.import_module("IPython.display").display
    return shown
