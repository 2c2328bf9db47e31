"""The line that answers a comparison, factor first. It names no winner that the data do not support."""

from collections.abc import Sequence

from measure.judge import limit, reasons
from measure.judge.findings import ALIKE, TELLING, Findings, Row
from measure.judge.levels import Order
from measure.run import text
from measure.run.run import Run

# Of strategies that are missing, or lead with default memory, and of those that tie, so many are named.
_MOST_NAMED, _MOST_TIED = 3, 5
# A leader that is slower with default memory by clearly more than this is worth a sentence, where one page fault more
# tells why.
_SLOWER, _LEAST_FAULTS = 1.2, 1.0


def verdict(of: Findings) -> str:
    """A few sentences: how far ahead of whom, or who ties, with what latency and memory; who is missing; what differs
    with the machine's default memory. Plain text, in which strategies have their own names."""
    if of.word == "nothing":
        return _nothing(of.run)
    if not of.tells:
        again = "for longer" if of.word == "too short" else "again"
        return f"{of.word.capitalize()} to rank: {of.reason}. Measure {again}."
    parts = [_of_leaders(of)]
    if of.missing:
        were = "was" if len(of.missing) == 1 else "were"
        parts.append(f"Not sure: {text.listed(of.missing, _MOST_NAMED)} {were} not timed and may be faster.")
    return " ".join(filter(None, [*parts, _with_default_memory(of)]))


def _of_leaders(of: Findings) -> str:
    first, names = of.leaders[0], text.listed([row.slug for row in of.leaders], _MOST_TIED)
    unsure = f" Not sure: {of.reason}." if of.reason else ""
    if len(of.leaders) > 1:
        medians_s = [row.median_s for row in of.leaders if row.median_s is not None]
        led = f"{names}, at {text.span_of_seconds(min(medians_s), max(medians_s))}{_ahead_of_baseline(of)}"
        if of.reason:
            return f"Cannot tell apart {led}: {of.reason}."
        if of.apart is None or of.apart > TELLING:
            return f"Cannot tell apart {led}."
        return f"Tie within {text.within(of.apart)}: {led}.{_memory_of_tie(of.leaders)}"
    # A latency holds the pace of the machine, which ratios do not.
    low, high = (end / (first.median_s or 1.0) for end in first.interval or (1.0, 1.0))
    costs = f"{first.latency} here today, ± {text.within(max(high, 1 / low) - 1)}"
    costs += f", and {text.size(first.peak_bytes)} of memory" if first.peak_bytes is not None else ""
    if len(of.ranked) == 1:
        return f"{first.slug} takes {costs}."
    lead = of.ratio(of.following.slug, first.slug) if of.following else None
    if of.following is None or lead is None:
        return f"{first.slug} is ahead of all others: {costs}.{unsure}"
    why = reasons.of_modes(of.run, first.measurement, of.following.measurement)
    ahead = f"{first.slug} is ahead of {of.following.slug}{why}{_ahead_of_baseline(of)}"
    return f"{lead.words}: {ahead}. It takes {costs}.{unsure}"


def _ahead_of_baseline(of: Findings) -> str:
    """``, 16 × [15, 17] ahead of map_fn.graph``: of what people would take, where that is somebody else."""
    first, beside = of.leaders[0], of.following if len(of.leaders) == 1 else None
    named = {row.slug for row in (*of.leaders, beside) if row is not None}
    if of.baseline in named or first.factor is None or first.factor.low <= 1:
        return ""
    return f", {first.factor.words} ahead of {of.baseline}"


def _memory_of_tie(leaders: Sequence[Row]) -> str:
    peaks = [row.peak_bytes for row in leaders if row.peak_bytes is not None]
    if len(peaks) < len(leaders):
        return ""
    least, most = text.size(min(peaks)), text.size(max(peaks))
    if min(peaks) < (1 - ALIKE) * max(peaks):
        is_least = ", the least" if peaks[0] == min(peaks) else ""
        return f" Of these {leaders[0].slug} needs {text.size(peaks[0])} of memory{is_least}."
    return f" They need {least} of memory." if least == most else f" They need {least} to {most} of memory."


def _with_default_memory(of: Findings) -> str:
    """The sentences on the strategy to take where it is clearly slower with the machine's default memory (whoever sets
    nothing runs that program), and on who leads then, where it does not."""
    first = of.leaders[0]
    if (own := first.default) is None:
        return ""
    ratio, faults = of.ratio(own.strategy, first.slug), limit.page_faults(own) or 0.0
    if ratio is None or ratio.low <= _SLOWER or faults - (limit.page_faults(first.measurement) or 0.0) < _LEAST_FAULTS:
        return ""
    words = f"{first.slug} takes {text.seconds(first.default_s)}: {faults:,.0f} page faults a call"
    defaults = {row.slug: row for row in of.ranked if row.default and row.default.strategy in of.levels}
    levels = {slug: of.levels[row.default.strategy] for slug, row in defaults.items() if row.default}
    leaders = Order(levels, of.run.analysis).groups()[0]
    if first.slug not in leaders:
        leaders_s = [defaults[slug].default_s or 0.0 for slug in leaders]
        names = f"{text.listed(leaders, _MOST_NAMED)} {'leads' if len(leaders) == 1 else 'lead'}"
        words += f", and {names} at {text.span_of_seconds(min(leaders_s), max(leaders_s))}"
    return f"With this machine's default memory {words}. Memory from a pool, as its script sets it, avoids them."


def _nothing(run: Run) -> str:
    """The sentence of a run that ranks nothing."""
    outcomes = {item.outcome for item in run.measurements if item.twin_of is None}
    tried = outcomes - {"not_run", "cancelled"}
    if not tried or (tried == {"unsupported"} and tried != outcomes):
        if any(item.memory for item in run.measurements):
            return "No latency was measured before the run ended; memory and correctness are shown."
        return "Nothing was measured before the run ended."
    if tried == {"wrong"}:
        return "No strategy is right, so none is ranked: the outcome of each says why."
    return "No strategy could be measured: the outcome of each says why."
