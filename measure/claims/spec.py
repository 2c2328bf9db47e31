"""A claim as data: a sentence, who says it, what has to be measured, and what its figures would have to be."""

import functools
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import mean, variance
from typing import Any, Literal

from msgspec.structs import replace

from measure.judge.levels import RERUN, Level, Ratio, levels_of, ratio
from measure.run import text
from measure.run.run import Evidence, Measurement, Replica, Run

Question = Literal["speed", "memory", "tracing", "limits"]
QUESTIONS: Mapping[Question, str] = {
    "speed": "What is fast?",
    "memory": "What needs memory?",
    "tracing": "What is traced and compiled, and when?",
    "limits": "What works, and is right?",
}
CONFIDENCE = 0.95
# Before a strategy's slug: the time of its first call.
FIRST_CALL = "the first call of "
_MOST_ERROR = 140
_UNITS = ("%", "s", "MiB")


# --- what is measured ------------------------------------------------------------------------------------------------


class _Need:
    """Something that is measured for claims, in about so many seconds; equal ones have one key, and count as one."""

    seconds: float

    @functools.cached_property
    def key(self) -> str:
        fields = asdict(self)  # type: ignore[call-overload]
        del fields["seconds"]  # how long it takes does not change what it is
        digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:10]
        return f"{type(self).__name__.lower()}-{fields.get('workload', 'python')}-{digest}"


@dataclass(frozen=True)
class Compare(_Need):
    """A comparison; all as in a request, with a budget of twice the seconds that it takes on a calm machine."""

    workload: str
    strategies: tuple[str, ...]
    size: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    device: str = "CPU:0"
    seconds: float = 10.0


@dataclass(frozen=True)
class Script(_Need):
    """Python that is run in so many fresh interpreters, behind the definitions of ``report`` and ``tried``. What it
    gives to ``report(name=value, …)`` are its figures: numbers and texts; of several processes, a list of their values.
    Figures that are seconds need several. ``tried(function)`` calls one and returns its error, or an empty text."""

    source: str
    processes: int = 1
    seconds: float = 6.0


Need = Compare | Script


# --- what is claimed -------------------------------------------------------------------------------------------------

Truth = Literal["yes", "no", "unknown"]


@dataclass(frozen=True)
class Seen:
    """A predicate's answer with its figures in words; ``threshold``: what the claim says of them, «at least 10×»."""

    truth: Truth
    words: str
    threshold: str = ""

    @property
    def claimed(self) -> str:
        """`` (at least 10× is claimed)``; nothing without a threshold."""
        return f" ({self.threshold} is claimed)" if self.threshold else ""


class Missing(Exception):
    """Figures that a predicate needs are not there: the message says which, and why."""


@dataclass(frozen=True)
class Predicate:
    """A predicate on what was measured for one need; ``when`` names the case in a verdict that depends on it."""

    need: Need
    when: str = field(default="", kw_only=True)

    def see(self, evidence: Evidence) -> Seen:
        """The answer that the evidence gives. Where it gives none, and the claim has no verdict, raises `Missing`, or
        KeyError with the name of what is not there."""
        raise NotImplementedError


@dataclass(frozen=True)
class Claim:
    """A sentence that figures can confirm or refute. It holds where all of its ``tests`` do.

    ``said``: where it is said, a document of docs/claims.md (``seed 1`` to ``seed 5``) or an address; ``sentence``: in
    our words, Markdown with code in backticks; ``advice``: what to do about it; ``needs_gpu``: without one
    it cannot be tried.
    """

    id: str
    question: Question
    said: tuple[str, ...]
    sentence: str
    tests: tuple[Predicate, ...]
    advice: str = ""
    needs_gpu: bool = False

    @property
    def needs(self) -> tuple[Need, ...]:
        return tuple({test.need.key: test.need for test in self.tests}.values())


