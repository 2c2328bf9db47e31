"""One comparison from its request to its verdict: the stages in their order, and how it ends.

The order: the reference; memory and correctness, two subjects at a time; latency, of processes that take turns, one at
a time and alone on the machine; the verdict; the limit; the process peaks; the reasons, where they are asked for.
Results are published as they arrive, and what was measured before a cancel, a crash or a timeout stays. A strategy that
fails costs only its own outcome.
"""

import contextlib
import math
import os
import pickle
from functools import partial

from msgspec.structs import replace

import strategies
from measure.engine import explanation
from measure.engine.bench import FRESH_START_S, REFERENCE, UNTIMED, Bench, here
from measure.engine.record import original
from measure.engine.turns import Turns
from measure.judge import analysis, limit, warnings
from measure.machine import environment, load
from measure.pool.clock import TimeIsUp
from measure.pool.dialogue import HOST_LOST, Cancelled, Dialogue, HostLost, Part, SubjectFailed
from measure.run import forecast
from measure.run.place import utc_now
from measure.run.request import ALLOCATOR_WAITS_S
from measure.run.run import TIME_OVER, Error, Run, Status, Warning
from measure.subject import messages
from measure.subject.messages import Spec
from strategies import chunks, own_script, script
from workloads.spec import Workload

# Memory and correctness are begun within this share of the budget, so that there is time for latencies; process peaks
# where they end by forecast within so many seconds after the budget.
_MEMORY_SHARE, _AFTER_S = 0.65, 1.5
# So many memory subjects live at a time under a limit, where TensorFlow waits for 10 s before an allocation fails.
_WAITING_AT_ONCE = 6
# Events of an eager or graph loop grow with the batch; beyond this many the profiler's file gets too large.
_MOST_EVENTS = 50_000
# Another allocator of a GPU's memory than TensorFlow's own, which alone reports its events.
_GPU_ALLOCATOR = "TF_GPU_ALLOCATOR"
# For how long what others use of the processors is watched before latencies are timed, at the least. Memory and
# correctness nearly always take longer, so that nobody waits for it.
LOAD_WINDOW_S = 0.5


