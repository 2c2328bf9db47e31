"""Made-up evidence for claims: for each class of predicates, what has to be seen so that it says what a test wants.

`evidence` makes figures that satisfy several predicates at once. What they want of latencies and bytes are differences
of logarithms within bounds, which have a solution or contradict each other. A new class of predicates needs an entry in
`WANTED`.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from measure.claims.along import FasterAlong, Grows, MemoryGrows
from measure.claims.predicates import (
    AsFast,
    AsQuick,
    Ends,
    Fails,
    Faster,
    Figure,
    MoreMemory,
    QuickerBy,
    Runs,
    Warned,
)
from measure.claims.spec import Claim, Compare, Need, Predicate, Script, Swept, Truth
from measure.model import slugs
from measure.model.run import Axis, Error, Evidence, Measurement, Memory, Point, Replica, Run, Warning
from measure.model.script_end import ScriptEnd
from tests.samples import run_of

ID = "0123456789abcdef01234567"
# Logarithms: a difference that no interval of these figures hides, and one that each of them does.
_CLEAR = 0.12
_PROCESSES = 20
_SAMPLES = 11
# About 1 ms, 100 kB and ms.
_MIDDLE = {"time": math.log(1e-3), "bytes": math.log(1e5), "sample": math.log(1e-3)}

# Something that has a size: its kind, and the names that tell it from others.
Node = tuple[Any, ...]


class Contradiction(Exception):
    """What is wanted cannot all be so."""


@dataclass(frozen=True)
class Apart:
    """The logarithm of ``over`` over ``under`` is from ``low`` to ``high``."""

    over: Node
    under: Node
    low: float = -math.inf
    high: float = math.inf


@dataclass
class Wanted:
    """All that predicates want of one piece of evidence. ``error``: None where the script may end as it likes."""

    apart: list[Apart] = field(default_factory=list)
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)
    warnings: dict[tuple[str, str], bool] = field(default_factory=dict)
    figures: dict[str, tuple[float, float]] = field(default_factory=dict)
    error: str | None = None

    def add(self, other: "Wanted") -> None:
        self.apart += other.apart
        for mine, its in ((self.outcomes, other.outcomes), (self.warnings, other.warnings)):
            for key, value in its.items():
                if mine.setdefault(key, value) != value:
                    raise Contradiction(f"{key} is to be {mine[key]} and {value}")
        for name, (low, high) in other.figures.items():
            mine_low, mine_high = self.figures.get(name, (-math.inf, math.inf))
            self.figures[name] = max(low, mine_low), min(high, mine_high)
            if self.figures[name][0] > self.figures[name][1]:
                raise Contradiction(f"there is no {name} as wanted")
        if other.error is not None:
            if self.error is not None and bool(self.error) is not bool(other.error):
                raise Contradiction("the script is to fail and to end")
            self.error = f"{self.error or ''} {other.error}".strip()


# --- what each class of predicates wants, in alternatives --------------------------------


def _above(over: Node, under: Node, by: float, truth: Truth) -> list[Apart]:
    if truth == "unknown":
        return [Apart(over, under, math.log(by), math.log(by))]
    return [
        Apart(over, under, low=math.log(by) + _CLEAR)
        if truth == "yes"
        else Apart(over, under, high=math.log(by) - _CLEAR)
    ]


def _alike(over: Node, under: Node, within: float, truth: Truth) -> list[Apart]:
    bound = math.log1p(within)
    if truth == "unknown":
        return [Apart(over, under, bound, bound)]
    if truth == "yes":
        slack = max(0.0, bound - _CLEAR)
        return [Apart(over, under, -slack, slack)]
    return [Apart(over, under, low=bound + _CLEAR), Apart(over, under, high=-bound - _CLEAR)]


def _times(names: Iterable[str], apart: list[Apart]) -> list[Wanted]:
    return [Wanted(apart=[each], outcomes=dict.fromkeys(names, ("ok", ""))) for each in apart]


def _faster(test: Faster, truth: Truth) -> list[Wanted]:
    return _times((test.a, test.b), _above(("time", test.b), ("time", test.a), test.by, truth))


def _as_fast(test: AsFast, truth: Truth) -> list[Wanted]:
    return _times((test.a, test.b), _alike(("time", test.b), ("time", test.a), test.within, truth))


def _more_memory(test: MoreMemory, truth: Truth) -> list[Wanted]:
    over, under = (("bytes", test.figure, slug) for slug in (test.a, test.b))
    return _times((test.a, test.b), _above(over, under, test.by, truth))


def _ends(test: Ends, truth: Truth) -> list[Wanted]:
    other = ("failed", "of another kind") if test.outcome == "ok" else ("ok", "")
    return [Wanted(outcomes={test.strategy: (test.outcome, test.words) if truth == "yes" else other})]


def _warned(test: Warned, truth: Truth) -> list[Wanted]:
    outcomes = {test.strategy: ("ok", "")}
    return [Wanted(outcomes=outcomes, warnings={(test.strategy, test.code): truth == "yes"})]


def _runs(test: Runs, truth: Truth) -> list[Wanted]:
    return [Wanted(error="" if truth == "yes" else "ValueError: it cannot")]


def _fails(test: Fails, truth: Truth) -> list[Wanted]:
    return [Wanted(error=f"ValueError: {test.words}")] if truth == "yes" else [Wanted(error="")]


def _figure(test: Figure, truth: Truth) -> list[Wanted]:
    bounds = [(test.least, test.most)]
    if truth == "no":
        bounds = [(-math.inf, test.least - 1), (test.most + 1, math.inf)]
    return [
        Wanted(figures={test.name: (low, high)}, error="")
        for low, high in bounds
        if low < math.inf and high > -math.inf
    ]


def _quicker(test: QuickerBy, truth: Truth) -> list[Wanted]:
    apart = _above(("sample", test.b), ("sample", test.a), test.by, truth)
    return [Wanted(apart=[each], error="") for each in apart]


def _as_quick(test: AsQuick, truth: Truth) -> list[Wanted]:
    apart = _alike(("sample", test.b), ("sample", test.a), test.within, truth)
    return [Wanted(apart=[each], error="") for each in apart]


def _faster_along(test: FasterAlong, truth: Truth) -> list[Wanted]:
    values = test.need.values
    truths: Sequence[Truth] = [truth] * len(values)
    if truth == "mixed":
        truths = ["no"] * (len(values) // 2) + ["yes"] * (len(values) - len(values) // 2)
    apart = [
        each
        for value, its in zip(values, truths, strict=True)
        for each in _above(("time", test.b, value), ("time", test.a, value), test.by, its)
    ]
    return [Wanted(apart=apart, outcomes=dict.fromkeys((test.a, test.b), ("ok", "")))]


def _grows(test: Grows, truth: Truth) -> list[Wanted]:
    clear = min(0.2, (test.most - test.least) / 4)
    bounds = {
        "yes": [(test.least + clear, test.most - clear)],
        "no": [(-math.inf, test.least - clear), (test.most + clear, math.inf)],
        "unknown": [(test.least, test.least), (test.most, test.most)],
    }[truth]
    return [
        Wanted(
            apart=[
                Apart(("time", test.strategy, value), ("time", test.strategy, before),
                      low * math.log(value / before), high * math.log(value / before))
                for before, value in itertools.pairwise(test.need.values)
            ],
            outcomes={test.strategy: ("ok", "")},
        )
        for low, high in bounds
        if low < math.inf and high > -math.inf
    ]  # fmt: skip


def _memory_grows(test: MemoryGrows, truth: Truth) -> list[Wanted]:
    clear = min(0.1, (test.most - test.least) / 4)
    first, last = (("bytes", "temporary_bytes", test.strategy, test.need.values[place]) for place in (0, -1))
    steps = math.log(test.need.values[-1] / test.need.values[0])
    bounds = [(test.least + clear, test.most - clear)]
    if truth == "no":
        bounds = [(-math.inf, test.least - clear), (test.most + clear, math.inf)]
    return [
        Wanted(apart=[Apart(last, first, low * steps, high * steps)], outcomes={test.strategy: ("ok", "")})
        for low, high in bounds
        if low < math.inf and high > -math.inf
    ]


_EITHER: tuple[Truth, ...] = ("yes", "no")
_TOLD: tuple[Truth, ...] = (*_EITHER, "unknown")
# Class → what makes alternatives in which it says something, and all that it can say.
WANTED: Mapping[type, tuple[Callable[[Any, Truth], list[Wanted]], tuple[Truth, ...]]] = {
    Faster: (_faster, _TOLD),
    AsFast: (_as_fast, _TOLD),
    MoreMemory: (_more_memory, _EITHER),
    Ends: (_ends, _EITHER),
    Warned: (_warned, _EITHER),
    Runs: (_runs, _EITHER),
    Fails: (_fails, _EITHER),
    Figure: (_figure, _EITHER),
    QuickerBy: (_quicker, _TOLD),
    AsQuick: (_as_quick, _TOLD),
    FasterAlong: (_faster_along, (*_TOLD, "mixed")),
    Grows: (_grows, _TOLD),
    MemoryGrows: (_memory_grows, _EITHER),
}
# These look at how something ends: a failure is an answer to them.
ENDS = (Ends, Runs, Fails)


def wanted(test: Predicate, truth: Truth) -> list[Wanted]:
    """The alternatives in which a predicate says so; none where it cannot say that."""
    kind = type(test)
    assert kind in WANTED, (
        f"no evidence can be made for {kind.__name__}: give it a function in WANTED of tests/claims.py"
    )
    make, says = WANTED[kind]
    return make(test, truth) if truth in says else []


# --- evidence that is as wanted ---------------------------------------------------------------------------------------


def evidence(tests: Sequence[Predicate], truths: Sequence[Truth]) -> dict[str, Evidence]:
    """Evidence by which each of these tests says what is wanted of it. `Contradiction` where there is none."""
    alternatives = [wanted(test, truth) for test, truth in zip(tests, truths, strict=True)]
    for choice in itertools.product(*alternatives):
        try:
            return _made(tests, choice)
        except Contradiction:
            continue
    raise Contradiction(f"{truths} of {tests}")


def _made(tests: Sequence[Predicate], choice: Sequence[Wanted]) -> dict[str, Evidence]:
    by_need: dict[str, tuple[Need, Wanted]] = {}
    for test, its in zip(tests, choice, strict=True):
        by_need.setdefault(test.need.key, (test.need, Wanted()))[1].add(its)
    return {key: _of(need, whole) for key, (need, whole) in by_need.items()}


def _of(need: Need, whole: Wanted) -> Evidence:
    sizes = _solved(whole.apart)
    if isinstance(need, Script):
        return Evidence(need=need.key, script=_script(need, whole, sizes))
    names = list(dict.fromkeys([*need.strategies, *whole.outcomes]))
    if isinstance(need, Compare):
        return Evidence(need=need.key, run=compared(need, [_item(slug, whole, sizes) for slug in names]))
    points = [
        Point(at={need.axis: value}, status="complete",
              measurements=[_item(slug, whole, sizes, (value,), need) for slug in names])
        for value in need.values
    ]  # fmt: skip
    return Evidence(need=need.key, run=swept(need, points))


def compared(need: Compare, measurements: Sequence[Measurement]) -> Run:
    run = run_of(*measurements)
    slugs = [item.strategy for item in measurements]
    return replace(run, status="complete", request=replace(run.request, workload=need.workload, strategies=slugs))


def swept(need: Swept, points: Sequence[Point]) -> Run:
    run = run_of()
    axis = Axis(kind="option" if need.of_option else "size", name=need.axis, values=list(need.values), scale="log")
    request = replace(run.request, workload=need.workload, strategies=list(need.strategies))
    return replace(run, kind="sweep", status="complete", request=request, axes=[axis], points=list(points))


def _item(
    slug: str, whole: Wanted, sizes: Mapping[Node, float], at: tuple[int, ...] = (), need: Swept | None = None
) -> Measurement:
    outcome, words = whole.outcomes.get(slug, ("ok", ""))
    bytes_ = [
        round(math.exp(sizes.get(("bytes", name, slug, *at), _MIDDLE["bytes"])))
        for name in ("peak_bytes", "temporary_bytes")
    ]
    memory = Memory(
        peak_bytes=bytes_[0],
        output_bytes=0,
        temporary_bytes=bytes_[1],
        input_bytes=0,
        captured_bytes=0,
        method="events",
    )
    return item(
        slugs.with_options(slug, {need.axis: at[0]} if need is not None and need.of_option else {}),
        math.exp(sizes.get(("time", slug, *at), _MIDDLE["time"])),
        outcome,
        words,
        memory=memory if outcome == "ok" else None,
        options={need.axis: at[0]} if need is not None and need.of_option else {},
        warnings=[
            Warning(code=code, message=f"it has {code}")
            for (strategy, code), is_there in whole.warnings.items()
            if strategy == slug and is_there
        ],
    )


def item(slug: str, seconds: float = 1e-3, outcome: str = "ok", words: str = "", **more: Any) -> Measurement:
    """A strategy that was measured in many processes, or that ended otherwise."""
    mapper, _, mode = slug.partition("?")[0].partition(".")
    replicas = [
        Replica(id=number, calls_per_sample=1, rounds=[1, 2, 3], at_s=[float(number)] * 3, samples_s=[seconds] * 3)
        for number in range(_PROCESSES)
    ]
    is_right = outcome == "ok"
    return Measurement(
        strategy=slug, mapper=mapper, mode=mode or "graph", outcome=outcome, stage="done",
        replicas=replicas if is_right else [],
        error=None if is_right else Error(type="Error", message=words or "it is so"), **more,
    )  # fmt: skip


def _script(need: Script, whole: Wanted, sizes: Mapping[Node, float]) -> ScriptEnd:
    if whole.error and (sizes or whole.figures):
        raise Contradiction("a script that fails has no figures")
    figures: dict[str, Any] = {name: _between(low, high) for name, (low, high) in whole.figures.items()}
    for number, (_, name) in enumerate(sizes):
        # Samples scatter, two lists of them in other ways, so that their ratio has an interval.
        scatter = [0.02 * ((each * (number + 2)) % _SAMPLES / _SAMPLES - 0.5) for each in range(_SAMPLES)]
        figures[name] = [math.exp(sizes["sample", name] + each) for each in scatter]
    return ScriptEnd(source=need.source, figures=figures, error=whole.error or "", seconds=1.0)


def _between(low: float, high: float) -> float | int:
    value = high if low == -math.inf else low if high == math.inf else (low + high) / 2
    if low == -math.inf and high == math.inf:
        value = 0.0
    whole = [number for number in (math.floor(value), math.ceil(value)) if low <= number <= high]
    return whole[0] if whole else value


def _solved(apart: Sequence[Apart]) -> dict[Node, float]:
    """Sizes that are apart as wanted, by Bellman and Ford: the shortest ways in the graph of bounds."""
    edges = [(each.under, each.over, each.high) for each in apart if each.high < math.inf]
    edges += [(each.over, each.under, -each.low) for each in apart if each.low > -math.inf]
    nodes = dict.fromkeys(node for each in apart for node in (each.over, each.under))
    far = dict.fromkeys(nodes, 0.0)
    for _ in range(len(far) + 1):
        changed = False
        for start, end, most in edges:
            if far[start] + most < far[end] - 1e-12:
                far[end], changed = far[start] + most, True
        if not changed:
            return {node: _MIDDLE[node[0]] + distance for node, distance in far.items()}
    raise Contradiction("latencies or bytes cannot be so")


# --- whole runs -------------------------------------------------------------------------------------------------------


def run(tried: Sequence[Claim], found: Mapping[str, Evidence], *, gpus: bool = True) -> Run:
    """A finished run of these claims with this evidence."""
    base = run_of()
    return Run(
        id=ID,
        kind="claims",
        created="2025-01-15T09:30:00Z",
        started="2025-01-15T09:30:00Z",
        finished="2025-01-15T09:35:00Z",
        status="complete",
        stop_reason="everything that the claims need is measured",
        request=replace(base.request, workload="claims", size={}, dtype="", strategies=[]),
        environment={"tensorflow": "2.21.0", "cpu": "A made-up CPU", "cores": 2, "gpus": ["A GPU"] if gpus else []},
        claims=[claim.id for claim in tried],
        evidence=list(found.values()),
    )
