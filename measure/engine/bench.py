"""The bench: what all jobs on one case share, how they talk to its subjects, and what a watcher sees of them."""

import contextlib
import math
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil
from msgspec.structs import replace

import strategies
from measure.engine.record import View, original, seed_of, unmeasured
from measure.judge import advice, analysis
from measure.machine import environment
from measure.pool.clock import Clock, TimeIsUp
from measure.pool.dialogue import Dialogue, Dialogues, Part, SubjectFailed
from measure.pool.launcher import Launcher
from measure.run import deadline, forecast
from measure.run.place import utc_now
from measure.run.request import Request, case_of, script_of
from measure.run.run import TIME_OVER, Analysis, Error, Measurement, Run, Stage, Warning
from measure.run.why import Why
from measure.subject.messages import Said, Spec
from strategies import own_script, script

# Folders of benches: the reference and what subjects leave, as long as the bench is open.
_FOLDER_PREFIX = "mapbench-case-"
UNTIMED = "not timed, since the time budget was spent: a longer one leaves it some"
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

# Takes the reasons of a strategy with their artifacts; False where there is no use in going on.
Keep = Callable[[str, Why, dict[str, bytes]], bool]
S = TypeVar("S", bound=Said)
T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """Limits of a run that are no part of the request."""

    most_processes: int = 5  # of a strategy that may lead
    timeout_floor_s: float = 5.0  # no strategy is given up sooner
    most_bytes: int | None = None  # of memory that subjects may take together, where it is limited
    controls: bool = True  # the leader's twin, the default allocator and oneDNN off are tried beside the strategies
    probes: bool = True  # the limit is measured, after the verdict
    process_peaks: bool = True  # and so is what the operating system sees
    bound_s: float | None = None  # the run ends within this, whatever it is doing; None: 1.5 times what it is said to


