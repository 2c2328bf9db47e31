"""The sentences that a comparison ends with. They never name a winner that the data do not support."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

from measure.judge import default_memory, intervals, modes
from measure.judge.intervals import Level
from measure.judge.levels import shown_levels
from measure.run import text
from measure.run.run import TIME_OVER, Latency, Measurement, Run

# A tie within more than this says less of the strategies than of the run: as bad a resolution is warned of.
TELLING = 0.2
# Of strategies that are missing, and of those that tie, so many are named.
_MOST_NAMED, _MOST_TIED = 3, 5


def verdict(run: Run, levels: Mapping[str, Level] | None = None) -> str:
    """A few sentences: who is fastest or ties, how far ahead of the next, with what memory, who is missing,
    and what differs with the machine's default memory.

    ``levels``: of the run's strategies; made from its samples where they are not given."""
    if not run.ranking:
        return _nothing(run)
    if levels is None:
        levels = shown_levels(run)
    leaders = [run.measurement(slug) for slug in run.ranking[0]]
    parts = (_of_leaders(run, leaders, levels), _missing(run), default_memory.sentence(run, levels))
    return " ".join(filter(None, parts))


def _of_leaders(run: Run, leaders: Sequence[Measurement], levels: Mapping[str, Level]) -> str:
    first = leaders[0]
    assert first.latency is not None
    ranked = sum(map(len, run.ranking))
    of_some = f" of the {ranked} that were timed" if unmeasured(run) else ""
    if ranked == 1:
        return f"{first.strategy} takes {_latency(first.latency)}{_memory(first)}."
    if len(leaders) == 1:
        lead = _lead(run, first, levels)
        return f"{first.strategy} is fastest{of_some}{lead}: {_latency(first.latency)}{_memory(first)}."
    names = text.listed([leader.strategy for leader in leaders], _MOST_TIED)
    count = counted(len(leaders))
    sentence = f"{count} strategies{of_some} tie{_how_close(run, leaders, levels)}: {names}, {_span(leaders)}"
    with_memory = [leader for leader in leaders if leader.memory is not None]
    if len(with_memory) == len(leaders):
        least = min(with_memory, key=_peak)
        most = max(with_memory, key=_peak)
        if _peak(least) < 0.99 * _peak(most):
            # Listed in order of rank, so that of equals the faster one is named.
            sentence += f"; of these {least.strategy} needs the least memory, {text.size(_peak(least))}"
        else:
            sentence += f"; each needs {text.size(_peak(least))} of memory"
    return f"{sentence}."


def _lead(run: Run, winner: Measurement, levels: Mapping[str, Level]) -> str:
    """The winner's lead over the next, where both have samples."""
    following = run.ranking[1][0]
    if not {following, winner.strategy} <= levels.keys():
        return ""
    ratio = intervals.ratio(levels[following], levels[winner.strategy], run.analysis.confidence)
    why = modes.reason(run, winner, run.measurement(following))
    times = f"{text.factor(ratio.ratio)} [{text.times(ratio.low)}, {text.times(ratio.high)}]"
    return f", {times} ahead of {following}{f' ({why})' if why else ''}"


def unmeasured(run: Run) -> list[str]:
    """The strategies that were not timed, and of which nothing says that they could not be the fastest: no failure, no
    wrong values, and no forecast that left them out."""
    ranked = {slug for group in run.ranking for slug in group}
    return [item.strategy for item in run.measurements if item.strategy not in ranked and _may_lead(item)]


def _may_lead(item: Measurement) -> bool:
    if item.twin_of is not None:
        return False
    # Of what has ended in time once, a process that no longer answers may have been held up.
    held_up = item.outcome == "timeout" and item.memory is not None
    no_time = item.outcome == "not_run" and (item.error is None or item.error.type == TIME_OVER)
    return held_up or no_time or item.outcome == "cancelled"


def _missing(run: Run) -> str:
    """The sentence that names who could have won and was not timed."""
    missing = unmeasured(run)
    if not missing:
        return ""
    return f"Not timed, and perhaps faster: {text.listed(missing, _MOST_NAMED)}."


def apart(run: Run, leaders: Sequence[Measurement], levels: Mapping[str, Level]) -> float | None:
    """The share of their latency that tied strategies differ by at the most; None where one has no samples.

    The farthest end of any two leaders' ratio from 1 counts, and no less than the run's resolution and the margin: the
    run had no reason to look closer at what is within that.
    """
    share = max(run.control.resolution if run.control else 0.0, run.analysis.margin)
    for a, b in combinations(leaders, 2):
        if a.strategy not in levels or b.strategy not in levels:
            return None
        ratio = intervals.ratio(levels[a.strategy], levels[b.strategy], run.analysis.confidence)
        share = max(share, ratio.high - 1, 1 / ratio.low - 1)
    return share


def within(share: float) -> str:
    """``4 %``: a difference, rounded up."""
    return f"{math.ceil(100 * share - 1e-9)} %"


def _how_close(run: Run, leaders: Sequence[Measurement], levels: Mapping[str, Level]) -> str:
    share = apart(run, leaders, levels)
    if share is None:
        return ""
    return ", since this run cannot tell them apart" if share > TELLING else f" within {within(share)}"


def _span(leaders: Sequence[Measurement]) -> str:
    """The latencies of tied strategies, from the least to the most."""
    medians_s = [_median_s(leader) for leader in leaders if leader.latency is not None]
    return f"at {text.span_of_seconds(min(medians_s), max(medians_s))}"


def _median_s(measurement: Measurement) -> float:
    return measurement.latency.median_s if measurement.latency else math.inf


def _latency(latency: Latency) -> str:
    """``3.20 ms here today, ± 10 %``: a latency holds the pace of the machine, which ratios do not."""
    wide = max(latency.high_s / latency.median_s, latency.median_s / latency.low_s) - 1
    return f"{text.seconds(latency.median_s)} here today, ± {within(wide)}"


def _peak(measurement: Measurement) -> int:
    return measurement.memory.peak_bytes if measurement.memory else 0


def _memory(measurement: Measurement) -> str:
    return f"; it needs {text.size(_peak(measurement))} of memory" if measurement.memory else ""


def counted(number: int) -> str:
    """A small number as a word, at the beginning of a sentence."""
    words = ("", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
    return words[number] if number < len(words) else str(number)


def _nothing(run: Run) -> str:
    """The sentence of a run that ranks nothing."""
    outcomes = [item.outcome for item in run.measurements if item.twin_of is None]
    tried = set(outcomes) - {"not_run", "cancelled"}
    if not tried or (tried == {"unsupported"} and tried != set(outcomes)):
        if any(item.memory for item in run.measurements):
            return "No latency was measured before the run ended; memory and correctness are shown."
        return "Nothing was measured before the run ended."
    if tried == {"wrong"}:
        return "No strategy is right, so none is ranked: the outcome of each says why."
    return "No strategy could be measured: the outcome of each says why."
