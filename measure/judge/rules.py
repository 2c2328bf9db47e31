"""The warnings that the data of a run give.

Each rule is a function with one threshold, the reason for it, and one sentence that says what was seen and what to do.
Rules are pure functions of a run and its levels, so that a run file alone gives the same warnings again. Each returns
a warning's message and values, or None.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from measure.judge import advice
from measure.machine import environment
from measure.model import text
from measure.model.digits import rounded
from measure.model.run import Measurement, Run, Warning
from measure.statistics.levels import Levels

# A fifth of a core: an idle desktop stays below; a build, a video call or a second benchmark does not. The system
# counts in ticks of 10 ms, so that within the half second that is watched at the least this is ten of them, where two
# are chance, and what our own processes took meanwhile is known to within four.
BUSY_CORES = 0.2
# Most questions («is it worth rewriting?») turn on differences of a tenth and more.
COARSE = 0.10
# One strategy alone differs from nothing.
LEAST_RANKED = 2
# Of one or two samples, a single disturbed one is all, or half, of what they say. Calls of up to half a second give
# three at the least.
FEW = 3
# The median of a process' samples lies a few percent above their lower quartile. Beyond this its calls have several
# paces, or were disturbed throughout: either is worth knowing before one quotes the headline.
VARIES = 0.25
# Processes of a strategy differ by a standard deviation of 1 to 6 %. What is rarer and larger is meant: of some dozens
# of processes one is about twice as slow. Of two that differ it is not known which is the odd one. Where all
# of them differ much, none is odd.
PROCESSES_DIFFER, LEAST_PROCESSES = 0.30, 3

_Seen = tuple[str, dict[str, Any]] | None


def _busy_before(run: Run, levels: Levels) -> _Seen:
    """Others used the processors when the run began."""
    cores = run.environment.get(environment.LOAD_OF_OTHERS)
    if not isinstance(cores, int | float) or cores <= BUSY_CORES:
        return None
    return (
        f"other programs were using {cores:.1f} cores when the run began: close them and measure again",
        {"cores": cores},
    )


def _coarse_resolution(run: Run, levels: Levels) -> _Seen:
    """The control says that even large differences may be chance, and several strategies lead. One that leads alone is
    ahead by more than what the run can tell."""
    if run.control is None or run.control.resolution <= COARSE or not run.ranking or len(run.ranking[0]) < LEAST_RANKED:
        return None
    how = "on a quiet machine or with a longer time budget" if run.status == "budget" else "on a quiet machine"
    return (
        f"this run cannot tell differences under {text.percent(run.control.resolution)}, and its leaders may differ by "
        f"as much: measure again {how}",
        {"resolution": run.control.resolution},
    )


def _no_control(run: Run, levels: Levels) -> _Seen:
    """The run has ended, and no twin says how large a difference has to be."""
    ranked = sum(map(len, run.ranking))
    if run.finished is None or run.control is not None or ranked < LEAST_RANKED:
        return None
    why, what = {
        "cancelled": ("it was cancelled before that", "let a run come to its end to know"),
        "interrupted": ("it ended before that", "measure again to know"),
        "complete": ("a person stopped it before that", "let a run come to its end to know"),
    }.get(run.status, ("the time budget ended before the leader was measured twice", "a longer one allows it"))
    failed = [item.twin_of for item in run.measurements if item.twin_of and item.error]
    if failed and run.status in ("complete", "budget"):
        why, what = f"measuring {failed[0]} a second time failed", "measure again to know"
    return (
        f"this run's resolution was not measured: {why}. Small differences may be chance; {what}",
        {"ranked": ranked},
    )


def _typical_differs(run: Run, levels: Levels) -> _Seen:
    """By the median of its calls, another strategy would lead."""
    ranked = [slug for group in run.ranking for slug in group if slug in levels.typical]
    leader = min(ranked, key=lambda slug: levels.typical[slug], default="")
    if not leader or leader in run.ranking[0]:
        return None
    return (
        f"by the median of all calls {leader} would lead: its calls vary less than those of "
        f"{run.ranking[0][0]}, which is faster while nothing disturbs it; look at the samples of both",
        {"strategy": leader},
    )


def _few_samples(item: Measurement, levels: Levels) -> _Seen:
    """A latency rests on few samples."""
    samples = sum(len(replica.samples_s) for replica in item.replicas)
    if not samples or samples >= FEW:
        return None
    rests = "one sample" if samples == 1 else f"{samples} samples"
    return (
        f"its latency rests on {rests}, which one disturbed call may move: a longer time budget gives more",
        {"samples": samples},
    )


def _varies(item: Measurement, levels: Levels) -> _Seen:
    """Half of the calls of a strategy's processes take much longer than the undisturbed ones of the same processes."""
    if item.strategy not in levels.typical:
        return None
    beyond = math.expm1(levels.typical[item.strategy] - float(levels.logs[item.strategy].mean()))
    if beyond <= VARIES:
        return None
    return (
        f"half of its calls take more than {text.percent(beyond)} longer than its latency says, which is of "
        "the undisturbed ones: they have several paces, or other programs were at work; look at its samples",
        {"beyond": beyond},
    )


