"""The record of a job: the measurements of its strategies, replaced as results arrive, and where each stands."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

import strategies
from measure.judge import analysis
from measure.model.run import DEFAULT_MEMORY, Code, Measurement, Replica, Run, Stage, Status, Warning
from measure.statistics import ranking
from measure.statistics.levels import levels_of
from measure.subject.messages import Sampled

TWIN = "#twin"
# A clock of coarse resolution may not have moved; the analysis takes logarithms.
LEAST_SAMPLE_S = 1e-9


def original(slug: str) -> str:
    """The strategy that is entered once more under a slug; any other slug as it is."""
    return slug.removesuffix(TWIN).removesuffix(DEFAULT_MEMORY)


def seed_of(run_id: str) -> int:
    """The seed of a run's shuffling: another in each run, so that what an order does is not the same in all reruns."""
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:4])


@dataclass(frozen=True)
class View:
    """A job as a watcher sees it: the run so far, the stage of each strategy, and a line on what happens now.

    ``version`` grows with each new result. ``started_s`` is on the monotonic clock. ``round_number``: of the
    round in which is sampled now. ``rough_s``: seconds of a call of each strategy, as its memory subject has it.
    """

    run: Run
    stages: Mapping[str, Stage]
    message: str = ""
    version: int = 0
    started_s: float | None = None
    forecast_s: float = 0.0
    round_number: int | None = None
    rough_s: Mapping[str, float] = field(default_factory=dict)


class Record:
    """The run of one job while it grows."""

    def __init__(self, run: Run, scripts: Mapping[str, str]) -> None:
        self._scripts = scripts
        self._items = {slug: self._blank(slug) for slug in scripts}
        self._run = run
        self.stages: dict[str, Stage] = dict.fromkeys(scripts, "waiting")
        # Shown until there is a latency, and no part of the run: a process that measures memory is never timed.
        self.rough_s: dict[str, float] = {}

    def __getitem__(self, slug: str) -> Measurement:
        return self._items[slug]

    def items(self) -> list[Measurement]:
        """All measurements, the twin's included."""
        return list(self._items.values())

    def untried(self) -> list[str]:
        """Strategies that nothing is known of, and that nothing speaks against."""
        return [item.strategy for item in self.items() if item.outcome == "not_run" and item.error is None]

    def working(self) -> list[str]:
        """Strategies that can be called, twins left out, whether their values are right or wrong."""
        return [item.strategy for item in self.items() if item.outcome in ("ok", "wrong") and not item.twin_of]

    def last_round(self) -> int:
        """The number of the last round that anybody was sampled in, 0 before the first."""
        rounds_done = (number for item in self.items() for replica in item.replicas for number in replica.rounds)
        return max(rounds_done, default=0)

    @property
    def run(self) -> Run:
        return replace(self._run, measurements=self.items())

    def set_run(self, **changes: Any) -> None:
        self._run = replace(self._run, **changes)

    def update(self, slug: str, *, stage: Stage | None = None, **changes: Any) -> None:
        if stage is not None:
            changes["stage"] = stage
        self._items[slug] = replace(self._items[slug], **changes)

    def warn(self, warning: Warning) -> None:
        """Add a warning about the run as a whole, once per code."""
        if all(known.code != warning.code for known in self._run.warnings):
            self.set_run(warnings=[*self._run.warnings, warning])

    def set_stage(self, slugs: Iterable[str], stage: Stage) -> None:
        self.stages.update(dict.fromkeys(slugs, stage))

    def enter_twin(self, slug: str) -> str:
        """Enter a strategy a second time; the twin's name."""
        return self._enter(slug, slug + TWIN, self._scripts[slug])

    def enter_default(self, slug: str, source: str) -> str:
        """Enter a strategy once more, with the script that leaves its memory to the default allocator; its name."""
        return self._enter(slug, slug + DEFAULT_MEMORY, source)

    def _enter(self, slug: str, name: str, source: str) -> str:
        code = Code(source=source, sha256=hashlib.sha256(source.encode()).hexdigest())
        self._items[name] = replace(self._blank(slug), strategy=name, twin_of=slug, code=code)
        self.stages[name] = "waiting"
        return name

    def add_replica(self, slug: str, first_call_s: float) -> int:
        """Add a process that has made its first call; the id of its replica."""
        known = self._items[slug].replicas
        replica_id = max((replica.id for replica in known), default=-1) + 1
        begun = Replica(id=replica_id, first_call_s=first_call_s, calls_per_sample=1, ended="interrupted")
        self.update(slug, replicas=[*known, begun])
        return replica_id

    def add_samples(self, slug: str, replica_id: int | None, round_number: int, at_s: float, sampled: Sampled) -> None:
        """Take in samples of a replica, which are known from ``at_s`` seconds after the run's start on."""

        def extended(replica: Replica) -> Replica:
            count = len(sampled.seconds)
            # They came together, one after the other, and after those before, which may have been heard of late.
            least_s = replica.at_s[-1] if replica.at_s else 0.0
            after_s = [sampled.calls * sum(sampled.seconds[place + 1 :]) for place in range(count)]
            return replace(
                replica,
                calls_per_sample=sampled.calls,
                rounds=[*replica.rounds, *[round_number] * count],
                at_s=[*replica.at_s, *(max(least_s, round(at_s - later_s, 4)) for later_s in after_s)],
                samples_s=[*replica.samples_s, *(max(seconds, LEAST_SAMPLE_S) for seconds in sampled.seconds)],
                faults=[*(replica.faults or []), *sampled.faults],
                kernel_s=[*(replica.kernel_s or []), *sampled.kernel_s],
                cpu_s=[*(replica.cpu_s or []), *sampled.cpu_s],
            )

        known = self._items[slug].replicas
        replicas = [extended(replica) if replica.id == replica_id else replica for replica in known]
        self.update(slug, replicas=replicas, stage="sampling")

    def end_replica(self, slug: str, replica_id: int | None, reason: str) -> None:
        """``replica_id``: None of a process that has made no call."""
        known = self._items[slug].replicas
        replicas = [replace(replica, ended=reason) if replica.id == replica_id else replica for replica in known]
        self.update(slug, replicas=replicas)

    def analyse(self) -> None:
        """Compute intervals, ranking and verdict anew from the samples."""
        self.take(analysis.analyse(self.run))

    def close(self, status: Status, reason: str, finished: str) -> None:
        """Settle what is open, and analyse what there is."""
        self.take(analysis.close(self.run, status, reason, finished))

    def order(self) -> ranking.Order:
        """The order, as it is known now, of the strategies that have a rank."""
        items = self.items()
        return ranking.Order(analysis.ranked(items, levels_of(items, self._run.analysis)), self._run.analysis)

    def take(self, run: Run) -> None:
        """Go on from a run as it is."""
        self._run = run
        self._items = {item.strategy: item for item in run.measurements}

    def _blank(self, slug: str) -> Measurement:
        strategy = strategies.parse(slug)
        source = self._scripts[slug]
        return Measurement(
            strategy=slug,
            mapper=strategy.mapper,
            mode=strategy.mode,
            options=dict(strategy.options),
            code=Code(source=source, sha256=hashlib.sha256(source.encode()).hexdigest()),
        )
