"""The heading of a run: its case, on the page and in the browser's title, and the sentence on how it came out."""

import html

import streamlit as st

from measure.judge import answer
from measure.model.run import Run


def title(run: Run) -> None:
    """Draw the case of a run, and have the browser's title name it."""
    words = answer.heading(run)
    st.set_page_config(page_title=f"{words} · Mapbench")
    st.html(
        '<h1 style="font-size:1.1rem;font-weight:600;line-height:1.3;margin:0;padding:0;overflow-wrap:anywhere">'
        f"{html.escape(words)}</h1>"
    )


def headline(words: str) -> None:
    """Draw the sentence that says how a run came out."""
    st.html(
        f'<h2 style="font-size:1.35rem;font-weight:600;line-height:1.35;margin:0;padding:0">{html.escape(words)}</h2>'
    )
