"""Made-up evidence for claims: for each class of predicates, what has to be seen so that it says yes or no. A new class
of predicates needs a case in `evidence`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from measure.claims import known, spec
from measure.claims.spec import FIRST_CALL, Claim, Compare, Need, Predicate, Script
from measure.run.run import Error, Evidence, Measurement, Run, ScriptEnd, Warning
from tests.samples import measurement, memory, run_of

ID = "0123456789abcdef01234567"


def evidence(test: Predicate, yes: bool) -> Evidence:
    """Evidence by which a predicate says yes, or no."""
    need: Any = test.need
    match test:
        case spec.Faster():
            times = test.by * 2.0 if test.most == math.inf else math.sqrt(test.by * test.most)
            return timed(need, {test.a: 1e-3, test.b: 1e-3 * (times if yes else test.by / 2)})
        case spec.MoreMemory():
            a = round(1e6 * test.by * (2.0 if yes else 0.5))
            return compared(need, [item(test.a, peak_bytes=a), item(test.b, peak_bytes=1_000_000)])
        case spec.Ends():
            other = "failed" if test.outcome == "ok" else "ok"
            return compared(need, [item(test.strategy, outcome=test.outcome if yes else other)])
        case spec.FallsBack():
            warnings = [Warning(code="falls_back", message="falls back")] if yes else []
            return compared(need, [item(test.strategy, warnings=warnings)])
        case spec.Fails():
            return script(need, **{test.name: f"ValueError: {test.words}" if yes == test.fails else ""})
        case spec.Figure():
            inside = test.least if test.least > -9 else test.most
            return script(need, **{test.name: inside if yes else inside - 1 if test.least > -9 else inside + 1})
    raise AssertionError(f"no evidence can be made for {type(test).__name__}: give it a case in evidence")


def timed(need: Need, seconds: Mapping[str, float]) -> Evidence:
    """Evidence with these times."""
    if isinstance(need, Script):
        return script(need, **{name: [value] * 3 for name, value in seconds.items()})
    slugs = dict.fromkeys(name.removeprefix(FIRST_CALL) for name in seconds)
    items = [
        item(slug, seconds.get(slug, 1e-3), first_call_s=seconds.get(FIRST_CALL + slug, 1.0))
        for slug in slugs
    ]  # fmt: skip
    return compared(need, items)


def compared(need: Compare, measurements: Sequence[Measurement]) -> Evidence:
    run = run_of(*measurements)
    request = replace(run.request, workload=need.workload, strategies=[item.strategy for item in measurements])
    return Evidence(need=need.key, run=replace(run, status="complete", request=request))


def script(need: Script, error: str = "", **figures: Any) -> Evidence:
    return Evidence(need=need.key, script=ScriptEnd(source=need.source, figures=figures, error=error, seconds=1.0))


def item(
    slug: str, seconds: float = 1e-3, outcome: str = "ok", words: str = "it is so", *, first_call_s: float = 1.0,
    peak_bytes: int = 1_000_000, warnings: Sequence[Warning] = (),
) -> Measurement:  # fmt: skip
    """A strategy that was measured in twenty processes, or that ended otherwise, which its error says in ``words``."""
    made = replace(measurement(slug, [[seconds] * 3] * 20, outcome=outcome), warnings=list(warnings))
    if outcome != "ok":
        return replace(made, replicas=[], error=Error(type="Error", message=words))
    replicas = [replace(replica, at_s=[1.0] * 3, first_call_s=first_call_s) for replica in made.replicas]
    return replace(made, replicas=replicas, memory=memory(peak_bytes))


def run(tried: Sequence[Claim], *found: Evidence, gpus: bool = True) -> Run:
    """A finished run of these claims with this evidence."""
    run = run_of()
    return replace(
        run, id=ID, kind="claims", finished=run.created, status="complete",
        request=replace(run.request, workload="claims", size={}, dtype="", strategies=[]),
        environment={"tensorflow": "2.21.0", "cpu": "A made-up CPU", "cores": 2, "gpus": ["A GPU"] if gpus else []},
        claims=[claim.id for claim in tried], evidence=list(found),
    )  # fmt: skip


def of_one_test(kind: type[Any] = object) -> Claim:
    """A claim with a single test, whose need is of this kind."""
    return next(one for one in known.all_claims() if len(one.tests) == 1 and isinstance(one.needs[0], kind))
