"""The sentence that a comparison ends with. It never names a winner that the data do not support."""

from collections.abc import Sequence

from measure import advice, limit, text
from measure.run import Latency, Measurement, Run

# What people write first, and so want to know the distance to.
PLAIN = "loop.eager"


def verdict(run: Run) -> str:
    """One or two sentences: who is fastest or ties, by how much against the plain loop, and what memory it needs."""
    if not run.ranking:
        return _nothing(run)
    leaders = [run.measurement(slug) for slug in run.ranking[0]]
    return " ".join([_of_leaders(run, leaders), *filter(None, map(_reservation, leaders))])


def _of_leaders(run: Run, leaders: Sequence[Measurement]) -> str:
    first = leaders[0]
    assert first.latency is not None
    if len(_timed(run)) == 1:
        return f"{first.strategy} takes {_latency(first.latency)}{_of_limit(first)}{_memory(first)}."
    if len(leaders) == 1:
        sentence = f"{first.strategy} is fastest: {_latency(first.latency)}"
        other = _baseline(run)
        if other is not None and other.latency is not None:
            sentence += f", {text.factor(other.latency.median_s / first.latency.median_s)} faster than {other.strategy}"
        return f"{sentence}{_of_limit(first)}{_memory(first)}."
    names = ", ".join(leader.strategy for leader in leaders[:-1]) + f" and {leaders[-1].strategy}"
    level = f"{text.seconds(first.latency.median_s)}{_of_limit(first)}"
    sentence = f"{_count(len(leaders))} strategies tie at {level}: {names}"
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


def _reservation(leader: Measurement) -> str | None:
    """What has to be said of a leader whose latency is not what new values would see."""
    for warning in leader.warnings:
        other_s = warning.values.get("other_s")
        if warning.code == advice.COMPILED_VALUES and isinstance(other_s, float):
            takes = f"with others a call takes {text.seconds(other_s)}"
            return f"{leader.strategy} reuses a program that was made for the timed values: {takes}."
    return None


def _baseline(run: Run) -> Measurement | None:
    """What the winner is compared with: the plain Python loop where it was ranked behind, or else the last."""
    behind = [slug for group in run.ranking[1:] for slug in group]
    if not behind:
        return None
    return run.measurement(PLAIN if PLAIN in behind else behind[-1])


def _latency(latency: Latency) -> str:
    return text.seconds_with_interval(latency.median_s, latency.low_s, latency.high_s)


def _timed(run: Run) -> list[Measurement]:
    return [item for item in run.measurements if item.latency is not None and item.twin_of is None]


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


def _of_limit(measurement: Measurement) -> str:
    times = limit.multiple(measurement)
    return "" if times is None else f", {limit.shown(times)} the limit"


def _count(number: int) -> str:
    words = ("", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
    return words[number] if number < len(words) else str(number)


def _nothing(run: Run) -> str:
    """Why nothing was ranked."""
    outcomes = [item.outcome for item in run.measurements if item.twin_of is None]
    if not outcomes or set(outcomes) <= {"not_run", "cancelled"}:
        return "Nothing was measured before the run ended."
    if set(outcomes) <= {"wrong", "not_run", "cancelled"}:
        return "No strategy computed the right values, so none is ranked."
    if "ok" in outcomes:
        return "No latency was measured before the run ended; memory and correctness are shown."
    return "No strategy could be measured: each row below says why."
