"""The bench: what all stages of measuring one case share, and what a watcher sees of them."""

import contextlib
import math
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil

import strategies
from measure.engine.record import Record, View, original, seed_of
from measure.judge import advice
from measure.machine import environment
from measure.model import deadline, forecast
from measure.model.place import utc_now
from measure.model.request import Request, case_of, script_of
from measure.model.run import Analysis, Error, Run, Stage, Status, Warning
from measure.pool.clock import Clock
from measure.pool.dialogue import TIME_OVER, Cancelled, Dialogues, Part, SubjectFailed
from measure.pool.launcher import Event, Launcher
from measure.subject.messages import Said, Spec
from strategies import own_script, script

# Folders of benches: the reference and what subjects leave, as long as the bench is open.
_FOLDER_PREFIX = "mapbench-case-"
_UNTIMED = "not timed, since the time budget was spent: a longer one leaves it some"
# What a live subject takes of a GPU beside its tensors: CUDA's context, kernels and libraries.
_GPU_CONTEXT_BYTES = 600 * 2**20
# CUDA's context, and what libraries load and tune at their first call.
_GPU_START_S = 10.0
# A step is a timeout where it takes so many times as long as the same step of the others, by their forecasts.
_FAR = 10.0
# With two at a time, and a third one that is chosen beforehand, so many are begun before it is known how fast this is.
_QUICKEST_FIRST = 3
# Where all takes so many times as long as forecast, time is taken to be short.
_SLOW = 2.0
# How often that is looked at while a step goes on.
_LOOK_S = 0.5
# Fresh interpreters of a strategy, each of which imports TensorFlow for so long, come on top of what was forecast.
_FRESH_S, _FRESH_PROCESSES = 6.0, 3

S = TypeVar("S", bound=Said)


@dataclass(frozen=True)
class Settings:
    """Limits of a run that are no part of the request."""

    most_processes: int = 5  # of a strategy that may lead
    timeout_floor_s: float = 5.0  # no strategy is given up sooner
    fresh_start_s: float = 30.0  # what a fresh interpreter may take in addition, to import TensorFlow
    # Events of an eager or graph loop grow with the batch; beyond this many the profiler's file gets too large.
    most_events: int = 50_000
    # Of the available memory, what subjects that live at the same time may take together.
    memory_share: float = 0.7
    most_bytes: int | None = None  # the same for a run, where its memory is limited
    controls: bool = True  # the leader's twin, the default allocator and oneDNN off are tried beside the strategies
    probes: bool = True  # the limit is measured, after the verdict
    process_peaks: bool = True  # and so is what the operating system sees
    after_s: float = 1.5  # within this after the budget, process peaks end by forecast
    bound_s: float | None = None  # the run ends within this, whatever it is doing; None: 1.5 times what it is said to


