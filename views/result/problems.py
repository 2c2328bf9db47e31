"""The strategies that did not work and what is to be known of the others: identical sentences once, with all names."""

import html
from dataclasses import dataclass

import streamlit as st

from measure.judge import warnings
from measure.judge.findings import Findings, Row
from measure.output.table import by_sentence, in_words
from measure.run.run import Run
from views.ui import look

# TensorFlow's sentences are often longer than ours.
_QUOTED_SIGNS = 220
_FEW_NOTES, _MOST_NOTES, _MOST_FAILURES = 3, 50, 50


@dataclass(frozen=True)
class Failure:
    """Strategies that ended alike: the outcome's words, and the sentence that a person can act on. ``details``: texts
    that say more, each with the names of the strategies that it is of."""

    rows: list[Row]
    status: str
    sentence: str
    details: list[tuple[list[str], str]]


def failures(result: Findings) -> list[Failure]:
    """Return the strategies that did not end well, those of one outcome and sentence together; plain text."""
    alike = by_sentence((row, (row.status, _sentence(row, result.run))) for row in result.rows if row.failed)
    return [Failure(rows, status, sentence, _details(rows, sentence)) for rows, (status, sentence) in alike]


def notes(result: Findings) -> list[str]:
    """Return all warnings but those that stand beside the verdict, plain text, each once: noise first. Long ones
    are cut, since one of TensorFlow's can be a page long; the table holds it whole."""
    of_rows = []
    for row in result.rows:
        for warning in row.measurement.warnings:
            most = _QUOTED_SIGNS if warning.code == "tensorflow" else look.MOST_SIGNS
            of_rows.append((warning.code, row.slug, look.shortened(warning.message, most)))
    noise = [(slug, words) for code, slug, words in of_rows if code in warnings.OF_A_LATENCY]
    others = [(slug, words) for code, slug, words in of_rows if code not in warnings.OF_A_LATENCY]
    beside = warnings.OF_A_VERDICT - (set(warnings.NOISE) if result.is_usable else set())
    others_of_run = (item.message for item in result.run.warnings if item.code not in beside)
    of_run = (look.shortened(words, look.MOST_SIGNS) for words in others_of_run)
    return [*in_words(noise), *dict.fromkeys(of_run), *in_words(others)]


def nothing_worked(result: Findings) -> bool:
    """True if all strategies failed."""
    return bool(result.rows) and all(row.failed for row in result.rows)


def draw_failures(result: Findings, prefix: str) -> None:
    """Draw what did not work, folded where its row says why. ``prefix`` begins the keys."""
    if not (failed := failures(result)):
        return
    count = sum(len(failure.rows) for failure in failed)
    with st.expander(
        f"Did not work ({count})", expanded=nothing_worked(result), icon=":material/error:", key=f"{prefix}failures"
    ):
        if len(failed) > _MOST_FAILURES:
            st.caption(f"{len(failed) - _MOST_FAILURES:,} more reasons stand in the exported file.")
        for number, failure in enumerate(failed[:_MOST_FAILURES]):
            names = "".join(look.strategy_html(row.slug, row.mapper, row.mode) for row in failure.rows)
            st.html(
                f'<div style="display:flex;flex-wrap:wrap;gap:0 1em"><b>{html.escape(failure.status)}</b>{names}</div>'
                f'<div style="overflow-wrap:anywhere">{html.escape(failure.sentence)}</div>'
            )
            if failure.details:
                label, key = f"Whole text ({len(failure.details)})", f"{prefix}detail_{number}"
                with st.expander(label, type="compact", key=key, on_change="rerun") as opened:
                    for slugs, text in failure.details if opened.open else ():
                        st.caption(look.plain(", ".join(slugs)))
                        st.code(text, language=None, wrap_lines=True, height=260 if len(text) > 500 else "content")


def draw_notes(result: Findings) -> None:
    """Draw what a person should know before trusting a figure."""
    if sentences := notes(result):
        codes = {warning.code for row in result.rows for warning in row.measurement.warnings}
        is_open = len(sentences) <= _FEW_NOTES or not codes.isdisjoint(warnings.OF_A_LATENCY)
        with st.expander(f"Good to know ({len(sentences)})", expanded=is_open, icon=":material/info:"):
            names = [row.slug for row in result.rows]
            lines = [f"- {look.named(note, names)}" for note in sentences[:_MOST_NOTES]]
            if (more := len(sentences) - _MOST_NOTES) > 0:
                lines.append(f"- {more:,} more stand in the exported file")
            st.caption("\n".join(lines))


def _sentence(row: Row, run: Run) -> str:
    if row.outcome == "out_of_memory":  # the details have what could not be allocated, which differs
        if (limit := run.request.memory_limit_mib) is None:
            return "It needs more memory than there is: a smaller batch may fit."
        return f"It needs more memory than the limit of {limit:,} MiB: a smaller batch or a higher limit may help."
    announces = not row.sentence or row.sentence.endswith(":")  # as TensorFlow's «Graph execution error:»
    return "It ended without a message." if announces else look.shortened(row.sentence, look.MOST_SIGNS)


def _details(rows: list[Row], sentence: str) -> list[tuple[list[str], str]]:
    errors = ((row.slug, row.measurement.error) for row in rows)
    texts = [(slug, error.detail.strip() or error.message.strip()) for slug, error in errors if error]
    return by_sentence((slug, text) for slug, text in texts if text.rstrip(".") not in sentence)
