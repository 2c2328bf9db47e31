"""The reason for a strategy's speed: what runs in its call, where the time goes, and the gap to the fastest. Pure
functions of a run and of what its `measure.run.why` has of its strategies.
"""

import re

from measure.judge import limit
from measure.judge.findings import Findings, Row
from measure.run import text
from measure.run.run import Measurement, Run
from measure.run.why import Explained, explained, shares

_DATASET = re.compile(r"Dataset(V\d+)?$|^DatasetToSingleElement$")
_PYTHON_OPS = ("PyFunc", "EagerPyFunc", "PyFuncStateless")
_LOOPS = ("While", "StatelessWhile")
# Of the time of ops, an op that takes this share is named.
_MOST = 0.5
# Memory is worth a word where the peak is so many times the output, and no buffer is as small as a page or two.
_LARGE_PEAK, _LEAST_BYTES = 1.4, 64 * 1024


def explainable(run: Run) -> list[Measurement]:
    """The measurements of a run that can be explained."""
    return [item for item in run.measurements if item.outcome in ("ok", "wrong") and not item.twin_of]


def progress(run: Run) -> tuple[int, int]:
    """Return the number of strategies that have been explained, with figures or the reason why there are none, and the
    number of those that can be."""
    return sum(isinstance(item.why, Explained) for item in explainable(run)), len(explainable(run))


def predicates(result: Findings) -> dict[str, str]:
    """One sentence for each strategy, by slug, without its subject: the strategy's name stands before it."""
    return {row.slug: _predicate(row.measurement, _gap(result, row)) for row in result.rows}


def _predicate(item: Measurement, gap: str) -> str:
    if item.outcome not in ("ok", "wrong"):
        reason = item.error.message if item.error is not None else item.outcome.replace("_", " ")
        return f"has no steady call to explain: {reason.rstrip('. ')}."
    wrong = "; it is wrong, as its row says" if item.outcome == "wrong" else ""
    why = explained(item.why)
    if why is None:
        note = item.why.note.rstrip(".")
        return f"could not be explained: {note}{wrong}." if note else f"has not been explained yet{wrong}."
    parts = (f"{_ops(why)}: {_time(why)}", *_causes(why), at_peak(item), gap)
    return f"{'; '.join(filter(None, parts))}{wrong}."


def _ops(why: Explained) -> str:
    """«runs 1,005 ops, most of their time in `Mul`»; «runs 300 ops and 2 kernels on the GPU»."""
    counts = [_counted(why.op_count, "op")] if why.op_count else []
    if why.kernel_count:
        counts.append(_counted(why.kernel_count, "kernel") + (" on the GPU" if why.in_streams_s else " of XLA's"))
    ran = f"runs {' and '.join(counts)}" if counts else "runs no op of TensorFlow's"
    rows = why.kernels if why.in_streams_s else [*why.ops, *why.kernels]
    longest = max(rows, key=lambda row: row.seconds, default=None)
    if longest is None or longest.seconds <= _MOST * sum(row.seconds for row in rows):
        return ran
    return f"{ran}, most of their time in `{longest.name}`"


def _time(why: Explained) -> str:
    """«80 % of its time in ops, 15 % in dispatch»: the largest first, without what is next to nothing."""
    parts = sorted(shares(why).items(), key=lambda part: -part[1])
    words = ", ".join(f"{text.percent(share)} {name}" for name, share in parts if share >= 0.005)
    busy = f", while the GPU works for {text.percent(why.in_streams_s / why.profiled_s)}" if why.in_streams_s else ""
    return words.replace("% ", "% of its time ", 1) + busy


def _causes(why: Explained) -> list[str]:
    """The parts of a call that cost more than its ops: fall-backs, retraces, loops, Python within, pipelines."""
    causes = []
    if why.fallbacks:
        ops = ", ".join(f"`{op}`" for op in why.fallbacks)
        causes.append(f"`tf.vectorized_map` falls back to a while loop for {ops}")
    if why.traces_per_call >= 1:
        causes.append(f"every call traces {text.number(why.traces_per_call)} functions anew")
    elif why.traces_per_call or why.traces_warm:
        causes.append("some of its calls trace a function anew")
    if calls := sum(row.count for row in why.ops if row.name in _PYTHON_OPS):
        causes.append(f"a call leaves TensorFlow for Python {_counted(calls, 'time')}")
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


def _gap(result: Findings, row: Row) -> str:
    """«that takes 2.1 × [2.0, 2.2] as long as `batched.xla`»; of the one to take, how far it is from the limit, where
    that says something."""
    if result.take is None:
        return ""
    best = result.take.slug
    if row.slug == best:
        is_told = row.of_limit is not None and limit.tells(result.run)
        return f"that is {text.factor(row.of_limit)} the {limit.FLOOR}" if is_told else ""
    ratio = result.ratio(row.slug, best)
    if ratio is None:
        return ""
    if ratio.low <= 1 <= ratio.high:
        return f"that cannot be told from `{best}`"
    factor, interval = text.factor_with_interval(ratio.ratio, ratio.low, ratio.high)
    return f"that takes {factor} {interval} as long as `{best}`"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
