"""The reason for a strategy's speed: what runs in its call, where the time goes, and the gap to the fastest. Pure
functions of a run and of what its `measure.model.why` has of its strategies.
"""

import re

from measure.judge import limit
from measure.model import text
from measure.model.run import Limit, Measurement, Run
from measure.model.why import Explained, Why, explained, op_count, op_rows, shares
from measure.statistics import intervals
from measure.statistics.levels import shown_levels

_DATASET = re.compile(r"Dataset(V\d+)?$|^DatasetToSingleElement$")
_PYTHON_OPS = ("PyFunc", "EagerPyFunc", "PyFuncStateless")
_LOOPS = ("While", "StatelessWhile")
# Of the time of ops, an op that takes this share is named.
_MOST = 0.5
# Memory is worth a word where the peak is so many times the output, and no buffer is as small as a page or two.
_LARGE_PEAK, _LEAST_BYTES = 1.4, 64 * 1024
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
    """One sentence for each strategy of the run, by slug."""
    return {slug: f"`{slug}` {predicate}" for slug, predicate in predicates(run).items()}


def predicates(run: Run) -> dict[str, str]:
    """The `sentences` without their subject, for where the strategy's name stands before them."""
    levels = shown_levels(run)
    best = run.ranking[0][0] if run.ranking else ""
    roof = run.limit if limit.tells(run) else None
    by_slug = {}
    for item in run.measurements:
        if item.twin_of:
            continue
        gap = _to_the_limit(item, roof)
        if item.strategy != best and item.strategy in levels and best in levels:
            ratio = intervals.ratio(levels[item.strategy], levels[best], run.analysis.confidence)
            low, high = text.times(ratio.low), text.times(ratio.high)
            gap = f"that takes {text.factor(ratio.ratio)} [{low}, {high}] as long as `{best}`"
            if ratio.low <= 1 <= ratio.high:
                gap = f"that cannot be told apart from `{best}`"
        by_slug[item.strategy] = _predicate(item, gap)
    return by_slug


def _predicate(item: Measurement, gap: str) -> str:
    reason = item.error.message.rstrip(". ") if item.error is not None else ""
    wrong = _WRONG if item.outcome == "wrong" else ""
    why = explained(item.why)
    if item.outcome == "unsupported":
        return f"cannot run: {reason}."
    if why is None and item.outcome in _OUTCOMES:
        return f"{_OUTCOMES[item.outcome]}, so there is no steady call to explain{reason and f': {reason}'}."
    if why is None:
        note = item.why.note.rstrip(".")
        return f"could not be explained: {note}{wrong}." if note else f"has not been explained yet{wrong}."
    parts = (f"{_ops(why)}: {_time(why)}", *_causes(why), at_peak(item), gap)
    return f"{'; '.join(filter(None, parts))}{wrong}."


def _ops(why: Why) -> str:
    """«runs 1,005 ops, most of their time in `Mul`»; «runs 300 ops and 2 kernels on the GPU»."""
    counts = [_counted(op_count(why), "op")] if op_count(why) else []
    if why.kernel_count:
        counts.append(_counted(why.kernel_count, "kernel") + (" on the GPU" if why.in_streams_s else " of XLA's"))
    if not counts:
        return "runs no op of TensorFlow's"
    rows = why.kernels if why.in_streams_s else [*op_rows(why), *why.kernels]
    longest = max(rows, key=lambda row: row.seconds, default=None)
    if longest is None or not longest.seconds or longest.seconds < _MOST * sum(row.seconds for row in rows):
        return f"runs {' and '.join(counts)}"
    return f"runs {' and '.join(counts)}, most of their time in `{longest.name}`"


def _time(why: Why) -> str:
    """«80 % of its time in ops, 15 % in dispatch»: the largest first, without what is next to nothing."""
    parts = sorted(shares(why).items(), key=lambda part: -part[1])
    named = [f"{text.percent(share)} {'of its time ' * (not place)}{name}" for place, (name, share) in enumerate(parts)]
    busy = f", while the GPU works for {text.percent(why.in_streams_s / why.profiled_s)}" if why.in_streams_s else ""
    return ", ".join(words for words, (_, share) in zip(named, parts, strict=True) if share >= 0.005) + busy


def _causes(why: Why) -> list[str]:
    """What in the call costs more than its ops: fall-backs, retraces, loops, Python within, pipelines."""
    causes = []
    if why.fallbacks:
        ops = ", ".join(f"`{op}`" for op in why.fallbacks)
        causes.append(f"`tf.vectorized_map` falls back to a while loop for {ops}")
    if why.traces_per_call >= 1:
        causes.append(f"every call traces {text.number(why.traces_per_call)} functions anew")
    elif why.traces_per_call or why.traces_warm:
        causes.append("some of its calls trace a function anew")
    if calls := sum(row.count for row in why.ops if row.name in _PYTHON_OPS):
        causes.append(f"a call leaves TensorFlow for Python {'once' if calls == 1 else f'{calls:,} times'}")
    if any(_DATASET.search(row.name) for row in why.ops):
        causes.append("it runs a `tf.data` pipeline")
    if why.graph is not None and why.loops is None and any(row.name in _LOOPS for row in why.graph.by_op):
        causes.append("it runs a while loop in its graph")
    if why.of_element:
        causes.append("XLA compiles the element function by itself")
    if why.loops is not None:
        program = f"XLA's program has {_counted(why.fusion_count, 'fusion')}"
        causes.append(f"{program} and a loop" if why.loops else program)
    return causes


def at_peak(item: Measurement) -> str:
    """«it peaks at 2.00 × its output, of which `TensorListStack` holds 9.38 MiB», where the memory says so."""
    memory = item.memory
    if memory is None or memory.output_bytes < _LEAST_BYTES or memory.peak_bytes < _LARGE_PEAK * memory.output_bytes:
        return ""
    peak = f"it peaks at {text.factor(memory.peak_bytes / memory.output_bytes)} its output"
    return f"{peak}, of which {holder(item)}" if memory.at_peak else peak


def holder(item: Measurement) -> str:
    """«`TensorListStack` holds 9.38 MiB»: the op that holds most at the peak of memory; empty where it is not known."""
    if item.memory is None or not item.memory.at_peak:
        return ""
    row = item.memory.at_peak[0]
    return f"`{row.op.partition(' (')[0].rsplit('/', 1)[-1]}` holds {text.size(row.bytes)}"


def _to_the_limit(item: Measurement, roof: Limit | None) -> str:
    """«that is 1.90 × the theoretical floor (estimate), memory-bound»; nothing where ``roof`` says nothing of it."""
    times = limit.multiple(item)
    if roof is None or times is None:
        return ""
    return f"that is {text.factor(times)} the {limit.FLOOR}{f', {roof.term}' if roof.term else ''}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
