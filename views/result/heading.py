"""The heading of a run: its case, on the page and in the browser's title, how it came out, and what it cannot tell."""

import html

import streamlit as st

from measure.claims.verdicts import summary
from measure.judge import answer, sweep_analysis
from measure.judge import verdict as verdicts
from measure.output import table
from measure.run.run import Analysis, Run
from views.result import texts
from views.ui import look


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
        return summary(run)
    return run.verdict if is_earlier(run) or not run.verdict else sweep_analysis.verdict(run)


def is_earlier(run: Run) -> bool:
    """True if a run was made by an earlier Mapbench, which weighed samples in another way."""
    return run.analysis.version < Analysis().version


def headline(words: str) -> None:
    """Draw the sentence that says how a run came out."""
    st.html(
        f'<h2 style="font-size:1.35rem;font-weight:600;line-height:1.35;margin:0;padding:0">{html.escape(words)}</h2>'
    )


def draw_function(run: Run) -> None:
    """Draw what is to be known of a function of a person's own, below the verdict."""
    if said := table.function_notes(run):
        lines = "\n".join(f"- {look.plain(note)}" for note in said)
        with st.container(key="about_function"):
            st.caption(f"{look.plain(table.function_head(run))}\n{lines}")


def doubts(run: Run) -> list[str]:
    """Return the warnings of a sweep or of claims as a whole, as sentences; those of its parts stand with them."""
    return [look.sentence(warning.message) for warning in run.warnings]


def draw_doubts(sentences: list[str], key: str = "doubts") -> None:
    """Draw what a run cannot tell, where its verdict is read: whole, and never folded away."""
    if sentences:
        with st.container(gap="xsmall", key=key):
            for words in sentences:
                st.markdown(f":orange[:material/warning:] {look.plain(words)}")
