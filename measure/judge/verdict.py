"""The verdict of a comparison in a few sentences. It names no winner that the data do not support."""

from collections.abc import Sequence

from measure.judge import limit, reasons
from measure.judge.findings import ALIKE, TELLING, Findings, Row
from measure.judge.levels import Order, Ratio
from measure.run import text
from measure.run.run import Run

# Of strategies that are missing, or lead with default memory, and of those that tie, so many are named.
_MOST_NAMED, _MOST_TIED = 3, 5
# A leader that is slower with default memory by clearly more than this is worth a sentence, where one page fault more
# tells why.
_SLOWER, _LEAST_FAULTS = 1.2, 1.0


def verdict(of: Findings) -> str:
    """Return which strategy is fastest and by how much, or which tie, with latency and memory; what is missing; what
    differs with the machine's default memory. Plain text, in which strategies have their own names."""
    if of.word == "nothing":
        return _nothing(of.run)
    if of.word == "too short":
        return f"Too few samples to rank: {of.reason}. Increase the budget."
    if of.word == "too noisy":
        return f"Too noisy to rank: {of.reason}. Run again."
    parts = [_fastest(of)]
    if of.missing:
        verb = "was" if len(of.missing) == 1 else "were"
        parts.append(f"Not decided: {text.listed(of.missing, _MOST_NAMED)} {verb} not timed and may be faster.")
    elif of.reason and len(of.leaders) == 1:
        parts.append(f"Not decided: {of.reason}.")
    if of.baseline_problem and len(of.ranked) > 1:
        parts.append(f"No speedup: {of.baseline_problem}.")
    return " ".join(filter(None, [*parts, _with_default_memory(of)]))


def _fastest(of: Findings) -> str:
    first, of_all = of.leaders[0], " of the timed strategies" if of.missing else ""
    if len(of.leaders) > 1:
        return _tie(of)
    # A latency holds the pace of the machine, which ratios do not.
    low, high = (end / (first.median_s or 1.0) for end in first.interval or (1.0, 1.0))
    costs = f"{first.latency} per call (±{text.within(max(high, 1 / low) - 1)})"
    costs += f", {text.size(first.peak_bytes)}" if first.peak_bytes is not None else ""
    if len(of.ranked) == 1:
        return f"{first.slug} takes {costs}."
    faster = [_speedup(of)]
    lead = of.ratio(of.following.slug, first.slug) if of.following else None
    if of.following is not None and lead is not None:
        why = reasons.of_modes(of.run, first.measurement, of.following.measurement)
        runner_up = "" if of.following.slug == of.baseline else ", the runner-up"
        faster.append(f"{_times(lead, of)} {of.following.slug}{runner_up}{why}")
    faster = [words for words in faster if words]
    return f"{first.slug} is fastest{of_all}{': ' if faster else ''}{' and '.join(faster)}. {text.sentence(costs)}"


def _tie(of: Findings) -> str:
    names = text.listed([row.slug for row in of.leaders], _MOST_TIED)
    medians_s = [row.median_s for row in of.leaders if row.median_s is not None]
    tied = f"{names}, {text.span_of_seconds(min(medians_s), max(medians_s))} per call"
    if speedup := _speedup(of):
        tied += f", {speedup}"
    if of.apart is None or of.apart > TELLING:
        return f"Cannot tell apart {tied}{f': {of.reason}' if of.reason else ''}."
    return f"{len(of.leaders)}-way tie within {text.within(of.apart)}: {tied}.{_memory_of_tie(of.leaders)}"


def _speedup(of: Findings) -> str:
    """``16× faster than map_fn.graph (95% CI 15–17)``; empty where the baseline has no ratio, is among the fastest or
    is the runner-up, which is named anyway."""
    beside = of.following if len(of.leaders) == 1 else None
    named = {row.slug for row in (*of.leaders, beside) if row is not None}
    factor = of.leaders[0].factor
    return "" if of.baseline in named or factor is None or factor.low <= 1 else f"{_times(factor, of)} {of.baseline}"


def _times(ratio: Ratio, of: Findings) -> str:
    """``16× (95% CI 15–17) faster than``"""
    factor, interval = text.factor_with_interval(ratio.ratio, ratio.low, ratio.high)
    return f"{factor} ({of.run.analysis.confidence:.0%} CI {interval}) faster than"


def _memory_of_tie(leaders: Sequence[Row]) -> str:
    peaks = [row.peak_bytes for row in leaders if row.peak_bytes is not None]
    if len(peaks) < len(leaders):
        return ""
    least, most = text.size(min(peaks)), text.size(max(peaks))
    if min(peaks) < (1 - ALIKE) * max(peaks):
        is_least = "the least memory" if peaks[0] == min(peaks) else "memory"
        return f" {leaders[0].slug} needs {is_least}, {text.size(peaks[0])}."
    return f" Each needs {least}." if least == most else f" They need {least} to {most}."


def _with_default_memory(of: Findings) -> str:
    """The sentences on the strategy to take where it is clearly slower with the machine's default memory (whoever sets
    nothing runs that program), and on who leads then, where it does not."""
    first = of.leaders[0]
    if (own := first.default) is None:
        return ""
    ratio, faults = of.ratio(own.strategy, first.slug), limit.page_faults(own) or 0.0
    if ratio is None or ratio.low <= _SLOWER or faults - (limit.page_faults(first.measurement) or 0.0) < _LEAST_FAULTS:
        return ""
    words = f"{first.slug} takes {text.seconds(first.default_s)} ({faults:,.0f} page faults per call)"
    defaults = {row.slug: row for row in of.ranked if row.default and row.default.strategy in of.levels}
    levels = {slug: of.levels[row.default.strategy] for slug, row in defaults.items() if row.default}
    leaders = Order(levels, of.run.analysis).groups()[0]
    if first.slug not in leaders:
        leaders_s = [defaults[slug].default_s or 0.0 for slug in leaders]
        verb = "is" if len(leaders) == 1 else "are"
        span = text.span_of_seconds(min(leaders_s), max(leaders_s))
        words += f", and {text.listed(leaders, _MOST_NAMED)} {verb} fastest at {span}"
    return f"With this machine's default allocator {words}. A memory pool, as in its script, avoids them."


def _nothing(run: Run) -> str:
    """The sentence of a run that ranks nothing."""
    items = [item for item in run.measurements if item.twin_of is None]
    outcomes = {item.outcome for item in items}
    tried = outcomes - {"not_run", "cancelled"}
    if any(item.memory and item.outcome in ("ok", "not_run", "cancelled") for item in items):
        why = f": {run.stop_reason.rstrip('.')}" if run.status == "budget" and run.stop_reason else ""
        return f"No latency was measured before the run ended{why}. Memory and correctness are shown."
    if not tried or (tried == {"unsupported"} and tried != outcomes):
        return "Nothing was measured before the run ended."
    if tried == {"wrong"}:
        return "No strategy produced correct results, so there is no ranking. Each row says why."
    return "No strategy could be measured. Each row says why."
