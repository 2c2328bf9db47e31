"""The sentence that a comparison ends with. It never names a winner that the data do not support."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

from measure.judge import advice, limit
from measure.model import text
from measure.model.run import Latency, Measurement, Run
from measure.statistics import intervals
from measure.statistics.intervals import Level
from measure.statistics.levels import shown_levels

# What people write first, and so want to know the distance to.
PLAIN = "loop.eager"
# A tie within more than this says less of the strategies than of the run: as bad a resolution is warned of.
_TELLING = 0.1


def verdict(run: Run, levels: Mapping[str, Level] | None = None) -> str:
    """One or two sentences: who is fastest or ties, by how much against the plain loop, and what memory it needs.

    ``levels``: of the run's strategies; made from its samples where they are not given."""
    if not run.ranking:
        return _nothing(run)
    if levels is None:
        levels = shown_levels(run)
    leaders = [run.measurement(slug) for slug in run.ranking[0]]
    return " ".join([_of_leaders(run, leaders, levels), *filter(None, map(_reservation, leaders))])


def _of_leaders(run: Run, leaders: Sequence[Measurement], levels: Mapping[str, Level]) -> str:
    first = leaders[0]
    assert first.latency is not None
    if sum(map(len, run.ranking)) == 1:
        return f"{first.strategy} takes {_latency(first.latency)}{_of_limit(first)}{_memory(first)}."
    if len(leaders) == 1:
        faster = _faster(run, first, levels)
        return f"{first.strategy} is fastest: {_latency(first.latency)}{faster}{_of_limit(first)}{_memory(first)}."
    names = ", ".join(leader.strategy for leader in leaders[:-1]) + f" and {leaders[-1].strategy}"
    sentence = f"{_count(len(leaders))} strategies tie{_how_close(run, leaders, levels)}: {names}, {_span(leaders)}"
    with_memory = [leader for leader in leaders if leader.memory is not None]
    if len(with_memory) == len(leaders):
        least = min(with_memory, key=_peak)
        most = max(with_memory, key=_peak)
        if _peak(least) < 0.99 * _peak(most):
            # Listed in order of rank, so that of equals the faster one is named.
            sentence += f"; of these {least.strategy} needs the least memory, {text.size(_peak(least))}"
        else:
            sentence += f"; each needs {text.size(_peak(least))}"
    return f"{sentence}."


def _faster(run: Run, winner: Measurement, levels: Mapping[str, Level]) -> str:
    """The winner's lead over the baseline, with the interval, where both have samples."""
    other = _baseline(run)
    if other is None or other.strategy not in levels or winner.strategy not in levels:
        return ""
    ratio = intervals.ratio(levels[other.strategy], levels[winner.strategy], run.analysis.confidence)
    value, interval = text.factor_with_interval(ratio.ratio, ratio.low, ratio.high)
    return f", {value} {interval} faster than {other.strategy}"


def _how_close(run: Run, leaders: Sequence[Measurement], levels: Mapping[str, Level]) -> str:
    """The share of their latency that tied strategies differ by at the most, where the run can tell.

    The farthest end of any two leaders' ratio from 1 counts, and no less than the run's resolution. What is within
    the margin is said to be within the margin: the run had no reason to look closer.
    """
    apart = run.control.resolution if run.control else 0.0
    for a, b in combinations(leaders, 2):
        if a.strategy not in levels or b.strategy not in levels:
            return ""
        ratio = intervals.ratio(levels[a.strategy], levels[b.strategy], run.analysis.confidence)
        apart = max(apart, ratio.high - 1, 1 / ratio.low - 1)
    if apart > _TELLING:
        return ", since this run cannot tell them apart"
    return f" within {max(math.ceil(100 * apart - 1e-9), round(100 * run.analysis.margin))} %"


def _span(leaders: Sequence[Measurement]) -> str:
    """The latencies of tied strategies, from the least to the most, and the multiple of the limit of the least."""
    known = [leader for leader in leaders if leader.latency is not None]
    fastest, slowest = (pick(known, key=_median_s) for pick in (min, max))
    low_s, high_s = _median_s(fastest), _median_s(slowest)
    alike = text.seconds(low_s) == text.seconds(high_s)
    return f"at {text.span_of_seconds(low_s, high_s)}{_of_limit(fastest, '' if alike else 'at best ')}"


def _median_s(measurement: Measurement) -> float:
    return measurement.latency.median_s if measurement.latency else math.inf


def _reservation(leader: Measurement) -> str | None:
    """The sentence for a leader whose latency is not what new values would see."""
    for warning in leader.warnings:
        other_s = warning.values.get("other_s")
        if warning.code == advice.COMPILED_VALUES and isinstance(other_s, float):
            takes = f"with others a call takes {text.seconds(other_s)}"
            return f"{leader.strategy} reuses a program that was made for the timed values: {takes}."
    return None


def _baseline(run: Run) -> Measurement | None:
    """The strategy that the winner is compared with: the plain Python loop if it was ranked behind, else the last."""
    behind = [slug for group in run.ranking[1:] for slug in group]
    if not behind:
        return None
    return run.measurement(PLAIN if PLAIN in behind else behind[-1])


def _latency(latency: Latency) -> str:
    return text.seconds_with_interval(latency.median_s, latency.low_s, latency.high_s)


def _peak(measurement: Measurement) -> int:
    return measurement.memory.peak_bytes if measurement.memory else 0


def _memory(measurement: Measurement) -> str:
    memory = measurement.memory
    if memory is None:
        return ""
    peak = text.size(memory.peak_bytes)
    if memory.temporary_bytes <= 0.001 * max(1, memory.peak_bytes):
        return f"; it needs {peak}, all of it output"
    return f"; it needs {peak}, of which {text.size(memory.temporary_bytes)} are temporary"


def _of_limit(measurement: Measurement, of: str = "") -> str:
    times = limit.multiple(measurement)
    return "" if times is None else f", {of}{limit.shown(times)} the limit"


def _count(number: int) -> str:
    words = ("", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
    return words[number] if number < len(words) else str(number)


def _nothing(run: Run) -> str:
    """The sentence of a run that ranks nothing."""
    outcomes = [item.outcome for item in run.measurements if item.twin_of is None]
    if not outcomes or set(outcomes) <= {"not_run", "cancelled"}:
        return "Nothing was measured before the run ended."
    if set(outcomes) <= {"wrong", "not_run", "cancelled"}:
        return "No strategy computed the right values, so none is ranked."
    if "ok" in outcomes:
        return "No latency was measured before the run ended; memory and correctness are shown."
    return "No strategy could be measured: each row below says why."
