"""What stands around the line that answers: the case that was measured, what else would be taken, and what would settle
it. Pure functions; their sentences are plain text.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from measure.judge import reasons
from measure.judge.findings import ALIKE, Findings, strategies_of
from measure.run import text
from measure.run.request import RequestError, again, case_of
from measure.run.run import Axis, Request, Run

# Of the shapes of a case so many are named.
_MOST_SHAPES = 2
# The time budget with which those that may be the fastest are measured once more, by themselves.
SETTLING_S = 60.0
_MODES = {"eager": "In eager code", "graph": "In a graph", "xla": "With XLA"}


def heading(run: Run) -> str:
    """The case of a comparison or a sweep: ``image_sqrt · 100×64×64×3 · float32 · CPU:0``; how many claims a run has
    tried."""
    if run.kind == "claims":
        return text.counted(len(run.claims or []), "claim")
    return asked_case(run.request, run.axes)


def asked_case(request: Request, axes: Sequence[Axis] = ()) -> str:
    """The case that is asked for, in the words of `heading`; ``axes`` are what is swept."""
    asked = _parsed(request, ["all"])
    case = case_of(asked) if asked else None
    swept = [axis.name for axis in axes]
    if swept or case is None:
        sizes = [f"{axis.name} {min(axis.values):,} to {max(axis.values):,}" for axis in axes]
        sizes += [f"{name} {value:,}" for name, value in request.size.items() if name not in swept]
    else:
        sides = [(case.batch, *leaf.sides) for leaf in case.leaves(case.workload.element_input)]
        shapes = list(dict.fromkeys("×".join(map(str, shape)) for shape in sides))
        sizes = [" and ".join(shapes[:_MOST_SHAPES]) + " …" * (len(shapes) > _MOST_SHAPES)]
    usual = case.workload.default_options() if case else {}
    chosen = [f"{name} {value}" for name, value in request.workload_options.items() if value != usual.get(name)]
    if request.memory_limit_mib is not None:
        chosen.append(f"limit {request.memory_limit_mib:,} MiB")
    if request.threads is not None:
        chosen.append(text.counted(request.threads, "thread"))
    if request.allocator == "default":
        chosen.append("default allocator")
    return " · ".join([request.title, *sizes, request.dtype, *chosen, request.place])


def _parsed(request: Request, strategies: list[str]) -> Request | None:
    """The request of a record, for these strategies; None where it asks for what is not here."""
    try:
        return again(request, strategies=strategies)
    except RequestError:
        return None


def settling(of: Findings, most_s: float = SETTLING_S) -> Request | None:
    """The request whose run would decide what this one leaves open; None where nothing is open, where it has had that
    budget, or where it cannot be measured here. ``most_s``: the budget that a server allows."""
    budget_s = min(SETTLING_S, most_s)
    if of.word in ("clear", "no choice", "nothing") or of.run.request.budget_s >= budget_s:
        return None
    # One that leads is measured with the next: alone it would be ahead of nobody.
    beside = [of.following] if of.following and len(of.leaders) == 1 else []
    open_ = [row.slug for row in (*of.leaders, *beside)]
    asked = _parsed(of.run.request, [item.strategy for item in strategies_of(of.run)] if of.missing else open_)
    return replace(asked, budget_s=budget_s) if asked else None


def others(of: Findings) -> list[str]:
    """Sentences on what else would be taken, where that is no leader: in each other mode, and for the least memory."""
    if (first := of.take) is None:
        return []
    sentences, leading = [], {row.mode for row in of.leaders}
    for mode, words in _MODES.items():
        best = next((row for row in of.ranked if row.mode == mode), None)
        if mode not in leading and best is not None:
            # Of the next one, the headline has it.
            why = "" if best is of.following else reasons.of_modes(of.run, first.measurement, best.measurement)
            sentences.append(f"{words}: {best.slug}, {best.latency}{why}.")
    thrifty = min(of.ranked, key=lambda row: row.peak_bytes if row.peak_bytes is not None else float("inf"))
    if thrifty.peak_bytes is not None and thrifty.peak_bytes < (1 - ALIKE) * (first.peak_bytes or 0):
        words = f"{text.size(thrifty.peak_bytes)} and {thrifty.latency}"
        sentences.append(f"For the least memory: {thrifty.slug}, {words}.")
    return sentences
