"""Predicates: what figures are compared with, and the words that show them with their thresholds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, variance
from typing import Any

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
_UNITS = ("%", "s", "MiB")


# --- times -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Faster(Predicate):
    """``b`` takes more than ``by`` times as long as ``a``, and less than ``most`` times: two strategies, or two times
    of a script. Of a sweep at every value; if it turns, it is said where."""

    a: str
    b: str
    by: float = 1.0
    most: float = math.inf

    def see(self, evidence: Evidence) -> Seen:
        ratios = _ratios(self.need, evidence, self.b, self.a)
        truths = {place: self._truth(of) for place, of in ratios.items()}
        slower, faster, threshold = self.b, self.a, f"at least {self.by:g} ×" if self.by != 1 else "more than 1 ×"
        if self.most < math.inf:
            threshold = f"{self.by:.3g} × to {self.most:.3g} ×"
        elif self.by == 1 and all(of.ratio < 1 for of in ratios.values()):  # so that nobody has to invert a fraction
            slower, faster, threshold = faster, slower, "less than 1 ×"
            ratios = {place: Ratio(1 / of.ratio, 1 / of.high, 1 / of.low, of.p) for place, of in ratios.items()}
        axis = self.need.axis if isinstance(self.need, Swept) else ""
        ends = [
            " ".join(text.factor_with_interval(of.ratio, of.low, of.high)) + (f" at {axis} {place:,}" if axis else "")
            for place, of in ratios.items()
            if place in (min(ratios), max(ratios))
        ]
        words = f"{slower} takes {text.listed(ends)} as long as {faster}"
        if {"yes", "no"} <= set(truths.values()):
            clear = [place for place, truth in truths.items() if truth != "unknown"]
            turns = [f"{low:,} and {high:,}" for low, high in pairwise(clear) if truths[low] != truths[high]]
            return Seen("mixed", f"it turns between {axis} {text.listed(turns)}; {words}", threshold)
        return Seen("unknown" if "unknown" in truths.values() else truths[min(truths)], words, threshold)

    def _truth(self, of: Ratio) -> Truth:
        """Unknown where the interval of a ratio holds a bound."""
        if self.by < of.low and of.high < self.most:
            return "yes"
        return "no" if of.high <= self.by or of.low >= self.most else "unknown"


def as_fast(need: Need, a: str, b: str, within: float = 2.0, when: str = "") -> Faster:
    """The times of ``a`` and ``b`` differ by less than the factor ``within``."""
    return Faster(need, a, b, 1 / within, within, when=when)


def _ratios(need: Need, evidence: Evidence, over: str, under: str) -> dict[int, Ratio]:
    """The ratio of two times at each value of a sweep's axis; of a comparison or a script at 0 alone."""
    if isinstance(need, Script):
        return {0: _ratio_of_processes(numbers_of(evidence, over), numbers_of(evidence, under))}
    if isinstance(need, Compare):
        items = _right(run_of(evidence).measurements)
        levels = dict(levels_of(items).by_slug)
        if any(name.startswith(FIRST_CALL) for name in (over, under)):
            levels |= levels_of([_first_calls(item) for item in items]).by_slug
        for name in (over, under):
            right_item_of(evidence, name.removeprefix(FIRST_CALL))
        return {0: intervals.ratio(levels[over], levels[under], CONFIDENCE)}
    run = run_of(evidence)
    along = {
        point.at[need.axis]: levels_of(_right(point.measurements), run.analysis).by_slug
        for point in run.points
        if need.axis in point.at
    }
    places = sorted(place for place, levels in along.items() if over in levels and under in levels)
    if len(places) < 2:
        raise Missing(f"{over} and {under} were not both timed at two values of {need.axis}")
    return {place: intervals.ratio(along[place][over], along[place][under], CONFIDENCE) for place in places}


def _ratio_of_processes(over: Sequence[float], under: Sequence[float]) -> Ratio:
    """The ratio of two times of a script, of which each process has both. Its interval is Student's, of what processes
    differ by, and of what reruns do."""
    if min(len(over), len(under)) < 2 or min(*over, *under) <= 0:
        raise Missing("it takes times of several processes to tell what they differ by")
    logs = [math.log(one / other) for one, other in zip(over, under, strict=False)]
    level = Level(mean(logs), variance(logs) / len(logs) + RERUN**2, len(logs) - 1.0)
    return Ratio(math.exp(level.log_mean), *level.interval(CONFIDENCE), math.nan)


def _right(measurements: Sequence[Measurement]) -> list[Measurement]:
    return [item for item in measurements if item.outcome == "ok"]


def _first_calls(item: Measurement) -> Measurement:
    """The measurement of a strategy's first calls, as if each were the only sample of its process."""
    firsts = [
        Replica(id=process.id, calls_per_sample=1, rounds=[0], samples_s=[process.first_call_s])
        for process in item.replicas
        if process.first_call_s
    ]
    return replace(item, strategy=FIRST_CALL + item.strategy, replicas=firsts)


