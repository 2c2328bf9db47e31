"""From a run's samples to everything that is derived from them. A pure function: the run file alone is enough."""

from collections.abc import Sequence

from msgspec.structs import replace

from measure.judge import break_even, limit, warnings
from measure.judge.findings import findings
from measure.judge.levels import Level, Levels, Order, by_memory, control, latency, levels_of
from measure.judge.verdict import verdict
from measure.run.run import Analysis, Measurement, OutcomeName, Run, Status


def analyse(run: Run) -> Run:
    """The run with latencies, control, break-even points, ranking and verdict computed anew from its samples."""
    now = replace(run.analysis, version=Analysis().version, method=Analysis().method)
    levels = levels_of(run.measurements, now)
    measurements = [
        replace(item, latency=latency(item, levels, now.confidence), warnings=warnings.of_measurement(item))
        for item in run.measurements
    ]
    # Tie groups, fastest first, and in each those first that need less memory.
    peaks = {item.strategy: item.memory.peak_bytes for item in measurements if item.memory is not None}
    ranking = [by_memory(group, peaks) for group in Order(ranked(measurements, levels), now).groups()]
    run = replace(
        run, analysis=now, measurements=measurements, control=control(measurements, levels, now), ranking=ranking
    )
    pairs = break_even.pairs(run, levels.by_slug)
    measurements = [replace(item, break_even=pairs.get(item.strategy, [])) for item in measurements]
    run = limit.judge(replace(run, measurements=measurements, warnings=warnings.of_run(run)))
    return replace(run, verdict=verdict(findings(run, levels=levels)))


def ranked(measurements: Sequence[Measurement], levels: Levels) -> dict[str, Level]:
    """The levels of the strategies that have a rank: right, timed, and no twin."""
    return {
        item.strategy: levels.by_slug[item.strategy]
        for item in measurements
        if item.outcome == "ok" and not item.twin_of and item.strategy in levels.by_slug
    }


def close(run: Run, status: Status, reason: str, finished: str) -> Run:
    """The run at its end: outcomes that are open are settled, and what there is is analysed."""
    undone: OutcomeName = "cancelled" if status == "cancelled" else "not_run"
    measurements = []
    for item in run.measurements:
        # Where memory and correctness are known and the latency is not, the strategy is not done.
        untimed = item.outcome == "ok" and not item.is_timed and not item.twin_of
        # One that was left out for a reason keeps it.
        is_open = (item.outcome == "not_run" and item.error is None) or untimed
        measurements.append(replace(item, outcome=undone) if is_open else item)
    return analyse(replace(run, status=status, stop_reason=reason, finished=finished, measurements=measurements))
