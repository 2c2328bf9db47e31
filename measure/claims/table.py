"""Claims with their verdicts as text: for a terminal, and as Markdown."""

import textwrap
from collections.abc import Iterator
from typing import Any

from measure.claims import known, verdicts
from measure.claims.spec import QUESTIONS, Claim
from measure.claims.tries import seconds_of, summary
from measure.machine import environment
from measure.model import markdown as markdown_text
from measure.model.run import Run

COLUMNS = ("claim", "question", "verdict", "sentence")
# In place of a verdict, where a run from elsewhere has a claim of its own.
NOT_KNOWN = "not known here"
_WIDTH = 110


def tried(run: Run) -> list[Claim]:
    """The claims of a run that are known here, in the order of their questions."""
    ids = set(run.claims or [])
    return [claim for claim in known.all_claims() if claim.id in ids]


def not_known(run: Run) -> list[str]:
    """The ids of a run's claims that are not known here."""
    return [claim_id for claim_id in run.claims or () if known.get(claim_id) is None]


def listed() -> str:
    """All claims by question, with what trying them takes."""
    lines = []
    for question, title in QUESTIONS.items():
        lines.append(title)
        for claim in known.all_claims():
            if claim.question == question:
                seconds = sum(need.seconds for need in claim.needs)
                lines += _wrapped(f"{claim.id} ({seconds:.0f} s)", claim.sentence)
    seconds = seconds_of(known.all_claims())
    return "\n".join([*lines, f"Trying all of them (--all) takes about {seconds / 60:.0f} minutes."])


def listing() -> list[dict[str, Any]]:
    """All claims as data, in the same order."""
    return [
        {
            "id": claim.id,
            "question": claim.question,
            "sentence": claim.sentence,
            "said": list(claim.said),
            "needs_gpu": claim.needs_gpu,
            "advice": claim.advice,
            "seconds": sum(need.seconds for need in claim.needs),
        }
        for claim in known.all_claims()
    ]


def render(run: Run) -> str:
    """The verdicts of a run for a terminal, grouped by question."""
    lines: list[str] = []
    for question, title in QUESTIONS.items():
        asked = [claim for claim in tried(run) if claim.question == question]
        lines += [title] if asked else []
        for claim in asked:
            verdict = verdicts.of_run(claim, run)
            lines += _wrapped(f"{verdict.word.upper()}  {claim.id}", claim.sentence)
            lines += [*_arrow(verdict.sentence), *_arrow(claim.advice)]
    lines += [f"{NOT_KNOWN.upper()}  {claim_id}" for claim_id in not_known(run)]
    return "\n".join([*lines, summary(run)])


def markdown(run: Run) -> list[str]:
    """The verdicts of a run as Markdown, in paragraphs; the words of figures are shown as they are."""
    about = (environment.machine(run.environment), f"TensorFlow {run.environment.get('tensorflow', '?')}")
    parts = [f"**{summary(run)}**", markdown_text.plain(", ".join(filter(None, (*about, run.created[:10]))))]
    if run.status != "complete":
        reason = markdown_text.plain(run.stop_reason) or "no reason is known"
        parts.append(f"The run is not complete ({run.status}): {reason}.")
    cells = []
    for claim in tried(run):
        verdict = verdicts.of_run(claim, run)
        sentence = claim.sentence.replace("|", "\\|")
        cells.append((sentence, f"**{verdict.word}**", markdown_text.plain(verdict.sentence)))
    cells += [(markdown_text.plain(claim_id), f"**{NOT_KNOWN}**", "") for claim_id in not_known(run)]
    return [*parts, markdown_text.grid(("claim", "here", "seen"), cells)]


def rows(run: Run) -> Iterator[tuple[str, ...]]:
    """The verdicts of a run, one row of `COLUMNS` each."""
    for claim in tried(run):
        verdict = verdicts.of_run(claim, run)
        yield claim.id, claim.question, verdict.word, verdict.sentence
    yield from ((claim_id, "", NOT_KNOWN, "") for claim_id in not_known(run))


def _arrow(words: str) -> list[str]:
    return textwrap.wrap(words, _WIDTH, initial_indent="    → ", subsequent_indent="      ")


def _wrapped(head: str, words: str) -> Iterator[str]:
    yield f"  {head}"
    yield from textwrap.wrap(words, _WIDTH, initial_indent="    ", subsequent_indent="    ")
