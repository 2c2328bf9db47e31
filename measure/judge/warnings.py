"""The warnings of a run and of its strategies, each with its threshold: a sentence says what was seen and what to do.

Those of `of_run` and `of_measurement` follow from the data and are made anew with every analysis; the engine gives the
others while it measures.
"""

from collections.abc import Mapping, Sequence

from measure.machine import environment
from measure.run import text
from measure.run.run import Measurement, Run, Warning

# Before a run: a fifth of a core. An idle desktop stays below; a build, a video call or a second benchmark does not.
# The system counts in ticks of 10 ms, so that within the half second that is watched at the least this is ten of them,
# where two are chance, and what our own processes took meanwhile is known to within four.
BUSY_CORES = 0.2
# While latencies are sampled: half a core is more than the wake-ups of an idle system and a page that watches the run.
BUSY_DURING_CORES = 0.5
# Of one or two samples, a single disturbed one is all, or half, of what they say.
FEW = 3
# A period is a tenth of a second: of a run of seconds, one in twenty is more than the start of a process.
_HELD = 0.05

# Codes that the data of a run and of a strategy give, those of earlier methods included.
_OF_A_RUN = frozenset({"busy_before", "coarse_resolution", "no_control", "typical_differs", "drift"})
OF_A_LATENCY = frozenset({"few_rounds", "varies", "processes_differ", "halves_differ", "multimodal"})
# Why a run may not be able to tell its leaders apart, the strongest first.
NOISE = ("busy_during", "busy_before", "held")
# What is not to be overlooked by whoever reads a verdict.
OF_A_VERDICT = _OF_A_RUN | set(NOISE)


def of_run(run: Run) -> list[Warning]:
    """The run's warnings: what its data give, after what was seen while it ran."""
    during = [warning for warning in run.warnings if warning.code not in _OF_A_RUN]
    cores = run.environment.get(environment.LOAD_OF_OTHERS)
    is_busy = isinstance(cores, int | float) and cores > BUSY_CORES
    if not is_busy or any(warning.code == "busy_during" for warning in during):  # which says it of the run itself
        return during
    message = f"other programs were using {cores:.1f} cores when the run began: close them and measure again"
    return [*during, Warning(code="busy_before", message=message, values={"cores": cores})]


def of_measurement(item: Measurement) -> list[Warning]:
    """A strategy's warnings, likewise."""
    during = [warning for warning in item.warnings if warning.code not in OF_A_LATENCY]
    samples = sum(len(replica.samples_s) for replica in item.replicas)
    if not 0 < samples < FEW:
        return during
    rests = "one sample" if samples == 1 else f"{samples} samples"
    message = f"its latency rests on {rests}, which one disturbed call may move: a longer time budget gives more"
    return [*during, Warning(code="few_rounds", message=message, values={"samples": samples})]


# --- of a run, while it is measured ----------------------------------------------------------------------------------


def busy_during(cores: float) -> Warning | None:
    """Others used the processors while latencies were sampled: other programs, and pages that are looked at."""
    if cores <= BUSY_DURING_CORES:
        return None
    message = f"other programs used {cores:.1f} cores while latencies were sampled: close them and measure again"
    return Warning(code="busy_during", message=message, values={"cores": round(cores, 2)})


def held(share: float) -> Warning | None:
    """The limit of processor time of a container held the run for this share of its periods."""
    if share <= _HELD:
        return None
    message = (
        f"the limit on processor time under which this ran was used up in {text.percent(share)} of its periods while "
        "latencies were sampled, and strategies waited: measure again with as many threads as it grants cores"
    )
    return Warning(code="held", message=message, values={"share": round(share, 3)})


def stood_still(seconds: float) -> Warning:
    """The measuring process, the host or a subject stood still."""
    message = (
        f"measuring stood still for about {text.seconds(seconds)}, since the machine slept or a process was stopped: "
        "what that touched was taken again"
    )
    return Warning(code="stood_still", message=message, values={"seconds": round(seconds, 1)})


