"""One comparison from its request to its verdict: which subjects run when, and what becomes of each strategy.

The stages, in order: the reference; memory and correctness, two subjects at a time; first calls, one at a time and
alone on the machine; rounds; the verdict; the process peaks. What is known is published as it becomes known, and what
was measured before a cancel, a crash or a timeout is kept.
"""

import contextlib
import os
import pickle
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import psutil
from msgspec.structs import replace

import strategies
import workloads
from measure import advice, environment, forecast, rounds
from measure.clock import utc_now
from measure.dialogue import NATIVE_DEATHS, Cancelled, Dialogue, Dialogues, HostLost, SubjectFailed
from measure.processes import FreshLauncher, Launcher
from measure.record import TWIN, Record, View
from measure.request import Request
from measure.run import Correctness, Error, Memory, Run, Status, Warning
from measure.sampling import Sampling
from measure.subject import Spec
from strategies import planning, script
from strategies.spec import Plan

# Folders of jobs: the reference, as long as the job runs.
_CASE_PREFIX = "mapbench-case-"
# What a live subject takes beside its tensors: private pages of the runtime, graphs and code.
_PROCESS_BYTES = 120 * 2**20
# How long the use of the processors by others is watched before a run.
_LOAD_WINDOW_S = 0.1
# A strategy that is forecast to need this share of the limit may run into it, for forecasts are right within a factor
# of 1.5. Each allocation that fails for good does so after 10 s (kMaxMillisToWait in tsl/framework/bfc_allocator.cc),
# and several may fail one after the other.
_TIGHT_SHARE = 0.5
_ALLOCATOR_WAITS_S = 35.0
_WAITING_AT_ONCE = 6
# Read by TensorFlow when it is loaded; on a CPU, oneDNN is on unless it is 0.
_ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
# Without a limit of the request's, tensors of a memory subject may take what is available, and at least this.
_LEAST_LIMIT_MIB = 256


@dataclass(frozen=True)
class Settings:
    """Limits of a run that are no part of the request."""

    rules: rounds.Rules = field(default_factory=rounds.Rules)
    # A strategy that takes longer than this plus ten times its forecast, in any one step, is given up.
    timeout_floor_s: float = 10.0
    fresh_start_s: float = 30.0  # what a fresh interpreter may take in addition, to import TensorFlow
    # Events of an eager or graph loop grow with the batch; beyond this many the profiler's file gets too large.
    most_events: int = 50_000
    # Of the available memory, what subjects that live at the same time may take together.
    memory_share: float = 0.7
    process_peaks_s: float = 20.0  # time for the process peaks, after the verdict; 0 leaves them out


