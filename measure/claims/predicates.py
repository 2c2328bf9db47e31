"""Predicates on measured figures: each looks at one piece of evidence and says what is seen there.

A predicate is data with a method `see`, which returns a `Seen` or raises `Missing` with the reason why its figures are
not there: then nothing is said of its claim. ``when`` names the case in a verdict that depends on it: «at batch 1».
"""

import math
from dataclasses import dataclass
from typing import Literal

from measure.claims.figures import (
    Missing,
    above,
    bounds_of,
    bytes_of,
    figure_of,
    item_of,
    ratio_of,
    run_of,
    sampled_ratio,
    script_of,
    seen,
    times,
    within_share,
    words_of_samples,
)
from measure.claims.spec import Compare, Script, Seen
from measure.model import text
from measure.model.run import Evidence

# Latencies that differ by less than this share are as good as equal.
_ALIKE = 0.15


# --- comparisons -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Faster:
    """``a`` takes less time than ``b``, at least ``by`` times."""

    need: Compare
    a: str
    b: str
    by: float = 1.0
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        of = ratio_of(run_of(evidence), self.b, self.a)
        return seen(above(of, self.by), f"{self.b} takes {times(of)} the time of {self.a}", f"{self.by:g} ×")


@dataclass(frozen=True)
class AsFast:
    """``a`` and ``b`` differ by less than ``within``, a share of the time."""

    need: Compare
    a: str
    b: str
    within: float = _ALIKE
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        of = ratio_of(run_of(evidence), self.b, self.a)
        words = f"{self.b} takes {times(of)} the time of {self.a}"
        return seen(within_share(of, self.within), words, bounds_of(self.within))


@dataclass(frozen=True)
class MoreMemory:
    """``a`` needs more memory than ``b``, at least ``by`` times. ``figure``: of which bytes."""

    need: Compare
    a: str
    b: str
    by: float = 1.05
    figure: Literal["peak_bytes", "temporary_bytes"] = "peak_bytes"
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        a, b = (bytes_of(run_of(evidence), slug, self.figure) for slug in (self.a, self.b))
        kind = "temporary bytes" if self.figure == "temporary_bytes" else "peak"
        words = f"{kind} of {text.size(a)} in {self.a}, {text.size(b)} in {self.b}"
        return Seen("yes" if a > b * self.by else "no", words)


@dataclass(frozen=True)
class Ends:
    """A strategy ends with ``outcome``, and with ``words`` in its reason, where some are given."""

    need: Compare
    strategy: str
    outcome: str = "ok"
    words: str = ""
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        item = item_of(run_of(evidence), self.strategy)
        if item.outcome in ("not_run", "cancelled", "timeout"):
            raise Missing(f"{self.strategy} was not run to its end ({item.outcome.replace('_', ' ')})")
        reason = item.error.message if item.error else ""
        said = f"{self.strategy} ends as {item.outcome.replace('_', ' ')}" + (f": {reason}" if reason else "")
        detail = f"{reason} {item.error.detail if item.error else ''}"
        is_so = item.outcome == self.outcome and self.words.lower() in detail.lower()
        return Seen("yes" if is_so else "no", said)


@dataclass(frozen=True)
class Warned:
    """A strategy has a warning with this code, such as ``falls_back``."""

    need: Compare
    strategy: str
    code: str
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        item = item_of(run_of(evidence), self.strategy)
        if item.outcome not in ("ok", "wrong"):
            raise Missing(f"{self.strategy} ended as {item.outcome.replace('_', ' ')}")
        said = next((warning.message for warning in item.warnings if warning.code == self.code), "")
        return Seen("yes" if said else "no", f"{self.strategy}: {said or f'no warning {self.code}'}")


# --- scripts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Runs:
    """A script runs to its end."""

    need: Script
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        end = script_of(evidence)
        return Seen("no", f"it fails: {end.error}") if end.error else Seen("yes", "it runs to its end")


@dataclass(frozen=True)
class Fails:
    """A script fails, with ``words`` in the reason: another failure may have nothing to do with the claim."""

    need: Script
    words: str
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        end = script_of(evidence)
        if not end.error:
            return Seen("no", "it runs to its end")
        return Seen("yes" if self.words.lower() in end.error.lower() else "no", f"it fails: {end.error}")


@dataclass(frozen=True)
class Figure:
    """A number that a script reported is from ``least`` to ``most``. ``words`` has ``{value}`` in it."""

    need: Script
    name: str
    words: str
    least: float = -math.inf
    most: float = math.inf
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        value = figure_of(evidence, self.name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise Missing(f"the script's figure {self.name} is {value!r}, which is no number")
        shown = f"{value:,}" if isinstance(value, int) else text.number(value)
        is_so = self.least <= value <= self.most
        return Seen("yes" if is_so else "no", self.words.format(value=shown))


@dataclass(frozen=True)
class QuickerBy:
    """``a`` is at least ``by`` times quicker than ``b``, two lists of samples that a script took in turns."""

    need: Script
    a: str
    b: str
    by: float = 1.0
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        of = sampled_ratio(evidence, self.b, self.a)
        return seen(above(of, self.by), words_of_samples(of, evidence, self.a, self.b), f"{self.by:g} ×")


@dataclass(frozen=True)
class AsQuick:
    """Two lists of samples that a script took in turns differ by less than ``within``, a share of the time."""

    need: Script
    a: str
    b: str
    within: float = _ALIKE
    when: str = ""

    def see(self, evidence: Evidence) -> Seen:
        of = sampled_ratio(evidence, self.b, self.a)
        words = words_of_samples(of, evidence, self.a, self.b)
        return seen(within_share(of, self.within), words, bounds_of(self.within))
