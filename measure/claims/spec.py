"""The parts of a claim: a sentence, who says it, what has to be measured, and what would have to be so. All of it is
data: predicates are in `measure.claims.predicates`, and `measure.claims.verdicts` makes a verdict of them."""

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from measure.model.run import Evidence

Question = Literal["speed", "memory", "tracing", "correctness", "limits"]
QUESTIONS: Mapping[Question, str] = {
    "speed": "What is fast?",
    "memory": "What needs memory?",
    "tracing": "What is traced and compiled, and when?",
    "correctness": "What is right?",
    "limits": "What works at all?",
}
# ``mixed``: it depends, and the words say on what.
Truth = Literal["yes", "no", "mixed", "unknown"]


class _Measured:
    @functools.cached_property
    def key(self) -> str:
        """The name of what is measured, however long: needs that are alike have one, and are measured once."""
        fields = asdict(self)  # type: ignore[call-overload]
        what = {name: value for name, value in fields.items() if name not in ("budget_s", "seconds")}
        digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:10]
        return f"{type(self).__name__.lower()}-{fields.get('workload', 'python')}-{digest}"


@dataclass(frozen=True)
class Compare(_Measured):
    """A comparison that a claim needs: all as in a request. On a calm machine it ends long before its budget."""

    workload: str
    strategies: tuple[str, ...]
    size: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    device: str = "CPU:0"
    budget_s: float = 20.0

    @property
    def seconds(self) -> float:
        return self.budget_s / 2


@dataclass(frozen=True)
class Swept(_Measured):
    """A sweep over one size that a claim needs."""

    workload: str
    strategies: tuple[str, ...]
    axis: str
    values: tuple[int, ...]
    size: Mapping[str, int] = field(default_factory=dict)
    device: str = "CPU:0"
    budget_s: float = 60.0

    @property
    def seconds(self) -> float:
        return self.budget_s / 2


@dataclass(frozen=True)
class Script(_Measured):
    """Python that is run as it stands, in so many fresh interpreters. What it gives to ``report(name=value, …)`` are
    its figures: numbers and texts; of several processes, a list of their values. Figures that are seconds need several.
    ``tried(function)`` calls one and returns its error, or an empty text. ``seconds``: about how long all takes."""

    source: str
    processes: int = 1
    seconds: float = 6.0


Need = Compare | Swept | Script


@dataclass(frozen=True)
class Seen:
    """A predicate's answer with its figures in words; ``threshold``: what the claim says of them, such as «at least
    10 ×»."""

    truth: Truth
    words: str
    threshold: str = ""


class Predicate(Protocol):
    """A predicate of a claim; ``when`` names the case in a verdict that depends on it: «in a graph»."""

    @property
    def need(self) -> Need: ...

    @property
    def when(self) -> str: ...

    def see(self, evidence: Evidence) -> Seen: ...


@dataclass(frozen=True)
class Claim:
    """A sentence that figures can confirm or refute. It holds where all of its ``tests`` do.

    ``sentence``: in our words, Markdown with code in backticks; ``said``: where it is said, a document of
    docs/claims.md (``seed 1`` to ``seed 5``) or an address; ``advice``: what to do about it; ``needs_gpu``,
    ``needs_cores``, ``needs_linux``: without a GPU, with fewer cores, or where no ``/proc`` tells of processes, it
    cannot be tried.
    """

    id: str
    question: Question
    sentence: str
    said: tuple[str, ...]
    tests: tuple[Predicate, ...]
    advice: str = ""
    needs_gpu: bool = False
    needs_cores: int = 1
    needs_linux: bool = False

    @property
    def needs(self) -> tuple[Need, ...]:
        """The measurements that the tests need, none twice."""
        return tuple({test.need.key: test.need for test in self.tests}.values())