def claim(id: str, question: Question, said: tuple[str, ...], sentence: str, *tests: Predicate, **more: Any) -> Claim:
    return Claim(id, question, said, sentence, tests, **more)


# --- predicates on a comparison --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Faster(Predicate):
    """``b`` takes more than ``by`` times as long as ``a``, and less than ``most`` times: two strategies, or two times
    of a script."""

    a: str
    b: str
    by: float = 1.0
    most: float = math.inf

    def see(self, evidence: Evidence) -> Seen:
        of = _ratio(evidence, self.b, self.a)
        slower, faster, threshold = self.b, self.a, f"at least {self.by:g}×" if self.by != 1 else "more than 1×"
        # Unknown where the interval holds a bound.
        truth: Truth = "unknown"
        if self.by < of.low and of.high < self.most:
            truth = "yes"
        elif of.high <= self.by or of.low >= self.most:
            truth = "no"
        if self.most < math.inf:
            threshold = f"{self.by:.3g}× to {self.most:.3g}×"
        elif self.by == 1 and of.ratio < 1:  # so that nobody has to invert a fraction
            slower, faster, threshold = faster, slower, "less than 1×"
            of = Ratio(1 / of.ratio, 1 / of.high, 1 / of.low)
        return Seen(truth, f"{slower} takes {of.words} as long as {faster}", threshold)


def as_fast(need: Need, a: str, b: str, within: float = 2.0, when: str = "") -> Faster:
    """The times of ``a`` and ``b`` differ by less than the factor ``within``."""
    return Faster(need, a, b, 1 / within, within, when=when)


def _ratio(evidence: Evidence, over: str, under: str) -> Ratio:
    """The ratio of two times: of strategies, of their first calls, or of a script. Each process of a script has both;
    its interval is Student's, of what processes differ by, and of what reruns do."""
    if evidence.run is not None:
        for name in (over, under):
            _item(evidence, name.removeprefix(FIRST_CALL))
        right = [item for item in evidence.run.measurements if item.outcome == "ok"]
        levels = dict(levels_of(right, evidence.run.analysis).by_slug)
        if any(name.startswith(FIRST_CALL) for name in (over, under)):
            levels |= levels_of([_first_calls(item) for item in right]).by_slug
        return ratio(levels[over], levels[under], CONFIDENCE)
    one, other = _numbers(evidence, over), _numbers(evidence, under)
    if min(len(one), len(other)) < 2 or min(*one, *other) <= 0:
        raise Missing("it takes times of several processes to tell what they differ by")
    logs = [math.log(above / below) for above, below in zip(one, other, strict=False)]
    return Level(mean(logs), variance(logs) / len(logs) + RERUN**2, len(logs) - 1.0).ratio(CONFIDENCE)


def _first_calls(item: Measurement) -> Measurement:
    """The measurement of a strategy's first calls, as if each were the only sample of its process."""
    firsts = [
        Replica(id=process.id, calls_per_sample=1, rounds=[0], samples_s=[process.first_call_s])
        for process in item.replicas
        if process.first_call_s
    ]
    return replace(item, strategy=FIRST_CALL + item.strategy, replicas=firsts)


@dataclass(frozen=True)
class MoreMemory(Predicate):
    """The peak of ``a`` is higher than that of ``b``, at least ``by`` times."""

    a: str
    b: str
    by: float = 1.05

    def see(self, evidence: Evidence) -> Seen:
        a, b = (_item(evidence, slug).memory for slug in (self.a, self.b))
        if a is None or b is None:
            raise Missing(f"the memory of {self.a} and {self.b} was not both measured")
        words = f"{self.a} needs {text.size(a.peak_bytes)} at its peak, {self.b} {text.size(b.peak_bytes)}"
        truth: Truth = "yes" if a.peak_bytes >= b.peak_bytes * self.by else "no"
        return Seen(truth, words, f"at least {self.by:g}×")