def sweep() -> None:
    """Remove what jobs of processes that have died left in the folder for temporary files."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_CASE_PREFIX}*-*"):
        pid = folder.name.removeprefix(_CASE_PREFIX).partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


class Comparison:
    """Runs one request. `run` blocks; `cancel` may be called from any thread; ``publish`` gets every `View`."""

    def __init__(
        self,
        run_id: str,
        request: Request,
        launcher: Launcher,
        publish: Callable[[View], None],
        *,
        settings: Settings | None = None,
        parent: str | None = None,
    ) -> None:
        self.request = request
        self._launcher = launcher
        self._publish = publish
        self._settings = settings or Settings()
        self._dialogues = Dialogues(launcher)
        self._further: Dialogues | None = None
        self._workload = workloads.get(request.workload).variant(request.workload_options)
        self._bytes = forecast.case_bytes(self._workload, request.size, request.dtype, request.workload_options)
        self._cost = self._call(self._workload.cost)
        self._forecast = forecast.forecast_run(
            self._workload,
            request.size,
            request.dtype,
            request.strategies,
            request.workload_options,
            request.budget_s,
        )
        run = Run(id=run_id, parent=parent, created=utc_now(), request=request.record())
        self._record = Record(run, {slug: self._script(slug) for slug in request.strategies})
        self._case_dir = Path()
        self._message = ""
        self._version = 0
        self._started_s: float | None = None

    def view(self) -> View:
        stages = dict(self._record.stages)
        return View(self._record.run, stages, self._message, self._version, self._started_s, self._forecast.seconds)

    def cancel(self) -> None:
        self._dialogues.cancel()
        if self._further is not None:
            self._further.cancel()

    @property
    def cancelled(self) -> bool:
        return self._dialogues.cancelled

    def warn(self, warning: Warning) -> None:
        """Add a warning about the run as a whole."""
        self._record.warn(warning)

    def run(self) -> Run:
        """Measure, and return the finished run. Does not raise for what a strategy, the host or a person did."""
        self._started_s = time.monotonic()
        self._case_dir = Path(tempfile.mkdtemp(prefix=f"{_CASE_PREFIX}{os.getpid()}-"))
        status: Status
        try:
            self._record.set_run(started=utc_now(), environment=self._environment())
            status, reason = self._measure()
        except Cancelled:
            status, reason = "cancelled", "cancelled by a person"
        except HostLost:
            status, reason = "interrupted", "the measuring process ended unexpectedly; what was measured is kept"
        finally:
            self._dialogues.end()
            shutil.rmtree(self._case_dir, ignore_errors=True)
        return self._close(status, reason)

    def _measure(self) -> tuple[Status, str]:
        self._reference()
        self._known_limits()
        self._memory_stage()
        self._without_onednn()
        rules, estimates = self._settings.rules, self._forecast.per_strategy
        sampling = Sampling(
            self.request,
            rules.with_fresh_interpreters() if self._launcher.start_method == "fresh" else rules,
            self._record,
            self._dialogues,
            self._say,
            spec=lambda slug: self._spec("timing", slug),
            timeout_s=self._timeout_s,
            live_bytes=self._live_bytes,
            room_bytes=self._room_bytes,
            started_s=self._started_s or time.monotonic(),
            sample_timeout_floor_s=self._settings.timeout_floor_s,
        )
        try:
            timed = [item.strategy for item in self._record.items() if item.outcome in ("ok", "wrong")]
            # The quickest first, so that a budget that is short leaves out what takes long.
            timed.sort(key=lambda slug: estimates[slug].first_call_s + estimates[slug].latency_s)
            status, reason = sampling.run(timed)
            sampling.end("decided" if status == "complete" else "budget")
        finally:
            sampling.end("cancelled" if self.cancelled else "interrupted")
        self._record.analyse()
        self._record.set_stage(self._record.stages, "done")
        self._say(result=True)
        if self._settings.process_peaks_s:
            self._process_peaks()
        return status, reason

    def _close(self, status: Status, reason: str) -> Run:
        self._record.close(status, reason, utc_now())
        self._record.set_stage(self._record.stages, "done")
        self._say("finished", result=True)
        return self._record.run

    # --- stages ------------------------------------------------------------------------------------------------------

    def _reference(self) -> None:
        self._say("computing the reference")
        request = self.request
        expected = self._workload.result(request.size, request.dtype, request.seed, request.workload_options)
        (self._case_dir / "expected.pickle").write_bytes(pickle.dumps(expected))
        text = script.build_reference(
            self._workload,
            self.request.size,
            self.request.dtype,
            seed=self.request.seed,
            options=self.request.workload_options,
        )

        def dialogue() -> Dialogue:
            spec = Spec(role="reference", script=text, name="reference", case_dir=str(self._case_dir))
            subject = self._dialogues.start(spec)
            try:
                yield from self._dialogues.until(subject, "saved", max(60.0, self.request.budget_s))
            except SubjectFailed as failure:
                message = f"the reference could not be computed: {failure.error.message}"
                for item in self._record.items():
                    self._fail(
                        item.strategy,
                        "reference",
                        SubjectFailed(failure.outcome, replace(failure.error, message=message)),
                    )

        self._dialogues.hold([dialogue()])

    def _memory_stage(self) -> None:
        self._say("measuring memory and correctness")
        estimates = self._forecast.per_strategy
        slugs = [item.strategy for item in self._record.items() if item.outcome == "not_run"]
        # One method for all of TensorFlow's strategies: figures of two methods are not comparable.
        events = max((estimates[slug].events for slug in slugs), default=0)
        by_events = events <= self._settings.most_events
        # The quickest first, since a person wants to see a first outcome soon; then the longest, so that no slot idles
        # at the end.
        slugs.sort(key=lambda slug: estimates[slug].first_call_s)
        order = slugs[:1] + slugs[:0:-1]
        needs = {slug: estimates[slug].peak_bytes + sum(self._bytes) for slug in order}
        limit_mib = self.request.memory_limit_mib or max(_LEAST_LIMIT_MIB, self._room_bytes() // 2**20)
        tight = {slug for slug in order if needs[slug] > _TIGHT_SHARE * limit_mib * 2**20}
        # TensorFlow waits for 10 s before an allocation fails: strategies that may have to wait do so together, last.
        for group, at_once in (([slug for slug in order if slug not in tight], 2), (sorted(tight), _WAITING_AT_ONCE)):
            self._dialogues.hold(
                (self._memory_dialogue(slug, by_events, limit_mib, slug in tight) for slug in group),
                at_once=at_once,
                costs=[min(needs[slug], limit_mib * 2**20) + _PROCESS_BYTES for slug in group],
                room=self._room_bytes(),
            )

    def _memory_dialogue(self, slug: str, by_events: bool, limit_mib: int, tight: bool) -> Dialogue:
        self._record.set_stage([slug], "memory")
        method: str = strategies.mapper(self._record[slug].mapper).memory
        if method != "tracemalloc" and not by_events:
            method = "allocator"
        spec = self._spec("memory", slug, memory_method=method, memory_limit_mib=limit_mib)
        subject = self._dialogues.start(spec)
        timeout_s = self._timeout_s(slug) + (_ALLOCATOR_WAITS_S if tight else 0.0)

        def take(message: dict[str, Any]) -> None:
            if message["event"] == "checked":
                check = msgspec.convert(message["correctness"], Correctness)
                self._record.update(slug, stage="memory", correctness=check)
                if not check.ok:
                    self._record.update(slug, error=Error(type="WrongValues", message=message["sentence"]))

        try:
            message = yield from self._dialogues.until(subject, "memory", timeout_s, take)
        except SubjectFailed as failure:
            self._fail(slug, "memory", failure)
            return
        check = self._record[slug].correctness
        self._record.update(
            slug,
            outcome="ok" if check is not None and check.ok else "wrong",
            stage="memory",
            memory=msgspec.convert(message["memory"], Memory),
            warnings=[*self._choices(slug), *advice.of_strategy(message["said"], message["retraces"])],
        )
        self._record.set_stage([slug], "waiting")
        self._say(result=True)

    def _known_limits(self) -> None:
        """Strategies that cannot work, with the reason: nothing is started for them."""
        for item in self._record.items():
            why = strategies.unsupported(strategies.parse(item.strategy), self._workload)
            if why is not None and item.outcome == "not_run":
                self._fail(
                    item.strategy, "request", SubjectFailed("unsupported", Error(type="Unsupported", message=why))
                )

    def _choices(self, slug: str) -> list[Warning]:
        """What the mapper chose where the request left it open."""
        strategy = strategies.parse(slug)
        mapper, plan = strategies.mapper(strategy.mapper), self._plan(slug)
        chosen = planning.chosen(plan, strategy)
        return [advice.chosen(mapper.reason(plan, chosen), chosen)] if chosen and mapper.reason else []

    def _without_onednn(self) -> None:
        """Runs what is wrong, or died in native code, once more in a fresh interpreter with oneDNN off: where that is
        right, the result says so. TensorFlow reads the setting when it is loaded, so a fork comes too late."""
        suspects = [
            item.strategy
            for item in self._record.items()
            if item.outcome == "wrong" or (item.error is not None and item.error.type in NATIVE_DEATHS)
        ]
        if not suspects or self.request.device != "CPU:0" or os.environ.get(_ONEDNN) == "0":
            return
        self._say("looking whether oneDNN is to blame")
        launcher = FreshLauncher({_ONEDNN: "0"}, finds_devices=False)
        dialogues = self._further = Dialogues(launcher)

        def dialogue(slug: str) -> Dialogue:
            subject = dialogues.start(self._spec("memory", slug, memory_method="allocator"))
            right: list[bool] = []

            def take(message: dict[str, Any]) -> None:
                if message["event"] == "checked":
                    right.append(message["correctness"]["ok"])

            with contextlib.suppress(SubjectFailed):
                timeout_s = self._timeout_s(slug) + self._settings.fresh_start_s
                yield from dialogues.until(subject, "memory", timeout_s, take)
            if right == [True]:
                self._record.update(slug, warnings=[*self._record[slug].warnings, advice.onednn()])
                self._say(result=True)

        try:
            if self.cancelled:
                raise Cancelled
            dialogues.hold(map(dialogue, suspects), at_once=2)
        finally:
            dialogues.end()
            launcher.close()

    def _process_peaks(self) -> None:
        """After the verdict: what the operating system sees of one call. A failure here costs nothing else."""
        end = time.monotonic() + self._settings.process_peaks_s
        self._say("measuring what the operating system sees")

        def dialogue(slug: str) -> Dialogue:
            if time.monotonic() > end:
                return
            self._record.set_stage([slug], "process peak")
            subject = self._dialogues.start(self._spec("process_peak", slug))
            with contextlib.suppress(SubjectFailed):
                message = yield from self._dialogues.until(subject, "process_peak", self._timeout_s(slug))
                memory = self._record[slug].memory
                if message["bytes"] is not None and memory is not None:
                    self._record.update(slug, memory=replace(memory, process_peak_bytes=message["bytes"]))
            self._record.set_stage([slug], "done")

        slugs = [
            item.strategy
            for item in self._record.items()
            if item.memory is not None and not item.twin_of and item.outcome in ("ok", "wrong")
        ]
        costs = [self._live_bytes(slug) for slug in slugs]
        self._dialogues.hold(map(dialogue, slugs), at_once=2, costs=costs, room=self._room_bytes())

    # --- parts -------------------------------------------------------------------------------------------------------

    def _call(self, function: Callable[..., Any]) -> Any:
        """A function of the workload, called with this case's sizes, dtype and options."""
        request = self.request
        return self._workload.call(function, request.size, request.dtype, request.seed, request.workload_options)

    def _script(self, slug: str) -> str:
        request = self.request
        return script.build(
            self._workload,
            request.size,
            request.dtype,
            request.device,
            slug,
            seed=request.seed,
            options=request.workload_options,
            threads=request.threads,
            memory_limit_mib=request.memory_limit_mib,
        )

    def _spec(self, role: Any, slug: str, **more: Any) -> Spec:
        code = self._record[slug].code
        assert code is not None
        override = self._workload.tolerances.get(self.request.dtype)
        return Spec(
            role=role,
            script=code.source,
            name=slug.removesuffix(TWIN),
            mode=strategies.parse(slug.removesuffix(TWIN)).mode,
            device=self.request.device,
            case_dir=str(self._case_dir),
            depth=self._cost.depth,
            tolerance=None
            if override is None
            else {"relative": override.relative, "absolute": override.absolute, "reason": override.reason},
            input_bytes=self._bytes[0],
            captured_bytes=self._bytes[2],
            **more,
        )

    def _plan(self, slug: str) -> Plan:
        request = self.request
        return planning.plan(
            self._workload,
            request.size,
            request.dtype,
            slug,
            request.workload_options,
            request.device,
            request.memory_limit_mib,
        )

    def _timeout_s(self, slug: str) -> float:
        estimate = self._forecast.per_strategy[slug.removesuffix(TWIN)]
        start_s = self._settings.fresh_start_s if self._launcher.start_method == "fresh" else 0.0
        return self._settings.timeout_floor_s + start_s + 10 * (estimate.first_call_s + 3 * estimate.latency_s)

    def _room_bytes(self) -> int:
        return int(self._settings.memory_share * environment.available_memory())

    def _live_bytes(self, slug: str) -> int:
        """What a subject of this strategy takes while it lives, by what was measured or else by forecast."""
        memory = self._record[slug.removesuffix(TWIN)].memory
        peak_bytes = memory.peak_bytes if memory else self._forecast.per_strategy[slug.removesuffix(TWIN)].peak_bytes
        input_bytes, _, captured_bytes = self._bytes
        return _PROCESS_BYTES + peak_bytes + input_bytes + captured_bytes

    def _fail(self, slug: str, stage: str, failure: SubjectFailed) -> None:
        """Give a strategy the outcome that ended it; what was measured of it stays."""
        self._record.update(slug, outcome=failure.outcome, stage=stage, error=failure.error)
        self._record.set_stage([slug], "done")
        self._say(result=True)

    def _say(self, message: str | None = None, result: bool = False) -> None:
        if message is not None:
            self._message = message
        self._version += result
        self._publish(self.view())

    def _environment(self) -> dict[str, Any]:
        return environment.collect(
            start_method=self._launcher.start_method,
            threads=self.request.threads,
            tensorflow=self._launcher.state().details or {},
            load_window_s=_LOAD_WINDOW_S,
        )
