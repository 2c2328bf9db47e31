"""Made-up evidence for claims: for each class of predicates, what has to be seen so that it says what a test wants.

`evidence` makes figures that satisfy several predicates at once. What they want of latencies and bytes are differences
of logarithms within bounds, which have a solution or contradict each other. A new class of predicates needs a case in
`wanted`.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from measure.claims import along, predicates
from measure.claims.spec import Claim, Compare, Need, Predicate, Script, Swept
from measure.model import slugs
from measure.model.run import Axis, Error, Evidence, Measurement, Memory, Point, Replica, Run, Warning
from measure.model.script_end import ScriptEnd
from tests.samples import run_of

ID = "0123456789abcdef01234567"
# A difference of logarithms that no interval of these figures hides.
_CLEAR = 0.12
_PROCESSES = 20
_SAMPLES = 11
# About 1 ms, 100 kB and ms.
_MIDDLE = {"time": math.log(1e-3), "bytes": math.log(1e5), "sample": math.log(1e-3)}

# Something that has a size: its kind, and the names that tell it from others.
Node = tuple[Any, ...]
# Bounds, at the least and at the most.
Bounds = tuple[float, float]


class Contradiction(Exception):
    """What is wanted cannot all be so."""


@dataclass
class Wanted:
    """All that predicates want of one piece of evidence. ``apart``: bounds of the logarithm of the first over the
    second. ``error``: None where the script may end as it likes."""

    apart: list[tuple[Node, Node, Bounds]] = field(default_factory=list)
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)
    warnings: dict[tuple[str, str], bool] = field(default_factory=dict)
    figures: dict[str, Bounds] = field(default_factory=dict)
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


# --- what each class of predicates wants, in alternatives ------------------------------------------------------------


def _within(low: float, high: float, yes: bool, clear: float = _CLEAR) -> list[Bounds]:
    """Clearly within these bounds, or beyond one of them."""
    if yes:
        clear = min(clear, (high - low) / 2)
        return [(low + clear, high - clear)]
    beyond = ((-math.inf, low - clear), (high + clear, math.inf))
    return [bounds for bounds in beyond if bounds[0] < math.inf and bounds[1] > -math.inf]


def wanted(test: Predicate, yes: bool) -> list[Wanted]:
    """The alternatives in which a predicate says so."""
    match test:
        case predicates.Faster() | predicates.MoreMemory() | predicates.QuickerBy():
            bounds = _within(math.log(test.by), math.inf, yes)
        case predicates.AsFast() | predicates.AsQuick():
            bounds = _within(-math.log1p(test.within), math.log1p(test.within), yes)
    match test:
        case predicates.Faster() | predicates.AsFast():
            return _sized(("time", test.b), ("time", test.a), bounds, test.a, test.b)
        case predicates.MoreMemory():
            over, under = (("bytes", test.figure, slug) for slug in (test.a, test.b))
            return _sized(over, under, bounds, test.a, test.b)
        case predicates.QuickerBy() | predicates.AsQuick():
            return [Wanted([(("sample", test.b), ("sample", test.a), each)], error="") for each in bounds]
        case predicates.Ends():
            other = ("failed", "of another kind") if test.outcome == "ok" else ("ok", "")
            return [Wanted(outcomes={test.strategy: (test.outcome, test.words) if yes else other})]
        case predicates.Warned():
            return [Wanted(outcomes={test.strategy: ("ok", "")}, warnings={(test.strategy, test.code): yes})]
        case predicates.Runs():
            return [Wanted(error="" if yes else "ValueError: it cannot")]
        case predicates.Fails():
            return [Wanted(error=f"ValueError: {test.words}" if yes else "")]
        case predicates.Figure():
            bounds = [(test.least, test.most)] if yes else _within(test.least, test.most, yes, 1.0)
            return [Wanted(figures={test.name: each}, error="") for each in bounds]
        case along.FasterAlong():
            (bound,) = _within(math.log(test.by), math.inf, yes)
            apart = [(("time", test.b, value), ("time", test.a, value), bound) for value in test.need.values]
            return [Wanted(apart, dict.fromkeys((test.a, test.b), ("ok", "")))]
        case along.Grows():
            return [
                Wanted(
                    [(("time", test.strategy, value), ("time", test.strategy, before), _times(each, value / before))
                     for before, value in itertools.pairwise(test.need.values)],
                    {test.strategy: ("ok", "")},
                )
                for each in _within(test.least, test.most, yes, 0.2)
            ]  # fmt: skip
        case along.MemoryGrows():
            values = test.need.values
            first, last = (("bytes", "temporary_bytes", test.strategy, values[place]) for place in (0, -1))
            bounds = [_times(each, values[-1] / values[0]) for each in _within(test.least, test.most, yes, 0.1)]
            return _sized(last, first, bounds, test.strategy)
    raise AssertionError(f"no evidence can be made for {type(test).__name__}: give it a case in wanted")


def _sized(over: Node, under: Node, bounds: Sequence[Bounds], *strategies: str) -> list[Wanted]:
    return [Wanted([(over, under, each)], dict.fromkeys(strategies, ("ok", ""))) for each in bounds]


def _times(bounds: Bounds, growth: float) -> Bounds:
    return bounds[0] * math.log(growth), bounds[1] * math.log(growth)


# These look at how something ends: a failure is an answer to them.
ENDS = (predicates.Ends, predicates.Runs, predicates.Fails)


# --- evidence that is as wanted --------------------------------------------------------------------------------------


def evidence(tests: Sequence[Predicate], truths: Sequence[str]) -> dict[str, Evidence]:
    """Evidence by which each of these tests says "yes" or "no", as wanted. `Contradiction` where there is none."""
    alternatives = [wanted(test, truth == "yes") for test, truth in zip(tests, truths, strict=True)]
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
        peak_bytes=bytes_[0], output_bytes=0, temporary_bytes=bytes_[1], input_bytes=0, captured_bytes=0,
        method="events",
    )  # fmt: skip
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


def _solved(apart: Sequence[tuple[Node, Node, Bounds]]) -> dict[Node, float]:
    """Sizes that are apart as wanted, by Bellman and Ford: the shortest ways in the graph of bounds."""
    edges = [(under, over, high) for over, under, (_, high) in apart if high < math.inf]
    edges += [(over, under, -low) for over, under, (low, _) in apart if low > -math.inf]
    far = {node: 0.0 for over, under, _ in apart for node in (over, under)}
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
