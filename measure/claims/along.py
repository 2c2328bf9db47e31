"""Predicates on sweeps: what holds along an axis, and where it turns."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from measure.claims.figures import Missing, above, levels_along, run_of, seen, temporaries_along, times
from measure.claims.spec import Seen, Swept, Truth
from measure.model import text
from measure.model.run import Evidence, Run
from measure.statistics import intervals
from measure.statistics.growth import growth
from measure.sweep import crossovers
from measure.sweep.evidence import evidence as evidence_of


@dataclass(frozen=True)
class FasterAlong:
    """``a`` takes less time than ``b`` at every value of the axis: if it turns, it is said where."""

    need: Swept
    a: str
    b: str
    by: float = 1.0
    when: str = ""

    @property
    def strategies(self) -> tuple[str, ...]:
        """The two strategies whose latencies are compared."""
        return (self.a, self.b)

    def see(self, evidence: Evidence) -> Seen:
        run, axis = run_of(evidence), self.need.axis
        ratios = {
            value: intervals.ratio(levels[self.b], levels[self.a], run.analysis.confidence)
            for value, levels in levels_along(run, axis).items()
            if self.a in levels and self.b in levels
        }
        if len(ratios) < 2:
            raise Missing(f"{self.a} and {self.b} were not both timed at two values of {axis}")
        truths = {value: above(of, self.by) for value, of in ratios.items()}
        words = text.listed([f"{times(of)} at {axis} {value:,}" for value, of in _ends_of(ratios)])
        words = f"{self.b} takes {words} the time of {self.a}"
        if {"yes", "no"} <= set(truths.values()):
            return Seen("mixed", f"{self._turns(run, truths)}; {words}")
        if "unknown" in truths.values():
            unknown = next(value for value, truth in truths.items() if truth == "unknown")
            return seen("unknown", f"{words}; at {axis} {unknown:,} the two cannot be told apart", f"{self.by:g} ×")
        return Seen(next(iter(truths.values())), words)

    def _turns(self, run: Run, truths: Mapping[int, Truth]) -> str:
        """The place where it turns, with its interval where the sweep has one: «from batch 40 [31, 52] on»."""
        axis, told = self.need.axis, [value for value, truth in truths.items() if truth != "unknown"]
        from_on = truths[told[-1]] == "yes"
        if self.by == 1.0 and (crossings := self._crossings(run)):
            return text.listed(crossings)
        turns = [high for low, high in pairwise(told) if truths[low] != truths[high]]
        if len(turns) > 1:
            return f"at {axis} {text.listed([f'{value:,}' for value in told if truths[value] == 'yes'])}"
        turn = turns[0]
        before = max(value for value in told if value < turn)
        return f"{'from' if from_on else 'up to'} between {axis} {before:,} and {turn:,}{' on' if from_on else ''}"

    def _crossings(self, run: Run) -> list[str]:
        """The places where the two change their order, whoever leads: «from batch 40 [31, 52] on»."""
        told = []
        for crossing in crossovers.of_two(self.a, self.b, evidence_of(run.points, run.axes), run.analysis):
            if (place := crossovers.place(crossing)) is not None:
                named = f"{self.need.axis} {place}"
                told.append(f"from {named} on" if crossing.b == self.a else f"up to {named}")
        return told


@dataclass(frozen=True)
class Grows:
    """The time of a strategy grows with an exponent of the axis from ``least`` to ``most``: 1 is in proportion, 2 with
    the square. Over the upper half of the values, where fixed costs are paid for."""

    need: Swept
    strategy: str
    least: float = -math.inf
    most: float = math.inf
    when: str = ""

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategy whose latencies are looked at."""
        return (self.strategy,)

    def see(self, evidence: Evidence) -> Seen:
        axis = self.need.axis
        along = {
            value: levels[self.strategy]
            for value, levels in levels_along(run_of(evidence), axis).items()
            if self.strategy in levels
        }
        grown = growth(along, run_of(evidence).analysis.confidence)
        if grown is None:
            raise Missing(f"{self.strategy} was timed at fewer than three values of {axis}")
        words = f"from {axis} {grown.smallest:,} to {grown.largest:,} the time of {self.strategy} grows as "
        words += f"{axis}^{grown.exponent:.2f}"
        if any(grown.low < bound < grown.high for bound in (self.least, self.most)):
            bounds = " or ".join(f"{bound:g}" for bound in (self.least, self.most) if math.isfinite(bound))
            return seen("unknown", f"{words}, ± {grown.half:.2f}", f"an exponent of {bounds}")
        return Seen("yes" if self.least < grown.exponent < self.most else "no", words)


@dataclass(frozen=True)
class MemoryGrows:
    """The temporary bytes of a strategy grow with an exponent of the axis from ``least`` to ``most``, from its first
    value to its last: 0 is not at all, 1 is in proportion."""

    need: Swept
    strategy: str
    least: float = -math.inf
    most: float = math.inf
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        axis, along = self.need.axis, temporaries_along(run_of(evidence), self.need.axis, self.strategy)
        low, high = self.need.values[0], self.need.values[-1]
        if not {low, high} <= along.keys():
            raise Missing(f"the memory of {self.strategy} is not known at {axis} {low:,} and {high:,}")
        exponent = math.log(max(along[high], 1) / max(along[low], 1)) / math.log(high / low)
        words = f"temporary bytes of {self.strategy}: {text.size(along[low])} at {axis} {low:,}, "
        words += f"{text.size(along[high])} at {axis} {high:,}"
        return Seen("yes" if self.least <= exponent <= self.most else "no", words)


def _ends_of(ratios: Mapping[int, intervals.Ratio]) -> list[tuple[int, intervals.Ratio]]:
    items = list(ratios.items())
    return [items[0], items[-1]]
