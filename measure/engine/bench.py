"""The bench: what all jobs on one case share, how they talk to its subjects, and what a watcher sees of them."""

import contextlib
import hashlib
import math
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

import psutil
from msgspec.structs import replace

import strategies
from measure.engine.record import View, original, seed_of
from measure.judge import analysis, warnings
from measure.machine import environment, load
from measure.pool.clock import Clock
from measure.pool.dialogue import Dialogues, Part, SubjectFailed
from measure.pool.launcher import Launcher
from measure.run import deadline, forecast
from measure.run.place import utc_now
from measure.run.request import ALLOCATOR_WAITS_S, Request, case_of, forecast_of, script_of
from measure.run.run import DEFAULT_MEMORY, TIME_OVER, Analysis, Code, Error, Measurement, Run, Stage, Warning
from measure.run.why import Why
from measure.subject.messages import Said, Spec
from strategies import script

# Folders of benches: the reference and what subjects leave, as long as the bench is open.
_FOLDER_PREFIX = "mapbench-case-"
REFERENCE = "reference"
UNTIMED = "increase the budget"
# What a live subject takes of a GPU beside its tensors: CUDA's context, kernels and libraries; and until these are
# loaded and tuned at their first call.
_GPU_CONTEXT_BYTES, _GPU_START_S = 600 * 2**20, 10.0
# The most that a fresh interpreter takes to import TensorFlow; and what that takes for all processes of one strategy.
# Budgets and forecasts leave it out, so it is added to them.
FRESH_START_S, _FRESH_S = 30.0, 18.0
# A step is a timeout where it takes so many times as long as the same step of the others, by their forecasts.
_FAR = 10.0
# Of the available memory, what subjects that live at the same time may take together.
_MEMORY_SHARE = 0.7

# The usual choices without a measurement, which are timed first.
USUAL_CHOICES = ("map_fn.graph", "vectorized_map.graph", "batched.graph")

# Takes the reasons of a strategy with their artifacts; False where there is no use in going on.
Keep = Callable[[str, Why, dict[str, bytes]], bool]
S = TypeVar("S", bound=Said)


@dataclass(frozen=True)
class Settings:
    """Limits of a run that are no part of the request."""

    most_processes: int = 5  # of a strategy that may lead
    timeout_floor_s: float = 5.0  # no strategy is given up sooner
    most_bytes: int | None = None  # of memory that subjects may take together, where it is limited
    controls: bool = True  # the leader's twin and the default allocator are tried beside the strategies
    probes: bool = True  # the limit is measured, after the verdict
    process_peaks: bool = True  # and so is what the operating system sees
    bound_s: float | None = None  # the run ends within this, whatever it is doing; None: 1.5 times what it is said to


def _usual_rank(slug: str) -> int:
    """A place among the usual choices, which come before all others."""
    return USUAL_CHOICES.index(slug) if slug in USUAL_CHOICES else len(USUAL_CHOICES)


def temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    """A folder that is gone after its block, and where this process is killed before by the next `clear_leftovers`."""
    prefix = f"{_FOLDER_PREFIX}{os.getpid()}-"
    return tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)


def clear_leftovers() -> None:
    """Remove the temporary folders of processes that have died."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*-*"):
        pid = folder.name.removeprefix(_FOLDER_PREFIX).partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def here(launcher: Launcher, threads: int | None) -> dict[str, Any]:
    """The environment in which a launcher's subjects measure."""
    details = launcher.state().details
    return environment.collect(start_method=launcher.start_method, threads=threads, tensorflow=details)


