"""The stages of a comparison, as functions of its bench, in the order in which they run.

What a stage finds out goes into the bench's record and is published as it becomes known. A strategy that fails costs
only its own outcome. All raise `Cancelled` and `HostLost`.
"""

import contextlib
import itertools
import math
import os
import pickle
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

import strategies
from measure.engine.bench import Bench
from measure.engine.turns import Turns
from measure.judge import advice, limit, rules
from measure.machine import environment, load
from measure.model import deadline
from measure.model.run import Correctness, Error, Warning
from measure.pool.dialogue import NATIVE_DEATHS, Dialogue, Part, SubjectFailed
from measure.pool.fresh_launcher import FreshLauncher
from measure.subject import messages
from measure.subject.messages import Spec
from strategies import chunks, own_script, script

# For how long what others use of the processors is watched before latencies are timed, at the least. Memory and
# correctness nearly always take longer, so that nobody waits for it.
LOAD_WINDOW_S = 0.5
# So often more, where others were at work.
_LOOKS_AGAIN = 3
_WAITING_AT_ONCE = 6
# Another allocator of a GPU's memory than TensorFlow's own, which alone reports its events.
_GPU_ALLOCATOR = "TF_GPU_ALLOCATOR"
# Without a limit of the request's, tensors of a memory subject may take what is available, and at least this.
_LEAST_LIMIT_MIB = 256
# Read by TensorFlow when it is loaded; on a CPU, oneDNN is on unless it is 0.
_ONEDNN = "TF_ENABLE_ONEDNN_OPTS"


def ask_for_room(bench: Bench) -> None:
    """Before any subject lives on a GPU: what it has left, which caps how many may live at once."""
    if not bench.on_gpu:
        return
    bench.say("asking for the GPU's free memory")

    def dialogue() -> Dialogue:
        subject = bench.dialogues.start(Spec(role="room", device=bench.request.device))
        with contextlib.suppress(SubjectFailed):
            timeout_s = bench.settings.fresh_start_s
            bench.gpu_bytes = (yield from bench.dialogues.until(subject, messages.Room, timeout_s)).bytes

    bench.dialogues.hold([dialogue()])


def compute_reference(bench: Bench) -> None:
    """Compute, once and for all, the values that strategies are checked against; without them, every strategy fails."""
    bench.say("computing the reference")
    (bench.folder / "expected.pickle").write_bytes(pickle.dumps(bench.case.output))

    def attempt() -> Part[messages.Saved]:
        spec = Spec(role="reference", script=bench.reference_script, name="reference", case_dir=str(bench.folder))
        # As long as the run: without it nothing can be measured.
        return (yield from bench.dialogues.until(bench.dialogues.start(spec), messages.Saved, math.inf))

    def dialogue() -> Dialogue:
        try:
            yield from bench.dialogues.undisturbed(attempt)
        except SubjectFailed as failure:
            message = f"the reference could not be computed: {failure.error.message}"
            failed = SubjectFailed(failure.outcome, replace(failure.error, message=message))
            for item in bench.record.items():
                bench.fail(item.strategy, "reference", failed)

    bench.dialogues.hold([dialogue()])
    if bench.case.workload.own is not None and (number := own_script.compared(bench.case)) < bench.case.batch:
        bench.record.warn(advice.some_compared(number, bench.case.batch))


def leave_out_unsupported(bench: Bench) -> None:
    """Give strategies that are known not to work their outcome, with the reason: nothing is started for them."""
    for item in bench.record.items():
        reason = strategies.unsupported(strategies.parse(item.strategy), bench.case.workload)
        if reason is not None and item.outcome == "not_run":
            error = Error(type="Unsupported", message=reason)
            bench.fail(item.strategy, "request", SubjectFailed("unsupported", error))


# --- memory and correctness ------------------------------------------------------------------------------------------


