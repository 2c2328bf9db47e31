"""What stands around the line that answers: the case that was measured, what else would be taken, and what would settle
it. Pure functions; their sentences are plain text.
"""

import math
from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from measure.judge import reasons
from measure.judge.findings import ALIKE, Findings, Row, strategies_of
from measure.run import text
from measure.run.request import MAX_AUTO_S, RequestError, again, case_of
from measure.run.run import Axis, Request, Run
from strategies.spec import CHUNK

# Of the shapes of a case so many are named.
_MOST_SHAPES = 2
# The most strategies of a tie that are named.
_MOST_TIED = 3
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


def settling(of: Findings, most_s: float = math.inf) -> Request | None:
    """Return the request that would decide what this run leaves open after all the time that an automatic budget gives:
    the strategies that may be the fastest, without the others, for twice as long. None where nothing is open, where the
    run had less time, or where it cannot be measured here. ``most_s``: the budget that a server allows."""
    spent_s = of.run.request.max_budget_s or of.run.request.budget_s
    if of.word in ("clear", "no choice", "nothing") or of.run.status != "budget" or spent_s < min(MAX_AUTO_S, most_s):
        return None
    # One that leads is measured with the next: alone it would be faster than nothing.
    beside = [of.following] if of.following and len(of.leaders) == 1 else []
    open_ = list(dict.fromkeys([*(row.slug for row in (*of.leaders, *beside)), *of.missing]))
    budget_s = min(2 * spent_s, most_s)
    if budget_s <= spent_s and len(open_) == len(strategies_of(of.run)):
        return None
    asked = _parsed(of.run.request, open_)
    return replace(asked, budget_s=budget_s, max_budget_s=UNSET) if asked else None


def others(of: Findings) -> list[str]:
    """Sentences on what else would be taken, where that is no leader: in each other mode, and for the least memory."""
    if (first := of.take) is None:
        return []
    sentences, leading = [], {row.mode for row in of.leaders}
    for mode, words in _MODES.items():
        of_mode = [row for row in of.ranked if row.mode == mode]
        if mode not in leading and of_mode:
            best = [row for row in of_mode if row.tie == of_mode[0].tie]
            # A chunk that holds the whole batch is no choice of its own.
            best = [row for row in best if not _is_whole_batch(of.run, row)] or best
            span = text.span_of_seconds(best[0].median_s or 0.0, best[-1].median_s or 0.0)
            # Of the runner-up, the headline has it.
            is_told = len(best) > 1 or best[0] is of.following
            why = "" if is_told else reasons.of_modes(of.run, first.measurement, best[0].measurement)
            names = text.listed([row.slug for row in best], _MOST_TIED)
            sentences.append(f"{words}: {names}, {span}{' (tie)' if len(best) > 1 else why}.")
    thrifty = min(of.ranked, key=lambda row: row.peak_bytes if row.peak_bytes is not None else math.inf)
    if thrifty.peak_bytes is not None and thrifty.peak_bytes < (1 - ALIKE) * (first.peak_bytes or 0):
        words = f"{text.size(thrifty.peak_bytes)} and {thrifty.latency}"
        sentences.append(f"Least memory: {thrifty.slug}, {words}.")
    return sentences


def _is_whole_batch(run: Run, row: Row) -> bool:
    """True of a chunked strategy whose one chunk is the whole batch."""
    chosen = next((item.values.get("chunk") for item in row.measurement.warnings if item.code == "chosen"), None)
    chunk = row.measurement.options.get(CHUNK.name, chosen)
    return isinstance(chunk, int) and chunk >= run.request.size.get("batch", math.inf)
