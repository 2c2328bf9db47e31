"""A guard that keeps tracebacks off a page: an unexpected exception becomes one sentence, its traceback a log entry."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from views.ui import texts

_log = logging.getLogger("mapbench.page")


@contextmanager
def calm(what: str) -> Iterator[None]:
    """Show a sentence in place of ``what`` where drawing it fails. Streamlit's own control flow passes through."""
    try:
        yield
    except Exception:
        _log.exception("%s could not be drawn", what)
        st.error(texts.FAULT.format(part=what), icon=":material/error:")
