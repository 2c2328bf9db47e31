"""The mechanism of a strategy: what takes the time of its call, in words, from the figures of an explanation."""

import re
from collections import Counter

from measure.model import text
from measure.model.run import Measurement
from measure.model.why import Ran, Why, op_count, op_rows, spent

_DATASET = re.compile(r"Dataset(V\d+)?$|^DatasetToSingleElement$")
_PYTHON_OPS = ("PyFunc", "EagerPyFunc", "PyFuncStateless")
_LOOPS = ("While", "StatelessWhile")
_MOST = 0.5
# Kinds of instructions that a sentence names.
_MOST_KINDS = 3


def mechanism(item: Measurement, why: Why, batch: int) -> str:
    """A predicate of what takes the time of a call. ``batch``: elements of a call, 0 where that is not known."""
    if not op_count(why) and not why.kernel_count and not is_compiled(why):
        if item.mode == "eager":
            slices = f", slice by slice for {batch} slices" if item.mapper == "numpy" and batch else ""
            return f"spends all of its time in Python and NumPy{slices}: no op of TensorFlow's runs"
        return "runs no op that takes time: calling the function is all that it does"
    if why.fallbacks:
        ops = ", ".join(f"`{op}`" for op in why.fallbacks)
        then = _traces(why) if why.traces_per_call >= 1 else _compiled(why) if is_compiled(why) else _runs(why)
        return f"falls back to a while loop for {ops}, which `tf.vectorized_map` cannot vectorise, and {then}"
    if why.traces_per_call >= 1:
        return _traces(why)
    if any(row.name in _PYTHON_OPS for row in why.ops):
        return _leaves_tensorflow(why)
    if any(_DATASET.search(row.name) for row in why.ops):
        return _pipeline(why, batch)
    if is_compiled(why):
        return _compiled(why)
    if item.mode == "eager":
        return _from_python(why)
    return _in_a_graph(item, why, batch)


def asides(why: Why) -> list[str]:
    """Phrases beside the mechanism: of an element function that XLA compiles, and of unsteady calls."""
    return [phrase for phrase in (_element(why), _retraces(why)) if phrase]


def is_compiled(why: Why) -> bool:
    """True if XLA made one program of the whole strategy."""
    return why.loops is not None and not why.of_element


def _traces(why: Why) -> str:
    traces = why.traces_per_call
    anew = "a function anew in every call" if traces == 1 else f"{traces:,.0f} functions anew in every call"
    if not float(traces).is_integer():
        anew = f"functions anew, {traces:.3g} a call on average"
    return (
        f"traces {anew}: {_watched_share(why.building_s, why)} of its time goes into "
        f"building graphs, and {_watched_share(_work_s(why), why)} into {_work(why)}"
    )


def _work(why: Why) -> str:
    """The work of a call as a noun: «one fusion of 3 ops, one pass over memory», «300 ops», «1 kernel»."""
    return _program(why) if is_compiled(why) else counts(why) or "no op"


def _retraces(why: Why) -> str:
    """Traces of calls that should be steady: such a call costs far more than one that traces nothing."""
    if 0 < why.traces_per_call < 1:
        return f"some of its calls trace a function anew, {why.traces_per_call:.2g} a call on average"
    if why.traces_warm and not why.traces_per_call:
        return f"after the first call it traced {counted(why.traces_warm, 'further function')} before it was steady"
    return ""


def _leaves_tensorflow(why: Why) -> str:
    rows = [row for row in why.ops if row.name in _PYTHON_OPS]
    calls, seconds = sum(row.count for row in rows), sum(row.seconds for row in rows)
    times = "once" if calls == 1 else f"{calls:,} times"
    return (
        f"leaves TensorFlow {times} in a call, by `{rows[0].name}`: NumPy takes {_share(seconds, why)} of the time, "
        f"and the other {counted(op_count(why) - calls, 'op')} and the way there and back the rest"
    )


def _pipeline(why: Why, batch: int) -> str:
    elements = f" and handing over {counted(batch, 'element')}" if batch else ""
    return (
        f"runs a `tf.data` pipeline: making it{elements} takes {_share(_whole_s(why) - _work_s(why), why)} of the "
        f"time, and {_work(why)} the rest"
    )


