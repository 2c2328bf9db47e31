"""One comparison from its request to its verdict: which subjects run when, and what becomes of each strategy.

The stages, in order: the reference; memory and correctness, two subjects at a time; first calls, one at a time and
alone on the machine; rounds; the verdict; the limit; the process peaks; the reasons, where they are asked for. What is
known is published as it becomes known, and what was measured before a cancel, a crash or a timeout is kept.
"""

import contextlib
import os
import pickle
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import psutil
from msgspec.structs import replace

import strategies
from measure.engine import rounds
from measure.engine.dialogue import NATIVE_DEATHS, Cancelled, Dialogue, Dialogues, HostLost, SubjectFailed
from measure.engine.launchers import FreshLauncher, Launcher
from measure.engine.record import TWIN, Record, View
from measure.engine.sampling import Sampling
from measure.judge import advice, limit
from measure.machine import environment, load
from measure.model import forecast, why
from measure.model.place import utc_now
from measure.model.request import Request, case_of
from measure.model.roofline import Rates
from measure.model.run import Analysis, Correctness, Error, Memory, Run, Status, Warning
from measure.subject.subject import Spec
from strategies import planning, script
from strategies.spec import Plan

# Folders of jobs: the reference, as long as the job runs.
_CASE_PREFIX = "mapbench-case-"
# What a live subject takes of a GPU beside its tensors: CUDA's context, kernels and libraries.
_GPU_CONTEXT_BYTES = 600 * 2**20
# For how long what others use of the processors is watched before latencies are timed, at the least. Memory and
# correctness nearly always take longer, so that nobody waits for it.
_LOAD_WINDOW_S = 0.5
# A strategy that is forecast to need this share of the limit may run into it, for forecasts are right within a factor
# of 1.5. Each allocation that fails for good does so after 10 s (kMaxMillisToWait in tsl/framework/bfc_allocator.cc),
# and several may fail one after the other.
_TIGHT_SHARE = 0.5
_ALLOCATOR_WAITS_S = 35.0
_WAITING_AT_ONCE = 6
# Another allocator of a GPU's memory than TensorFlow's own, which alone reports its events.
_GPU_ALLOCATOR = "TF_GPU_ALLOCATOR"
# The first call of a why subject is traced, and what it compiles it compiles twice.
_EXPLAINING_TAKES = 3
# Read by TensorFlow when it is loaded; on a CPU, oneDNN is on unless it is 0.
_ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
# Without a limit of the request's, tensors of a memory subject may take what is available, and at least this.
_LEAST_LIMIT_MIB = 256


# Takes the ``why`` of a strategy with its artifacts; False where there is no use in going on.
Keep = Callable[[str, dict[str, Any], dict[str, bytes]], bool]


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
    probes: bool = True  # whether the limit is measured, after the verdict
    process_peaks_s: float = 20.0  # time for the process peaks, after the verdict; 0 leaves them out


