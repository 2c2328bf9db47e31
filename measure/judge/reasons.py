"""The reason for a strategy's speed: what runs in its call, where the time goes, the gap to the fastest; and why the
same ops take longer in another mode. What was counted is said, and nothing else. Pure functions of a run.
"""

import math
import re
from statistics import median

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
# Of the difference between two latencies, a reason has to explain this share, and no more than all of it.
_SHARE = 0.5


def explainable(run: Run) -> list[Measurement]:
    """The measurements of a run that can be explained."""
    return [item for item in run.measurements if item.outcome in ("ok", "wrong") and not item.twin_of]


def progress(run: Run) -> tuple[int, int]:
    """Return the number of strategies that have been explained, with figures or the reason why there are none, and the
    number of those that can be."""
    return sum(isinstance(item.why, Explained) for item in explainable(run)), len(explainable(run))


# --- of one call -----------------------------------------------------------------------------------------------------


def predicates(result: Findings) -> dict[str, str]:
    """One sentence for each strategy, by slug, without its subject: the strategy's name stands before it."""
    return {row.slug: _predicate(result, row) for row in result.rows}


def _predicate(result: Findings, row: Row) -> str:
    if row.outcome not in ("ok", "wrong"):
        return f"has no steady call to explain: {(row.sentence or row.status).rstrip('. ')}."
    wrong = "; it is wrong, as its row says" if row.outcome == "wrong" else ""
    why = explained(row.measurement.why)
    if why is None:
        note = row.measurement.why.note.rstrip(".")
        return f"could not be explained: {note}{wrong}." if note else f"has not been explained yet{wrong}."
    parts = (f"{_ops(why)}: {_time(why)}", *_causes(why), _peak(row.measurement), _gap(result, row))
    return f"{'; '.join(filter(None, parts))}{wrong}."


def _ops(why: Explained) -> str:
    """«runs 1,005 ops, most of their time in `Mul`»; «runs 300 ops and 2 kernels on the GPU»."""
    counts = [text.counted(why.op_count, "op")] if why.op_count else []
    if why.kernel_count:
        counts.append(text.counted(why.kernel_count, "kernel") + (" on the GPU" if why.in_streams_s else " of XLA's"))
    ran = f"runs {' and '.join(counts)}" if counts else "runs no op of TensorFlow's"
    rows = why.kernels if why.in_streams_s else [*why.ops, *why.kernels]
    longest = max(rows, key=lambda row: row.seconds, default=None)
    if longest is None or longest.seconds <= _MOST * sum(row.seconds for row in rows):
        return ran
    return f"{ran}, most of their time in `{longest.name}`"


def _time(why: Explained) -> str:
    """``80% of its time in ops, 15% in dispatch``: the largest first, without shares that round to zero."""
    parts = sorted(shares(why).items(), key=lambda part: -part[1])
    words = ", ".join(f"{text.percent(share)} {name}" for name, share in parts if share >= 0.005)
    busy = f", while the GPU works for {text.percent(why.in_streams_s / why.profiled_s)}" if why.in_streams_s else ""
    return words.replace("% ", "% of its time ", 1) + busy


def _causes(why: Explained) -> list[str]:
    """The parts of a call that cost more than its ops: fall-backs, retraces, loops, Python within, pipelines."""
    fallbacks = ", ".join(f"`{op}`" for op in why.fallbacks)
    calls = sum(row.count for row in why.ops if row.name in _PYTHON_OPS)
    by_op = why.graph.by_op if why.graph is not None and why.loops is None else []
    fusions = f"XLA's program has {text.counted(why.fusion_count, 'fusion')}{' and a loop' if why.loops else ''}"
    causes = {
        f"`tf.vectorized_map` falls back to a while loop for {fallbacks}": bool(fallbacks),
        f"every call traces {text.number(why.traces_per_call)} functions anew": why.traces_per_call >= 1,
        "some of its calls trace a function anew": why.traces_per_call < 1 and (why.traces_per_call or why.traces_warm),
        f"a call leaves TensorFlow for Python {text.counted(calls, 'time')}": calls > 0,
        "it runs a `tf.data` pipeline": any(_DATASET.search(row.name) for row in why.ops),
        "it runs a while loop in its graph": any(row.name in _LOOPS for row in by_op),
        "XLA compiles the element function by itself": why.of_element,
        fusions: why.loops is not None,
    }
    return [words for words, is_so in causes.items() if is_so]