def clear_leftovers() -> None:
    """Remove the folders that benches of processes that have died left among the temporary files."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*-*"):
        pid = folder.name.removeprefix(_FOLDER_PREFIX).partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


class Bench:
    """One case with its strategies. ``publish`` gets every `View`. `cancel` and `stop` may be called from any thread,
    all else belongs to the job's. ``record`` is the run so far; ``stages`` says where each strategy stands."""

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
        self.forecast = forecast.forecast_run(self.case, request.strategies, request.budget_s)
        self.on_gpu = request.device.startswith("GPU")
        self.gpu_bytes: int | None = None  # that TensorFlow may take of the GPU, where it says so
        is_fresh = launcher.start_method == "fresh"
        # Seconds that a step may take on top: until a subject can begin, and while TensorFlow waits for memory.
        self._on_top_s = FRESH_START_S if is_fresh else _GPU_START_S if self.on_gpu else 0.0
        self._on_top_s += deadline.ALLOCATOR_WAITS_S if request.memory_limit_mib else 0.0
        fresh_s = _FRESH_S * len(request.strategies) if is_fresh else 0.0
        self.budget_s = request.budget_s + fresh_s
        self.clock = Clock((self.settings.bound_s or deadline.of_comparison(request)) + deadline.of(fresh_s))
        self.dialogues = Dialogues(launcher, self.clock)
        self.record = Run(
            id=run_id,
            parent=parent,
            created=utc_now(),
            request=request.record(),
            analysis=Analysis(seed=seed_of(run_id)),
            measurements=[unmeasured(slug, script_of(request, slug)) for slug in request.strategies],
            digest={},
        )
        self.stages: dict[str, Stage] = dict.fromkeys(request.strategies, "waiting")
        # Shown until there is a latency, and no part of the run: a process that measures memory is never timed.
        self.rough_s: dict[str, float] = {}
        self.started_s: float | None = None
        self.stopped = False
        self._publish, self._message, self._version = publish, "", 0
        self._round_number: int | None = None
        # Step → strategy → the seconds that its last one took, as a multiple of the forecast.
        self._paces: dict[str, dict[str, float]] = {}

    # --- the watcher's side ------------------------------------------------------------------------------------------

    def view(self) -> View:
        return View(
            self.record, dict(self.stages), self._message, self._version, self.started_s, self.forecast.seconds,
            self._round_number, dict(self.rough_s),
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

    @property
    def cancelled(self) -> bool:
        return self.dialogues.cancelled

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

    def update(self, slug: str, **changes: Any) -> None:
        """Change fields of a strategy's measurement."""
        items = [replace(item, **changes) if item.strategy == slug else item for item in self.record.measurements]
        self.record = replace(self.record, measurements=items)

    def fail(self, slug: str, stage: Stage, failure: SubjectFailed) -> None:
        """Give a strategy the outcome that ended it; what was measured of it stays. The end of the time is no failure:
        a strategy that was timed keeps its outcome, and any other is left as not timed."""
        if failure.error.type != TIME_OVER:
            self.update(slug, outcome=failure.outcome, stage=stage, error=failure.error)
        elif not is_timed(self[slug]):
            self.update(slug, stage=stage, error=failure.error)
        self.stages[slug] = "done"
        self.say(result=True)

    def warn(self, warning: Warning) -> None:
        """Add a warning about the run as a whole, once per code."""
        if all(other.code != warning.code for other in self.record.warnings):
            self.record = replace(self.record, warnings=[*self.record.warnings, warning])

    def analyse(self) -> None:
        """Compute intervals, ranking and verdict anew from the samples, and publish them."""
        self.record = analysis.analyse(self.record)
        self.say(result=True)

    # --- subjects ----------------------------------------------------------------------------------------------------

    def begin(self, started_s: float, environment: dict[str, Any]) -> None:
        """Take this as a part of a run that has begun, on the monotonic clock, and knows its environment."""
        self.started_s = started_s
        self.record = replace(self.record, environment=environment)

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Start the clock; in the end nothing that was started lives any more, and its files are gone."""
        if self.started_s is None:
            self.started_s = time.monotonic()
        prefix = f"{_FOLDER_PREFIX}{os.getpid()}-"
        with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder, self.clock.running():
            self.folder = Path(folder)
            try:
                yield
            finally:
                if left := self.dialogues.end():
                    self.warn(advice.not_ended(left))

    @property
    def now_s(self) -> float:
        """The time of budgets, which stands still while the host does."""
        return self.dialogues.now_s

    def spec(self, role: Any, slug: str, **more: Any) -> Spec:
        """Return what a subject of a strategy is to be; ``more``: what only this role is told."""
        code, case = self[slug].code, self.case
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
            depth=case.cost.depth,
            input_bytes=case.input_bytes,
            captured_bytes=case.captured_bytes,
            shapes_only=case.workload.own is not None and own_script.facts(case).reference == "shapes",
            **more,
        )

    def hold(self, attempt: Callable[[], Part[T]]) -> T:
        """The result of a dialogue that is held by itself, once more where the machine slept meanwhile. Raises
        `SubjectFailed`, and `TimeIsUp` where the run's time is over."""
        results: list[T] = []

        def dialogue() -> Dialogue:
            results.append((yield from self.dialogues.undisturbed(attempt)))

        try:
            self.dialogues.hold([dialogue()])
        except SubjectFailed:
            if self.clock.is_over:
                raise TimeIsUp from None
            raise
        return results[0]

    def ask(self, spec: Spec, wanted: type[S], timeout_s: float) -> S:
        """The answer of a new subject, as `hold`."""
        return self.hold(lambda: self.dialogues.until(self.dialogues.start(spec), wanted, timeout_s))

    def quickest_first(self, slugs: Iterable[str]) -> list[str]:
        """The strategies, or twins, by the forecast of their first calls."""
        return sorted(slugs, key=lambda slug: self.forecast.per_strategy[original(slug)].first_call_s)

    # --- how long a step may take ------------------------------------------------------------------------------------

    def step(
        self,
        name: str,
        slug: str,
        subject: int,
        wanted: type[S],
        take: Callable[[Said], None] | None = None,
        until_s: float = math.inf,
    ) -> Part[S]:
        """A step of a dialogue with a subject of a strategy, as `Dialogues.until`. One that takes far longer than this
        step of the others fails as a timeout. What goes on at ``until_s`` is ended as one for which there is no time;
        after half of the time until then, where nobody else has done this step: the machine may be slow, and the
        others are to have a try. Raises `SubjectFailed`."""
        begun_s = self.now_s

        def patience_s() -> float:
            pace, left_s = self._pace_of_others(name, slug), until_s - begun_s
            if len(self.request.strategies) == 1:
                return math.inf
            if pace is None:
                return max(self._on_top_s + self.settings.timeout_floor_s, min(self._most_s(slug, 1.0), left_s / 2))
            return min(self._most_s(slug, pace), left_s)

        try:
            # Others that are done meanwhile tell how slow the machine is.
            answer = yield from self.dialogues.until(subject, wanted, patience_s(), take, patience_s)
        except SubjectFailed as failure:
            if failure.error.type != "Timeout":
                raise
            pace, passed_s = self._pace_of_others(name, slug), self.now_s - begun_s
            silent = f"no answer within {math.ceil(passed_s)} s"
            if pace is None or passed_s < 0.99 * self._most_s(slug, pace):
                raise SubjectFailed("not_run", Error(type=TIME_OVER, message=f"{silent}: {UNTIMED}")) from None
            than = f"more than {_FAR:.0f} × as long as the others took, by their forecasts"
            message = f"{silent}, {than}: its process was ended"
            raise SubjectFailed("timeout", Error(type="Timeout", message=message)) from None
        self._paces.setdefault(name, {})[slug] = (self.now_s - begun_s) / self._step_s(slug)
        return answer

    def _pace_of_others(self, name: str, slug: str) -> float | None:
        """How many times as long as by forecast a step took the others, at least 1; None where none has done it."""
        others = [pace for other, pace in self._paces.get(name, {}).items() if original(other) != original(slug)]
        return max(1.0, statistics.median(others)) if others else None

    def _most_s(self, slug: str, times: float) -> float:
        """The seconds after which a step that takes so many times its forecast is far too long."""
        return self._on_top_s + max(self.settings.timeout_floor_s, _FAR * times * self._step_s(slug))

    def _step_s(self, slug: str) -> float:
        """Seconds that any one step of a subject takes at the most by forecast: that in which values are checked."""
        estimate = self.forecast.per_strategy[original(slug)]
        return forecast.reference_s(self.case) + estimate.first_call_s + 3 * estimate.latency_s

    # --- memory ------------------------------------------------------------------------------------------------------

    def room_bytes(self) -> int:
        """Bytes that subjects which live at the same time may take together, of the GPU's memory and the machine's."""
        limits = (environment.available_memory(), self.gpu_bytes, self.settings.most_bytes)
        return int(_MEMORY_SHARE * min(limit for limit in limits if limit is not None))

    @property
    def process_bytes(self) -> int:
        """Bytes that a live subject takes beside its tensors."""
        return _GPU_CONTEXT_BYTES if self.on_gpu else forecast.PROCESS_BYTES

    def live_bytes(self, slug: str) -> int:
        """Bytes that a subject of this strategy takes while it lives, as measured or else by forecast."""
        memory = self[original(slug)].memory
        peak_bytes = memory.peak_bytes if memory else self.forecast.per_strategy[original(slug)].peak_bytes
        return self.process_bytes + peak_bytes + self.case.read_bytes


def is_timed(item: Measurement) -> bool:
    return any(replica.samples_s for replica in item.replicas)