def _from_python(why: Why) -> str:
    if why.in_streams_s:
        return f"runs {_on_a_gpu(why)} the host spends {_starting(why)}, around {_host_ops(why)}"
    inside_s = _work_s(why)
    if inside_s >= _MOST * why.profiled_s:
        share = _watched_share(inside_s, why)
        return f"spends {share} of its time in {counts(why)}{_mostly(why)}{_on_threads(why)}"
    where = "around" if _is_one(why) else "between"
    return f"spends {_starting(why)}, {where} {_with_means(why)}"


def _starting(why: Why) -> str:
    parts = spent(why)
    what = "ops" if op_count(why) else "kernels"
    return (
        f"{_watched_share(parts.python_s, why)} of its time in Python, and {_watched_share(parts.between_s, why)} in "
        f"starting {what}"
    )


def _in_a_graph(item: Measurement, why: Why, batch: int) -> str:
    loops = why.graph is not None and any(row.name in _LOOPS for row in why.graph.by_op)
    if loops:
        return f"runs a while loop in its graph: {_runs(why, verb='')}"
    if item.mapper in ("loop", "loop_compiled") and why.graph is not None and batch > 1:
        return f"has {batch} unrolled copies of the function in a graph of {why.graph.nodes:,} nodes, and {_runs(why)}"
    return _runs(why)


def _runs(why: Why, verb: str = "runs ") -> str:
    """«runs 300 ops, which take 80 % of its time», or where the rest goes if that is more."""
    if why.in_streams_s:
        return f"{verb}{_on_a_gpu(why)} the host runs {_host_ops(why)}"
    inside_s = _work_s(why)
    if inside_s >= _MOST * _whole_s(why):
        share = f"{_share(inside_s, why)} of its time"
        if _is_one(why):
            return f"{verb}{counts(why)}{_mostly(why)}, which takes {share}{_on_threads(why)}"
        return f"{verb}{counts(why)}, which take {share}{_mostly(why)}{_on_threads(why)}"
    between = "calling the function" if _is_one(why) else "scheduling them and calling the function"
    return f"{verb}{_with_means(why)}, and spends {_share(_whole_s(why) - inside_s, why)} on {between}"


def _on_a_gpu(why: Why) -> str:
    """«900 kernels on the GPU, which take 12 % of its time, most of it in `gemm`; beside them», whatever the host does
    meanwhile."""
    takes, them = ("takes", "it") if why.kernel_count == 1 else ("take", "them")
    return f"{counts(why)}, which {takes} {_share(_work_s(why), why)} of its time{_mostly(why)}; beside {them}"


def _host_ops(why: Why) -> str:
    """The ops of the host while a GPU computes: «300 ops in 1.20 ms»."""
    return f"{counted(op_count(why), 'op')} in {text.seconds(why.in_ops_s)}" if op_count(why) else "no op"


def _element(why: Why) -> str:
    """XLA's program of an element function that it compiles by itself."""
    if not why.of_element:
        return ""
    if why.loops is None:
        return "XLA compiles the element function by itself, and does not tell its program"
    program = _instructions(why) or "a program without work of its own"
    return f"of the element function XLA makes {program}{_kept(why)}{_compiled_in(why)}"


def _compiled(why: Why) -> str:
    inside_s = _work_s(why)
    program = f"runs {_program(why)}{_kept(why)}{_compiled_in(why)}"
    if not why.kernel_count:
        return program
    if inside_s < _MOST * _whole_s(why):
        busy = f", while the GPU works for {_share(inside_s, why)}" if why.in_streams_s else ""
        return f"{program}: {_share(_whole_s(why) - inside_s, why)} of its time is the fixed cost of a call{busy}"
    takes = "it takes" if why.kernel_count == 1 else "they take"
    where = ", on the GPU" if why.in_streams_s else _on_threads(why)
    return f"{program}: {takes} {_share(inside_s, why)} of its time{where}"


def _kept(why: Why) -> str:
    return ", in a loop that XLA kept" if why.loops else ""


def _compiled_in(why: Why) -> str:
    """«, with the values of an input compiled in …»: such a program looks quicker than with values that come and go."""
    if not why.compiled_in:
        return ""
    inputs = "an input" if why.compiled_in == 1 else f"{why.compiled_in} inputs"
    return f", with the values of {inputs} compiled in, so that the program serves no others"


def _program(why: Why) -> str:
    """XLA's program and its kernels: «one fusion of 3 ops, one pass over memory», «1 instruction (`dot`), 2 kernels a
    call»."""
    program = _instructions(why) or "a program without work of its own"
    if not why.kernel_count or _is_one_pass(why):
        return program
    return f"{program}, {counted(why.kernel_count, 'kernel')} a call"


