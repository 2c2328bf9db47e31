"""A visit: one point of a sweep, a comparison that is done in parts and without a race.

Far from where lines cross, one process of each strategy and a few rounds are enough; near a crossing, and where leaders
tie, more processes are asked for later. Neither a twin nor process peaks are measured.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from measure.engine.comparison import Comparison, Settings
from measure.engine.dialogue import Dialogues
from measure.engine.launchers import Launcher
from measure.engine.record import Record, View
from measure.engine.rounds import Rules, scout_rounds
from measure.engine.sampling import Sampling
from measure.judge import advice
from measure.model.request import Request
from measure.model.run import Error, Measurement, Point, Status
from strategies.spec import Estimate

# Rounds in which further processes are sampled.
ROUNDS = 6
# Sampling wants a budget even where the sweep's is spent: what was begun is measured once.
LEAST_BUDGET_S = 1.0


class Visit(Comparison):
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
        super().__init__(run_id, request, launcher, publish, settings=settings, dialogues=dialogues)
        self._timed_before: set[str] = set()

    def begin(self, started_s: float, left_out: Mapping[str, Error], taken: Point | None = None) -> None:
        """Compute the reference. ``left_out``: strategies that are not run here, with the reason; ``taken``: what an
        earlier run knows of this point, which is not measured again."""
        self._open(started_s)
        if taken is not None:
            self._go_on_from(taken)
        if self._on_gpu:
            self._gpu_room()
        self._known_limits()
        for slug, error in left_out.items():
            if self._record[slug].error is None and self._record[slug].outcome == "not_run":
                self._record.update(slug, stage="forecast", error=error)
                self._record.set_stage([slug], "done")
        if self.unknown():
            self._reference()

    def _go_on_from(self, taken: Point) -> None:
        known = {
            item.strategy: structs.replace(item, code=item.code or self._record[item.strategy].code)
            for item in taken.measurements
        }
        run = self._record.run
        measurements = [known.get(item.strategy, item) for item in run.measurements]
        self._record.take(structs.replace(run, measurements=measurements, limit=taken.limit, warnings=taken.warnings))
        self._timed_before = {item.strategy for item in measurements if item.replicas}
        if self._timed_before:
            self._record.warn(advice.two_sessions())
        self._record.set_stage(known, "done")
        self._record.analyse()

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        return self._forecast.per_strategy

    def unknown(self) -> list[str]:
        """Strategies whose memory and correctness are still to be measured."""
        return [item.strategy for item in self._record.items() if item.outcome == "not_run" and item.error is None]

    def look(self, slugs: Sequence[str]) -> None:
        """Measure memory and correctness."""
        self._memory_stage(list(slugs))

    def suspects(self) -> list[str]:
        """Strategies for whose failure oneDNN may be to blame."""
        return self._suspects()

    def ask_onednn(self) -> None:
        """Run them once more with oneDNN off, and say where that is right."""
        self._without_onednn()

    def time(self, budget_s: float, slugs: Sequence[str] | None = None) -> Status:
        """One process and a few rounds of everybody that no earlier run has timed, or of ``slugs``; ``budget`` where
        time was too short for that."""
        able = [item.strategy for item in self._record.items() if item.outcome in ("ok", "wrong")]
        timed = [slug for slug in able if slug not in self._timed_before]
        return self._sample([slug for slug in timed if slugs is None or slug in slugs], budget_s, processes=0)

    def time_more(self, slugs: Sequence[str], processes: int, budget_s: float) -> Status:
        """So many further processes of these strategies."""
        return self._sample(slugs, budget_s, processes=processes)

    def contenders(self) -> list[str]:
        """The leader, and all that the ranking does not separate from it."""
        standing = self._record.standing()
        return standing.contenders() if standing.levels else []

    def within(self, factor: float) -> list[str]:
        """The leader, and all that are less than ``factor`` times slower."""
        standing = self._record.standing()
        return standing.within(factor) if standing.levels else []

    def measurement(self, slug: str) -> Measurement:
        return self._record[slug]

    def adopt(self, item: Measurement) -> None:
        """Go on from a measurement to which another visit of the same case has added processes."""
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
        for file in self._case_dir.glob("reference*"):
            file.unlink(missing_ok=True)
        self._close(status, reason)

    def end(self) -> None:
        """Remove its files."""
        self._remove_files()

    def _sample(self, slugs: Sequence[str], budget_s: float, processes: int) -> Status:
        request = replace(self.request, budget_s=max(budget_s, LEAST_BUDGET_S))
        status, _ = self._time(slugs, request, _Rounds, processes=processes)
        self._say(result=True)
        return status


class _Rounds(Sampling):
    """Sampling by a plan: ``processes`` further ones of each strategy, or, where that is 0, everybody's first."""

    def __init__(
        self, request: Request, rules: Rules, record: Record, *others: Any, processes: int, **more: Any
    ) -> None:
        super().__init__(request, rules, record, *others, **more)
        self._processes = processes
        # Rounds of an earlier part of the visit were others.
        earlier = (number for item in record.items() for replica in item.replicas for number in replica.rounds)
        self._round = max(earlier, default=0)

    def _time(self, slugs: Sequence[str]) -> tuple[Status, str]:
        if not self._processes:
            return ("complete", "") if self._scout(slugs) else ("budget", "")
        for _ in range(self._processes):
            self._start(slugs)
        rules, budget_s = replace(self._rules, scout_rounds=ROUNDS), self._request.budget_s
        wanted = {live.subject: scout_rounds(rules, live.call_s, budget_s) for live in self._live.values()}
        self._sample_rounds(wanted, rules.scout_round_s)
        return "complete", ""