class Comparison(Bench):
    """Runs one request. `run` blocks; `cancel` and `stop` may be called from any thread."""

    turns = Turns  # who takes them

    def run(self) -> Run:
        """Measure, and return the finished run. Does not raise for what a strategy, the host or a person did."""
        status: Status
        with self.opened():
            about = here(self.launcher, self.request.threads) | {**self.launcher.facts}
            self.record = replace(self.record, started=utc_now(), environment=about)
            try:
                status, reason = self._measure()
            except Cancelled:
                status, reason = "cancelled", "cancelled by a person"
            except TimeIsUp:
                status, reason = "budget", f"{self.clock.over} before everything was measured"
            except HostLost:
                status, reason = "interrupted", HOST_LOST
        return self.close(status, reason)

    def close(self, status: Status, reason: str) -> Run:
        """Settle what is open, and publish the run as finished."""
        if self.clock.still_s:
            self.warn(warnings.warning("stood_still", seconds=round(self.clock.still_s, 1)))
        for item in self.record.measurements if status in ("complete", "budget") else ():
            is_open = item.outcome in ("ok", "not_run") and not item.error and not item.twin_of
            if is_open and not item.is_timed:
                self.update(item.strategy, error=Error(type=TIME_OVER, message=UNTIMED))
        self.record = analysis.close(self.record, status, reason, utc_now())
        self.stages = dict.fromkeys(self.stages, "done")
        self.say("finished", result=True)
        return self.record

    def _measure(self) -> tuple[Status, str]:
        watch, begun_s = load.Watch(), self.clock.now_s
        self.look_at_values(begun_s + _MEMORY_SHARE * self.max_budget_s)
        working = self.fastest_first(self.working())
        if working:
            self._look_at_others(watch)
        turns = self.turns(self, begun_s + self.budget_s, begun_s + self.max_budget_s)
        self.watch = load.Watch()
        try:
            status, reason = turns.race(working)
            turns.end()
        finally:
            for warning in warnings.of_load(self.watch.cores_of_others(), self.watch.held()):
                self.warn(warning)
        self.stages = dict.fromkeys(self.stages, "done")
        self.say(result=True)
        try:  # what is shown beside the verdict, which stands: no failure here costs anything else
            if self.settings.probes and any(item.latency for item in self.record.measurements):
                self._probe_limit()
            if self.settings.process_peaks:
                self._measure_process_peaks(max(self.clock.now_s, begun_s + self.budget_s) + _AFTER_S)
            if self.keep is not None:
                with contextlib.suppress(Cancelled):
                    explanation.explain(self)
        except TimeIsUp:
            self.warn(warnings.warning("cut_short", over=self.clock.over))
        return status, reason

    # --- memory and correctness --------------------------------------------------------------------------------------

    def look_at_values(self, until_s: float = math.inf) -> None:
        """Measure memory and check values of all strategies; none is begun after ``until_s``."""
        if self.on_gpu:
            # Before any subject lives there: what it has left caps how many may live at once.
            self.say("asking for the GPU's free memory")
            with contextlib.suppress(SubjectFailed):
                spec = Spec(role="room", device=self.request.device)
                self.gpu_bytes = self.dialogues.ask(spec, messages.Room, FRESH_START_S).bytes
        self._compute_reference()
        for item in self.record.measurements:
            strategy = strategies.parse(original(item.strategy))
            reason = strategies.unsupported(strategy, self.workload_of(item.strategy))
            if reason is not None and item.outcome == "not_run":
                failure = SubjectFailed("unsupported", Error(type="Unsupported", message=reason))
                self.fail(item.strategy, "request", failure)
        self._measure_memory(until_s)

    def workload_of(self, slug: str) -> Workload:
        return self.case.workload

    def _compute_reference(self) -> None:
        """Compute the values that strategies are checked against; without them, every strategy fails."""
        self.say("computing the reference")
        case = self.case
        only = case.workload.own is not None and own_script.facts(case).reference == "shapes"
        expected = {"expected": case.output, "depth": case.cost.depth, "shapes_only": only}
        (self.folder / "expected.pickle").write_bytes(pickle.dumps(expected))
        spec = Spec(role="reference", script=self.reference_script, name=REFERENCE, case_dir=str(self.folder))
        try:
            self.dialogues.ask(spec, messages.Saved, launcher=self.launcher_of(REFERENCE))
        except SubjectFailed as failure:
            message = f"the reference could not be computed: {failure.error.message}"
            failed = SubjectFailed(failure.outcome, replace(failure.error, message=message))
            for item in self.record.measurements:
                self.fail(item.strategy, "reference", failed)
        if (number := script.compared(self.case)) < self.case.batch:
            self.warn(warnings.warning("some_compared", compared=number, batch=self.case.batch))

    def _measure_memory(self, until_s: float) -> None:
        self.say("measuring memory and correctness")
        estimates = self.forecast.per_strategy
        items = [item for item in self.record.measurements if item.outcome == "not_run" and item.error is None]
        slugs = self.quickest_first(item.strategy for item in items)
        # One method for all of TensorFlow's strategies: figures of two methods are not comparable.
        events = max((estimates[original(slug)].events for slug in slugs), default=0)
        by_events = events <= _MOST_EVENTS and not (self.on_gpu and os.environ.get(_GPU_ALLOCATOR))
        asked_mib = self.request.memory_limit_mib
        limit_mib = asked_mib or self.room_bytes() // 2**20
        needs = [estimates[original(slug)].peak_bytes + self.case.tensor_bytes for slug in slugs]
        at_once = self.at_once(
            (min(need, limit_mib * 2**20) + self.process_bytes for need in needs),
            _WAITING_AT_ONCE if asked_mib else forecast.AT_ONCE,
        )
        if asked_mib:
            until_s += ALLOCATOR_WAITS_S
        self.dialogues.hold((self._memory_of(slug, by_events, limit_mib, until_s) for slug in slugs), at_once)

    def _memory_of(self, slug: str, by_events: bool, limit_mib: int, until_s: float) -> Dialogue:
        if self.clock.now_s > until_s:
            return
        self.stages[slug] = "memory"
        method: str = strategies.mapper(self[slug].mapper).memory
        method = method if by_events or method == "tracemalloc" else "allocator"

        def attempt() -> Part[messages.Anew]:
            subject = self.start("memory", slug, memory_method=method, memory_limit_mib=limit_mib)
            return (yield from self.step(slug, subject, messages.Anew, partial(self._take, slug)))

        try:
            anew = yield from self.dialogues.undisturbed(attempt)
            if given := warnings.compiled_values(anew.traces, anew.compilations):
                self.update(slug, warnings=[*self[slug].warnings, *given])
        except SubjectFailed as failure:
            # One that fails only after that will fail where it is timed, or was not asked to take new values.
            if self[slug].memory is None:
                self.fail(slug, "memory", failure)
                return
        self.stages[slug] = "waiting"
        self.say(result=True)

    def _take(self, slug: str, message: messages.Said) -> None:
        """Take in what a memory subject says on its way, at once: whoever ends all now loses nothing of it."""
        match message:
            case messages.Checked(correctness=check):
                wrong = None if check.ok else Error(type="WrongValues", message=message.sentence or "")
                self.update(slug, stage="memory", correctness=check, error=wrong)
            case messages.Measured():
                given = warnings.of_tensorflow(message.fallbacks, message.retraces)
                strategy, limit_mib = strategies.parse(original(slug)), self.request.memory_limit_mib
                if chosen := chunks.chosen(self.case, strategy, limit_mib):  # what the request left open
                    given.insert(0, Warning(code="chosen", message=chosen[1], values={"chunk": chosen[0]}))
                outcome, case = "wrong" if self[slug].error else "ok", self.case
                memory = replace(message.memory, input_bytes=case.input_bytes, captured_bytes=case.captured_bytes)
                self.update(slug, outcome=outcome, memory=memory, warnings=given)
            case messages.Rough(seconds=seconds):
                self.update(slug, rough_s=seconds)
        self.say(result=True)

    # --- beside the latencies ----------------------------------------------------------------------------------------

    def _look_at_others(self, watch: load.Watch) -> None:
        """Note what others have used of the processors since the watch began, or, where that is much, what they still
        use: a browser that draws its page is done a moment later, and other programs go on."""
        cores = watch.cores_of_others(least_s=LOAD_WINDOW_S)
        if cores > warnings.BUSY_CORES:
            cores = min(cores, load.Watch().cores_of_others(least_s=LOAD_WINDOW_S))
        about = {**self.record.environment, environment.LOAD_OF_OTHERS: round(cores, 2)}
        self.record = replace(self.record, environment=about)

    def _probe_limit(self) -> None:
        """Measure what the device could do at best, by probes that have the machine to themselves."""
        self.say("probing the device for the limit")
        few = limit.few_of(self.case)
        spec = Spec(
            role="probes",
            script=script.build(few, "loop.eager", threads=self.request.threads, allocator="default"),
            device=self.request.device,
            work=limit.work(self.case),
        )
        try:
            probed = self.dialogues.ask(spec, messages.Probed, FRESH_START_S)
        except SubjectFailed as failure:
            self.warn(warnings.warning("no_limit", reason=failure.error.message.rstrip(".")))
        else:
            # Where the work of an op is not known, none counts.
            flops = 0 if probed.unknown else round(probed.flops * self.case.batch / max(1, few.batch))
            work = replace(limit.work(self.case), flops=flops, unknown=probed.unknown)
            self.record = replace(self.record, limit=limit.limit(work, probed.rates))
        self.analyse()

    def _measure_process_peaks(self, until_s: float) -> None:
        """Measure what the operating system sees of one call, the fastest strategies first, of those that by forecast
        have ended at ``until_s``."""
        if self.on_gpu:
            self.warn(warnings.warning("no_process_peak"))
            return
        self.say("measuring what the operating system sees")
        left_out: list[str] = []

        def dialogue(slug: str) -> Dialogue:
            if self.clock.now_s + self.forecast.per_strategy[slug].first_call_s > until_s:
                left_out.append(slug)
                return
            self.stages[slug] = "process peak"
            subject = self.start("process_peak", slug)
            try:
                peak, memory = (yield from self.step(slug, subject, messages.ProcessPeak)), self[slug].memory
                if memory is not None:
                    self.update(slug, memory=replace(memory, process_peak_bytes=peak.bytes))
            except SubjectFailed as failure:
                if failure.error.type == TIME_OVER:
                    left_out.append(slug)
            self.stages[slug] = "done"

        latencies_s = {item.strategy: item.latency.median_s for item in self.record.measurements if item.latency}
        slugs = sorted(self.working(), key=lambda slug: latencies_s.get(slug, math.inf))
        self.dialogues.hold(map(dialogue, slugs), self.at_once(map(self.live_bytes, slugs)))
        if left_out:
            self.warn(warnings.warning("no_time_for_peaks", strategies=left_out))