def clear_leftovers() -> None:
    """Remove the folders that benches of processes that have died left among the temporary files."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*-*"):
        pid = folder.name.removeprefix(_FOLDER_PREFIX).partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


class Bench:
    """One case with its strategies: what is asked and known, who talks to its subjects, and where its files lie.

    ``publish`` gets every `View`. `cancel` may be called from any thread, all else belongs to the job's.
    """

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
        """``parent``: the run that this one repeats. Raises `ScriptError` where the sources of the workload, its
        reference and a mapper do not make scripts."""
        self.request, self.launcher = request, launcher
        self.settings = settings or Settings()
        fresh_s = _FRESH_S * _FRESH_PROCESSES * len(request.strategies) if launcher.start_method == "fresh" else 0.0
        bound_s = self.settings.bound_s or deadline.of_comparison(request) + deadline.of(fresh_s)
        self.dialogues = Dialogues(launcher, Clock(bound_s))
        self.clock = self.dialogues.clock
        # Step → strategy → the seconds that its last one took, as a multiple of the forecast.
        self._paces: dict[str, dict[str, float]] = {}
        self.case = case_of(request)
        self.reference_script = script.build_reference(self.case)
        self.forecast = forecast.forecast_run(self.case, request.strategies, request.budget_s)
        run = Run(
            id=run_id,
            parent=parent,
            created=utc_now(),
            request=request.record(),
            analysis=Analysis(seed=seed_of(run_id)),
            digest={},
        )
        self.record = Record(run, {slug: script_of(request, slug) for slug in request.strategies})
        self.on_gpu = request.device.startswith("GPU")
        self.gpu_bytes: int | None = None  # what TensorFlow may take of the GPU, as far as it is known
        self.started_s: float | None = None
        # A person wants no more than there is: sampling ends with the turn that goes on.
        self.stopped = False
        self._publish, self._message, self._version = publish, "", 0
        self._round_number: int | None = None
        self._folder: Path | None = None
        self._further: Dialogues | None = None

    # --- the watcher's side ------------------------------------------------------------------------------------------

    def view(self) -> View:
        record = self.record
        return View(
            record.run, dict(record.stages), self._message, self._version, self.started_s, self.forecast.seconds,
            self._round_number, dict(record.rough_s),
        )  # fmt: skip

    def say(self, message: str | None = None, result: bool = False, round_number: int | None = None) -> None:
        """Publish how things stand. ``message``: a line on what happens now; ``result``: there is a new result;
        ``round_number``: of the round in which is sampled, where a message is on sampling."""
        if message is not None:
            self._message, self._round_number = message, round_number
        self._version += result
        self._publish(self.view())

    def cancel(self) -> None:
        self.dialogues.cancel()
        if self._further is not None:
            self._further.cancel()

    @property
    def cancelled(self) -> bool:
        return self.dialogues.cancelled

    @property
    def passed_s(self) -> float:
        """Seconds since the run's start."""
        assert self.started_s is not None, "nothing is measured before the bench is opened"
        return time.monotonic() - self.started_s

    # --- from its opening to its end ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Open the bench; in the end nothing that was started lives any more, and its files are gone."""
        self.open(time.monotonic() if self.started_s is None else self.started_s)
        try:
            with self.clock.running():
                yield
        finally:
            if left := self.dialogues.end():
                self.record.warn(advice.not_ended(left))
            self.remove_files()

    def begin(self, started_s: float, environment: dict[str, Any]) -> None:
        """Take this as a part of a run that has begun, on the monotonic clock, and knows its environment."""
        self.started_s = started_s
        self.record.set_run(environment=environment)

    def open(self, started_s: float) -> None:
        """Make the folder. ``started_s``: the run's start, on the monotonic clock."""
        self.started_s = started_s
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-"))

    @property
    def folder(self) -> Path:
        assert self._folder is not None, "nothing is measured before the bench is opened"
        return self._folder

    def remove_files(self) -> None:
        """Remove the folder, if there is one by now: a job may end before it begins."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @contextlib.contextmanager
    def talking_to(self, launcher: Launcher) -> Iterator[Dialogues]:
        """Dialogues with subjects of another launcher, which is closed in the end. Raises `Cancelled`."""
        self._further = Dialogues(launcher, self.clock)
        try:
            if self.cancelled:
                raise Cancelled
            yield self._further
        finally:
            self._further.end()
            launcher.close()

    def fail(self, slug: str, stage: Stage, failure: SubjectFailed) -> None:
        """Give a strategy the outcome that ended it; what was measured of it stays. That the time is over is no
        failure: a strategy that has a latency has done its part, and any other was not timed."""
        is_timed = any(replica.samples_s for replica in self.record[slug].replicas)
        if failure.error.type != TIME_OVER:
            self.record.update(slug, outcome=failure.outcome, stage=stage, error=failure.error)
        elif not is_timed:
            self.record.update(slug, stage=stage, error=failure.error)
        self.record.set_stage([slug], "done")
        self.say(result=True)

    def close(self, status: Status, reason: str) -> None:
        """Settle what is open, and publish the run as finished."""
        for item in self.record.items():
            is_timed = item.twin_of or any(replica.samples_s for replica in item.replicas)
            if (
                status in ("complete", "budget")
                and not is_timed
                and item.outcome in ("ok", "not_run")
                and not item.error
            ):
                self.record.update(item.strategy, error=Error(type=TIME_OVER, message=_UNTIMED))
        self.record.close(status, reason, utc_now())
        self.record.set_stage(self.record.stages, "done")
        self.say("finished", result=True)

    # --- subjects ----------------------------------------------------------------------------------------------------

    def spec(self, role: Any, slug: str, **more: Any) -> Spec:
        """Return what a subject of a strategy is to be; ``more``: what only this role is told."""
        code = self.record[slug].code
        assert code is not None
        source = code.source
        if role == "process_peak":
            # A pool keeps what a call has freed, so that the system does not see the next one.
            source = script_of(self.request, original(slug), allocator="default")
        override = self.case.workload.tolerances.get(self.case.dtype)
        return Spec(
            role=role,
            script=source,
            name=original(slug),
            mode=strategies.parse(original(slug)).mode,
            device=self.request.device,
            case_dir=str(self.folder),
            depth=self.case.cost.depth,
            tolerance=None
            if override is None
            else {"relative": override.relative, "absolute": override.absolute, "reason": override.reason},
            input_bytes=self.case.input_bytes,
            captured_bytes=self.case.captured_bytes,
            shapes_only=self.case.workload.own is not None and own_script.facts(self.case).reference == "shapes",
            **more,
        )

    @property
    def start_s(self) -> float:
        """Seconds that a subject may take until it can begin."""
        if self.launcher.start_method == "fresh":
            return self.settings.fresh_start_s
        return _GPU_START_S if self.on_gpu else 0.0

    def quickest_first(self, slugs: Iterable[str]) -> list[str]:
        """The strategies, or twins, by the forecast of their first calls."""
        return sorted(slugs, key=self._first_call_s)

    def starting_order(self, slugs: Iterable[str], left_s: float) -> list[str]:
        """The order in which processes of these are started, two at a time: the longest first call first, so that no
        processor idles at the end; where ``left_s`` may be too short for all, the quickest first."""
        order = self.quickest_first(slugs)
        return order if self._is_short(order, left_s) else order[::-1]

    def picked(self, slugs: Iterable[str], until_s: float) -> Iterator[str]:
        """The same, each chosen when it is due, by how long things take here; the quickest ones first, which tell that
        soon."""
        waiting = self.quickest_first(slugs)
        for number in range(len(waiting)):
            is_short = number < _QUICKEST_FIRST or self._is_short(waiting, until_s - self.dialogues.now_s)
            yield waiting.pop(0 if is_short else -1)

    def _is_short(self, slugs: Sequence[str], left_s: float) -> bool:
        return self.pace > _SLOW or sum(map(self._first_call_s, slugs)) > left_s

    def _first_call_s(self, slug: str) -> float:
        return self.forecast.per_strategy[original(slug)].first_call_s

    def step(
        self,
        name: str,
        slug: str,
        subject: int,
        wanted: type[S],
        take: Callable[[Said], None] | None = None,
        until_s: float = math.inf,
        times: float = 1.0,
    ) -> Part[S]:
        """A step of a dialogue with a subject of a strategy, as `Dialogues.until`. One that takes far longer than this
        step of the others fails as a timeout; from ``until_s`` on, where others are measured by then, it is ended as
        one for which there is no time. ``times``: so many times as long as most steps does it take. Raises
        `SubjectFailed`."""
        begun_s = self.dialogues.now_s
        waiting = self.dialogues.until(subject, wanted, math.inf, take)
        event: Event | None = None
        over: SubjectFailed | None = None
        try:
            while True:
                number, _ = waiting.send(event)
                while True:
                    event = yield number, self.dialogues.now_s + _LOOK_S
                    if event is not None or self.clock.is_over:
                        break
                    if over := self._over(name, slug, self.dialogues.now_s - begun_s, until_s, times):
                        break
        except StopIteration as done:
            self._paces.setdefault(name, {})[slug] = (self.dialogues.now_s - begun_s) / self._step_s(slug)
            return done.value
        except SubjectFailed:
            if over is not None:
                raise over from None
            raise

    def _over(self, name: str, slug: str, passed_s: float, until_s: float, times: float) -> SubjectFailed | None:
        """The failure of a step that has lasted so long; None where it goes on. As long as nobody else has done this
        step the machine may be slow: then it is no timeout, but half of the time until ``until_s`` is for the others.
        """
        others = [pace for other, pace in self._paces.get(name, {}).items() if original(other) != original(slug)]
        pace = max(1.0, statistics.median(others or [1.0]))
        most_s = self.start_s + max(self.settings.timeout_floor_s, _FAR * max(pace, times) * self._step_s(slug))
        silent = f"no answer within {passed_s:.0f} s"
        if others and passed_s > most_s:
            than = f"more than {_FAR:.0f} × as long as the others took, by their forecasts"
            return SubjectFailed("timeout", Error(type="Timeout", message=f"{silent}, {than}: its process was ended"))
        left_s = until_s - self.dialogues.now_s
        is_alone = len(self.request.strategies) == 1
        patience_s = self.start_s + max(self.settings.timeout_floor_s, min(most_s, (left_s + passed_s) / 2))
        if left_s < 0 if others else not is_alone and passed_s > patience_s:
            return SubjectFailed("not_run", Error(type=TIME_OVER, message=f"{silent}: {_UNTIMED}"))
        return None

    @property
    def pace(self) -> float:
        """How many times as long as by forecast things take here: the median of memory and first calls, at least 1."""
        paces = [pace for name in ("memory", "first call") for pace in self._paces.get(name, {}).values()]
        return max(1.0, statistics.median(paces or [1.0]))

    def _step_s(self, slug: str) -> float:
        """Seconds that any one step of a subject takes at the most by forecast."""
        estimate = self.forecast.per_strategy[original(slug)]
        return forecast.SUBJECT_S + estimate.first_call_s + 3 * estimate.latency_s

    def room_bytes(self) -> int:
        """Bytes that subjects which live at the same time may take together, of the GPU's memory and the machine's."""
        limits = (self.gpu_bytes, self.settings.most_bytes)
        available = min([environment.available_memory(), *(limit for limit in limits if limit is not None)])
        return int(self.settings.memory_share * available)

    @property
    def process_bytes(self) -> int:
        """Bytes that a live subject takes beside its tensors."""
        return _GPU_CONTEXT_BYTES if self.on_gpu else forecast.PROCESS_BYTES

    def live_bytes(self, slug: str) -> int:
        """Bytes that a subject of this strategy takes while it lives, as measured or else by forecast."""
        memory = self.record[original(slug)].memory
        peak_bytes = memory.peak_bytes if memory else self.forecast.per_strategy[original(slug)].peak_bytes
        return self.process_bytes + peak_bytes + self.case.read_bytes


class Job:
    """A job on a bench as the queue knows it: what is asked, how it stands, and how to cancel it."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.request = bench.request

    def view(self) -> View:
        return self.bench.view()

    def cancel(self) -> None:
        self.bench.cancel()

    def stop(self) -> None:
        """End with what is known. May be called from any thread."""
        self.bench.stopped = True

    @property
    def cancelled(self) -> bool:
        return self.bench.cancelled

    def warn(self, warning: Warning) -> None:
        """Add a warning about the run as a whole."""
        self.bench.record.warn(warning)
