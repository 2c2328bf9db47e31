"""The warnings that the data of a run give.

Each rule about noise is a small class with one threshold, the reason for it, and one sentence that says what was seen
and what to do. Rules are pure functions of a run, so that a run file alone gives the same warnings again.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from measure.judge import advice
from measure.machine import environment
from measure.model import text
from measure.model.digits import rounded
from measure.model.run import Measurement, Run, Warning
from measure.statistics import noise
from measure.statistics.effects import Detrended


class RunRule(Protocol):
    """A rule about a run as a whole."""

    code: str

    def check(self, run: Run, samples: Detrended) -> Warning | None: ...


class StrategyRule(Protocol):
    """A rule about one strategy: ``logs`` are its samples with round effects taken out, one array per process."""

    code: str

    def check(self, logs: Sequence[np.ndarray]) -> Warning | None: ...


class BusyBefore:
    """Others used the processors when the run began."""

    code = "busy_before"
    # A fifth of a core: an idle desktop stays below; a build, a video call or a second benchmark does not. The system
    # counts in ticks of 10 ms, so that within the half second that is watched at the least this is ten of them, where
    # two are chance, and what our own processes took meanwhile is known to within four.
    threshold_cores = 0.2

    def check(self, run: Run, samples: Detrended) -> Warning | None:
        cores = run.environment.get(environment.LOAD_OF_OTHERS)
        if not isinstance(cores, int | float) or cores <= self.threshold_cores:
            return None
        return Warning(
            code=self.code,
            message=f"other programs were using {cores:.1f} cores when the run began: close them and measure again",
            values={"cores": cores},
        )


class Drift:
    """The machine became faster or slower from the first round to the last."""

    code = "drift"
    # Comparisons within rounds cancel a drift; beyond a tenth the latencies themselves depend on when one looks.
    threshold = 0.10
    # A trend through fewer rounds may be a single one that anything has disturbed; and of trends by chance, one in a
    # hundred is taken for a drift.
    least_rounds = 6
    error_rate = 0.01
    # From one phase to the next the pace also changes since fewer processes take turns and each has longer to warm up:
    # by up to 1.5 times, as seen. Twice is more than that does.
    step_threshold = 1.0

    def check(self, run: Run, samples: Detrended) -> Warning | None:
        if len(samples.effects) < self.least_rounds:
            return None
        change, p = noise.trend(samples.effects, samples.phases)
        step = float(np.expm1(np.ptp(samples.steps)))
        if step > self.step_threshold:
            change = step if np.argmax(samples.steps) > np.argmin(samples.steps) else step / (1 + step) * -1
        elif abs(change) <= self.threshold or p >= self.error_rate:
            return None
        return Warning(
            code=self.code,
            message=f"the machine became {text.percent(abs(change))} {'slower' if change > 0 else 'faster'} during the "
            "run: the order holds among what was sampled in the same rounds, the latencies do not; close other "
            "programs and measure again",
            values={"change": change},
        )


class CoarseResolution:
    """The control says that even large differences may be chance."""

    code = "coarse_resolution"
    # Most questions («is it worth rewriting?») turn on differences of a tenth and more.
    threshold = 0.10

    def check(self, run: Run, samples: Detrended) -> Warning | None:
        if run.control is None or run.control.resolution <= self.threshold:
            return None
        return Warning(
            code=self.code,
            message=f"this run cannot tell differences under {text.percent(run.control.resolution)}: "
            "measure again on a quiet machine or with a longer time budget",
            values={"resolution": run.control.resolution},
        )


class NoControl:
    """The run has ended, and no twin says how large a difference has to be."""

    code = "no_control"
    # One strategy alone differs from nothing.
    least_ranked = 2

    def check(self, run: Run, samples: Detrended) -> Warning | None:
        ranked = sum(map(len, run.ranking))
        if run.finished is None or run.control is not None or ranked < self.least_ranked:
            return None
        twin = next((item for item in run.measurements if item.twin_of), None)
        if run.status == "cancelled":
            why, what = "it was cancelled before that", "let a run come to its end to know"
        elif run.status == "interrupted":
            why, what = "it ended before that", "measure again to know"
        elif twin is not None and twin.error is not None:
            why, what = f"the second entry of {twin.twin_of} failed", "measure again to know"
        else:
            why, what = "there was no time left for the leader's second entry", "a longer time budget gives it"
        return Warning(
            code=self.code,
            message=f"this run's resolution was not measured: {why}. Small differences may be chance; {what}",
            values={"ranked": ranked},
        )


class FewRounds:
    """A latency rests on few samples."""

    code = "few_rounds"
    # With fewer than five samples a median is moved by a single disturbed one in either direction.
    threshold = 5
    # Of several processes each has one say: with fewer than three samples, a single disturbed one is all, or half, of
    # what its process says, and how many other processes there are does not mend that.
    threshold_each = 3

    def check(self, logs: Sequence[np.ndarray]) -> Warning | None:
        samples, fewest = sum(map(len, logs)), min(map(len, logs), default=0)
        if not samples or (samples >= self.threshold and fewest >= self.threshold_each):
            return None
        if len(logs) == 1:
            rests = f"rests on {samples} sample{'' if samples == 1 else 's'}"
        else:
            rests = f"rests on {len(logs)} processes with as few as {fewest} sample{'' if fewest == 1 else 's'}"
        return Warning(
            code=self.code,
            message=f"its latency {rests}, of which one disturbed call may move it: a longer time budget gives more",
            values={"samples": samples, "processes": len(logs), "fewest": fewest},
        )


class Halves:
    """A strategy's first rounds differ from its last, beyond what the machine did to all."""

    code = "halves_differ"
    # More than the margin of a tie, so that it could change a rank.
    threshold = 0.05
    # And beyond chance: a run has two to five strategies with samples enough, so that fewer than one run in a hundred
    # is warned for nothing. Five processes of four samples, as of a race that is decided at the first look, reach it
    # where nine in ten pairs of a later and an earlier sample agree; three such processes never do.
    error_rate = 0.002
    # Of one process: two in either half, so that none of the four is a half by itself.
    least_samples = 4

    def check(self, logs: Sequence[np.ndarray]) -> Warning | None:
        enough = [of_process for of_process in logs if len(of_process) >= self.least_samples]
        if not enough:
            return None
        change, p = noise.halves(enough)
        if abs(np.expm1(change)) <= self.threshold or p >= self.error_rate:
            return None
        return Warning(
            code=self.code,
            message=f"it became {text.percent(abs(float(np.expm1(change))))} {'slower' if change > 0 else 'faster'} "
            "from the first half of its rounds to the second, so it may not have been in its steady state: look at "
            "its samples, and measure again with a longer time budget",
            values={"change": float(np.expm1(change))},
        )


