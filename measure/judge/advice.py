"""The warnings of what is seen while a run goes on; those that its data give are in `measure.judge.rules`."""

from collections.abc import Mapping, Sequence

from measure.run import text
from measure.run.run import Warning

BUSY_DURING = "busy_during"
# Half a core of a machine is more than the wake-ups of an idle system and a page that watches the run.
BUSY_DURING_CORES = 0.5


def busy_during(cores: float) -> Warning | None:
    """Others used the processors while latencies were sampled: other programs, and pages that are looked at."""
    if cores <= BUSY_DURING_CORES:
        return None
    message = f"other programs used {cores:.1f} cores while latencies were sampled: close them and measure again"
    return Warning(code=BUSY_DURING, message=message, values={"cores": round(cores, 2)})


# A period is a tenth of a second: of a run of seconds, one in twenty is more than the start of a process.
_HELD = 0.05


def held(share: float) -> Warning | None:
    """The limit of processor time of a container held the run while latencies were sampled."""
    if share <= _HELD:
        return None
    return Warning(
        code="held",
        message=f"the limit on processor time under which this ran was used up in {text.percent(share)} of its periods "
        "while latencies were sampled, and strategies waited: measure again with as many threads as it grants cores",
        values={"share": round(share, 3)},
    )


def falls_back(ops: Sequence[str]) -> Warning:
    """tf.vectorized_map does not vectorise everything."""
    ops = list(dict.fromkeys(ops))
    return Warning(
        code="falls_back",
        message=f"falls back to a while loop: tf.vectorized_map cannot vectorise {', '.join(ops)}, "
        "so that part runs element by element: write it with other ops, or take the mapper that is fastest here",
        values={"ops": ops},
    )


def of_strategy(fallbacks: Sequence[str], retraces: int) -> list[Warning]:
    """Warnings from the ops that tf.vectorized_map could not vectorise, and from how many functions one steady call
    traced."""
    warnings = [falls_back(fallbacks)] if fallbacks else []
    if retraces:
        functions = _counted(retraces, "function")
        warnings.append(
            Warning(
                code="retrace",
                message=f"every call traces {functions} anew: put the mapping inside a tf.function to trace once",
                values={"traces_per_call": retraces},
            )
        )
    return warnings


def _counted(count: int, noun: str) -> str:
    return f"a {noun}" if count == 1 else f"{count} {noun}s"


def chosen(reason: str, values: Mapping[str, object]) -> Warning:
    """An option that the request left open, and what was made of it."""
    return Warning(code="chosen", message=reason, values=dict(values))


def compiled_values(traces: int, compilations: int) -> Warning | None:
    """Calls with new values trace so many functions and compile so many programs, and calls with the same do not."""
    counted = ((traces, "traces", "function"), (compilations, "compiles", "program"))
    does = " and ".join(f"{verb} {_counted(count, noun)}" for count, verb, noun in counted if count)
    if not does:
        return None
    return Warning(
        code="compiled_values",
        message=f"every call with new values {does} anew, which the timed calls, always with the same values, do not: "
        "where values change, a call may take as long as the first",
        values={"traces_per_call": traces, "compilations_per_call": compilations},
    )


def some_compared(number: int, batch: int) -> Warning:
    """Right results come from a function that is called for one element after the other."""
    return Warning(
        code="some_compared",
        message=f"results of {number:,} of {batch:,} elements are compared with right ones, from the first to the "
        "last: a reference for the whole batch, in NumPy, would have all compared",
    )


def no_limit(reason: str) -> Warning:
    """The probes have failed."""
    return Warning(
        code="no_limit",
        message=f"the theoretical floor is not known, since its probes failed: {reason.rstrip('.')}; latencies are "
        "not touched by that, and measuring again may find it",
    )


def no_process_peak() -> Warning:
    """The operating system sees of a process the machine's memory, not a GPU's."""
    message = (
        "the process peak is not measured on a GPU: the operating system sees the machine's own memory alone; go by "
        "the memory of the tensors, which is the GPU's"
    )
    return Warning(code="no_process_peak", message=message)


def no_time_for_peaks(slugs: Sequence[str]) -> Warning:
    """The run ended when it was said to."""
    return Warning(
        code="no_time_for_peaks",
        message=f"there was no time for the process peak of {text.listed(slugs)}: a longer budget leaves it some",
        values={"strategies": list(slugs)},
    )


def cut_short(over: str, *, explained: bool) -> Warning:
    """The run's time was over after its verdict. ``over``: that in words; ``explained``: reasons were asked for."""
    left = "all strategies were explained" if explained else "the process peak of every strategy was measured"
    return Warning(code="cut_short", message=f"{over} before {left}: ranks and verdict are not touched by that")


def not_ended(count: int) -> Warning:
    """Processes of the run live on though they were killed, as those do that wait for a device or are traced."""
    who = "a process" if count == 1 else f"{count} processes"
    return Warning(
        code="not_ended",
        message=f"{who} of this run did not end when killed, and may take processor and memory from what is measured "
        "next: where that lasts, restart the machine",
        values={"processes": count},
    )


def stood_still(seconds: float) -> Warning:
    """The measuring process, the host or a subject stood still."""
    return Warning(
        code="stood_still",
        message=f"measuring stood still for about {text.seconds(seconds)}, since the machine slept or a process was "
        "stopped: what that touched was taken again",
        values={"seconds": round(seconds, 1)},
    )


def not_kept(reason: str, in_file: bool) -> Warning:
    """The command that measured has ended, and the run could not be written. ``in_file``: it went elsewhere too."""
    where = "--json has it alone" if in_file else "what is printed is all that is left, and --json FILE would have it"
    return Warning(
        code="not_saved", message=f"this run could not be kept ({reason}): {where}", values={"reason": reason}
    )
