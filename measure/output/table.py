"""A run as a table of text, for a terminal."""

from collections.abc import Sequence

from measure.judge import limit
from measure.judge.analysis import ranks, rows
from measure.model import text
from measure.model.run import Control, Measurement, Run
from measure.statistics import break_even

HEAD = (
    *("rank", "strategy", "latency", "95 % interval", "× limit", "first call"),
    *("peak memory", "temporary", "largest error", "outcome"),
)
_NOTE_SIGNS = 300


def outcome(item: Measurement) -> str:
    """An outcome in a few words, with its reason where it is not ``ok``."""
    word = item.outcome.replace("_", " ")
    return f"{word}: {item.error.message}" if item.error is not None else word


def render(run: Run) -> str:
    """The table and the verdict, and what has to be known before they are trusted."""
    parts = [grid([HEAD, *body(run)]), "", run.verdict]
    parts += limits(run)
    parts += break_even.sentences(run)
    if run.control:
        parts.append(resolution(run.control))
    if warnings := notes(run):
        parts += ["", *(f"- {note}" for note in warnings), ""]
    if run.stop_reason:
        parts.append(f"{run.status}: {run.stop_reason}.")
    return "\n".join(parts)


def limits(run: Run) -> list[str]:
    """What sets the limit, whose time has fresh pages in it, and why a strategy has no multiple of it."""
    if run.limit is None:
        return []
    notes = [f"{item.strategy} is {limit.note(item)}." for item in rows(run) if limit.note(item)]
    told = f"The limit is {limit.describe(run.limit)}. {limit.fresh_pages(run)}".rstrip()
    return [told, *notes]


def notes(run: Run) -> list[str]:
    """Warnings of the run and of its strategies, each once; the names of those that share one before it."""
    found = [warning.message for warning in run.warnings]
    of: dict[str, list[str]] = {}
    for item in rows(run):
        for warning in item.warnings:
            if warning.code != "chosen" and item.strategy not in of.setdefault(warning.message, []):
                of[warning.message].append(item.strategy)
    found += [f"{', '.join(names)}: {message}" for message, names in of.items()]
    # TensorFlow's own can be a page long: the run file holds them whole.
    return [text.shortened(" ".join(note.split()), _NOTE_SIGNS) for note in found]


def body(run: Run) -> list[tuple[str, ...]]:
    """What stands under `HEAD`: one line for each strategy."""
    rank = ranks(run.ranking)
    return [_row(item, rank) for item in rows(run)]


def resolution(control: Control) -> str:
    """Which differences count as none, in a sentence."""
    return (
        f"Differences under {text.percent(control.resolution)} are ties: "
        "that is how far the same strategy, entered twice, may differ from itself in this run."
    )


def _row(item: Measurement, rank: dict[str, int]) -> tuple[str, ...]:
    latency, memory, check = item.latency, item.memory, item.correctness
    return (
        str(rank.get(item.strategy, "–")),
        item.strategy,
        text.seconds(latency.median_s) if latency else "–",
        f"{text.seconds(latency.low_s)} – {text.seconds(latency.high_s)}" if latency else "–",
        limit.shown(limit.multiple(item)),
        text.seconds(item.first_call_s),
        text.size(memory.peak_bytes) if memory else "–",
        text.size(memory.temporary_bytes) if memory else "–",
        f"{text.number(check.max_ulp)} ULP" if check and check.max_ulp is not None else "–",
        outcome(item),
    )


def grid(lines: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]) - 1)]
    return "\n".join(
        "  ".join([cell.ljust(width) for cell, width in zip(line, widths, strict=False)] + [line[-1]]).rstrip()
        for line in lines
    )