def _processes_differ(item: Measurement, levels: Levels) -> _Seen:
    """One process is farther from the middle of the others than any two of those are apart."""
    logs = levels.logs.get(item.strategy, np.zeros(0))
    if len(logs) < LEAST_PROCESSES:
        return None
    odd, others = max(
        ((value, np.delete(logs, place)) for place, value in enumerate(logs)),
        key=lambda parted: abs(parted[0] - np.median(parted[1])),
    )
    farthest = odd - float(np.median(others))
    times = math.exp(abs(farthest))
    if times <= 1 + PROCESSES_DIFFER or abs(farthest) <= np.ptp(others):
        return None
    return (
        f"one of its {len(logs)} processes is {text.factor(times)} as {'slow' if farthest > 0 else 'fast'} as "
        "the others, so a program that uses it may run at either pace: look at its samples, and measure again to see "
        "how often",
        {"times": times, "processes": len(logs)},
    )


# Each rule under the code of its warning.
RUN_RULES: Mapping[str, Callable[[Run, Levels], _Seen]] = {
    "busy_before": _busy_before,
    "coarse_resolution": _coarse_resolution,
    "no_control": _no_control,
    "typical_differs": _typical_differs,
}
STRATEGY_RULES: Mapping[str, Callable[[Measurement, Levels], _Seen]] = {
    "few_rounds": _few_samples,
    "varies": _varies,
    "processes_differ": _processes_differ,
}

# Codes of what a run as a whole cannot tell, those of earlier methods included; the same of a strategy.
OF_A_RUN = frozenset({*RUN_RULES, "drift"})
# What is not to be overlooked by whoever reads a verdict.
OF_A_VERDICT = OF_A_RUN | {advice.BUSY_DURING}
OF_A_LATENCY = frozenset({*STRATEGY_RULES, "halves_differ", "multimodal"})


def of_run(run: Run, levels: Levels) -> list[Warning]:
    """The run's warnings: those that its data give, after those that were seen while it ran."""
    given = [_warning(code, *seen) for code, rule in RUN_RULES.items() if (seen := rule(run, levels))]
    return [warning for warning in run.warnings if warning.code not in OF_A_RUN] + given


def of_measurement(item: Measurement, levels: Levels) -> list[Warning]:
    """A strategy's warnings, likewise."""
    given = [_warning(code, *seen) for code, rule in STRATEGY_RULES.items() if (seen := rule(item, levels))]
    return [warning for warning in item.warnings if warning.code not in OF_A_LATENCY] + given


def _warning(code: str, message: str, values: dict[str, Any]) -> Warning:
    return rounded(Warning(code=code, message=message, values=values))
