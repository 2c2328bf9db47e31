"""The comparison of one point of a sweep, which is done in parts and without a race.

Far from where lines cross, one process of each strategy is enough; near a crossing, and where leaders tie, more
processes are asked for later. Neither a twin nor process peaks are measured.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import UNSET, structs

from measure.engine import deriving, stages
from measure.engine.bench import Bench, Settings
from measure.engine.dialogue import Dialogues
from measure.engine.launcher import Launcher
from measure.engine.record import View
from measure.engine.turns import FAR, Turns
from measure.judge import advice
from measure.model.forecast import process_s
from measure.model.request import Request
from measure.model.run import Analysis, Error, Measurement, Point, Status
from strategies.spec import Estimate

# Where the sweep's budget is spent, what was begun is measured once: forecasts are right within this factor.
_WITHIN = 3.0


class PointComparison:
    """The comparison of one point. ``dialogues`` are the sweep's, which ends what still lives."""

    def __init__(
        self,
        run_id: str,
        request: Request,
        launcher: Launcher,
        publish: Callable[[View], None],
        dialogues: Dialogues,
        settings: Settings,
    ) -> None:
        deriving.look(launcher, request, dialogues.clock)  # a size between those of the grid
        self._bench = Bench(run_id, request, launcher, publish, settings=settings, dialogues=dialogues)
        self._record = self._bench.record

    def cancel(self) -> None:
        self._bench.cancel()

    def know(self, analysis: Analysis) -> None:
        """``analysis``: the sweep's, as it is known by now."""
        self._record.set_run(analysis=structs.replace(self._record.run.analysis, spread=analysis.spread))

    def begin(self, started_s: float, left_out: Mapping[str, Error], taken: Point | None = None) -> None:
        """Compute the reference. ``left_out``: strategies that are not run here, with the reason; ``taken``: what an
        earlier run knows of this point, which is not measured again."""
        self._bench.open(started_s)
        if taken is not None:
            self._go_on_from(taken)
        stages.ask_for_room(self._bench)
        stages.leave_out_unsupported(self._bench)
        for slug, error in left_out.items():
            if slug in self.unknown():
                self._record.update(slug, stage="forecast", error=error)
                self._record.set_stage([slug], "done")
        if self.unknown():
            stages.compute_reference(self._bench)

    def _go_on_from(self, taken: Point) -> None:
        known = {
            item.strategy: structs.replace(item, code=item.code or self._record[item.strategy].code)
            for item in taken.measurements
        }
        run = self._record.run
        measurements = [known.get(item.strategy, item) for item in run.measurements]
        self._record.take(structs.replace(run, measurements=measurements, limit=taken.limit, warnings=taken.warnings))
        if any(item.replicas for item in measurements):
            self._record.warn(advice.two_sessions())
        self._record.set_stage(known, "done")
        self._record.analyse()

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        return self._bench.forecast.per_strategy

    def unknown(self) -> list[str]:
        """Strategies whose memory and correctness are still to be measured."""
        return self._record.untried()

    def look(self, slugs: Sequence[str]) -> None:
        """Measure memory and correctness."""
        stages.measure_memory(self._bench, slugs)

    def suspects(self) -> list[str]:
        """Strategies for whose failure oneDNN may be to blame."""
        return stages.suspects(self._bench)

    def ask_onednn(self) -> None:
        """Run them once more with oneDNN off, and say where that is right."""
        stages.rerun_without_onednn(self._bench)

    def time(self, budget_s: float, slugs: Sequence[str] | None = None) -> None:
        """Time one process of everybody that has none yet, or of those ``slugs``. Where nothing is known of the spread
        between processes, those near the fastest have a second one."""
        untimed = [slug for slug in self._record.working() if not self._record[slug].replicas]
        untimed = [slug for slug in untimed if slugs is None or slug in slugs]
        costs = (self._bench.forecast.per_strategy[slug] for slug in untimed)
        needed_s = sum(process_s(cost.first_call_s, cost.latency_s) for cost in costs)
        with self._taking_turns(max(budget_s, _WITHIN * needed_s)) as turns:
            turns.time_first(self._bench.quickest_first(untimed))
            if self._record.run.analysis.spread is UNSET and slugs is None:
                turns.time_more(self.within(FAR), 2)

    def time_more(self, slugs: Sequence[str], processes: int, budget_s: float) -> None:
        """Time so many further processes of these strategies."""
        with self._taking_turns(budget_s) as turns:
            turns.time_more(slugs, processes)

    def contenders(self) -> list[str]:
        """The leader, and all that the ranking does not separate from it."""
        return next(iter(self._record.order().groups()), [])

    def within(self, factor: float) -> list[str]:
        """The leader, and all that are less than ``factor`` times slower."""
        return self._record.order().within(factor)

    def measurement(self, slug: str) -> Measurement:
        return self._record[slug]

    def adopt(self, item: Measurement) -> None:
        """Go on from a measurement to which another comparison of the same case has added processes."""
        self._record.update(item.strategy, **structs.asdict(item))
        self._record.analyse()

    def processes(self, slug: str) -> int:
        return len(self._record[slug].replicas)

    def is_timed(self, slug: str) -> bool:
        return self._record[slug].outcome == "ok" and self._record[slug].latency is not None

    def finish(self, status: Status, reason: str, untimed: Error) -> None:
        """Settle what is open; more processes may still be asked for. ``untimed``: why strategies have not been
        timed that could be."""
        for item in self._record.items():
            if item.outcome in ("ok", "not_run") and not item.replicas and item.error is None and not item.twin_of:
                self._record.update(item.strategy, error=untimed)
        for file in self._bench.folder.glob("reference*"):
            file.unlink(missing_ok=True)
        self._bench.close(status, reason)

    def end(self) -> None:
        """Remove its files."""
        self._bench.remove_files()

    @contextlib.contextmanager
    def _taking_turns(self, budget_s: float) -> Iterator[Turns]:
        with stages.taking_turns(self._bench, budget_s) as turns:
            yield turns
        self._bench.say(result=True)
