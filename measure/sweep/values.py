"""The sentence about a swept option: which of its values is best, what ties with that, and how the next one compares.

All values of all strategies are of one case: they are judged as the strategies of a comparison are. Pure functions of a
sweep's levels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from measure.model import text
from measure.model.run import Analysis
from measure.statistics import intervals, ranking
from measure.statistics.intervals import Level
from measure.sweep.evidence import Evidence

# More values than so many, between which there may be others, are named by their number and their ends.
_MOST_LISTED = 8
# More strategies than so many that tie are counted.
_MOST_NAMED = 3


@dataclass(frozen=True)
class _Candidate:
    """A line at one value of a swept option; ``value`` is None where the option does not concern it."""

    line: str
    value: int | None
    level: Level


def sentence(known: Evidence, analysis: Analysis) -> str:
    """«chunked.graph is fastest with chunk 64: 1.00 ms [0.98, 1.02]; map_fn.graph takes 1.5 × [1.4, 1.6] as long.» All
    that tie for the lead are named alike; empty where nothing was timed."""
    axis = known.axes[0].name
    candidates = sorted(
        (
            _Candidate(along.line.slug, None if along.line.flat else timed.value, timed.level)
            for along in known.lines
            for timed in along.timed
        ),
        key=lambda candidate: candidate.level.log_mean,
    )
    if not candidates:
        return ""
    by_name = {f"{place:09}": candidate for place, candidate in enumerate(candidates)}
    order = ranking.Order({name: candidate.level for name, candidate in by_name.items()}, analysis)
    first, *others = order.fastest_first
    behind = [by_name[name] for name in others if order.separated(name, first)]
    leading: dict[str, list[_Candidate]] = {}
    for candidate in candidates:
        if candidate not in behind:
            leading.setdefault(candidate.line, []).append(candidate)
    said = _lead(axis, leading, analysis.confidence)
    if rest := [candidate for candidate in behind if candidate.line not in leading] or behind:
        ratio = intervals.ratio(rest[0].level, candidates[0].level, analysis.confidence)
        interval = f"[{text.number(ratio.low)}, {text.number(ratio.high)}]"
        said += f"; {_named(axis, rest[0].line, rest[:1])} takes {text.factor(ratio.ratio)} {interval} as long"
    return f"{said}."


def _lead(axis: str, leading: dict[str, list[_Candidate]], confidence: float) -> str:
    """The words for one that is fastest, or for all that tie, with what they take."""
    candidates = [candidate for of_line in leading.values() for candidate in of_line]
    medians = [math.exp(candidate.level.log_mean) for candidate in candidates]
    if len(candidates) == 1:
        [(line, of_line)] = leading.items()
        with_value = "" if of_line[0].value is None else f" with {axis} {of_line[0].value:,}"
        seconds = text.seconds_with_interval(medians[0], *candidates[0].level.interval(confidence))
        return f"{line} is fastest{with_value}: {seconds}"
    span = text.span_of_seconds(min(medians), max(medians))
    if len(leading) == 1:
        [(line, of_line)] = leading.items()
        return f"{line} is fastest with {axis} {_values(of_line)}, which tie: {span}"
    names = [_named(axis, line, of_line) for line, of_line in leading.items()]
    return f"{text.listed(names, _MOST_NAMED)} tie: {span}"


def _named(axis: str, line: str, candidates: Sequence[_Candidate]) -> str:
    return line if candidates[0].value is None else f"{line} with {axis} {_values(candidates)}"


def _values(candidates: Sequence[_Candidate]) -> str:
    values = [f"{value:,}" for value in sorted(other.value for other in candidates if other.value is not None)]
    return text.listed(values) if len(values) <= _MOST_LISTED else f"{values[0]} … {values[-1]} ({len(values)} values)"