# --- the figures of a comparison --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MoreMemory(Predicate):
    """The peak of ``a`` is higher than that of ``b``, at least ``by`` times."""

    a: str
    b: str
    by: float = 1.05

    def see(self, evidence: Evidence) -> Seen:
        a, b = (right_item_of(evidence, slug).memory for slug in (self.a, self.b))
        if a is None or b is None:
            raise Missing(f"the memory of {self.a} and {self.b} was not both measured")
        words = f"{self.a} needs {text.size(a.peak_bytes)} at its peak, {self.b} {text.size(b.peak_bytes)}"
        truth: Truth = "yes" if a.peak_bytes >= b.peak_bytes * self.by else "no"
        return Seen(truth, words, f"at least {self.by:g} ×")


@dataclass(frozen=True)
class Ends(Predicate):
    """A strategy ends with ``outcome``."""

    strategy: str
    outcome: str = "ok"

    def see(self, evidence: Evidence) -> Seen:
        item = run_of(evidence).measurement(self.strategy)
        if item.outcome in ("not_run", "cancelled", "timeout"):
            raise Missing(f"{self.strategy} was not run to its end ({item.outcome.replace('_', ' ')})")
        ends = "runs, and is right" if item.outcome == "ok" else f"ends as {_end_of(item)}"
        return Seen("yes" if item.outcome == self.outcome else "no", f"{self.strategy} {ends}")


@dataclass(frozen=True)
class FallsBack(Predicate):
    """``tf.vectorized_map`` has no vectorised form of an op in the function, and makes a loop of it."""

    strategy: str

    def see(self, evidence: Evidence) -> Seen:
        for warning in right_item_of(evidence, self.strategy).warnings:
            if warning.code == "falls_back":
                # What to do about it is the claim's to say.
                return Seen("yes", f"{self.strategy} {warning.message.partition(', so that')[0]}")
        return Seen("no", f"{self.strategy} does not fall back to a loop")


def run_of(evidence: Evidence) -> Run:
    if evidence.run is None:
        raise Missing(evidence.reason or "it was not measured")
    return evidence.run


def right_item_of(evidence: Evidence, slug: str) -> Measurement:
    item = run_of(evidence).measurement(slug)
    if item.outcome != "ok":
        raise Missing(f"{slug} ended as {_end_of(item)}")
    return item


def _end_of(item: Measurement) -> str:
    return item.outcome.replace("_", " ") + (f": {item.error.message}" if item.error else "")


# --- the figures of a script ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure(Predicate):
    """A number that a script reported is at least ``least``, at most ``most``, or where they are equal exactly that, in
    each of its processes. ``words`` has ``{value}`` in it; ``zero``: why 0 tells nothing, where that is so."""

    name: str
    words: str
    least: float = -math.inf
    most: float = math.inf
    zero: str = ""

    def see(self, evidence: Evidence) -> Seen:
        values = numbers_of(evidence, self.name)
        if self.zero and not any(values):
            raise Missing(self.zero)
        truths = {self.least <= value <= self.most for value in values}
        truth: Truth = "unknown" if len(truths) > 1 else "yes" if truths == {True} else "no"
        shown = dict.fromkeys(f"{value:,}" if isinstance(value, int) else text.number(value) for value in values)
        threshold = f"at least {self.least:,g}" if self.most == math.inf else f"at most {self.most:,g}"
        if self.least == self.most:
            threshold = f"exactly {self.least:,g}"
        unit = self.words.partition("{value} ")[2].split(" ")[0]  # behind the figure
        threshold += f" {unit}" if unit in _UNITS else ""
        return Seen(truth, self.words.format(value=text.listed(list(shown))), threshold)


@dataclass(frozen=True)
class Fails(Predicate):
    """A part of a script, whose figure is its error or an empty text, fails with ``words`` in its error: another
    failure may have nothing to do with the claim. Not ``fails``: it runs."""

    name: str
    words: str = ""
    fails: bool = True

    def see(self, evidence: Evidence) -> Seen:
        error = str(figure_of(evidence, self.name))
        is_so = (error != "" and self.words.lower() in error.lower()) == self.fails
        return Seen("yes" if is_so else "no", f"it fails: {text.shortened(error, _MOST_ERROR)}" if error else "it runs")


def figure_of(evidence: Evidence, name: str) -> Any:
    """The figure that a script reported by this name."""
    if (end := evidence.script) is None:
        raise Missing(evidence.reason or "its script was not run")
    if end.error:
        raise Missing(f"its script {'was not run to its end' if end.ended is True else 'failed'}: {end.error}")
    return end.figures[name]


def numbers_of(evidence: Evidence, name: str) -> list[float]:
    """A script's figure, by its processes."""
    figure = figure_of(evidence, name)
    values = figure if isinstance(figure, list) else [figure]
    if not values or not all(isinstance(value, int | float) for value in values):
        raise Missing(f"the script's figure {name} is no number")
    return values
