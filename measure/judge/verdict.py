"""The line that answers a comparison, factor first. It names no winner that the data do not support."""

from measure.judge import default_memory, modes
from measure.judge.findings import ALIKE, TELLING, Findings, Row
from measure.run import text
from measure.run.run import Run

# Of strategies that are missing, and of those that tie, so many are named.
_MOST_NAMED, _MOST_TIED = 3, 5


def verdict(of: Findings) -> str:
    """A few sentences: how far ahead of whom, or who ties, with what latency and memory; who is missing; what differs
    with the machine's default memory. Plain text, in which strategies have their own names."""
    if of.word == "nothing":
        return _nothing(of.run)
    if not of.tells:
        again = "for longer" if of.word == "too short" else "again"
        return f"{of.word.capitalize()} to rank: {of.reason}. Measure {again}."
    parts = (_of_leaders(of), _missing(of), default_memory.sentence(of.run, of.levels))
    return " ".join(filter(None, parts))


def _of_leaders(of: Findings) -> str:
    first, names = of.leaders[0], text.listed([row.slug for row in of.leaders], _MOST_TIED)
    costs = f"{_latency(first)}{_memory(first)}"
    unsure = f" Not sure: {of.reason}." if of.word == "cannot tell" and not of.missing else ""
    if len(of.ranked) == 1:
        return f"{first.slug} takes {costs}."
    if len(of.leaders) > 1:
        if unsure:
            return f"Cannot tell apart {names}, {_span(of)}{_ahead_of_baseline(of)}: {of.reason}."
        if of.apart is None or of.apart > TELLING:
            return f"Cannot tell apart {names}, {_span(of)}{_ahead_of_baseline(of)}."
        return f"Tie within {text.within(of.apart)}: {names}, {_span(of)}{_ahead_of_baseline(of)}.{_memory_of_tie(of)}"
    lead = of.ratio(of.following.slug, first.slug) if of.following else None
    if of.following is None or lead is None:
        return f"{first.slug} is ahead of all others: {costs}.{unsure}"
    factor, interval = text.factor_with_interval(lead.ratio, lead.low, lead.high)
    why = modes.reason(of.run, first.measurement, of.following.measurement)
    ahead = f"{first.slug} is ahead of {of.following.slug}{f' ({why})' if why else ''}{_ahead_of_baseline(of)}"
    return f"{factor} {interval}: {ahead}. It takes {costs}.{unsure}"


def _missing(of: Findings) -> str:
    """The sentence that names who could have won and was not timed."""
    if not of.missing:
        return ""
    were = "was" if len(of.missing) == 1 else "were"
    return f"Not sure: {text.listed(of.missing, _MOST_NAMED)} {were} not timed and may be faster."


def _ahead_of_baseline(of: Findings) -> str:
    """``, 16 × [15, 17] ahead of map_fn.graph``: of what people would take, where that is somebody else."""
    usual = of.baseline
    named = {row.slug for row in of.leaders} | ({of.following.slug} if of.following and len(of.leaders) == 1 else set())
    ratio = None if usual is None or usual in named else of.ratio(usual, of.leaders[0].slug)
    if ratio is None or ratio.low <= 1:
        return ""
    factor, interval = text.factor_with_interval(ratio.ratio, ratio.low, ratio.high)
    return f", {factor} {interval} ahead of {usual}"


def _latency(row: Row) -> str:
    """``3.20 ms here today, ± 10 %``: a latency holds the pace of the machine, which ratios do not."""
    assert row.median_s is not None and row.low_s is not None and row.high_s is not None
    wide = max(row.high_s / row.median_s, row.median_s / row.low_s) - 1
    return f"{row.latency} here today, ± {text.within(wide)}"


def _span(of: Findings) -> str:
    """The latencies of leaders, from the least to the most."""
    medians_s = [row.median_s for row in of.leaders if row.median_s is not None]
    return f"at {text.span_of_seconds(min(medians_s), max(medians_s))}"


def _memory(row: Row) -> str:
    return f", and {text.size(row.peak_bytes)} of memory" if row.peak_bytes is not None else ""


def _memory_of_tie(of: Findings) -> str:
    peaks = [row.peak_bytes for row in of.leaders if row.peak_bytes is not None]
    if len(peaks) < len(of.leaders):
        return ""
    least, most = text.size(min(peaks)), text.size(max(peaks))
    if min(peaks) < (1 - ALIKE) * max(peaks):
        least = ", the least" if peaks[0] == min(peaks) else ""
        return f" Of these {of.leaders[0].slug} needs {text.size(peaks[0])} of memory{least}."
    return f" They need {least} of memory." if least == most else f" They need {least} to {most} of memory."


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
