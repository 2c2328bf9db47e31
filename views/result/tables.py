"""The doubts of a comparison, and the table of its break-even points. Pure."""

import pandas as pd

from measure.judge import break_even, payoff, rules
from measure.run import text
from measure.run.run import Run
from views.result import texts
from views.ui import look

_NOTE_SIGNS = 600  # of a sentence of ours, which are shorter but for one that quotes an error


def break_even_frame(run: Run) -> pd.DataFrame:
    """A line for each compiled strategy, a column for each eager one: when the first has cost less than the second."""
    known = payoff.table(run)
    names = {m.strategy: look.label(m.strategy, m.mode) for m in run.measurements}
    head = [texts.COMPILED, *(texts.AGAINST_EAGER.format(strategy=names[slug]) for slug in known.eager)]
    rows = zip(known.compiled, known.cells, strict=True)
    return pd.DataFrame([[names[slug], *map(payoff.words, pairs)] for slug, pairs in rows], columns=head)


def break_even_note(run: Run) -> str:
    """Sentences of what the table of break-even points holds, and what is not in it; plain text."""
    note = texts.BREAK_EVEN_NOTE.format(confidence=text.percent(run.analysis.confidence))
    start_s = break_even.runtime_start_s(run.measurements)
    if start_s is not None:
        note += texts.RUNTIME_START.format(start=look.seconds(start_s))
    return note


def doubts(run: Run) -> list[str]:
    """Sentences for beside the verdict, of what the run cannot tell and what to do about it; plain text."""
    sentences = [look.sentence(warning.message) for warning in run.warnings if warning.code in rules.OF_A_VERDICT]
    return [look.shortened(words, _NOTE_SIGNS) for words in sentences]