class Multimodal:
    """Processes switch between two paces."""

    code = "multimodal"
    # Two paces that differ by a tenth: less hardly matters to whoever chooses a strategy.
    threshold = 0.10
    # A gap of so many times what either pace scatters. The best cut of samples of one pace gets there in 0.5 % of
    # cases with five processes of four samples that scatter by 5 %, and hardly ever with more, or where they scatter
    # less, as they mostly do. (Normal samples, 3 % of them slower by half.)
    separation = 7.0
    # Fewer samples at the other pace were disturbed, which is no pace: 3 % are, in a usual run.
    least_share = 0.25
    # A process that has samples at one pace only is no witness of switching: at least half of them are to be.
    least_processes = 0.5
    # Of one process, since of three samples any two are closer; and of all, since chance makes two groups of ten
    # samples easily: a quarter of them are three.
    least_each, least_samples = 4, 16

    def check(self, logs: Sequence[np.ndarray]) -> Warning | None:
        enough = [of_process for of_process in logs if len(of_process) >= self.least_each]
        if sum(map(len, enough)) < self.least_samples:
            return None
        paces = noise.two_paces(enough)
        if (
            paces is None
            or np.expm1(paces.gap) <= self.threshold
            or paces.separation <= self.separation
            or paces.share < self.least_share
            or paces.processes < self.least_processes
        ):
            return None
        gap = float(np.expm1(paces.gap))
        return Warning(
            code=self.code,
            message=f"its calls run at two paces, {text.percent(gap)} apart, and the median says little about either: "
            "look at its samples",
            values={"gap": gap, "share": paces.share},
        )


class ProcessesDiffer:
    """One process is at another pace than the others."""

    code = "processes_differ"
    # Processes of a strategy differ by a standard deviation of 1 to 6 %. Of 600 simulated races of twelve strategies,
    # all over that range, 8 had a process this far from the others by chance. What is rarer and larger is meant: of
    # some dozens of processes one is about twice as slow.
    threshold = 0.30
    # Of one process. All of three samples have to be that far, or three of four: two can be disturbed by chance.
    least_samples = 3

    def check(self, logs: Sequence[np.ndarray]) -> Warning | None:
        enough = [of_process for of_process in logs if len(of_process) >= self.least_samples]
        farthest = noise.farthest_process(enough)
        times = float(np.exp(abs(farthest)))
        if times <= 1 + self.threshold:
            return None
        return Warning(
            code=self.code,
            message=f"one of its {len(enough)} processes is {text.factor(times)} as "
            f"{'slow' if farthest > 0 else 'fast'} as the {'others' if len(enough) > 2 else 'other'}, so a program "
            "that uses it may run at either pace: look at its samples, and measure again to see how often",
            values={"times": times, "processes": len(enough)},
        )


RUN_RULES: tuple[RunRule, ...] = (BusyBefore(), Drift(), CoarseResolution(), NoControl())
STRATEGY_RULES: tuple[StrategyRule, ...] = (FewRounds(), Halves(), Multimodal(), ProcessesDiffer())

# Codes of what a run as a whole cannot tell, not to be overlooked by whoever reads its verdict; the same of a strategy.
OF_A_VERDICT = frozenset({*(rule.code for rule in RUN_RULES), advice.BUSY_DURING})
OF_A_LATENCY = frozenset(rule.code for rule in STRATEGY_RULES)


def of_run(run: Run, samples: Detrended) -> list[Warning]:
    """The run's warnings: those that its data give, after those that were seen while it ran."""
    derived = {rule.code for rule in RUN_RULES}
    given = [warning for rule in RUN_RULES if (warning := rule.check(run, samples)) is not None]
    return [warning for warning in run.warnings if warning.code not in derived] + rounded(given)


def of_measurement(item: Measurement, samples: Detrended) -> list[Warning]:
    """A strategy's warnings, likewise."""
    derived = {rule.code for rule in STRATEGY_RULES}
    logs = samples.logs.get(item.strategy, [])
    given = [warning for rule in STRATEGY_RULES if (warning := rule.check(logs)) is not None]
    return [warning for warning in item.warnings if warning.code not in derived] + rounded(given)
