"""The strategies that did not work and what is to be known of the others: identical sentences once, with all names."""

import html
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from measure.judge import warnings
from measure.judge.findings import Findings, Row
from measure.output.notes import by_sentence, in_words
from measure.run.run import Run
from views.ui import look

# Sentences of ours are shorter, but for one that quotes an error; TensorFlow's are often longer.
_NOTE_SIGNS, _QUOTED_SIGNS = 600, 220
_FEW_NOTES = 3
_TEXT_HEIGHT, _SHORT = 260, 500  # pixels, and the signs of a text that needs no more
_BY_OUTCOME = {
    "timeout": "It did not finish in its time.",
    "unsupported": "It cannot run this way.",
    "wrong": "Its values differ from the reference.",
}


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
    ended = [(row, (row.status, _sentence(row, result.run))) for row in result.rows if row.failed]
    return [Failure(alike, *words, _details(alike, words[1])) for alike, words in by_sentence(ended)]


def notes(result: Findings) -> list[str]:
    """Return all warnings but those that stand beside the verdict, plain text, each once: noise first. TensorFlow's own
    are cut, since one can be a page long; the table holds it whole."""
    noise: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    for row in result.rows:
        for warning in row.measurement.warnings:
            words = look.shortened(warning.message, _QUOTED_SIGNS if warning.code == "tensorflow" else _NOTE_SIGNS)
            (noise if warning.code in warnings.OF_A_LATENCY else others).append((row.slug, words))
    of_run = (warning.message for warning in result.run.warnings if warning.code not in warnings.OF_A_VERDICT)
    return [*in_words(noise), *dict.fromkeys(of_run), *in_words(others)]


def draw(result: Findings, prefix: str) -> None:
    """Draw what did not work, folded where its row says why, then what a person should know before trusting a figure.
    ``prefix`` begins the keys."""
    if failed := failures(result):
        count = sum(len(failure.rows) for failure in failed)
        with st.expander(
            f"Did not work ({count})", expanded=count == len(result.rows), icon=":material/error:",
            key=f"{prefix}failures",
        ):  # fmt: skip
            for number, failure in enumerate(failed):
                _failure(failure, f"{prefix}detail_{number}")
    if sentences := notes(result):
        codes = {warning.code for row in result.rows for warning in row.measurement.warnings}
        is_open = len(sentences) <= _FEW_NOTES or not codes.isdisjoint(warnings.OF_A_LATENCY)
        label, names = f"Good to know ({len(sentences)})", [row.slug for row in result.rows]
        with st.expander(label, expanded=is_open, icon=":material/info:"):
            st.caption("\n".join(f"- {look.named(note, names)}" for note in sentences))


def _failure(failure: Failure, key: str) -> None:
    names = "".join(look.strategy_html(row.slug, row.mapper, row.mode) for row in failure.rows)
    count = f" ({len(failure.rows)})" if len(failure.rows) > 1 else ""
    st.html(
        '<div style="display:flex;flex-wrap:wrap;gap:0 1em">'
        f"<b>{html.escape(failure.status)}{count}</b>{names}</div>"
        f'<div style="overflow-wrap:anywhere">{html.escape(failure.sentence)}</div>'
    )
    if failure.details:
        label = "Full text" if len(failure.details) == 1 else f"Full texts ({len(failure.details)})"
        with st.expander(label, type="compact", key=key, on_change="rerun") as opened:
            if opened.open:
                for slugs, text in failure.details:
                    if len(failure.details) > 1:
                        st.caption(look.plain(", ".join(slugs)))
                    height: int | Literal["content"] = "content" if len(text) < _SHORT else _TEXT_HEIGHT
                    st.code(text, language=None, wrap_lines=True, height=height)


def _sentence(row: Row, run: Run) -> str:
    if row.outcome == "out_of_memory":  # the details have what could not be allocated, which differs
        if (limit := run.request.memory_limit_mib) is None:
            return "It needs more memory than there is: a smaller batch may fit."
        return f"It needs more memory than the limit of {limit:,} MiB: a smaller batch or a higher limit may help."
    sentence = "" if row.sentence.endswith(":") else row.sentence  # TensorFlow's «Graph execution error:»
    sentence = sentence or _BY_OUTCOME.get(row.outcome, "It ended without a message.")
    return " ".join((look.sentence(sentence), *tolerances(row))) if row.outcome == "wrong" else sentence


def tolerances(row: Row) -> list[str]:
    """Return a sentence for each wrong tensor of an output: the error that it may have. Plain text."""
    sentences = []
    check = row.measurement.correctness
    for leaf in check.leaves if check else []:
        allowed = [f"{name} {look.error_size(leaf.tolerance.get(name))}" for name in ("absolute", "relative")
                   if isinstance(leaf.tolerance.get(name), (int, float)) and leaf.tolerance.get(name)]  # fmt: skip
        if allowed and (leaf.mismatch_share or leaf.nan_mismatches):
            sentences.append(f"In {leaf.path or 'the output'} an error of {' or '.join(allowed)} is allowed.")
    return sentences


def _details(rows: list[Row], sentence: str) -> list[tuple[list[str], str]]:
    errors = ((row.slug, row.measurement.error) for row in rows)
    texts = [(slug, error.detail.strip() or error.message.strip()) for slug, error in errors if error]
    return by_sentence((slug, text) for slug, text in texts if text.rstrip(".") not in sentence)
