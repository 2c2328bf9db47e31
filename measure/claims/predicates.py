"""Predicates: what figures are compared with, and the words that show them with their thresholds."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, variance

from msgspec.structs import replace

from measure.claims.spec import Compare, Missing, Need, Predicate, Script, Seen, Swept, Truth
from measure.judge import intervals
from measure.judge.intervals import Level, Ratio
from measure.judge.levels import RERUN, levels_of
from measure.run import text
from measure.run.run import Evidence, Measurement, Replica, Run

CONFIDENCE = 0.95
# Before a strategy's slug: the time of its first call.
FIRST_CALL = "the first call of "
_MOST_ERROR = 140
# Behind a figure in words, and its threshold.
_UNITS = ("%", "s", "MiB")


# --- times -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Faster(Predicate):
    """``a`` takes less time than ``b``, at least ``by`` times: two strategies, or two times of a script. Of a sweep at
    every value; if it turns, it is said where."""

    need: Need
    a: str
    b: str
    by: float = 1.0
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        ratios = _ratios(self.need, evidence, self.b, self.a)
        truths = {place: _between(of.low, of.high, self.by) for place, of in ratios.items()}
        slower, faster, threshold = self.b, self.a, f"at least {self.by:g} ×" if self.by != 1 else "more than 1 ×"
        if self.by == 1 and all(of.ratio < 1 for of in ratios.values()):  # so that nobody has to invert a fraction
            slower, faster, threshold = faster, slower, "less than 1 ×"
            ratios = {place: Ratio(1 / of.ratio, 1 / of.high, 1 / of.low, of.p) for place, of in ratios.items()}
        axis = self.need.axis if isinstance(self.need, Swept) else ""
        ends = [
            f"{_times(ratios[place])}{f' at {axis} {place:,}' if axis else ''}"
            for place in dict.fromkeys((min(ratios), max(ratios)))
        ]
        words = f"{slower} takes {text.listed(ends)} as long as {faster}"
        if {"yes", "no"} <= set(truths.values()):
            clear = [place for place, truth in truths.items() if truth != "unknown"]
            turns = [f"{low:,} and {high:,}" for low, high in pairwise(clear) if truths[low] != truths[high]]
            return Seen("mixed", f"it turns between {axis} {text.listed(turns)}; {words}", threshold)
        return Seen("unknown" if "unknown" in truths.values() else truths[min(truths)], words, threshold)


@dataclass(frozen=True)
class AsFast(Predicate):
    """The times of ``a`` and ``b`` differ by less than the factor ``within``."""

    need: Compare | Script
    a: str
    b: str
    within: float = 2.0
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        (of,) = _ratios(self.need, evidence, self.b, self.a).values()
        threshold = f"{1 / self.within:.3g} × to {self.within:.3g} ×"
        truth = _between(of.low, of.high, 1 / self.within, self.within)
        return Seen(truth, f"{self.b} takes {_times(of)} as long as {self.a}", threshold)


def _between(low: float, high: float, least: float, most: float = math.inf) -> Truth:
    """Yes where an interval lies between two bounds, no where it lies outside, and unknown where it holds a bound."""
    if least < low and high < most:
        return "yes"
    return "no" if high <= least or low >= most else "unknown"


def _times(of: Ratio) -> str:
    return " ".join(text.factor_with_interval(of.ratio, of.low, of.high))


def _ratios(need: Need, evidence: Evidence, over: str, under: str) -> dict[int, Ratio]:
    """The ratio of two times at each value of a sweep's axis; of a comparison or a script at 0 alone."""
    if isinstance(need, Script):
        return {0: _ratio_of_processes(numbers_of(evidence, over), numbers_of(evidence, under))}
    run = run_of(evidence)
    if isinstance(need, Compare):
        along = {0: _times_of(run.measurements)}
        for name in (over, under):
            if name not in along[0]:
                right_item_of(run, name.removeprefix(FIRST_CALL))
                raise Missing(f"{name} was not timed")
    else:
        along = _levels_along(run, need.axis)
    ratios = {
        place: intervals.ratio(levels[over], levels[under], CONFIDENCE)
        for place, levels in along.items()
        if over in levels and under in levels
    }
    if isinstance(need, Swept) and len(ratios) < 2:
        raise Missing(f"{over} and {under} were not both timed at two values of {need.axis}")
    return ratios


def _ratio_of_processes(over: Sequence[float], under: Sequence[float]) -> Ratio:
    """The ratio of two times of a script, of which each process has both. Its interval is Student's, of what processes
    differ by, and of what reruns do."""
    if min(len(over), len(under)) < 2 or min(*over, *under) <= 0:
        raise Missing("it takes times of several processes to tell what they differ by")
    logs = [math.log(one / other) for one, other in zip(over, under, strict=False)]
    level = Level(mean(logs), variance(logs) / len(logs) + RERUN**2, len(logs) - 1.0)
    return Ratio(math.exp(level.log_mean), *level.interval(CONFIDENCE), math.nan)


def _times_of(measurements: Iterable[Measurement]) -> Mapping[str, Level]:
    """Times of a comparison by their names: of calls by slugs, and of first calls."""
    right = [item for item in measurements if item.outcome == "ok"]
    first = [
        replace(item, strategy=FIRST_CALL + item.strategy, replicas=[
            Replica(id=process.id, calls_per_sample=1, rounds=[0], samples_s=[process.first_call_s])
            for process in item.replicas if process.first_call_s
        ])
        for item in right
    ]  # fmt: skip
    return {**levels_of(right).by_slug, **levels_of(first).by_slug}


