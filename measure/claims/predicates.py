"""Predicates on measured figures: each looks at one piece of evidence and says what is seen there.

A predicate is data with a method `see`, which returns a `Seen` or raises `Missing` with the reason why its figures are
not there: then nothing is said of its claim.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from measure.claims.figures import (
    CONFIDENCE,
    Missing,
    figures_of,
    item_of,
    levels_along,
    numbers_of,
    ratio_of,
    ratios_along,
    right_item_of,
    run_of,
)
from measure.claims.spec import Compare, Need, Script, Seen, Swept, Truth
from measure.model import text
from measure.model.run import Evidence, Run
from measure.statistics import intervals
from measure.statistics.growth import growth
from measure.sweep import crossovers
from measure.sweep.evidence import evidence as evidence_of

_MOST_ERROR = 140
# Behind a figure in words, and its threshold.
_UNITS = ("%", "s", "MiB")


@dataclass(frozen=True)
class Faster:
    """``a`` takes less time than ``b``, at least ``by`` times: two strategies, or two times of a script. Of a sweep at
    every value; if it turns, it is said where."""

    need: Need
    a: str
    b: str
    by: float = 1.0
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        if isinstance(self.need, Swept):
            ratios = ratios_along(run_of(evidence), self.need.axis, self.b, self.a)
            at = {value: f" at {self.need.axis} {value:,}" for value in ratios}
        else:
            ratios, at = {0: ratio_of(evidence, self.b, self.a)}, {0: ""}
        truths = {value: _above(of, self.by) for value, of in ratios.items()}
        slower, faster, threshold = self.b, self.a, f"at least {self.by:g} ×" if self.by != 1 else "more than 1 ×"
        if self.by == 1 and all(of.ratio < 1 for of in ratios.values()):  # said so that a reader has no fraction
            slower, faster, threshold = faster, slower, "less than 1 ×"
            ratios = {value: _inverse(of) for value, of in ratios.items()}
        ends = [f"{_times(ratios[value])}{at[value]}" for value in dict.fromkeys((min(ratios), max(ratios)))]
        words = f"{slower} takes {text.listed(ends)} as long as {faster}"
        if {"yes", "no"} <= set(truths.values()):
            return Seen("mixed", f"{self._turn(run_of(evidence), truths)}; {words}", threshold)
        return Seen("unknown" if "unknown" in truths.values() else truths[min(truths)], words, threshold)

    def _turn(self, run: Run, truths: Mapping[int, Truth]) -> str:
        """The place where it turns, with its interval where the sweep has one: «from batch 40 [31, 52] on»."""
        assert isinstance(self.need, Swept)
        places = [
            f"from {self.need.axis} {place} on" if crossing.b == self.a else f"up to {self.need.axis} {place}"
            for crossing in crossovers.of_two(self.a, self.b, evidence_of(run.points, run.axes), run.analysis)
            if self.by == 1.0 and (place := crossovers.place(crossing))
        ]
        clear = [value for value, truth in truths.items() if truth != "unknown"]
        turns = [f"between {low:,} and {high:,}" for low, high in pairwise(clear) if truths[low] != truths[high]]
        return text.listed(places) or f"it turns at {self.need.axis} {text.listed(turns)}"


@dataclass(frozen=True)
class AsFast:
    """The times of ``a`` and ``b`` differ by less than the factor ``within``."""

    need: Compare | Script
    a: str
    b: str
    within: float = 2.0
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        of = ratio_of(evidence, self.b, self.a)
        ends = {_above(of, self.within), _above(_inverse(of), self.within)}
        truth: Truth = "no" if "yes" in ends else "unknown" if "unknown" in ends else "yes"
        threshold = f"{1 / self.within:.3g} × to {self.within:.3g} ×"
        return Seen(truth, f"{self.b} takes {_times(of)} as long as {self.a}", threshold)


@dataclass(frozen=True)
class MoreMemory:
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
class Grows:
    """The time of a strategy grows with an exponent of the axis from ``least`` to ``most``: 0 is not at all, 1 in
    proportion, 2 with the square. Over the upper half of the values, where fixed costs are paid for. ``over``: of the
    time as a multiple of that strategy's."""

    need: Swept
    strategy: str
    over: str = ""
    least: float = -math.inf
    most: float = math.inf
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        run, threshold = run_of(evidence), f"an exponent {_range(self.least, self.most)}"
        names = [self.strategy, *([self.over] if self.over else [])]
        along = {
            value: intervals.difference(*(levels[name] for name in names)) if self.over else levels[self.strategy]
            for value, levels in levels_along(run, self.need.axis).items()
            if all(name in levels for name in names)
        }
        if (grown := growth(along, CONFIDENCE)) is None:
            raise Missing(f"{text.listed(names)} was timed at fewer than three values of {self.need.axis}")
        words = f"from {self.need.axis} {grown.smallest:,} to {grown.largest:,} the time of {self.strategy} "
        words += f"{f'as a multiple of that of {self.over} ' if self.over else ''}grows as {self.need.axis}^"
        words += f"{grown.exponent:.2f} [{grown.low:.2f}, {grown.high:.2f}]"
        if any(grown.low < bound < grown.high for bound in (self.least, self.most)):
            return Seen("unknown", words, threshold)
        return Seen("yes" if self.least < grown.exponent < self.most else "no", words, threshold)


