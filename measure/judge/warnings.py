"""The warnings of a run and of its strategies, each with its threshold: a sentence says what was seen and what to do.

Those of `of_run` and `of_measurement` follow from the data and are made anew with every analysis; the engine gives the
others while it measures.
"""

from collections.abc import Sequence
from typing import Any

from measure.judge.levels import has_samples, slices_of
from measure.machine import environment
from measure.run import text
from measure.run.run import Measurement, Run, Warning

# Before a run: a fifth of a core. An idle desktop stays below; a build, a video call or a second benchmark does not.
# The system counts in ticks of 10 ms, so that within the half second that is watched at the least this is ten of them,
# where two are chance, and what our own processes took meanwhile is known to within four.
BUSY_CORES = 0.2
# While latencies are sampled: half a core is more than the wake-ups of an idle system and a page that watches the run.
BUSY_DURING_CORES = 0.5
# A period is a tenth of a second: of a run of seconds, one in twenty is more than the start of a process.
_HELD = 0.05

# Codes that the data of a run and of a strategy give, those of earlier methods included.
_OF_A_RUN = frozenset({"busy_before", "coarse_resolution", "no_control", "typical_differs", "drift"})
OF_A_LATENCY = frozenset({"few_rounds", "varies", "processes_differ", "halves_differ", "multimodal"})
# Why a run may not be able to tell its leaders apart, the strongest first.
NOISE = ("busy_during", "busy_before", "held")
# What is not to be overlooked by whoever reads a verdict.
OF_A_VERDICT = _OF_A_RUN | set(NOISE) | {"changed"}

# Code → its sentence, of the values that are given with it.
_SENTENCES = {
    "busy_before": "other programs used {cores:.1f} cores when the run began",
    "busy_during": "other programs used {cores:.1f} cores while latencies were sampled",
    "held": "the limit on processor time under which this ran was used up in a share of {share:.2f} of its periods "
    "while latencies were sampled: measure again with as many threads as it grants cores",
    "few_rounds": "too few samples for a ratio ({slices} in {processes}): increase the budget",
    "stood_still": "measuring stood still for about {seconds:.1f} s, since the machine slept or a process was stopped: "
    "what that touched was taken again",
    # Right results come from a function that is called for one element after the other.
    "some_compared": "results of {compared:,} of {batch:,} elements are compared with right ones, from the first to "
    "the last: a reference for the whole batch, in NumPy, would have all compared",
    "no_limit": "the theoretical floor is not known, since its probes failed: {reason}; latencies are not touched by "
    "that, and measuring again may find it",
    "no_process_peak": "the process peak is not measured on a GPU: the operating system sees the machine's own memory "
    "alone; go by the memory of the tensors, which is the GPU's",
    "no_time_for_peaks": "no time was left for the process peak of {strategies}",
    "cut_short": "{over} before floor, process peaks and reasons were measured: the verdict is not touched by that",
    # Processes that wait for a device, or are traced, live on though they were killed.
    "not_ended": "some processes of this run ({processes}) did not end when killed, and may take processor and memory "
    "from what is measured next: where that lasts, restart the machine",
    # The command that measured has ended, and the run could not be written.
    "not_saved": "this run could not be kept ({reason}): what is printed, or written by --json, is all that is left",
    "falls_back": "falls back to a while loop: tf.vectorized_map cannot vectorise {ops}, so that part runs element by "
    "element: write it with other ops, or take the mapper that is fastest here",
}


def warning(code: str, **values: Any) -> Warning:
    """The warning of a code with its values, which stand in its sentence; lists as words."""
    words = {name: text.listed(value) if isinstance(value, list) else value for name, value in values.items()}
    return Warning(code=code, message=_SENTENCES[code].format(**words), values=values)


def of_run(run: Run) -> list[Warning]:
    """The run's warnings: what its data give, after what was seen while it ran."""
    during = [warning for warning in run.warnings if warning.code not in _OF_A_RUN]
    cores = run.environment.get(environment.LOAD_OF_OTHERS)
    is_busy = isinstance(cores, int | float) and cores > BUSY_CORES
    if is_busy and all(warning.code != "busy_during" for warning in during):  # which says it of the run itself
        return [*during, warning("busy_before", cores=cores)]
    return during


def of_measurement(item: Measurement) -> list[Warning]:
    """A strategy's warnings, likewise."""
    during = [warning for warning in item.warnings if warning.code not in OF_A_LATENCY]
    if not item.is_timed or has_samples(item):
        return during
    processes, slices = slices_of(item)
    few = warning(
        "few_rounds", slices=text.counted(slices, "slice"), processes=text.counted(processes, "process", "processes")
    )
    return [*during, few]


def of_load(cores: float, share: float) -> list[Warning]:
    """Warnings of what went on while latencies were sampled: others used so many ``cores``, and the limit of processor
    time of a container held the run for this ``share`` of its periods."""
    busy = [warning("busy_during", cores=round(cores, 2))] if cores > BUSY_DURING_CORES else []
    return [*busy, *([warning("held", share=round(share, 3))] if share > _HELD else [])]


def of_tensorflow(fallbacks: Sequence[str], retraces: int) -> list[Warning]:
    """Warnings of ops that tf.vectorized_map could not vectorise, and of how many functions a steady call traced."""
    ops, made = list(dict.fromkeys(fallbacks)), list[Warning]()
    if ops:
        made.append(warning("falls_back", ops=ops))
    if retraces:
        message = f"every call traces {text.counted(retraces, 'function')} anew: put the mapping inside a tf.function"
        made.append(Warning(code="retrace", message=message, values={"traces_per_call": retraces}))
    return made


def compiled_values(traces: int, compilations: int) -> list[Warning]:
    """Calls with new values trace so many functions and compile so many programs, and calls with the same do not."""
    traced, compiled = f"traces {text.counted(traces, 'function')}", f"compiles {text.counted(compilations, 'program')}"
    does = " and ".join([traced] * bool(traces) + [compiled] * bool(compilations))
    if not does:
        return []
    message = (
        f"every call with new values {does} anew, which the timed calls, always with the same values, do not: where "
        "values change, a call may take as long as the first"
    )
    values = {"traces_per_call": traces, "compilations_per_call": compilations}
    return [Warning(code="compiled_values", message=message, values=values)]
