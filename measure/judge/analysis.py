"""From a run's samples to everything that is derived from them. A pure function: the run file alone is enough."""

import math
from collections.abc import Sequence

from msgspec.structs import replace

from measure.judge import limit, rules
from measure.judge.verdict import verdict
from measure.model.digits import rounded
from measure.model.run import Analysis, Latency, OutcomeName, Run, Status
from measure.statistics import break_even, ranking
from measure.statistics.intervals import latency
from measure.statistics.levels import Levels, control, levels_of, resolution


def analyse(run: Run) -> Run:
    """The run with latencies, control, break-even points, ranking and verdict computed anew from its samples."""
    levels, confidence = levels_of(run.measurements), run.analysis.confidence
    by_slug = levels.by_slug
    measurements = [
        replace(
            item, latency=latency_of(item.strategy, levels, confidence), warnings=rules.of_measurement(item, levels)
        )
        for item in run.measurements
    ]
    shown = [item for item in measurements if not item.twin_of]
    twins = rounded(control(measurements, levels, confidence))
    ranked = {
        item.strategy: by_slug[item.strategy] for item in shown if item.outcome == "ok" and item.strategy in by_slug
    }
    order = ranking.Order(ranked, run.analysis, resolution(twins, levels, confidence))
    peaks = {item.strategy: item.memory.peak_bytes for item in shown if item.memory is not None}
    tie_groups = [ranking.by_memory(group, peaks) for group in order.groups()]
    run = limit.judge(with_break_even(replace(run, measurements=measurements, control=twins, ranking=tie_groups)))
    now = replace(run.analysis, version=Analysis().version, method=Analysis().method)
    return replace(run, analysis=now, warnings=rules.of_run(run, levels), verdict=verdict(run, by_slug))


def latency_of(slug: str, levels: Levels, confidence: float) -> Latency | None:
    """The latency of a strategy as a run shows it; None where it was not timed."""
    if slug not in levels.by_slug:
        return None
    return rounded(replace(latency(levels.by_slug[slug], confidence), typical_s=math.exp(levels.typical[slug])))


def with_break_even(run: Run) -> Run:
    """The run with break-even points computed anew from its latencies, first calls and ranking."""
    pairs = rounded(break_even.pairs(run))
    measurements = [replace(item, break_even=pairs.get(item.strategy, [])) for item in run.measurements]
    return replace(run, measurements=measurements)


def close(run: Run, status: Status, reason: str, finished: str) -> Run:
    """The run at its end: outcomes that are open are settled, and what there is is analysed."""
    undone: OutcomeName = "cancelled" if status == "cancelled" else "not_run"
    measurements = []
    for item in run.measurements:
        # Where memory and correctness are known and the latency is not, the strategy is not done.
        timed = any(replica.samples_s for replica in item.replicas)
        untimed = item.outcome == "ok" and not timed and not item.twin_of
        # One that was left out for a reason keeps it.
        is_open = (item.outcome == "not_run" and item.error is None) or untimed
        measurements.append(replace(item, outcome=undone) if is_open else item)
    return analyse(replace(run, status=status, stop_reason=reason, finished=finished, measurements=measurements))


def ranks(groups: Sequence[Sequence[str]]) -> dict[str, int]:
    """Each slug's rank: 1 plus the number of strategies in faster tie groups, so that ties share theirs: 1, 1, 3."""
    by_slug: dict[str, int] = {}
    for group in groups:
        rank = len(by_slug) + 1
        by_slug.update(dict.fromkeys(group, rank))
    return by_slug
