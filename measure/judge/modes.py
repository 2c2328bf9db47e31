"""Why the same ops take longer in one mode than in another, as far as it was counted. Pure functions of a run."""

from collections.abc import Sequence
from statistics import median

from measure.judge import limit
from measure.run import text
from measure.run.run import Limit, Measurement, Run

# Of the difference between two latencies, a reason has to explain this share.
_SHARE = 0.3
# Cores that differ by less are the same, as far as the system's clocks tell.
_CORES = 1.2


def reason(run: Run, faster: Measurement, slower: Measurement) -> str:
    """The counted reasons why ``slower``, the same mapper in another mode, takes longer: the fixed cost of a call, page
    faults, cores used. Words for brackets; empty where none was counted."""
    if faster.mapper != slower.mapper or faster.options != slower.options or not (faster.latency and slower.latency):
        return ""
    gap_s = slower.latency.median_s - faster.latency.median_s
    if gap_s <= 0:
        return ""
    causes = []
    fixed_s = _fixed_s(run.limit, slower) - _fixed_s(run.limit, faster)
    if fixed_s > _SHARE * gap_s:
        causes.append(f"a call of a tf.function costs {text.seconds(fixed_s)} more")
    faults = limit.page_faults(slower) or 0.0
    if _of_call(slower, "kernel_s") - _of_call(faster, "kernel_s") > _SHARE * gap_s and faults > 1:
        causes.append(f"{faults:,.0f} page faults a call")
    ours, theirs = _cores(faster), _cores(slower)
    if ours and theirs and ours > _CORES * theirs:
        causes.append(f"it uses {theirs:.1f} cores where {faster.strategy} uses {ours:.1f}")
    return text.listed(causes)


def _fixed_s(roof: Limit | None, item: Measurement) -> float:
    """Seconds that starting one call takes in the mode of a strategy, by the probes; 0 where they are not known."""
    if roof is None:
        return 0.0
    return (roof.op_s if item.mode == "eager" else roof.call_s) or 0.0


def _cores(item: Measurement) -> float | None:
    """The cores that a call keeps busy; None where that was not counted."""
    cpu_s = _of_call(item, "cpu_s")
    return cpu_s / item.latency.median_s if cpu_s and item.latency else None


def _of_call(item: Measurement, figure: str) -> float:
    """The median of a figure of a call over all samples, in seconds; 0 where none was counted."""
    counted: Sequence[float] = [value for replica in item.replicas for value in getattr(replica, figure) or ()]
    return median(counted) if counted else 0.0