@dataclass(frozen=True)
class Ends(Predicate):
    """A strategy ends with ``outcome``."""

    strategy: str
    outcome: str = "ok"

    def see(self, evidence: Evidence) -> Seen:
        item = _run(evidence).measurement(self.strategy)
        if item.outcome in ("not_run", "cancelled", "timeout"):
            raise Missing(f"{self.strategy} was not run to its end ({text.outcome(item.outcome)})")
        ends = "runs, and is right" if item.outcome == "ok" else f"ends as {text.outcome(item.outcome, item.reason)}"
        return Seen("yes" if item.outcome == self.outcome else "no", f"{self.strategy} {ends}")


@dataclass(frozen=True)
class FallsBack(Predicate):
    """``tf.vectorized_map`` has no vectorised form of an op in the function, and makes a loop of it."""

    strategy: str

    def see(self, evidence: Evidence) -> Seen:
        for warning in _item(evidence, self.strategy).warnings:
            if warning.code == "falls_back":
                # What to do about it is the claim's to say.
                return Seen("yes", f"{self.strategy} {warning.message.partition(', so that')[0]}")
        return Seen("no", f"{self.strategy} does not fall back to a loop")


def _run(evidence: Evidence) -> Run:
    if evidence.run is None:
        raise Missing(evidence.reason or "it was not measured")
    return evidence.run


def _item(evidence: Evidence, slug: str) -> Measurement:
    """The measurement of a strategy whose values are right."""
    item = _run(evidence).measurement(slug)
    if item.outcome != "ok":
        raise Missing(f"{slug} ended as {text.outcome(item.outcome, item.reason)}")
    return item


# --- predicates on a script ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure(Predicate):
    """A number that a script reported is at least ``least``, at most ``most``, or where they are equal exactly that, in
    each of its processes. ``words`` has ``{value}`` in it."""

    name: str
    words: str
    least: float = -math.inf
    most: float = math.inf

    def see(self, evidence: Evidence) -> Seen:
        values = _numbers(evidence, self.name)
        truths = {self.least <= value <= self.most for value in values}
        truth: Truth = "unknown" if len(truths) > 1 else "yes" if truths == {True} else "no"
        shown = dict.fromkeys(f"{value:,}" if isinstance(value, int) else text.number(value) for value in values)
        threshold = f"at least {self.least:,g}" if self.most == math.inf else f"at most {self.most:,g}"
        if self.least == self.most:
            threshold = f"exactly {self.least:,g}"
        unit = self.words.partition("{value}")[2].lstrip().partition(" ")[0]  # behind the figure
        threshold += "%" if unit == "%" else f" {unit}" if unit in _UNITS else ""
        return Seen(truth, self.words.format(value=text.listed(list(shown))), threshold)


@dataclass(frozen=True)
class Fails(Predicate):
    """A part of a script, whose figure is its error or an empty text, fails with ``words`` in its error: another
    failure may have nothing to do with the claim. Not ``fails``: it runs."""

    name: str
    words: str = ""
    fails: bool = True

    def see(self, evidence: Evidence) -> Seen:
        error = str(_figure(evidence, self.name))
        is_so = (error != "" and self.words.lower() in error.lower()) == self.fails
        return Seen("yes" if is_so else "no", f"it fails: {text.shortened(error, _MOST_ERROR)}" if error else "it runs")


def _figure(evidence: Evidence, name: str) -> Any:
    if (end := evidence.script) is None:
        raise Missing(evidence.reason or "it was not measured")
    if end.error:
        raise Missing(f"its script {'was not run to its end' if end.ended is True else 'failed'}: {end.error}")
    return end.figures[name]


def _numbers(evidence: Evidence, name: str) -> Sequence[float]:
    """A script's figure, by its processes."""
    figure = _figure(evidence, name)
    values = figure if isinstance(figure, list) else [figure]
    if not values or not all(isinstance(value, int | float) for value in values):
        raise Missing(f"the script's figure {name} is no number")
    return values
