"""The limit: the least time that a case's bytes and arithmetic allow on a device, and how far a strategy is from it.
It is an estimate, so people read of a «theoretical floor (estimate)».

Pure functions of what the case asks for (`Work`) and of the rates that the probes found in the same run (`Rates`). Each
roof by itself bounds the time of a call from below, so the highest one is the limit.
"""

from statistics import median

from msgspec import UNSET
from msgspec.structs import replace

import strategies
from measure.model import text
from measure.model.roofline import Rates, Work
from measure.model.run import Limit, Measurement, Run, Term
from workloads.case import Case
from workloads.spec import leaves

# Its name wherever people read it.
FLOOR = "theoretical floor (estimate)"
# How far probes may be off, as their benchmark checks: what is this near to the limit is at it.
RESOLUTION = 0.15
# Fresh pages are worth a word where a call takes so many page faults and spends this share of its time in the kernel.
_MANY_FAULTS, _KERNEL_SHARE = 100, 0.1
# So many strategies are named in a sentence.
_MOST_NAMED = 3


def work(case: Case) -> Work:
    """Return what a case asks of a device, by its metadata. Where part of its arithmetic is not known, none counts."""
    cost = case.cost
    return Work(
        read_bytes=case.read_bytes,
        written_bytes=case.output_bytes,
        flops=0 if cost.unknown else case.batch * cost.flops,
        functions={} if cost.unknown else {name: case.batch * count for name, count in cost.functions.items()},
        dtype=case.dtype,
        largest_output_bytes=max((leaf.bytes for leaf in leaves(case.output)), default=0),
        unknown=list(cost.unknown),
    )


def limit(asked: Work, rates: Rates) -> Limit:
    """The highest of the roofs, and which one it is."""
    copied, moved = min(asked.read_bytes, asked.written_bytes), asked.read_bytes + asked.written_bytes
    memory_s = 2 * copied / rates.copy_bytes_per_s
    memory_s += (asked.read_bytes - copied) / (rates.read_bytes_per_s or rates.copy_bytes_per_s)
    memory_s += (asked.written_bytes - copied) / (rates.write_bytes_per_s or rates.copy_bytes_per_s)
    compute_s = max(
        asked.flops / rates.flops_per_s,
        sum(count / rates.functions_per_s[name] for name, count in asked.functions.items()),
    )
    # Eager or compiled, a call starts at least one op.
    dispatch_s = min(rates.op_s, rates.call_s)
    roofs: dict[Term, float] = {"dispatch-bound": dispatch_s, "memory-bound": memory_s, "compute-bound": compute_s}
    term = max(roofs, key=lambda name: roofs[name])
    return Limit(
        seconds=roofs[term],
        term=term,
        bytes=moved,
        read_bytes=asked.read_bytes,
        written_bytes=asked.written_bytes,
        bandwidth_bytes_per_s=moved / memory_s if memory_s else rates.copy_bytes_per_s,
        flops=asked.flops,
        flops_per_s=rates.flops_per_s,
        functions=asked.functions,
        functions_per_s=rates.functions_per_s,
        dispatch_s=dispatch_s,
        op_s=rates.op_s,
        call_s=rates.call_s,
        largest_output_bytes=asked.largest_output_bytes,
        unknown=asked.unknown or UNSET,
    )


def describe(roof: Limit) -> str:
    """The limit and what sets it: 710 µs, memory-bound: 9.38 MiB at 13.8 GB/s."""
    by_term = {
        "memory-bound": f"{text.size(roof.bytes)} at {roof.bandwidth_bytes_per_s / 1e9:.3g} GB/s",
        "compute-bound": _arithmetic(roof),
        "dispatch-bound": "one eager op" if roof.dispatch_s == roof.op_s else "one call of a tf.function",
    }
    reason = f", {roof.term}: {by_term[roof.term]}" if roof.term else ""
    if isinstance(roof.unknown, list):
        reason += f" (of bytes alone, since the work of {', '.join(roof.unknown)} is not known)"
    return text.seconds(roof.seconds) + reason


def tells(run: Run) -> bool:
    """True if the limit says something of the run's strategies: where it is that of starting an op, or one of them
    beats it, the model behind it does not hold here."""
    if run.limit is None or run.limit.term == "dispatch-bound":
        return False
    least_s = run.limit.seconds
    right = (item.latency for item in run.measurements if item.outcome == "ok" and item.twin_of is None)
    return all(latency.median_s >= least_s for latency in right if latency is not None)


def page_faults(item: Measurement) -> float | None:
    """Minor page faults of a call, the median of its samples; None where none were counted."""
    counted = [faults for replica in item.replicas for faults in replica.faults or ()]
    return median(counted) if counted else None


def fresh_pages(run: Run) -> str:
    """The sentence that names the strategies whose calls spend a good part of their time on fresh pages, as it was
    counted, the fastest first; empty where there are none."""
    timed = [item for item in run.measurements if item.twin_of is None and item.latency is not None]
    named = [
        f"{item.strategy} ({faults:,.0f} page faults a call)"
        for item in sorted(timed, key=lambda item: item.latency.median_s if item.latency else 0.0)
        if (faults := page_faults(item)) and faults >= _MANY_FAULTS and _share_of_kernel(item) >= _KERNEL_SHARE
    ]
    if not named:
        return ""
    return (
        f"Fresh pages from the system are part of these times, and not of the floor: {text.listed(named, _MOST_NAMED)}."
    )