def some_compared(number: int, batch: int) -> Warning:
    """Right results come from a function that is called for one element after the other."""
    message = (
        f"results of {number:,} of {batch:,} elements are compared with right ones, from the first to the last: a "
        "reference for the whole batch, in NumPy, would have all compared"
    )
    return Warning(code="some_compared", message=message)


def no_limit(reason: str) -> Warning:
    """The probes have failed."""
    message = (
        f"the theoretical floor is not known, since its probes failed: {reason.rstrip('.')}; latencies are not touched "
        "by that, and measuring again may find it"
    )
    return Warning(code="no_limit", message=message)


def no_process_peak() -> Warning:
    """The operating system sees of a process the machine's memory, not a GPU's."""
    message = (
        "the process peak is not measured on a GPU: the operating system sees the machine's own memory alone; go by "
        "the memory of the tensors, which is the GPU's"
    )
    return Warning(code="no_process_peak", message=message)


def no_time_for_peaks(slugs: Sequence[str]) -> Warning:
    """The run ended when it was said to."""
    message = f"there was no time for the process peak of {text.listed(slugs)}: a longer budget leaves it some"
    return Warning(code="no_time_for_peaks", message=message, values={"strategies": list(slugs)})


def cut_short(over: str, *, explained: bool) -> Warning:
    """The run's time was over after its verdict. ``over``: that in words; ``explained``: reasons were asked for."""
    left = "all strategies were explained" if explained else "the process peak of every strategy was measured"
    return Warning(code="cut_short", message=f"{over} before {left}: ranks and verdict are not touched by that")


def not_ended(count: int) -> Warning:
    """Processes of the run live on though they were killed, as those do that wait for a device or are traced."""
    who = "a process" if count == 1 else f"{count} processes"
    message = (
        f"{who} of this run did not end when killed, and may take processor and memory from what is measured next: "
        "where that lasts, restart the machine"
    )
    return Warning(code="not_ended", message=message, values={"processes": count})


def not_kept(reason: str, in_file: bool) -> Warning:
    """The command that measured has ended, and the run could not be written. ``in_file``: it went elsewhere too."""
    where = "--json has it alone" if in_file else "what is printed is all that is left, and --json FILE would have it"
    message = f"this run could not be kept ({reason}): {where}"
    return Warning(code="not_saved", message=message, values={"reason": reason})


# --- of a strategy, while it is measured -----------------------------------------------------------------------------


def of_tensorflow(fallbacks: Sequence[str], retraces: int) -> list[Warning]:
    """Warnings of ops that tf.vectorized_map could not vectorise, and of how many functions a steady call traced."""
    made = []
    if ops := list(dict.fromkeys(fallbacks)):
        message = (
            f"falls back to a while loop: tf.vectorized_map cannot vectorise {', '.join(ops)}, so that part runs "
            "element by element: write it with other ops, or take the mapper that is fastest here"
        )
        made.append(Warning(code="falls_back", message=message, values={"ops": ops}))
    if retraces:
        message = f"every call traces {_counted(retraces, 'function')} anew: put the mapping inside a tf.function"
        made.append(Warning(code="retrace", message=message, values={"traces_per_call": retraces}))
    return made


def chosen(reason: str, values: Mapping[str, object]) -> Warning:
    """An option that the request left open, and what was made of it."""
    return Warning(code="chosen", message=reason, values=dict(values))


def compiled_values(traces: int, compilations: int) -> Warning | None:
    """Calls with new values trace so many functions and compile so many programs, and calls with the same do not."""
    counted = ((traces, "traces", "function"), (compilations, "compiles", "program"))
    does = " and ".join(f"{verb} {_counted(count, noun)}" for count, verb, noun in counted if count)
    if not does:
        return None
    message = (
        f"every call with new values {does} anew, which the timed calls, always with the same values, do not: where "
        "values change, a call may take as long as the first"
    )
    values = {"traces_per_call": traces, "compilations_per_call": compilations}
    return Warning(code="compiled_values", message=message, values=values)


def _counted(count: int, noun: str) -> str:
    return f"a {noun}" if count == 1 else f"{count} {noun}s"