class Bench:
    """One case with its strategies. ``publish`` gets every `View`. `cancel` and `stop` may be called from any thread,
    all else belongs to the job's. ``record`` is the run so far; ``stages`` says where each strategy stands;
    ``extended_s``: seconds from the start to the end at most, once the run takes longer than forecast."""

    folder: Path

    def __init__(
        self,
        run_id: str,
        request: Request,
        launcher: Launcher,
        publish: Callable[[View], None],
        *,
        settings: Settings | None = None,
        parent: str | None = None,
        keep: Keep | None = None,
    ) -> None:
        """``parent``: the run that this one repeats; ``keep``: who takes the reasons; without, none are looked for.
        Raises `ScriptError` where the sources of the workload, its reference and a mapper do not make scripts."""
        self.request, self.launcher = request, launcher
        self.settings, self.keep = settings or Settings(), keep
        self.case = case_of(request)
        self.reference_script = script.build_reference(self.case)
        self.forecast = forecast_of(request)
        self.on_gpu = request.device.startswith("GPU")
        self.gpu_bytes: int | None = None  # that TensorFlow may take of the GPU, where it says so
        is_fresh = launcher.start_method == "fresh"
        # Seconds that a step may take on top: until a subject can begin, and while TensorFlow waits for memory.
        self._on_top_s = FRESH_START_S if is_fresh else _GPU_START_S if self.on_gpu else 0.0
        self._on_top_s += ALLOCATOR_WAITS_S if request.memory_limit_mib else 0.0
        fresh_s = _FRESH_S * len(request.strategies) if is_fresh else 0.0
        self.budget_s = request.budget_s + fresh_s
        self.max_budget_s = max(self.budget_s, (request.max_budget_s or 0.0) + fresh_s)
        self.clock = Clock((self.settings.bound_s or deadline.of_comparison(request)) + deadline.of(fresh_s))
        self.dialogues = Dialogues(launcher, self.clock)
        self.record = Run(
            id=run_id,
            parent=parent,
            created=utc_now(),
            request=request.record(),
            analysis=Analysis(seed=seed_of(run_id)),
            digest={},
        )
        self.stages: dict[str, Stage] = {}
        for slug in request.strategies:
            self.enter(slug, script_of(request, slug))
        self.extended_s: float | None = None
        self.watch = load.Watch()  # of what other programs use while latencies are sampled
        self.started_s: float | None = None  # on the monotonic clock
        self.stopped = False
        self._publish, self._message, self._version = publish, "", 0
        self._round_number: int | None = None
        # What a step gives → strategy → the seconds that its last one took, as a multiple of the forecast.
        self._paces: dict[type[Said], dict[str, float]] = {}

    # --- the watcher's side ------------------------------------------------------------------------------------------

    def view(self) -> View:
        return View(
            self.record, dict(self.stages), self._message, self._version, self.started_s, self.forecast.seconds,
            self.forecast.max_seconds, self._round_number, self.extended_s,
        )  # fmt: skip

    def say(self, message: str | None = None, result: bool = False, round_number: int | None = None) -> None:
        """Publish how things stand. ``message``: a line on what happens now; ``result``: there is a new result;
        ``round_number``: of the round in which is sampled, where a message is on sampling."""
        if message is not None:
            self._message, self._round_number = message, round_number
        self._version += result
        self._publish(self.view())

    def cancel(self) -> None:
        self.dialogues.cancelled = True

    def stop(self) -> None:
        """A person wants no more than there is: sampling ends with the turn that goes on."""
        self.stopped = True

    # --- the run so far ----------------------------------------------------------------------------------------------

    def __getitem__(self, slug: str) -> Measurement:
        return self.record.measurement(slug)

    def working(self) -> list[str]:
        """Strategies that can be called, twins left out, whether their values are right or wrong."""
        items = self.record.measurements
        return [item.strategy for item in items if item.outcome in ("ok", "wrong") and not item.twin_of]

    def enter(self, slug: str, source: str) -> str:
        """Enter a strategy, or one once more as a twin, with its script; the slug."""
        strategy = strategies.parse(original(slug))
        item = Measurement(
            strategy=slug,
            mapper=strategy.mapper,
            mode=strategy.mode,
            options=dict(strategy.options),
            twin_of=None if slug == original(slug) else original(slug),
            code=Code(source=source, sha256=hashlib.sha256(source.encode()).hexdigest()),
        )
        self.record = replace(self.record, measurements=[*self.record.measurements, item])
        self.stages[slug] = "waiting"
        return slug

    def update(self, slug: str, **changes: Any) -> None:
        """Change fields of a strategy's measurement."""
        items = [replace(item, **changes) if item.strategy == slug else item for item in self.record.measurements]
        self.record = replace(self.record, measurements=items)

    def fail(self, slug: str, stage: Stage, failure: SubjectFailed) -> None:
        """Give a strategy the outcome that ended it; what was measured of it stays. The end of the time is no failure:
        a strategy that was timed keeps its outcome, and any other is left as not timed."""
        if failure.error.type != TIME_OVER:
            self.update(slug, outcome=failure.outcome, stage=stage, error=failure.error)
        elif not self[slug].is_timed:
            self.update(slug, stage=stage, error=failure.error)
        self.stages[slug] = "done"
        self.say(result=True)

    def warn(self, warning: Warning | None) -> None:
        """Add a warning about the run as a whole, if any, once per code."""
        if warning and all(other.code != warning.code for other in self.record.warnings):
            self.record = replace(self.record, warnings=[*self.record.warnings, warning])

    def analyse(self) -> None:
        """Compute intervals, ranking and verdict anew from the samples, and publish them."""
        self.record = analysis.analyse(self.record)
        self.say(result=True)

    # --- subjects ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Start the clock; in the end nothing that was started lives any more, and its files are gone."""
        if self.started_s is None:
            self.started_s = time.monotonic()
        with temporary_folder() as folder, self.clock.running():
            self.folder = Path(folder)
            try:
                yield
            finally:
                if left := self.dialogues.end():
                    self.warn(warnings.warning("not_ended", processes=left))

    def spec(self, role: Any, slug: str, **more: Any) -> Spec:
        """Return what a subject of a strategy is to be; ``more``: what only this role is told."""
        code = self[slug].code
        assert code is not None
        # A pool keeps what a call has freed: the system would not see the memory of the next one.
        by_system = role == "process_peak"
        return Spec(
            role=role,
            script=script_of(self.request, original(slug), allocator="default") if by_system else code.source,
            name=original(slug),
            mode=strategies.parse(original(slug)).mode,
            device=self.request.device,
            case_dir=str(self.folder),
            **more,
        )

    def launcher_of(self, slug: str) -> Launcher:
        """The launcher of a strategy's processes, or of the `REFERENCE`'s."""
        return self.launcher

    def start(self, role: Any, slug: str, **more: Any) -> int:
        """Start a subject of a strategy, as its `spec` says; its number."""
        return self.dialogues.start(self.spec(role, slug, **more), self.launcher_of(slug))

    def quickest_first(self, slugs: Iterable[str]) -> list[str]:
        """The strategies by the forecast of their first calls, after the usual choices."""
        return sorted(
            slugs, key=lambda slug: (_usual_rank(slug), self.forecast.per_strategy[original(slug)].first_call_s)
        )

    def fastest_first(self, slugs: Iterable[str]) -> list[str]:
        """The strategies, or twins, by what is known of their latency, after the usual choices; those that are timed
        with other memory come last."""

        def rank(slug: str) -> tuple[bool, int, float]:
            rough_s = self[original(slug)].rough_s or self.forecast.per_strategy[original(slug)].latency_s
            return slug.endswith(DEFAULT_MEMORY), _usual_rank(original(slug)), rough_s

        return sorted(slugs, key=rank)

    def step(self, slug: str, subject: int, wanted: type[S], take: Callable[[Said], None] | None = None) -> Part[S]:
        """A step of a dialogue with a subject of a strategy, as `Dialogues.until`. One that takes far longer than this
        step of the others fails as a timeout; one that takes half of the time that the run had left is ended as one for
        which there is no time: the machine may be slow, and the others are to have a try. Raises `SubjectFailed`."""
        begun_s, left_s = self.clock.now_s, self.clock.left_s
        estimate, paces = self.forecast.per_strategy[original(slug)], self._paces.setdefault(wanted, {})
        # Of the longest step by forecast, that in which values are checked.
        forecast_s = forecast.reference_s(self.case) + estimate.first_call_s + 3 * estimate.latency_s

        def others() -> list[float]:
            return [pace for other, pace in paces.items() if original(other) != original(slug)]

        def far_s() -> float:
            """The seconds after which it is far too long: others that are done meanwhile tell the machine's pace."""
            pace = max(1.0, statistics.median(others() or [1.0]))
            return self._on_top_s + max(self.settings.timeout_floor_s, _FAR * pace * forecast_s)

        def patience_s() -> float:
            least_s = self._on_top_s + self.settings.timeout_floor_s
            return math.inf if len(self.request.strategies) == 1 else max(least_s, min(far_s(), left_s / 2))

        try:
            answer = yield from self.dialogues.until(subject, wanted, patience_s, take)
        except SubjectFailed as failure:
            if failure.error.type != "Timeout":
                raise
            passed_s = self.clock.now_s - begun_s
            silent = f"no answer within {math.ceil(passed_s)} s"
            if not others() or passed_s < 0.99 * far_s():
                message = f"{silent}: {UNTIMED}"
                raise SubjectFailed("not_run", Error(type=TIME_OVER, message=message)) from None
            than = f"{_FAR:.0f}× as long as the others took, by their forecasts: its process was ended"
            raise SubjectFailed("timeout", Error(type="Timeout", message=f"{silent}, more than {than}")) from None
        paces[slug] = (self.clock.now_s - begun_s) / forecast_s
        return answer

    # --- memory ------------------------------------------------------------------------------------------------------

    def room_bytes(self) -> int:
        """Bytes that subjects which live at the same time may take together, of the GPU's memory and the machine's."""
        limits = (environment.available_memory(), self.gpu_bytes, self.settings.most_bytes)
        return int(_MEMORY_SHARE * min(limit for limit in limits if limit is not None))

    def at_once(self, needs: Iterable[int], most: int = forecast.AT_ONCE) -> int:
        """How many subjects may live at the same time, of those that need so many bytes each."""
        room_bytes = self.room_bytes()
        return max(1, sum(total <= room_bytes for total in accumulate(sorted(needs, reverse=True)[:most])))

    @property
    def process_bytes(self) -> int:
        """Bytes that a live subject takes beside its tensors."""
        return _GPU_CONTEXT_BYTES if self.on_gpu else forecast.PROCESS_BYTES

    def live_bytes(self, slug: str) -> int:
        """Bytes that a subject of this strategy takes while it lives, as measured or else by forecast."""
        memory = self[original(slug)].memory
        peak_bytes = memory.peak_bytes if memory else self.forecast.per_strategy[original(slug)].peak_bytes
        return self.process_bytes + peak_bytes + self.case.read_bytes
