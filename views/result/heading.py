"""The heading of a run: its case, on the page and in the browser's title, how it came out, and what it cannot tell."""

import html
from collections.abc import Sequence

import streamlit as st

from measure.judge import answer, warnings
from measure.judge.findings import Findings
from measure.judge.lines import readable
from measure.output import table
from measure.run.run import Run
from views.ui import look


def title(run: Run) -> None:
    """Draw the case of a run, and have the browser's title name it."""
    words = answer.heading(run)
    st.set_page_config(page_title=f"{words} · Mapbench")
    _heading(1, "1.1rem", html.escape(words))


def headline(words: str, names: Sequence[str] = ()) -> None:
    """Draw the sentence that says how a run came out, with the ``names`` of strategies in code font."""
    _heading(2, "1.25rem", look.named_html(words, names))


def _heading(level: int, size: str, inner: str) -> None:
    style = f"font-size:{size};font-weight:600;line-height:1.4;margin:0;padding:0;overflow-wrap:anywhere"
    st.html(f'<h{level} style="{style}">{inner}</h{level}>')


def draw_function(run: Run) -> None:
    """Draw what is to be known of a function of a person's own, below the verdict."""
    if about := table.about_function(run):
        st.caption("\n".join(table.listed([*map(look.plain, about)])))


def doubts_of(result: Findings) -> list[str]:
    """Return what a comparison cannot tell. Noise is none where the answer is usable, or where the headline is that."""
    shown = warnings.OF_A_VERDICT - (set(warnings.NOISE) if result.is_usable or not result.tells else set())
    return [look.sentence(warning.message) for warning in result.run.warnings if warning.code in shown]


def doubts(run: Run) -> list[str]:
    """Return what a sweep or claims cannot tell, each warning once: of a sweep's points with the first one that has it,
    and how many more do; then those of the whole. Those of claims' evidence stand with it."""
    at: dict[str, list[str]] = {}
    for point in run.points:
        for warning in point.warnings:
            if warning.code in warnings.OF_A_VERDICT:
                at.setdefault(warning.code, []).append(f"at {readable(point.at)}: {warning.message}")
    sentences = []
    for first, *others in at.values():
        more = f" Likewise at {len(others)} more point{'s' if len(others) > 1 else ''}." if others else ""
        sentences.append(look.sentence(first) + more)
    return sentences + [look.sentence(warning.message) for warning in run.warnings if warning.code not in at]


def draw_doubts(sentences: list[str], key: str = "doubts") -> None:
    """Draw what a run cannot tell, where its verdict is read: never folded away."""
    if sentences:
        with st.container(gap="xsmall", key=key):
            for words in sentences:
                st.markdown(f":orange[:material/warning:] {look.plain(look.shortened(words, look.MOST_SIGNS))}")