@dataclass(frozen=True)
class Ends:
    """A strategy ends with ``outcome``."""

    need: Compare
    strategy: str
    outcome: str = "ok"
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        item = item_of(run_of(evidence), self.strategy)
        if item.outcome in ("not_run", "cancelled", "timeout"):
            raise Missing(f"{self.strategy} was not run to its end ({item.outcome.replace('_', ' ')})")
        ends = "runs, and is right" if item.outcome == "ok" else f"ends as {item.outcome.replace('_', ' ')}"
        reason = f": {item.error.message}" if item.error else ""
        return Seen("yes" if item.outcome == self.outcome else "no", f"{self.strategy} {ends}{reason}")


@dataclass(frozen=True)
class FallsBack:
    """``tf.vectorized_map`` has no vectorised form of an op in the function, and makes a loop of it."""

    need: Compare
    strategy: str
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        item = right_item_of(run_of(evidence), self.strategy)
        words = next((warning.message for warning in item.warnings if warning.code == "falls_back"), "")
        # What to do about it is the claim's to say.
        words = words.partition(", so that")[0] or "does not fall back to a loop"
        return Seen("no" if words.startswith("does not") else "yes", f"{self.strategy} {words}")


@dataclass(frozen=True)
class Figure:
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
        unit = next(iter(self.words.partition("{value}")[2].split()), "")
        threshold = _range(self.least, self.most) + (f" {unit}" if unit in _UNITS else "")
        return Seen(truth, self.words.format(value=text.listed(list(shown))), threshold)


@dataclass(frozen=True)
class Runs:
    """A part of a script runs: its figure is an empty text, and that of one that fails its error."""

    need: Script
    name: str
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        error = figures_of(evidence).get(self.name)
        if not isinstance(error, str):
            raise Missing(f"its script reported no {self.name}")
        return Seen("no", f"it fails: {text.shortened(error, _MOST_ERROR)}") if error else Seen("yes", "it runs")


@dataclass(frozen=True)
class Fails(Runs):
    """A part of a script fails with ``words`` in its error: another failure may have nothing to do with the claim."""

    words: str = ""

    def see(self, evidence: Evidence) -> Seen:
        runs = super().see(evidence)
        return Seen("yes" if runs.truth == "no" and self.words.lower() in runs.words.lower() else "no", runs.words)


def _times(of: intervals.Ratio) -> str:
    value, interval = text.factor_with_interval(of.ratio, of.low, of.high)
    return f"{value} {interval}"


def _inverse(of: intervals.Ratio) -> intervals.Ratio:
    return intervals.Ratio(1 / of.ratio, 1 / of.high, 1 / of.low, of.p)


def _above(of: intervals.Ratio, least: float) -> Truth:
    return "yes" if of.low > least else "no" if of.high <= least else "unknown"


def _range(least: float, most: float) -> str:
    if least == most:
        return f"exactly {least:,g}"
    ends = [f"at least {least:,g}" if least > -math.inf else "", f"at most {most:,g}" if most < math.inf else ""]
    return " and ".join(filter(None, ends))