def measure_memory(bench: Bench, slugs: Sequence[str], until_s: float = math.inf, end_s: float = math.inf) -> None:
    """Measure the memory of strategies and check their values, two at a time; none is begun after ``until_s``, and at
    ``end_s`` those that still go on are ended, where there are others to go on with."""
    bench.say("measuring memory and correctness")
    estimates = bench.forecast.per_strategy
    # One method for all of TensorFlow's strategies: figures of two methods are not comparable.
    measured = [item.strategy for item in bench.record.items() if item.error is None]
    events = max((estimates[slug].events for slug in measured), default=0)
    by_events = events <= bench.settings.most_events and not (bench.on_gpu and os.environ.get(_GPU_ALLOCATOR))
    needs = {slug: estimates[slug].peak_bytes + bench.case.tensor_bytes for slug in slugs}
    limit_mib = bench.request.memory_limit_mib or max(_LEAST_LIMIT_MIB, bench.room_bytes() // 2**20)
    tight = {slug for slug in slugs if needs[slug] > deadline.TIGHT_SHARE * limit_mib * 2**20}
    # TensorFlow waits for 10 s before an allocation fails: strategies that may have to wait do so together, last.
    for group, at_once in (([slug for slug in slugs if slug not in tight], 2), (sorted(tight), _WAITING_AT_ONCE)):
        order, same_order = itertools.tee(bench.picked(group, until_s))
        if group and at_once == _WAITING_AT_ONCE:
            end_s += deadline.ALLOCATOR_WAITS_S
        bench.dialogues.hold(
            (_memory_of(bench, slug, by_events, limit_mib, until_s, end_s) for slug in order),
            at_once=at_once,
            costs=(min(needs[slug], limit_mib * 2**20) + bench.process_bytes for slug in same_order),
            room=bench.room_bytes(),
        )


def _memory_of(bench: Bench, slug: str, by_events: bool, limit_mib: int, until_s: float, end_s: float) -> Dialogue:
    record = bench.record
    if bench.dialogues.now_s > until_s and bench.launcher.start_method == "fork":
        return
    record.set_stage([slug], "memory")
    method: str = strategies.mapper(record[slug].mapper).memory
    if method != "tracemalloc" and not by_events:
        method = "allocator"
    subject = 0

    def take(said: messages.Said) -> None:
        if isinstance(said, messages.Checked):
            record.update(slug, stage="memory", correctness=said.correctness)
            if not said.correctness.ok:
                record.update(slug, error=Error(type="WrongValues", message=said.sentence or ""))

    def attempt() -> Part[messages.Measured]:
        nonlocal subject
        subject = bench.dialogues.start(bench.spec("memory", slug, memory_method=method, memory_limit_mib=limit_mib))
        return (yield from bench.step("memory", slug, subject, messages.Measured, take, end_s))

    try:
        measured = yield from bench.dialogues.undisturbed(attempt)
    except SubjectFailed as failure:
        bench.fail(slug, "memory", failure)
        return
    check = record[slug].correctness
    record.update(
        slug,
        outcome="ok" if check is not None and check.ok else "wrong",
        stage="memory",
        memory=measured.memory,
        warnings=[
            *_choices(bench, slug),
            *advice.of_strategy(measured.warnings, measured.fallbacks, measured.retraces),
        ],
    )
    # Kept at once: whoever ends the server now loses nothing of it.
    bench.say(result=True)
    # One that fails only now will fail where it is timed, or was not asked to take new values.
    with contextlib.suppress(SubjectFailed):
        rough = yield from bench.step("rough", slug, subject, messages.Rough, until_s=end_s)
        if rough.seconds is not None:
            record.rough_s[slug] = rough.seconds
        anew = yield from bench.step("anew", slug, subject, messages.Anew, until_s=end_s)
        if warning := advice.compiled_values(anew.traces, anew.compilations):
            record.update(slug, warnings=[*record[slug].warnings, warning])
    record.set_stage([slug], "waiting")
    bench.say(result=True)


def _choices(bench: Bench, slug: str) -> list[Warning]:
    """Say what the mapper chose where the request left it open."""
    strategy, limit_mib = strategies.parse(slug), bench.request.memory_limit_mib
    chosen = chunks.chosen(bench.case, strategy, limit_mib)
    return [advice.chosen(chunks.reason(bench.case, strategy, limit_mib), chosen)] if chosen else []


# --- oneDNN ----------------------------------------------------------------------------------------------------------


def suspects(bench: Bench) -> list[str]:
    """The strategies for whose outcome oneDNN may be to blame: values are off, or they died in native code."""
    return [
        item.strategy
        for item in bench.record.items()
        if (item.correctness is not None and _is_off(item.correctness))
        or (item.error is not None and item.error.type in NATIVE_DEATHS)
    ]


def _is_off(check: Correctness) -> bool:
    """True where values are wrong, or nothing is said of them one by one."""
    return any(leaf.mismatch_share for leaf in check.leaves) or not (check.ok or check.leaves)


def rerun_without_onednn(bench: Bench) -> None:
    """Run suspects once more in a fresh interpreter with oneDNN off: where that is right, the result says so. A fork
    comes too late: TensorFlow reads the setting when it is loaded."""
    suspected = suspects(bench)
    if not suspected or bench.request.device != "CPU:0" or os.environ.get(_ONEDNN) == "0":
        return
    bench.say("looking whether oneDNN is to blame")
    with bench.talking_to(FreshLauncher({_ONEDNN: "0"}, finds_devices=False)) as dialogues:

        def dialogue(slug: str) -> Dialogue:
            subject = dialogues.start(bench.spec("memory", slug, memory_method="allocator"))
            right: list[bool] = []

            def take(said: messages.Said) -> None:
                if isinstance(said, messages.Checked):
                    right.append(said.correctness.ok)

            with contextlib.suppress(SubjectFailed):
                yield from dialogues.until(subject, messages.Measured, bench.settings.fresh_start_s, take)
            if right == [True]:
                bench.record.update(slug, warnings=[*bench.record[slug].warnings, advice.onednn()])
                bench.say(result=True)

        dialogues.hold(map(dialogue, suspected), at_once=2)


# --- latency ---------------------------------------------------------------------------------------------------------


def look_at_others(bench: Bench, watch: load.Watch, until_s: float) -> None:
    """Note what others have used of the processors since the watch began, or, where that is much and it is not yet
    ``until_s``, what they still use: a browser that draws its page is done a moment later, and is waited for; other
    programs go on."""
    cores = watch.cores_of_others(least_s=LOAD_WINDOW_S)
    for _ in range(_LOOKS_AGAIN):
        if cores > rules.BUSY_CORES and bench.dialogues.now_s < until_s:
            cores = min(cores, load.Watch().cores_of_others(least_s=LOAD_WINDOW_S))
    known = bench.record.run.environment
    bench.record.set_run(environment={**known, environment.LOAD_OF_OTHERS: round(cores, 2)})


@contextlib.contextmanager
def taking_turns(bench: Bench, budget_s: float) -> Iterator[Turns]:
    """Processes that take turns for a budget of seconds, and end in the end; it is noted who else is at work."""
    turns = Turns(bench, budget_s)
    watch = load.Watch()
    try:
        yield turns
        turns.end()
    finally:
        if warning := advice.busy_during(watch.cores_of_others()):
            bench.record.warn(warning)
        if warning := advice.held(watch.held()):
            bench.record.warn(warning)


# --- after the verdict -----------------------------------------------------------------------------------------------


def probe_limit(bench: Bench) -> None:
    """Measure what the device could do at best, by probes that have the machine to themselves. A failure here costs
    nothing else."""
    bench.say("probing the device for the limit")
    request, work = bench.request, limit.work(bench.case)
    few = limit.few_of(bench.case)
    counted = script.build(few, "loop.eager", threads=request.threads, allocator="default")

    def attempt() -> Part[messages.Probed]:
        spec = Spec(
            role="probes", script=counted, device=request.device, work=work, times=bench.case.batch / max(1, few.batch)
        )
        subject = bench.dialogues.start(spec)
        return (yield from bench.dialogues.until(subject, messages.Probed, bench.settings.fresh_start_s))

    def dialogue() -> Dialogue:
        try:
            probed = yield from bench.dialogues.undisturbed(attempt)
        except SubjectFailed as failure:
            bench.record.warn(advice.no_limit(failure.error.message))
        else:
            bench.record.set_run(limit=limit.limit(probed.work, probed.rates))

    bench.dialogues.hold([dialogue()])
    bench.record.analyse()
    bench.say(result=True)


def measure_process_peaks(bench: Bench, until_s: float) -> None:
    """Measure what the operating system sees of one call, the fastest strategies first, those that by forecast
    have ended at ``until_s``. A failure here costs nothing else."""
    if bench.on_gpu:
        bench.record.warn(advice.no_process_peak())
        bench.say(result=True)
        return
    bench.say("measuring what the operating system sees")
    left_out: list[str] = []

    def dialogue(slug: str) -> Dialogue:
        if bench.dialogues.now_s + bench.forecast.per_strategy[slug].first_call_s > until_s:
            left_out.append(slug)
            return
        bench.record.set_stage([slug], "process peak")
        subject = bench.dialogues.start(bench.spec("process_peak", slug))
        with contextlib.suppress(SubjectFailed):
            peak = yield from bench.step("process peak", slug, subject, messages.ProcessPeak)
            memory = bench.record[slug].memory
            if peak.bytes is not None and memory is not None:
                bench.record.update(slug, memory=replace(memory, process_peak_bytes=peak.bytes))
        bench.record.set_stage([slug], "done")

    working = (bench.record[slug] for slug in bench.record.working())
    measured = [item for item in working if item.memory is not None]
    measured.sort(key=lambda item: item.latency.median_s if item.latency else math.inf)
    slugs = [item.strategy for item in measured]
    costs = [bench.live_bytes(slug) for slug in slugs]
    bench.dialogues.hold(map(dialogue, slugs), at_once=2, costs=costs, room=bench.room_bytes())
    if left_out:
        bench.record.warn(advice.no_time_for_peaks(left_out))
