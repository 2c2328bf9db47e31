"""One comparison from its request to its verdict: the stages in their order, and how it ends.

The order: the reference; memory and correctness, two subjects at a time; latency, of processes that take turns, one at
a time and alone on the machine; the verdict; the limit; the process peaks; the reasons, where they are asked for. What
is known is published as it becomes known, and what was measured before a cancel, a crash or a timeout is kept.
"""

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import Any

from measure.engine import explanation, stages
from measure.engine.bench import Bench, Job, Settings
from measure.engine.explanation import Keep
from measure.engine.record import View
from measure.judge import advice
from measure.machine import environment, load
from measure.model.place import utc_now
from measure.model.request import Request
from measure.model.run import Error, Run, Status
from measure.pool.clock import TimeIsUp
from measure.pool.dialogue import HOST_LOST, Cancelled, HostLost
from measure.pool.launcher import Launcher

# Memory and correctness are begun within this share of the budget, and end within the other, so that there is time for
# latencies.
_MEMORY_SHARE, _MEMORY_ENDS = 0.5, 0.65


class Comparison(Job):
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
        keep: Keep | None = None,
    ) -> None:
        """``parent``: the run that this one repeats; ``keep``: who takes the reasons; without, none are looked for.
        Raises `ScriptError` where the sources of the workload and a mapper do not make a script."""
        super().__init__(Bench(run_id, request, launcher, publish, settings=settings, parent=parent))
        self._keep = keep

    def leave_out(self, errors: Mapping[str, Error]) -> None:
        """Have strategies not run, each with the reason."""
        for slug, error in errors.items():
            if slug in self.request.strategies:
                self.bench.record.update(slug, stage="forecast", error=error)

    def run(self) -> Run:
        """Measure, and return the finished run. Does not raise for what a strategy, the host or a person did."""
        bench = self.bench
        status: Status
        with bench.opened():
            watch = load.Watch()
            try:
                bench.record.set_run(started=utc_now(), environment=bench.record.run.environment or self._environment())
                status, reason = self._measure(watch)
            except Cancelled:
                status, reason = "cancelled", "cancelled by a person"
            except TimeIsUp:
                status, reason = "budget", f"{bench.clock.over} before everything was measured"
            except HostLost:
                status, reason = "interrupted", HOST_LOST
        if bench.clock.still_s:
            bench.record.warn(advice.stood_still(bench.clock.still_s))
        bench.close(status, reason)
        return bench.record.run

    def _measure(self, watch: load.Watch) -> tuple[Status, str]:
        bench, budget_s = self.bench, self.request.budget_s
        begun_s = bench.dialogues.now_s
        stages.ask_for_room(bench)
        stages.compute_reference(bench)
        stages.leave_out_unsupported(bench)
        is_fresh = bench.launcher.start_method == "fresh"
        until_s, end_s = (begun_s + share * budget_s for share in (_MEMORY_SHARE, _MEMORY_ENDS))
        stages.measure_memory(bench, bench.record.untried(), until_s, math.inf if is_fresh else end_s)
        if bench.settings.controls:
            stages.rerun_without_onednn(bench)
        working = bench.record.working()
        if working:
            stages.look_at_others(bench, watch, until_s)
        # Where each process imports TensorFlow for seconds, the budget is for the turns alone.
        left_s = budget_s if is_fresh else begun_s + budget_s - bench.dialogues.now_s
        with stages.taking_turns(bench, left_s) as turns:
            status, reason = turns.race(bench.quickest_first(working))
        try:
            self._measure_beside_the_verdict(begun_s + budget_s + bench.settings.after_s)
        except TimeIsUp:
            bench.record.warn(advice.cut_short(bench.clock.over, explained=self._keep is not None))
        return status, reason

    def _measure_beside_the_verdict(self, until_s: float) -> None:
        """The verdict stands: what follows is shown beside it. Process peaks are measured until ``until_s``."""
        bench, settings = self.bench, self.bench.settings
        bench.record.set_stage(bench.record.stages, "done")
        bench.say(result=True)
        if settings.probes and any(item.latency for item in bench.record.items()):
            stages.probe_limit(bench)
        if settings.process_peaks:
            stages.measure_process_peaks(bench, until_s)
        if self._keep is not None:
            with contextlib.suppress(Cancelled):
                explanation.explain(bench, self._keep)

    def _environment(self) -> dict[str, Any]:
        launcher = self.bench.launcher
        return environment.collect(
            start_method=launcher.start_method,
            threads=self.request.threads,
            tensorflow=launcher.state().details or {},
        )
