"""The limit: the least time that a case's bytes and arithmetic allow on a device, and how far a strategy is from it.
It is an estimate, so people read of a «theoretical floor (estimate)».

Pure functions of what the case asks for (`Work`) and of the rates that the probes found in the same run (`Rates`). Each
roof by itself bounds the time of a call from below, so the highest one is the limit.
"""

from dataclasses import replace as replace_case
from statistics import median

from msgspec import UNSET
from msgspec.structs import replace

from measure.run import text
from measure.run.roofline import Rates, Work
from measure.run.run import Limit, Measurement, Run, Term
from workloads.case import Case
from workloads.spec import leaves

# Its name wherever people read it.
FLOOR = "theoretical floor (estimate)"
# How far probes may be off, as their benchmark checks: what is this near to the limit is at it.
_RESOLUTION = 0.15
# Arithmetic is counted over so many elements, where one takes no more ops and bytes than these.
_COUNTED, _COUNTED_OPS, _COUNTED_BYTES = 8, 100, 2**23
_BELOW = (
    f"faster than the {FLOOR}, which counts the element function as it is written and bytes as fast as the probe could "
    "move them"
)


def work(case: Case) -> Work:
    """Return the bytes that a case asks of a device, by its metadata. Its arithmetic is counted where it is probed."""
    return Work(
        read_bytes=case.read_bytes,
        written_bytes=case.output_bytes,
        dtype=case.dtype,
        largest_output_bytes=max((leaf.bytes for leaf in leaves(case.output)), default=0),
    )


def few_of(case: Case) -> Case:
    """Return the case with as many of its elements as are counted: several where that is quick, for their work may
    differ."""
    element_bytes = case.tensor_bytes // max(1, case.batch) + case.cost.temporary_bytes
    is_quick = case.cost.ops <= _COUNTED_OPS and element_bytes <= _COUNTED_BYTES
    return replace_case(case, size={**case.size, "batch": min(case.batch, _COUNTED if is_quick else 1)})


def limit(asked: Work, rates: Rates) -> Limit:
    """The highest of the roofs, and which one it is."""
    moved = asked.read_bytes + asked.written_bytes
    # Eager or compiled, a call starts at least one op.
    dispatch_s = min(rates.op_s, rates.call_s)
    roofs: dict[Term, float] = {
        "dispatch-bound": dispatch_s,
        "memory-bound": moved / rates.bytes_per_s,
        "compute-bound": asked.flops / rates.flops_per_s,
    }
    term = max(roofs, key=lambda name: roofs[name])
    return Limit(
        seconds=roofs[term], term=term, dispatch_s=dispatch_s, op_s=rates.op_s, call_s=rates.call_s,
        bytes=moved, read_bytes=asked.read_bytes, written_bytes=asked.written_bytes,
        largest_output_bytes=asked.largest_output_bytes, bandwidth_bytes_per_s=rates.bytes_per_s,
        flops=asked.flops, flops_per_s=rates.flops_per_s, unknown=asked.unknown or UNSET,
    )  # fmt: skip


def describe(roof: Limit) -> str:
    """The limit and what sets it: 710 µs, memory-bound: 9.38 MiB at 13.8 GB/s."""
    flops = f"{text.number(roof.flops / 1e6)} MFLOP at {roof.flops_per_s / 1e9:.3g} GFLOP/s"
    pace = ", ".join(f"{text.number(count / 1e6)} M {name}" for name, count in roof.functions.items())  # of older runs
    by_term = {
        "memory-bound": f"{text.size(roof.bytes)} at {roof.bandwidth_bytes_per_s / 1e9:.3g} GB/s",
        "compute-bound": pace or flops,
        "dispatch-bound": "one eager op" if roof.dispatch_s == roof.op_s else "one call of a tf.function",
    }
    words = text.seconds(roof.seconds) + (f", {roof.term}: {by_term[roof.term]}" if roof.term else "")
    if isinstance(roof.unknown, list):
        words += f" (of bytes alone, since the work of {', '.join(roof.unknown)} is not known)"
    return words


def tells(run: Run) -> bool:
    """True if the limit says something of the run's strategies: where it is that of starting an op, or one of them
    beats it, the model behind it does not hold here."""
    if run.limit is None or run.limit.term == "dispatch-bound":
        return False
    right = (item.latency for item in run.measurements if item.outcome == "ok" and item.twin_of is None)
    return all(latency.median_s >= run.limit.seconds for latency in right if latency is not None)


def judge(run: Run) -> Run:
    """The run with each timed measurement's multiple of the limit, or the sentence that stands in its place."""
    items = []
    for item in run.measurements:
        why = replace(item.why, times_limit=UNSET, limit_note=UNSET)
        if run.limit is not None and item.latency is not None:
            times = item.latency.median_s / run.limit.seconds
            is_below = times < 1 - _RESOLUTION
            # Probes cannot tell what is a little below from the limit.
            why = replace(why, limit_note=_BELOW) if is_below else replace(why, times_limit=max(1.0, times))
        items.append(replace(item, why=why))
    return replace(run, measurements=items)


def shown(times: float | None) -> str:
    """A multiple in words: ``≈ 1×`` where probes cannot tell it from 1."""
    return "≈ 1×" if times == 1.0 else text.factor(times)


def page_faults(item: Measurement) -> float | None:
    """Minor page faults of a call, the median of its samples; None where none were counted."""
    counted = [faults for replica in item.replicas for faults in replica.faults or ()]
    return median(counted) if counted else None