def _levels_along(run: Run, axis: str) -> dict[int, Mapping[str, Level]]:
    """Value of the axis → the levels of the strategies that are right there."""
    if [one.name for one in run.axes] != [axis]:
        raise Missing(f"it is no sweep over {axis}")
    return {
        point.at[axis]: levels_of([item for item in point.measurements if item.outcome == "ok"], run.analysis).by_slug
        for point in sorted(run.points, key=lambda point: point.at[axis])
    }


# --- the figures of a comparison --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MoreMemory(Predicate):
    """The peak of ``a`` is higher than that of ``b``, at least ``by`` times."""

    need: Compare
    a: str
    b: str
    by: float = 1.05
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        items = [right_item_of(run_of(evidence), slug).memory for slug in (self.a, self.b)]
        a, b = (memory.peak_bytes if memory else None for memory in items)
        if a is None or b is None:
            raise Missing(f"the memory of {self.a} and {self.b} was not both measured")
        words = f"{self.a} needs {text.size(a)} at its peak, {self.b} {text.size(b)}"
        return Seen("yes" if a >= b * self.by else "no", words, f"at least {self.by:g} ×")


@dataclass(frozen=True)
class Ends(Predicate):
    """A strategy ends with ``outcome``."""

    need: Compare
    strategy: str
    outcome: str = "ok"
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        item = item_of(run_of(evidence), self.strategy)
        if item.outcome in ("not_run", "cancelled", "timeout"):
            raise Missing(f"{self.strategy} was not run to its end ({item.outcome.replace('_', ' ')})")
        ends = "runs, and is right" if item.outcome == "ok" else f"ends as {_end_of(item)}"
        return Seen("yes" if item.outcome == self.outcome else "no", f"{self.strategy} {ends}")


@dataclass(frozen=True)
class FallsBack(Predicate):
    """``tf.vectorized_map`` has no vectorised form of an op in the function, and makes a loop of it."""

    need: Compare
    strategy: str
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        item = right_item_of(run_of(evidence), self.strategy)
        for warning in item.warnings:
            if warning.code == "falls_back":
                # What to do about it is the claim's to say.
                return Seen("yes", f"{self.strategy} {warning.message.partition(', so that')[0]}")
        return Seen("no", f"{self.strategy} does not fall back to a loop")


def run_of(evidence: Evidence) -> Run:
    if evidence.run is None:
        raise Missing(evidence.reason or "it was not measured")
    return evidence.run


def item_of(run: Run, slug: str) -> Measurement:
    """A strategy that was measured; of a sweep there is none."""
    try:
        return run.measurement(slug)
    except KeyError:
        raise Missing(f"{slug} was not measured") from None


def right_item_of(run: Run, slug: str) -> Measurement:
    item = item_of(run, slug)
    if item.outcome != "ok":
        raise Missing(f"{slug} ended as {_end_of(item)}")
    return item


def _end_of(item: Measurement) -> str:
    return item.outcome.replace("_", " ") + (f": {item.error.message}" if item.error else "")


# --- the figures of a script -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure(Predicate):
    """A number that a script reported is from ``least`` to ``most``, in each of its processes. ``words`` has
    ``{value}`` in it."""

    need: Script
    name: str
    words: str
    least: float = -math.inf
    most: float = math.inf
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        values = numbers_of(evidence, self.name)
        truths = {self.least <= value <= self.most for value in values}
        shown = dict.fromkeys(f"{value:,}" if isinstance(value, int) else text.number(value) for value in values)
        truth: Truth = "unknown" if len(truths) > 1 else "yes" if truths == {True} else "no"
        unit = self.words.partition("{value} ")[2].split(" ")[0]
        threshold = _range(self.least, self.most) + (f" {unit}" if unit in _UNITS else "")
        return Seen(truth, self.words.format(value=text.listed(list(shown))), threshold)


@dataclass(frozen=True)
class Runs(Predicate):
    """A part of a script runs: its figure is an empty text, and that of one that fails its error."""

    need: Script
    name: str
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        error = str(figure_of(evidence, self.name))
        return Seen("no", f"it fails: {text.shortened(error, _MOST_ERROR)}") if error else Seen("yes", "it runs")


@dataclass(frozen=True)
class Fails(Runs):
    """A part of a script fails with ``words`` in its error: another failure may have nothing to do with the claim."""

    words: str = ""

    def see(self, evidence: Evidence) -> Seen:
        runs = super().see(evidence)
        return Seen("yes" if runs.truth == "no" and self.words.lower() in runs.words.lower() else "no", runs.words)


def figure_of(evidence: Evidence, name: str) -> object:
    """The figure that a script reported by this name."""
    if (end := evidence.script) is None:
        raise Missing(evidence.reason or "its script was not run")
    if end.error:
        raise Missing(f"its script {'was not run to its end' if end.ended is True else 'failed'}: {end.error}")
    if name not in end.figures:
        raise Missing(f"its script reported no {name}")
    return end.figures[name]


def numbers_of(evidence: Evidence, name: str) -> list[float]:
    """A script's figure, by its processes."""
    figure = figure_of(evidence, name)
    values = figure if isinstance(figure, list) else [figure]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if not numbers or len(numbers) < len(values):
        raise Missing(f"the script's figure {name} is no number")
    return numbers


def _range(least: float, most: float) -> str:
    if least == most:
        return f"exactly {least:,g}"
    ends = [f"at least {least:,g}" if least > -math.inf else "", f"at most {most:,g}" if most < math.inf else ""]
    return " and ".join(filter(None, ends))
