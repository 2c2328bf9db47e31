"""The bench: what all stages of measuring one case share, and what a watcher sees of them."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import strategies
from measure.engine.clock import Clock
from measure.engine.dialogue import TIME_OVER, Cancelled, Dialogues, SubjectFailed
from measure.engine.launcher import Launcher
from measure.engine.record import Record, View, original, seed_of
from measure.judge import advice
from measure.machine import environment
from measure.model import forecast
from measure.model.place import utc_now
from measure.model.request import Request, case_of, script_of
from measure.model.run import Analysis, Run, Stage, Status, Warning
from measure.subject.messages import Spec
from strategies import checked, script

# Folders of benches: the reference and what subjects leave, as long as the bench is open.
_FOLDER_PREFIX = "mapbench-case-"
# What a live subject takes of a GPU beside its tensors: CUDA's context, kernels and libraries.
_GPU_CONTEXT_BYTES = 600 * 2**20


@dataclass(frozen=True)
class Settings:
    """Limits of a run that are no part of the request."""

    most_processes: int = 5  # of a strategy that may lead
    # A strategy that takes longer than this plus ten times its forecast, in any one step, is given up.
    timeout_floor_s: float = 10.0
    fresh_start_s: float = 30.0  # what a fresh interpreter may take in addition, to import TensorFlow
    # Events of an eager or graph loop grow with the batch; beyond this many the profiler's file gets too large.
    most_events: int = 50_000
    # Of the available memory, what subjects that live at the same time may take together.
    memory_share: float = 0.7
    most_bytes: int | None = None  # the same for a run, where its memory is limited
    probes: bool = True  # the limit is measured, after the verdict
    process_peaks: bool = True  # and so is what the operating system sees
    after_s: float = 1.5  # within this after the budget, process peaks end by forecast
    bound_s: float | None = None  # the run ends within this, whatever it is doing


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
        dialogues: Dialogues | None = None,
    ) -> None:
        """``parent``: the run that this one repeats; ``dialogues``: those of a larger job that it is a part of.
        Raises `ScriptError` where the sources of the workload, its reference and a mapper do not make scripts."""
        self.request, self.launcher = request, launcher
        self.settings = settings or Settings()
        self.dialogues = dialogues or Dialogues(launcher, Clock(self.settings.bound_s))
        self.clock = self.dialogues.clock
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
        self.open(time.monotonic())
        try:
            with self.clock.running():
                yield
        finally:
            if left := self.dialogues.end():
                self.record.warn(advice.not_ended(left))
            self.remove_files()

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
        """Give a strategy the outcome that ended it; what was measured of it stays. One that has a latency when the
        run's time is over has done its part."""
        is_timed = any(replica.samples_s for replica in self.record[slug].replicas)
        if not (is_timed and failure.error.type == TIME_OVER):
            self.record.update(slug, outcome=failure.outcome, stage=stage, error=failure.error)
        self.record.set_stage([slug], "done")
        self.say(result=True)

    def close(self, status: Status, reason: str) -> None:
        """Settle what is open, and publish the run as finished."""
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
            **checked.of(self.case, original(slug), source),
            **more,
        )

    @property
    def start_s(self) -> float:
        """Seconds that a subject may take until it can begin."""
        return self.settings.fresh_start_s if self.launcher.start_method == "fresh" else 0.0

    def quickest_first(self, slugs: Iterable[str]) -> list[str]:
        """The strategies, or twins, by the forecast of their first calls."""
        return sorted(slugs, key=self._first_call_s)

    def starting_order(self, slugs: Iterable[str], left_s: float) -> list[str]:
        """The order in which processes of these are started, two at a time: the longest first call first, so that no
        processor idles at the end; where ``left_s`` may be too short for all, the quickest first."""
        order = self.quickest_first(slugs)
        return order[::-1] if sum(map(self._first_call_s, order)) < left_s else order

    def _first_call_s(self, slug: str) -> float:
        return self.forecast.per_strategy[original(slug)].first_call_s

    def timeout_s(self, slug: str) -> float:
        """Seconds that a step of a subject of this strategy may take."""
        estimate = self.forecast.per_strategy[original(slug)]
        return self.settings.timeout_floor_s + self.start_s + 10 * (estimate.first_call_s + 3 * estimate.latency_s)

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
