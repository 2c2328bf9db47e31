"""A comparison as a table of text, for a terminal."""

from collections.abc import Sequence

from msgspec import UNSET

from measure.judge import limit, payoff
from measure.judge.findings import Findings, findings, strategies_of
from measure.judge.verdict import verdict
from measure.output import columns
from measure.output.notes import in_words
from measure.run import text
from measure.run.run import Control, Run

_NOTE_SIGNS = 300
# Of a sentence of ours, which may quote an error.
_FUNCTION_SIGNS = 600


def render(run: Run) -> str:
    """The table, the verdict, and all that has to be known before they are trusted."""
    result = findings(run)
    parts = [grid(cells(result)), "", verdict(result)]
    parts += limits(run)
    parts += filter(None, [payoff.sentence(payoff.stretches_of(result))])
    if run.control and len(result.ranked) > 1:
        parts.append(resolution(run.control))
    if about := about_function(run):
        parts += ["", *about]
    if warnings := notes(run):
        parts += ["", *(f"- {note}" for note in warnings)]
    if about or warnings:
        parts.append("")
    if run.stop_reason:
        parts.append(f"{run.status}: {run.stop_reason}.")
    return "\n".join(parts)


def limits(run: Run) -> list[str]:
    """Sentences of what sets the limit, whose time has fresh pages in it, and why a strategy has no multiple of it."""
    if run.limit is None:
        return []
    notes = [f"{item.strategy} is {limit.note(item)}." for item in strategies_of(run) if limit.note(item)]
    first = f"The {limit.FLOOR} is {limit.describe(run.limit)}. {limit.fresh_pages(run)}".rstrip()
    return [first, *notes]


def about_function(run: Run) -> list[str]:
    """The sentences on a function of a person's own as a list below its name; nothing where a workload was measured."""
    notes = function_notes(run)
    return [function_head(run), *(f"- {note}" for note in notes)] if notes else []


def function_head(run: Run) -> str:
    """The words above `function_notes`, whose sentences begin with «It»."""
    return f"About {run.request.title}:"


def function_notes(run: Run) -> list[str]:
    """Sentences on what was derived of a function of a person's own, and on what that means for mapping it: without
    them its wrong and its missing strategies are riddles. Plain text."""
    own = run.request.own
    notes = [] if own is UNSET else own.facts.notes
    return [text.shortened(" ".join(note.split()), _FUNCTION_SIGNS) for note in notes]


def notes(run: Run) -> list[str]:
    """Warnings of the run and of its strategies, each once; the names of those that share one before it."""
    of_run = [warning.message for warning in run.warnings]
    of_strategies = in_words(
        (item.strategy, warning.message)
        for item in strategies_of(run)
        for warning in item.warnings
        if warning.code != "chosen"
    )
    # TensorFlow's own can be a page long: the run file holds them whole.
    return [text.shortened(" ".join(note.split()), _NOTE_SIGNS) for note in (*of_run, *of_strategies)]


def cells(result: Findings) -> list[list[str]]:
    """The table of strategies: its heads, and a list for each strategy."""
    shown = columns.of("text", result)
    return [[column.text for column in shown], *([column.written(row) for column in shown] for row in result.rows)]


def resolution(control: Control) -> str:
    """The sentence that says which differences count as none."""
    differs = text.percent(abs(control.ratio - 1))
    return (
        f"This run tells differences between its fastest down to {text.percent(control.resolution)}; "
        f"{control.strategy}, entered twice, differed from itself by {differs}."
    )


def grid(lines: Sequence[Sequence[str]]) -> str:
    """The lines as a table whose columns are as wide as they need to be."""
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]) - 1)]
    return "\n".join(
        "  ".join([cell.ljust(width) for cell, width in zip(line, widths, strict=False)] + [line[-1]]).rstrip()
        for line in lines
    )