def _peak(item: Measurement) -> str:
    """«it peaks at 2.00× its output, of which `TensorListStack` holds 9.38 MiB», where the memory says so."""
    memory = item.memory
    if memory is None or memory.output_bytes < _LEAST_BYTES or memory.peak_bytes < _LARGE_PEAK * memory.output_bytes:
        return ""
    peak = f"it peaks at {text.factor(memory.peak_bytes / memory.output_bytes)} its output"
    for row in memory.at_peak[:1]:  # the op that holds most
        peak += f", of which `{row.op.partition(' (')[0].rsplit('/', 1)[-1]}` holds {text.size(row.bytes)}"
    return peak


def _gap(result: Findings, row: Row) -> str:
    """«that takes 2.1× (2.0–2.2) as long as `batched.xla`»; of the one to take, how far it is from the limit, where
    that says something."""
    if (best := result.take) is None:
        return ""
    if row.slug == best.slug:
        is_told = row.of_limit is not None and limit.tells(result.run)
        return f"that is {text.factor(row.of_limit)} the {limit.FLOOR}" if is_told else ""
    ratio = result.ratio(row.slug, best.slug)
    if ratio is None:
        return ""
    if ratio.low <= 1 <= ratio.high:
        return f"that cannot be told from `{best.slug}`"
    return f"that takes {ratio.words} as long as `{best.slug}`"


# --- of two modes ----------------------------------------------------------------------------------------------------


def of_modes(run: Run, faster: Measurement, slower: Measurement) -> str:
    """Return the counted reasons why ``slower``, which runs the same ops in another mode, takes longer, in brackets:
    the fixed cost of a call, page faults, cores used. Empty where none explains at least half of the difference."""
    ran = [{(row.name, row.count) for row in item.why.ops} for item in (faster, slower)]
    same_ops = (faster.mapper, faster.options) == (slower.mapper, slower.options) or (ran[0] and ran[0] == ran[1])
    if not same_ops or not (faster.latency and slower.latency):
        return ""
    gap_s = slower.latency.median_s - faster.latency.median_s
    if gap_s <= 0:
        return ""
    fixed_s = _fixed_s(run, slower) - _fixed_s(run, faster)
    faults, kernel_s = limit.page_faults(slower) or 0.0, _of_call(slower, "kernel_s") - _of_call(faster, "kernel_s")
    theirs_s, ours = _of_call(slower, "cpu_s"), _of_call(faster, "cpu_s") / faster.latency.median_s
    on_as_many_s = theirs_s / ours if ours else math.inf  # what it would take on as many cores as the faster one uses
    of = f"of the {text.seconds(gap_s)} difference"
    theirs = theirs_s / slower.latency.median_s
    causes = {
        f"starting a call: {text.seconds(fixed_s)} {of}": fixed_s,
        f"{faults:,.0f} page faults per call: {text.seconds(kernel_s)} {of}": kernel_s if faults > 1 else 0.0,
        f"it uses {theirs:.1f} cores, {faster.strategy} {ours:.1f}": slower.latency.median_s - on_as_many_s,
    }
    words = text.listed([words for words, cost_s in causes.items() if _SHARE * gap_s <= cost_s <= gap_s])
    return f" ({words})" if words else ""


def _fixed_s(run: Run, item: Measurement) -> float:
    """Seconds that starting one call takes in the mode of a strategy, by the probes; 0 where they are not known."""
    if run.limit is None:
        return 0.0
    return (run.limit.op_s if item.mode == "eager" else run.limit.call_s) or 0.0


def _of_call(item: Measurement, figure: str) -> float:
    """The median of a figure of a call over all samples, in seconds; 0 where none was counted."""
    values: list[float] = [value for replica in item.replicas for value in getattr(replica, figure) or ()]
    return median(values) if values else 0.0
