"""The heading of a run: its case, on the page and in the browser's title, and the sentence on how it came out."""

import html

import streamlit as st

from measure.claims import tries
from measure.judge import answer
from measure.judge import verdict as verdicts
from measure.model.run import Analysis, Run
from measure.sweep import findings
from views.result import texts


def title(run: Run) -> None:
    """Draw the case of a run, and have the browser's title name it."""
    words = answer.heading(run)
    st.set_page_config(page_title=texts.PAGE_TITLE.format(case=words))
    st.html(
        '<h1 style="font-size:1.1rem;font-weight:600;line-height:1.3;margin:0;padding:0;overflow-wrap:anywhere">'
        f"{html.escape(words)}</h1>"
    )


def verdict(run: Run) -> str:
    """Return the sentence that says how a run came out; empty where there is none.

    It is made anew of what was measured, since a file from elsewhere may say anything. That of an earlier sweep is the
    file's: samples were weighed in another way.
    """
    if run.kind == "compare":
        return verdicts.verdict(run)
    if run.kind == "claims":
        return tries.summary(run)
    return run.verdict if is_earlier(run) or not run.verdict else findings.verdict(run)


def is_earlier(run: Run) -> bool:
    """True if a run was made by an earlier Mapbench, which weighed samples in another way."""
    return run.analysis.version < Analysis().version


def headline(words: str) -> None:
    """Draw the sentence that says how a run came out."""
    st.html(
        f'<h2 style="font-size:1.35rem;font-weight:600;line-height:1.35;margin:0;padding:0">{html.escape(words)}</h2>'
    )
