"""Who is timed with the machine's default allocator too, where latencies are timed with memory from a pool."""

from collections.abc import Sequence

from measure.engine.bench import Bench
from measure.judge.default_memory import USUAL
from measure.machine import allocator
from measure.model.request import script_of


def enter(bench: Bench, near: Sequence[str], short: Sequence[str]) -> list[str]:
    """Enter those ``near`` the fastest, and the baseline where it is among those whose calls are ``short``, once more
    with the default allocator, where it is the C library's and this run has memory from a pool; their names. A strategy
    whose script is the same with it is left out."""
    record, known = bench.record, bench.record.run.environment.get("tensorflow_allocator")
    if bench.on_gpu or bench.request.allocator != "pool" or known != allocator.C_LIBRARY:
        return []
    baseline = next((slug for slug in USUAL if slug in short), None)
    entered = []
    for slug in dict.fromkeys([*near, *([baseline] if baseline else [])]):
        source, code = script_of(bench.request, slug, allocator="default"), record[slug].code
        if code is not None and source != code.source:
            entered.append(record.enter_default(slug, source))
    return entered
