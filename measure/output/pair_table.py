"""Two comparisons beside each other as text: for a terminal, for Markdown, on the page and in a report."""

from msgspec import UNSET
from msgspec.structs import replace

from measure.judge import answer, pair, reproduction
from measure.judge.findings import ALIKE
from measure.judge.pair import Change, Pair
from measure.output import table
from measure.run import text
from measure.run.run import Run

_MOST_NAMED = 3


def render(of: Pair) -> str:
    parts = [table.grid(cells(of)), "\n".join(sentences(of))]
    if of.facts:
        parts.append(table.grid([["what differs", *of.names], *map(list, of.facts)]))
    return "\n\n".join(parts)


def cells(of: Pair) -> list[list[str]]:
    """The table of strategies: its heads, and a list for each strategy, in the order of the second run."""
    relative = f"relative to {of.baseline}" if of.baseline else "relative"
    ratio = " / ".join(reversed(of.names))
    head = ["strategy", *of.names, ratio, relative, "rank", "peak memory", "outcome", "change"]
    return [head, *(_line(of, change) for change in of.changes)]


def _case(run: Run) -> str:
    """The case, wherever it was measured."""
    return answer.heading(replace(run, request=replace(run.request, machine=UNSET)))


def sentences(of: Pair) -> list[str]:
    """Whether the verdict is the same; then what changed beyond chance, each kind in a sentence. Plain text."""
    first, second = of.first.run, of.second.run
    if (case := answer.heading(second)) == answer.heading(first) or _case(first) == _case(second):
        made = [reproduction.compare(first, second).sentence]
    else:
        made = [f"The {of.names[1]} run is of another case, {case}: what has changed is due to that, too."]
    if of.baseline is None:
        made.append("How strategies have changed cannot be told apart from the machines' paces: no strategy is timed "
                    "and right in both runs.")  # fmt: skip
    words = {change.strategy: _words(of, change) for change in of.changes}
    for word in ("slower", "faster", "more memory", "less memory", "another outcome"):
        if slugs := [slug for slug in words if word in words[slug]]:
            beside = f", relative to {of.baseline}" if word in ("slower", "faster") else ""
            made.append(f"{word.capitalize()} in the {of.names[1]} run{beside}: {text.listed(slugs, _MOST_NAMED)}.")
    if len(made) == 1:
        made.append("No strategy has changed beyond chance.")
    return [*made, f"All intervals hold together with {text.percent(first.analysis.confidence)} confidence."]


def _line(of: Pair, change: Change) -> list[str]:
    rows = change.before, change.after
    ranks = [text.MISSING if row is None or row.rank is None else str(row.rank) for row in rows]
    peaks = [text.size(row.peak_bytes if row else None) for row in rows]
    outcomes = [row.status if row else text.MISSING for row in rows]
    relative = change.relative.ratio(of.confidence).words if change.relative else text.MISSING
    return [
        change.strategy,
        *(row.latency if row else text.MISSING for row in rows),
        change.times.ratio(of.confidence).words if change.times else text.MISSING,
        "baseline" if change.strategy == of.baseline else relative,
        *(" → ".join(dict.fromkeys(both)) for both in (ranks, peaks, outcomes)),  # once where they are the same
        ", ".join(_words(of, change)),
    ]


def _words(of: Pair, change: Change) -> list[str]:
    """What has changed beyond chance; nothing of a strategy that one run does not have."""
    if change.before is None or change.after is None:
        return []
    words = []
    if change.relative and pair.has_changed(of.first, of.second, change.strategy, of.baseline, of.confidence):
        words.append("slower" if change.relative.log_mean > 0 else "faster")
    before, after = change.before.peak_bytes, change.after.peak_bytes
    if before is not None and after is not None and abs(after - before) > ALIKE * max(before, after):
        words.append("more memory" if after > before else "less memory")
    return words + ["another outcome"] * (change.before.outcome != change.after.outcome)