def _is_one_pass(why: Why) -> bool:
    return why.fusion_count == 1 and not sum(row.count for row in why.other_instructions) and not why.loops


def _instructions(why: Why) -> str:
    others = sum(row.count for row in why.other_instructions)
    kinds = ", ".join(f"`{row.name}`" for row in why.other_instructions[:_MOST_KINDS])
    if _is_one_pass(why):
        return f"one fusion of {counted(why.fused_ops, 'op')}{_fused(why)}, one pass over memory"
    parts = []
    if why.fusion_count:
        parts.append(f"{counted(why.fusion_count, 'fusion')} of {counted(why.fused_ops, 'op')}")
    if others:
        parts.append(f"{counted(others, 'further instruction' if parts else 'instruction')} ({kinds})")
    return " and ".join(parts)


def _fused(why: Why) -> str:
    """The kinds of what a fusion is of, those that occur most often first: « (`multiply`, `add`)»."""
    kinds = [f"`{kind}`" for kind, _ in Counter(why.fusions[0].ops if why.fusions else ()).most_common()]
    more = ", …" if len(kinds) > _MOST_KINDS else ""
    return f" ({', '.join(kinds[:_MOST_KINDS])}{more})" if kinds else ""


def _on_threads(why: Why) -> str:
    """«, on 2 threads that keep 1.8 cores busy», for what is mostly work; empty where it is not known."""
    if not why.threads:
        return ""
    if why.threads == 1 or why.cores is None:
        return f", on {counted(why.threads, 'thread')}"
    return f", on {why.threads} threads that keep {why.cores:.1f} cores busy"


def _work_s(why: Why) -> float:
    """Seconds of ops or kernels; where a GPU's ran, theirs count: the host's ops only start them."""
    return why.in_streams_s or max(why.in_ops_s, why.in_kernels_s)


def _kinds(why: Why) -> list[tuple[str, int, list[Ran]]]:
    """A noun for each kind of what runs in a call, how often it does, and the rows of its table."""
    if why.in_streams_s:
        return [("kernel", why.kernel_count, why.kernels)]
    kinds = [("op", op_count(why), op_rows(why)), ("kernel", why.kernel_count, why.kernels)]
    return [kind for kind in kinds if kind[1]]


def _is_one(why: Why) -> bool:
    return sum(count for _, count, _ in _kinds(why)) == 1


def counts(why: Why) -> str:
    """«300 ops», «81 ops and 20 kernels», «2 kernels on the GPU»."""
    where = " on the GPU" if why.in_streams_s else ""
    return " and ".join(f"{counted(count, noun)}{where}" for noun, count, _ in _kinds(why))


def _with_means(why: Why) -> str:
    """«300 ops of 2.00 µs each»; no mean where nothing is known to have taken time."""
    parts = []
    for noun, number, rows in _kinds(why):
        seconds = sum(row.seconds for row in rows)
        mean = f" of {text.seconds(seconds / number)}{' each' if number > 1 else ''}" if seconds else ""
        parts.append(counted(number, noun) + mean)
    return " and ".join(parts)


def _mostly(why: Why) -> str:
    """«, most of it in `Mul`», where that is so; otherwise what takes longest, and its share."""
    rows = [row for _, _, rows in _kinds(why) for row in rows]
    whole_s = sum(row.seconds for row in rows)
    if not whole_s:
        return ""
    longest = max(rows, key=lambda row: row.seconds)
    if len(rows) == 1:
        return f", {'all of it in ' if longest.count > 1 else ''}`{longest.name}`"
    if longest.seconds >= _MOST * whole_s:
        return f", most of it in `{longest.name}`"
    return f", {_percent(longest.seconds, whole_s)} of it in `{longest.name}`, the longest"


def _whole_s(why: Why) -> float:
    """Seconds of a call that nobody watched; where one that was watched took less, the others were disturbed."""
    return min(why.call_s, why.profiled_s)


def _share(part_s: float, why: Why) -> str:
    """The share of a call that nobody watched: watching makes what is between ops longer, the ops themselves hardly."""
    return _percent(part_s, _whole_s(why))


def _watched_share(part_s: float, why: Why) -> str:
    """The share of the call in which the part was seen, for what is between ops."""
    return _percent(part_s, why.profiled_s)


def _percent(part_s: float, whole_s: float) -> str:
    return text.percent(min(1.0, max(0.0, part_s / whole_s))) if whole_s else "–"


def counted(number: int, noun: str) -> str:
    """``1 op``, ``1,005 ops``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
