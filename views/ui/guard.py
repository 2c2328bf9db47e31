"""A guard that keeps tracebacks off a page: an unexpected exception becomes one sentence, its traceback a log entry."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

_log = logging.getLogger("mapbench.page")


@contextmanager
def calm(part: str) -> Iterator[None]:
    """Show a sentence in place of a part of the page where drawing it fails. Streamlit's own control flow passes."""
    try:
        yield
    except Exception:
        _log.exception("%s could not be drawn", part)
        st.error(
            f"A fault in Mapbench kept {part} from being shown. Measuring is not affected; the server's log holds the "
            "details. Reloading the page may help.",
            icon=":material/error:",
        )
