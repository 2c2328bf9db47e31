"""The reason for a strategy's speed, in a sentence that ties what happened in a call to the measured gap.

Pure functions of a run and of what its `measure.model.why` says of its strategies.
"""

import re

from measure.judge import limit
from measure.judge.mechanism import asides, counted, counts, is_compiled, mechanism
from measure.model import op_names, text
from measure.model.run import Limit, Measurement, Run
from measure.model.why import Explained, known
from measure.statistics import intervals
from measure.statistics.intervals import Ratio
from measure.statistics.levels import shown_levels

# Ops that write what is there already into one tensor.
_COPIES = re.compile(r"(TensorListStack|TensorListConcat|Pack|ConcatV2|concat|stack)$")
# A copy of the output is not worth a word where pages and small buffers weigh as much.
_LEAST_BYTES = 64 * 1024
_WRONG = "; it is wrong, as its row says"
_OUTCOMES = {
    "failed": "failed",
    "out_of_memory": "ran out of memory",
    "timeout": "did not finish in its time",
    "cancelled": "was cancelled",
    "not_run": "has not run",
}


def explainable(run: Run) -> list[Measurement]:
    """The measurements of a run that can be explained."""
    return [item for item in run.measurements if item.outcome in ("ok", "wrong") and not item.twin_of]


def progress(run: Run) -> tuple[int, int]:
    """Return the number of strategies that have been explained, with figures or the reason why there are none, and the
    number of those that can be."""
    return sum(isinstance(item.why, Explained) for item in explainable(run)), len(explainable(run))


def sentences(run: Run) -> dict[str, str]:
    """One sentence for each strategy of the run, by slug: what its call consists of, and what the fastest one does
    instead."""
    return {slug: f"`{slug}` {predicate}" for slug, predicate in predicates(run).items()}


def predicates(run: Run) -> dict[str, str]:
    """The `sentences` without their subject, for where the strategy's name stands before them."""
    levels = shown_levels(run)
    best = run.measurement(run.ranking[0][0]) if run.ranking else None
    roof = run.limit if limit.tells(run) else None
    by_slug = {}
    for item in run.measurements:
        if item.twin_of:
            continue
        ratio = None
        if best is not None and item is not best and item.strategy in levels and best.strategy in levels:
            ratio = intervals.ratio(levels[item.strategy], levels[best.strategy], run.analysis.confidence)
        by_slug[item.strategy] = _predicate(item, run.request.size.get("batch", 0), best, ratio, roof)
    return by_slug


def sentence(
    item: Measurement,
    batch: int,
    best: Measurement | None,
    ratio: Ratio | None,
    roof: Limit | None = None,
) -> str:
    """One sentence of a strategy's call, its memory, and the gap to the fastest; that of the fastest is the gap to the
    limit, ``roof``. ``batch``: elements of a call, 0 where that is not known; ``ratio``: to ``best``."""
    return f"`{item.strategy}` {_predicate(item, batch, best, ratio, roof)}"


def _predicate(item: Measurement, batch: int, best: Measurement | None, ratio: Ratio | None, roof: Limit | None) -> str:
    if item.outcome == "unsupported":
        return f"cannot run: {_reason(item)}."
    why = known(item.why)
    if why is None and item.outcome in _OUTCOMES:
        reason = _reason(item)
        return f"{_OUTCOMES[item.outcome]}, so there is no steady call to explain{reason and f': {reason}'}."
    if why is None:
        note = item.why.note.rstrip(".")
        state = f"could not be explained: {note}" if note else "has not been explained yet"
        return f"{state}{_WRONG if item.outcome == 'wrong' else ''}."
    gap = _gap(best, ratio) or _to_the_limit(item, roof)
    parts = (mechanism(item, why, batch), *asides(why), copies(item), gap)
    return f"{'; '.join(filter(None, parts))}{_WRONG if item.outcome == 'wrong' else ''}."


def _reason(item: Measurement) -> str:
    return item.error.message.rstrip(". ") if item.error is not None else ""


def _gap(best: Measurement | None, ratio: Ratio | None) -> str:
    if best is None or ratio is None:
        return ""
    if ratio.low <= 1 <= ratio.high:
        gap = f"that cannot be told apart from `{best.strategy}`"
    else:
        low, high = text.times(ratio.low), text.times(ratio.high)
        gap = f"that takes {text.factor(ratio.ratio)} [{low}, {high}] as long as `{best.strategy}`"
    why = known(best.why)
    if why is None:
        return gap
    runs = counted(why.kernel_count, "kernel") if is_compiled(why) and why.kernel_count else counts(why)
    return f"{gap} with its {runs}" if runs else gap


def _to_the_limit(item: Measurement, roof: Limit | None) -> str:
    """«that is 1.90 × the theoretical floor (estimate), memory-bound»; nothing where ``roof`` says nothing of it."""
    times = limit.multiple(item)
    if roof is None or times is None:
        return ""
    return f"that is {text.factor(times)} the {limit.FLOOR}{f', {roof.term}' if roof.term else ''}"


def copies(item: Measurement) -> str:
    """«peaks at 2.00 × its output because `TensorListStack` copies it», where the memory says so."""
    memory = item.memory
    if memory is None or memory.output_bytes < _LEAST_BYTES or memory.peak_bytes < 1.4 * memory.output_bytes:
        return ""
    peak = f"it peaks at {text.factor(memory.peak_bytes / memory.output_bytes)} its output"
    holders = [(op_names.kind(row.op), row.bytes) for row in memory.at_peak]
    for name, size in holders:
        if _COPIES.search(name) and 0.9 <= size / memory.output_bytes <= 1.1:
            return f"{peak} because `{name}` copies it"
    if holders and holders[0][0]:
        return f"{peak}, of which `{holders[0][0]}` holds {text.size(holders[0][1])}"
    return peak
