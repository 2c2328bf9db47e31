"""The strategies that did not work and what is to be known of the others: identical sentences once, with all names."""

import html
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from measure.judge import rules
from measure.output.notes import by_sentence, in_words
from measure.output.rows import Row
from measure.run.run import Run
from views.result import correctness, texts
from views.ui import look

# Sentences of ours are shorter, but for one that quotes an error; what TensorFlow says is often longer.
_NOTE_SIGNS, _SAID_SIGNS = 600, 220
_FEW_NOTES = 3
_TEXT_HEIGHT, _SHORT = 260, 500  # pixels, and the signs of a text that needs no more


@dataclass(frozen=True)
class Failure:
    """Strategies that ended alike: the outcome's words, and the sentence that a person can act on. ``details``: texts
    that say more, each with the names of the strategies that it is of."""

    rows: list[Row]
    status: str
    sentence: str
    details: list[tuple[list[str], str]]


def failures(rows: list[Row], run: Run) -> list[Failure]:
    """Return the strategies that did not end well, those of one outcome and sentence together; plain text."""
    ended = [(row, (row.status, _sentence(row, run))) for row in rows if row.failed]
    return [Failure(alike, *said, _details(alike, said[1])) for alike, said in by_sentence(ended)]


def notes(rows: list[Row], run: Run) -> list[str]:
    """Return all warnings but those that stand beside the verdict, plain text, each once: noise first. What TensorFlow
    said is cut, since it can be a page long; the table holds it whole."""
    noise: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    for row in rows:
        for warning in row.measurement.warnings:
            said = look.shortened(warning.message, _SAID_SIGNS if warning.code == "tensorflow" else _NOTE_SIGNS)
            (noise if warning.code in rules.OF_A_LATENCY else others).append((row.slug, said))
    of_run = (warning.message for warning in run.warnings if warning.code not in rules.OF_A_VERDICT)
    return [*in_words(noise), *dict.fromkeys(of_run), *in_words(others)]


def has_noise(rows: list[Row]) -> bool:
    """True if a latency that is shown is in doubt."""
    return any(warning.code in rules.OF_A_LATENCY for row in rows for warning in row.measurement.warnings)


def draw(rows: list[Row], run: Run, prefix: str) -> None:
    """Draw what did not work, then what a person should know before trusting a figure. ``prefix`` begins the keys."""
    if failed := failures(rows, run):
        st.markdown(texts.DID_NOT_WORK.format(count=sum(len(failure.rows) for failure in failed)))
        with st.container(border=True, gap="small", key=f"{prefix}failures"):
            for number, failure in enumerate(failed):
                _failure(failure, f"{prefix}detail_{number}")
    if said := notes(rows, run):
        open_ = len(said) <= _FEW_NOTES or has_noise(rows)
        with st.expander(texts.GOOD_TO_KNOW.format(count=len(said)), expanded=open_, icon=":material/info:"):
            st.caption("\n".join(f"- {look.plain(note)}" for note in said))


def _failure(failure: Failure, key: str) -> None:
    names = "".join(look.strategy_html(row.slug, row.mapper, row.mode) for row in failure.rows)
    count = f" ({len(failure.rows)})" if len(failure.rows) > 1 else ""
    st.html(
        '<div style="display:flex;flex-wrap:wrap;gap:0 1em">'
        f"<b>{html.escape(failure.status)}{count}</b>{names}</div>"
        f'<div style="overflow-wrap:anywhere">{html.escape(failure.sentence)}</div>'
    )
    if failure.details:
        label = texts.FULL_TEXT if len(failure.details) == 1 else texts.FULL_TEXTS.format(count=len(failure.details))
        with st.expander(label, type="compact", key=key, on_change="rerun") as opened:
            if opened.open:
                for slugs, text in failure.details:
                    if len(failure.details) > 1:
                        st.caption(look.plain(", ".join(slugs)))
                    height: int | Literal["content"] = "content" if len(text) < _SHORT else _TEXT_HEIGHT
                    st.code(text, language=None, wrap_lines=True, height=height)


def _sentence(row: Row, run: Run) -> str:
    if row.outcome == "out_of_memory":
        return _too_much(run)  # what could not be allocated differs from strategy to strategy: the details have it
    sentence = "" if row.sentence.endswith(":") else row.sentence  # TensorFlow's «Graph execution error:»
    sentence = sentence or texts.BY_OUTCOME.get(row.outcome, texts.NO_MESSAGE)
    if row.outcome == "wrong":
        sentence = " ".join((look.sentence(sentence), *correctness.tolerances(row.measurement)))
    return sentence


def _too_much(run: Run) -> str:
    limit = run.request.memory_limit_mib
    if limit is None:
        return texts.OUT_OF_MEMORY
    return texts.OVER_LIMIT.format(limit=limit)


def _details(rows: list[Row], sentence: str) -> list[tuple[list[str], str]]:
    errors = ((row.slug, row.measurement.error) for row in rows)
    said = [(slug, error.detail.strip() or error.message.strip()) for slug, error in errors if error]
    return by_sentence((slug, text) for slug, text in said if text.rstrip(".") not in sentence)
