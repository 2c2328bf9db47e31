"""Claims with their verdicts as text: for a terminal, and as Markdown."""

import textwrap
from collections.abc import Iterator
from typing import Any

from measure.claims import known
from measure.claims.spec import QUESTIONS
from measure.claims.tries import seconds_of
from measure.claims.verdicts import of_claims, summary
from measure.machine import environment
from measure.run import markdown as markdown_text
from measure.run.run import Run

COLUMNS = ("claim", "question", "verdict", "sentence")
_LISTED = ("id", "question", "sentence", "said", "needs_gpu", "advice")
_WIDTH = 110


def listing() -> list[dict[str, Any]]:
    return [
        {name: getattr(claim, name) for name in _LISTED} | {"seconds": seconds_of([claim])}
        for claim in known.all_claims()
    ]


def listed() -> str:
    """The same for a terminal, with what trying them takes."""
    lines = []
    for question, title in QUESTIONS.items():
        lines.append(title)
        for claim in known.all_claims():
            if claim.question == question:
                lines += [f"  {claim.id} ({seconds_of([claim]):.0f} s)", *_indented(claim.sentence)]
    minutes = seconds_of(known.all_claims()) / 60
    return "\n".join([*lines, f"Trying all of them (--all) takes about {minutes:.0f} minutes."])


def render(run: Run) -> str:
    """The verdicts of a run for a terminal, by question."""
    lines, title = list[str](), ""
    for claim, verdict in of_claims(run):
        if QUESTIONS[claim.question] != title:
            lines.append(title := QUESTIONS[claim.question])
        lines += [f"  {verdict.word.upper()}  {claim.id}", *_indented(claim.sentence)]
        lines += [*_indented(verdict.sentence, "→ "), *_indented(claim.advice, "→ ")]
    return "\n".join([*lines, summary(run)])


def markdown(run: Run) -> list[str]:
    """The verdicts of a run as Markdown, in paragraphs; the words of figures are shown as they are."""
    about = (environment.machine(run.environment), f"TensorFlow {run.environment.get('tensorflow', '?')}")
    parts = [f"**{summary(run)}**", markdown_text.plain(", ".join(filter(None, (*about, run.created[:10]))))]
    cells = [
        (claim.sentence.replace("|", "\\|"), f"**{verdict.word}**", markdown_text.plain(verdict.sentence))
        for claim, verdict in of_claims(run)
    ]
    return [*parts, markdown_text.grid(("claim", "here", "seen"), cells)]


def rows(run: Run) -> Iterator[tuple[str, ...]]:
    """The verdicts of a run, one row of `COLUMNS` each."""
    yield from ((claim.id, claim.question, verdict.word, verdict.sentence) for claim, verdict in of_claims(run))


def _indented(words: str, sign: str = "") -> list[str]:
    return textwrap.wrap(words, _WIDTH, initial_indent=f"    {sign}", subsequent_indent=" " * (4 + len(sign)))