def clear_leftovers() -> None:
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
        dialogues: Dialogues | None = None,
        keep: Keep | None = None,
    ) -> None:
        """``dialogues``: those of a larger job that this comparison is a part of; ``keep``: who takes the reasons;
        without, none are looked for."""
        self.request = request
        self._keep = keep
        self._launcher = launcher
        self._publish = publish
        self._settings = settings or Settings()
        self._dialogues = dialogues or Dialogues(launcher)
        self._further: Dialogues | None = None
        self._case = case_of(request)
        self._forecast = forecast.forecast_run(self._case, request.strategies, request.budget_s)
        run = Run(
            id=run_id,
            parent=parent,
            created=utc_now(),
            request=request.record(),
            analysis=Analysis(seed=rounds.seed(run_id)),
        )
        self._record = Record(run, {slug: self._script(slug) for slug in request.strategies})
        self._on_gpu = request.device.startswith("GPU")
        self._gpu_bytes: int | None = None
        self._made_case_dir: Path | None = None
        self._message = ""
        self._version = 0
        self._started_s: float | None = None
        self._watch: load.Watch | None = None

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
        self._open(time.monotonic())
        self._watch = load.Watch()
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
            self._remove_files()
        return self._close(status, reason)

    def _open(self, started_s: float) -> None:
        self._started_s = started_s
        self._made_case_dir = Path(tempfile.mkdtemp(prefix=f"{_CASE_PREFIX}{os.getpid()}-"))

    @property
    def _case_dir(self) -> Path:
        assert self._made_case_dir is not None, "nothing is measured before it is opened"
        return self._made_case_dir

    def _remove_files(self) -> None:
        """Remove the case's folder, if there is one by now: a job may end before it begins."""
        if self._made_case_dir is not None:
            shutil.rmtree(self._made_case_dir, ignore_errors=True)

    def _measure(self) -> tuple[Status, str]:
        if self._on_gpu:
            self._gpu_room()
        self._reference()
        self._known_limits()
        self._memory_stage(self._runnable())
        self._without_onednn()
        timed = [item.strategy for item in self._record.items() if item.outcome in ("ok", "wrong")]
        if timed:
            self._look_at_others()
        status, reason = self._time(timed, self.request, Sampling)
        self._record.set_stage(self._record.stages, "done")
        self._say(result=True)
        if self._settings.probes and any(item.latency for item in self._record.items()):
            self._limit()
        if self._settings.process_peaks_s:
            self._process_peaks()
        with contextlib.suppress(Cancelled):  # the verdict stands
            self._explain()
        return status, reason

    def _time(
        self, slugs: Iterable[str], request: Request, kind: Callable[..., Sampling], **more: Any
    ) -> tuple[Status, str]:
        """Sample latencies in the way that ``kind`` does; ``more`` goes to it."""
        rules, estimates = self._settings.rules, self._forecast.per_strategy
        sampling = kind(
            request,
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
            **more,
        )
        try:
            # The quickest first, so that a budget that is short leaves out what takes long.
            status, reason = sampling.run(
                sorted(slugs, key=lambda slug: estimates[slug].first_call_s + estimates[slug].latency_s)
            )
            sampling.end("decided" if status == "complete" else "budget")
        finally:
            sampling.end("cancelled" if self.cancelled else "interrupted")
        self._record.analyse()
        return status, reason

    def _close(self, status: Status, reason: str) -> Run:
        self._record.close(status, reason, utc_now())
        self._record.set_stage(self._record.stages, "done")
        self._say("finished", result=True)
        return self._record.run

    # --- stages ------------------------------------------------------------------------------------------------------

    def _look_at_others(self) -> None:
        """Note what others have used of the processors since the run began."""
        assert self._watch is not None
        cores = self._watch.cores_of_others(least_s=_LOAD_WINDOW_S)
        known = self._record.run.environment
        self._record.set_run(environment={**known, environment.LOAD_OF_OTHERS: round(cores, 2)})

    def _gpu_room(self) -> None:
        """Before any subject lives on it: what the GPU has left, which caps how many may live at once."""
        self._say("asking for the GPU's free memory")

        def dialogue() -> Dialogue:
            subject = self._dialogues.start(Spec(role="room", device=self.request.device))
            with contextlib.suppress(SubjectFailed):
                timeout_s = self._settings.timeout_floor_s + self._settings.fresh_start_s
                self._gpu_bytes = (yield from self._dialogues.until(subject, "room", timeout_s))["bytes"]

        self._dialogues.hold([dialogue()])

    def _reference(self) -> None:
        self._say("computing the reference")
        (self._case_dir / "expected.pickle").write_bytes(pickle.dumps(self._case.output))
        text = script.build_reference(self._case)

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

    def _memory_stage(self, slugs: list[str]) -> None:
        self._say("measuring memory and correctness")
        estimates = self._forecast.per_strategy
        # One method for all of TensorFlow's strategies: figures of two methods are not comparable.
        measured = [item.strategy for item in self._record.items() if item.error is None]
        events = max((estimates[slug].events for slug in measured), default=0)
        by_events = events <= self._settings.most_events and not (self._on_gpu and os.environ.get(_GPU_ALLOCATOR))
        # The quickest first, since a person wants to see a first outcome soon; then the longest, so that no slot idles
        # at the end.
        slugs = sorted(slugs, key=lambda slug: estimates[slug].first_call_s)
        order = slugs[:1] + slugs[:0:-1]
        needs = {slug: estimates[slug].peak_bytes + self._case.tensor_bytes for slug in order}
        limit_mib = self.request.memory_limit_mib or max(_LEAST_LIMIT_MIB, self._room_bytes() // 2**20)
        tight = {slug for slug in order if needs[slug] > _TIGHT_SHARE * limit_mib * 2**20}
        # TensorFlow waits for 10 s before an allocation fails: strategies that may have to wait do so together, last.
        for group, at_once in (([slug for slug in order if slug not in tight], 2), (sorted(tight), _WAITING_AT_ONCE)):
            self._dialogues.hold(
                (self._memory_dialogue(slug, by_events, limit_mib, slug in tight) for slug in group),
                at_once=at_once,
                costs=[min(needs[slug], limit_mib * 2**20) + self._process_bytes for slug in group],
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
            why = strategies.unsupported(strategies.parse(item.strategy), self._case.workload)
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

    def _runnable(self) -> list[str]:
        """Strategies that nothing speaks against as yet."""
        return [item.strategy for item in self._record.items() if item.outcome == "not_run"]

    def _suspects(self) -> list[str]:
        return [
            item.strategy
            for item in self._record.items()
            if item.outcome == "wrong" or (item.error is not None and item.error.type in NATIVE_DEATHS)
        ]

    def _without_onednn(self) -> None:
        """Runs what is wrong, or died in native code, once more in a fresh interpreter with oneDNN off: where that is
        right, the result says so. TensorFlow reads the setting when it is loaded, so a fork comes too late."""
        suspects = self._suspects()
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

    def _limit(self) -> None:
        """After the verdict: what the device could do at best, from probes that have the machine to themselves. A
        failure here costs nothing else."""
        self._say("probing the device for the limit")
        request = self.request
        work = limit.work(self._case)
        settings = script.build_settings(request.device, request.threads)

        def dialogue() -> Dialogue:
            subject = self._dialogues.start(Spec(role="probes", script=settings, device=request.device, work=work))
            start_s = self._settings.fresh_start_s if self._launcher.start_method == "fresh" else 0.0
            try:
                message = yield from self._dialogues.until(subject, "rates", self._settings.timeout_floor_s + start_s)
            except SubjectFailed as failure:
                self._record.warn(advice.no_limit(failure.error.message))
            else:
                self._record.set_run(limit=limit.limit(work, msgspec.convert(message["rates"], Rates)))

        self._dialogues.hold([dialogue()])
        self._record.analyse()
        self._say(result=True)

    def _process_peaks(self) -> None:
        """After the verdict: what the operating system sees of one call. A failure here costs nothing else."""
        if self._on_gpu:
            self._record.warn(advice.no_process_peak())
            self._say(result=True)
            return
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

    def _explain(self) -> None:
        """Last of all: what happens in a call of each strategy, one after another. A failure costs nothing else."""
        keep = self._keep
        if keep is None:
            return
        slugs = [
            item.strategy
            for item in self._record.items()
            if item.outcome in ("ok", "wrong") and not item.twin_of and why.known(item) is None
        ]

        def dialogue(number: int, slug: str) -> Dialogue:
            self._record.set_stage([slug], "explaining")
            self._say(f"explaining {slug}, {number + 1} of {len(slugs)}")
            folder = self._case_dir / f"why_{number}"
            folder.mkdir()
            subject = self._dialogues.start(self._spec("why", slug, artifacts=str(folder)))
            try:
                timeout_s = _EXPLAINING_TAKES * self._timeout_s(slug)
                message = yield from self._dialogues.until(subject, "why", timeout_s)
                found = why.read(message["why"])
            except SubjectFailed as failure:
                found = why.Why(note=failure.error.message[: why.MOST_NOTE])
            self._record.update(slug, why=why.written(found, self._record[slug].why))
            kept = keep(slug, self._record[slug].why, why.artifacts(folder))
            shutil.rmtree(folder)
            self._record.set_stage([slug], "done")
            self._say(result=True)
            if not kept:
                raise Cancelled

        self._dialogues.hold(dialogue(number, slug) for number, slug in enumerate(slugs))

    # --- parts -------------------------------------------------------------------------------------------------------

    def _script(self, slug: str) -> str:
        request = self.request
        return script.build(self._case, slug, threads=request.threads, memory_limit_mib=request.memory_limit_mib)

    def _spec(self, role: Any, slug: str, **more: Any) -> Spec:
        code = self._record[slug].code
        assert code is not None
        override = self._case.workload.tolerances.get(self._case.dtype)
        return Spec(
            role=role,
            script=code.source,
            name=slug.removesuffix(TWIN),
            mode=strategies.parse(slug.removesuffix(TWIN)).mode,
            device=self.request.device,
            case_dir=str(self._case_dir),
            depth=self._case.cost.depth,
            tolerance=None
            if override is None
            else {"relative": override.relative, "absolute": override.absolute, "reason": override.reason},
            input_bytes=self._case.input_bytes,
            captured_bytes=self._case.captured_bytes,
            **more,
        )

    def _plan(self, slug: str) -> Plan:
        return planning.plan(self._case, slug, self.request.memory_limit_mib)

    def _timeout_s(self, slug: str) -> float:
        estimate = self._forecast.per_strategy[slug.removesuffix(TWIN)]
        start_s = self._settings.fresh_start_s if self._launcher.start_method == "fresh" else 0.0
        return self._settings.timeout_floor_s + start_s + 10 * (estimate.first_call_s + 3 * estimate.latency_s)

    def _room_bytes(self) -> int:
        """What subjects that live at the same time may take together, of the GPU's memory and of the machine's."""
        available = environment.available_memory()
        if self._gpu_bytes is not None:
            available = min(available, self._gpu_bytes)
        return int(self._settings.memory_share * available)

    @property
    def _process_bytes(self) -> int:
        return _GPU_CONTEXT_BYTES if self._on_gpu else forecast.PROCESS_BYTES

    def _live_bytes(self, slug: str) -> int:
        """What a subject of this strategy takes while it lives, by what was measured or else by forecast."""
        memory = self._record[slug.removesuffix(TWIN)].memory
        peak_bytes = memory.peak_bytes if memory else self._forecast.per_strategy[slug.removesuffix(TWIN)].peak_bytes
        return self._process_bytes + peak_bytes + self._case.read_bytes

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
        )
