"""The parts of a claim: a sentence, who says it, what has to be measured, and what would have to be seen.

All of it is data. Predicates are in `measure.claims.predicates`, and `measure.claims.verdicts` makes a verdict of them.
"""

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
# Seconds that are not of a budget: the start of processes, the reference, memory, correctness.
_BESIDE_BUDGET_S = 4.0


@dataclass(frozen=True)
class Compare:
    """A comparison that a claim needs. ``budget_s`` is for latencies; all else as in a request."""

    workload: str
    strategies: tuple[str, ...]
    size: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    dtype: str | None = None
    device: str = "CPU:0"
    budget_s: float = 5.0

    @property
    def key(self) -> str:
        """The name of what is measured: needs that are alike have one, and are measured once."""
        return _key(self)

    @property
    def seconds(self) -> float:
        return self.budget_s + _BESIDE_BUDGET_S


@dataclass(frozen=True)
class Swept:
    """A sweep over one axis that a claim needs: a size of the workload, or an option of its strategies."""

    workload: str
    strategies: tuple[str, ...]
    axis: str
    values: tuple[int, ...]
    of_option: bool = False
    size: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    dtype: str | None = None
    device: str = "CPU:0"
    budget_s: float = 20.0

    @property
    def key(self) -> str:
        """The same as that of `Compare`."""
        return _key(self)

    @property
    def seconds(self) -> float:
        return self.budget_s + _BESIDE_BUDGET_S


@dataclass(frozen=True)
class Script:
    """Python that is run in an interpreter of its own, as it stands. What it gives to ``report(name=value, …)`` are its
    figures: numbers, texts, or lists of samples in seconds. ``seconds``: about how long it takes."""

    source: str
    seconds: float = 6.0

    @property
    def key(self) -> str:
        """The same as that of `Compare`."""
        return _key(self)


Need = Compare | Swept | Script


@dataclass(frozen=True)
class Seen:
    """A predicate's answer, with the figures in words; ``would``: of one that is unknown, what would tell it;
    ``is_near``: it is unknown since its figure is too near to the threshold, which more samples may tell."""

    truth: Truth
    words: str
    would: str = ""
    is_near: bool = False


class Predicate(Protocol):
    """A predicate of a claim."""

    @property
    def need(self) -> Need: ...

    @property
    def when(self) -> str: ...

    def see(self, evidence: Evidence) -> Seen: ...


@dataclass(frozen=True)
class Said:
    """A place where a claim is made. ``where``: a document of the seeds (``seed 1`` to ``seed 5``), a documentation or
    a thread; ``words``: the part of it, or its address."""

    where: str
    words: str = ""


@dataclass(frozen=True)
class Claim:
    """A sentence that figures can confirm or refute. It holds where all of its ``tests`` do.

    ``sentence``: in our words, Markdown with code in backticks; ``needs_gpu``, ``needs_cores``, ``needs_linux``:
    without a GPU, with fewer cores, or where no ``/proc`` tells of processes, it cannot be tried;
    ``note``: a sentence on what to know about it; ``works_as``: of an example that fails or gives NaN, the ids of the
    claims in which the form that works is measured.
    """

    id: str
    question: Question
    sentence: str
    said: tuple[Said, ...]
    tests: tuple[Predicate, ...]
    needs_gpu: bool = False
    needs_cores: int = 1
    needs_linux: bool = False
    note: str = ""
    works_as: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[Need, ...]:
        """The measurements that the tests need, none twice."""
        return tuple({test.need.key: test.need for test in self.tests}.values())


def _key(need: Need) -> str:
    kind = type(need).__name__.lower()
    digest = hashlib.sha256(json.dumps(asdict(need), sort_keys=True).encode()).hexdigest()[:10]
    return f"{kind}-{getattr(need, 'workload', 'python')}-{digest}"
