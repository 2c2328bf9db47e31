"""The warnings that the data of a run give, each with its threshold: one sentence says what was seen and what to do."""

from measure.judge import advice
from measure.judge.verdict import TELLING
from measure.machine import environment
from measure.run import text
from measure.run.run import Measurement, Run, Warning

# A fifth of a core: an idle desktop stays below; a build, a video call or a second benchmark does not. The system
# counts in ticks of 10 ms, so that within the half second that is watched at the least this is ten of them, where two
# are chance, and what our own processes took meanwhile is known to within four.
BUSY_CORES = 0.2
# Of one or two samples, a single disturbed one is all, or half, of what they say.
FEW = 3

# Codes of what a run as a whole cannot tell, those of earlier methods included; the same of a strategy.
OF_A_RUN = frozenset({"busy_before", "coarse_resolution", "no_control", "typical_differs", "drift"})
OF_A_LATENCY = frozenset({"few_rounds", "varies", "processes_differ", "halves_differ", "multimodal"})
# What is not to be overlooked by whoever reads a verdict.
OF_A_VERDICT = OF_A_RUN | {advice.BUSY_DURING}


def of_run(run: Run) -> list[Warning]:
    """The run's warnings: those that its data give, after those that were seen while it ran."""
    given = filter(None, (_busy_before(run), _coarse_resolution(run), _no_control(run)))
    return [warning for warning in run.warnings if warning.code not in OF_A_RUN] + list(given)


def of_measurement(item: Measurement) -> list[Warning]:
    """A strategy's warnings, likewise."""
    return [warning for warning in item.warnings if warning.code not in OF_A_LATENCY] + _few_samples(item)


def _busy_before(run: Run) -> Warning | None:
    """Others used the processors when the run began."""
    cores = run.environment.get(environment.LOAD_OF_OTHERS)
    if not isinstance(cores, int | float) or cores <= BUSY_CORES:
        return None
    message = f"other programs were using {cores:.1f} cores when the run began: close them and measure again"
    return Warning(code="busy_before", message=message, values={"cores": cores})


def _coarse_resolution(run: Run) -> Warning | None:
    """Even large differences may be chance, and several strategies lead. One that leads alone is ahead by more."""
    if run.control is None or run.control.resolution <= TELLING or not run.ranking or len(run.ranking[0]) == 1:
        return None
    how = "on a quiet machine or with a longer time budget" if run.status == "budget" else "on a quiet machine"
    least = text.percent(run.control.resolution)
    message = (
        f"this run cannot tell differences under {least}, and its leaders may differ by as much: measure again {how}"
    )
    return Warning(code="coarse_resolution", message=message, values={"resolution": run.control.resolution})


def _no_control(run: Run) -> Warning | None:
    """The run has ended, and nothing tells how large a difference has to be. One strategy alone needs none."""
    ranked = sum(map(len, run.ranking))
    if run.finished is None or run.control is not None or ranked < 2:
        return None
    message = (
        "this run's resolution was not measured, since it ended before the fastest had a second process: small "
        "differences may be chance; a longer time budget allows it"
    )
    return Warning(code="no_control", message=message, values={"ranked": ranked})


def _few_samples(item: Measurement) -> list[Warning]:
    """A latency rests on few samples."""
    samples = sum(len(replica.samples_s) for replica in item.replicas)
    if not 0 < samples < FEW:
        return []
    rests = "one sample" if samples == 1 else f"{samples} samples"
    message = f"its latency rests on {rests}, which one disturbed call may move: a longer time budget gives more"
    return [Warning(code="few_rounds", message=message, values={"samples": samples})]
