"""A claim as data: a sentence, who says it, what has to be measured, and what its figures would have to be."""

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from measure.run.run import Evidence

Question = Literal["speed", "memory", "tracing", "limits"]
QUESTIONS: Mapping[Question, str] = {
    "speed": "What is fast?",
    "memory": "What needs memory?",
    "tracing": "What is traced and compiled, and when?",
    "limits": "What works, and is right?",
}
# ``mixed``: it depends, and the words say on what.
Truth = Literal["yes", "no", "mixed", "unknown"]


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
class Swept(_Need):
    """A sweep over one size, with a budget as that of a comparison."""

    workload: str
    strategies: tuple[str, ...]
    axis: str
    values: tuple[int, ...]
    size: Mapping[str, int] = field(default_factory=dict)
    device: str = "CPU:0"
    seconds: float = 30.0


@dataclass(frozen=True)
class Script(_Need):
    """Python that is run as it stands, in so many fresh interpreters. What it gives to ``report(name=value, …)`` are
    its figures: numbers and texts; of several processes, a list of their values. Figures that are seconds need several.
    ``tried(function)`` calls one and returns its error, or an empty text."""

    source: str
    processes: int = 1
    seconds: float = 6.0


Need = Compare | Swept | Script


@dataclass(frozen=True)
class Seen:
    """A predicate's answer with its figures in words; ``threshold``: what the claim says of them, «at least 10 ×»."""

    truth: Truth
    words: str
    threshold: str = ""

    @property
    def claimed(self) -> str:
        """`` (at least 10 × is claimed)``; nothing without a threshold."""
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
        """The needs of the tests, none twice."""
        return tuple({test.need.key: test.need for test in self.tests}.values())


def claim(id: str, question: Question, said: tuple[str, ...], sentence: str, *tests: Predicate, **more: Any) -> Claim:
    """A claim with these tests; ``more``: its other fields."""
    return Claim(id, question, said, sentence, tests, **more)