def _share_of_kernel(item: Measurement) -> float:
    """The share of its samples' time that was spent in the kernel, on any of its threads."""
    spent = sum(seconds for replica in item.replicas for seconds in replica.kernel_s or ())
    return spent / sum(seconds for replica in item.replicas for seconds in replica.samples_s)


def shown(times: float | None) -> str:
    """A multiple in words: ``≈ 1 ×`` where probes cannot tell it from 1."""
    return "≈ 1 ×" if times == 1.0 else text.factor(times)


def probes(roof: Limit) -> str:
    """All figures of the probes, not only those that set the limit."""
    moved = roof.bandwidth_bytes_per_s / 1e9
    parts = [f"{text.size(roof.bytes)} at {moved:.3g} GB/s", f"{roof.flops_per_s / 1e9:.3g} GFLOP/s"]
    parts += [f"{rate / 1e9:.3g} G {name}/s" for name, rate in roof.functions_per_s.items()]
    parts += [f"an eager op {text.seconds(roof.op_s)}"] if roof.op_s is not None else []
    parts += [f"a call of a tf.function {text.seconds(roof.call_s)}"] if roof.call_s is not None else []
    return ", ".join(parts)


def _arithmetic(roof: Limit) -> str:
    if _is_of_flops(roof):
        return f"{_count(roof.flops)} FLOP at {roof.flops_per_s / 1e9:.3g} GFLOP/s"
    return ", ".join(
        f"{_count(count)} {name} at {roof.functions_per_s[name] / 1e9:.3g} G/s"
        for name, count in roof.functions.items()
        if name in roof.functions_per_s
    )


def _is_of_flops(roof: Limit) -> bool:
    """True if multiplications and additions set a compute-bound limit, not functions such as ``sin``."""
    return roof.flops / roof.flops_per_s >= roof.seconds * (1 - 1e-9)


def _count(number: int) -> str:
    for least, scale, unit in ((10**12, 1e12, " T"), (10**9, 1e9, " G"), (10**6, 1e6, " M"), (10**4, 1e3, " k")):
        if number >= least:
            return f"{number / scale:.3g}{unit}"
    return f"{number:,}"


def multiple(item: Measurement) -> float | None:
    """A measurement's latency over the limit, at least 1, for probes cannot tell what is a little below from it; None
    where that is not known, or where `note` says why not."""
    times = item.why.times_limit
    return times if isinstance(times, float) else None


def note(item: Measurement) -> str:
    """The sentence that stands in place of a multiple below 1."""
    sentence = item.why.limit_note
    return sentence if isinstance(sentence, str) else ""


def judge(run: Run) -> Run:
    """The run with each timed measurement's multiple of the limit, or the sentence that stands in its place."""
    return replace(run, measurements=[_judged(item, run.limit) for item in run.measurements])


def _judged(item: Measurement, roof: Limit | None) -> Measurement:
    why = replace(item.why, times_limit=UNSET, limit_note=UNSET)
    if roof is not None and roof.seconds > 0 and item.latency is not None:
        times = item.latency.median_s / roof.seconds
        if times >= 1 - RESOLUTION:
            why = replace(why, times_limit=max(1.0, times))
        else:
            why = replace(why, limit_note=_below(item, roof))
    return replace(item, why=why)


def _below(item: Measurement, roof: Limit) -> str:
    """The reason that a strategy is faster than the limit, which is that of the element function as it is written."""
    if roof.term == "memory-bound":
        return (
            "faster than the theoretical floor: it moves its bytes faster than the probe could, since part of them "
            "stayed in a cache between calls or the machine was busier when it was probed"
        )
    if roof.term == "dispatch-bound":
        if _is_of_numpy(item.mapper):
            return "faster than the theoretical floor: a call of it starts no op of TensorFlow's"
        return "faster than the theoretical floor: the machine was busier when it was probed"
    if _is_rewrite(item.mapper):
        reason = f"{item.mapper} comes to the same values with less arithmetic"
    elif item.mode == "xla":
        reason = "XLA has simplified it"
    else:
        reason = "not all of its arithmetic is done"
    if not _is_of_flops(roof):
        # A product of matrices is as quick as arithmetic gets; a function is only as quick as the probe's way to it.
        names = ", ".join(f"`{name}`" for name in roof.functions)
        reason = f"{reason}, or its {names} {'is' if len(roof.functions) == 1 else 'are'} quicker than the probe's"
    return f"faster than the theoretical floor, which counts the element function as it is written: {reason}"


def _is_of_numpy(mapper: str) -> bool:
    """True if all that a mapper allocates is Python's and NumPy's."""
    try:
        return strategies.mapper(mapper).memory == "tracemalloc"
    except strategies.StrategyError:  # of a run made elsewhere
        return False


def _is_rewrite(mapper: str) -> bool:
    try:
        return strategies.mapper(mapper).rewrite is not None
    except strategies.StrategyError:  # of a run made elsewhere
        return False
