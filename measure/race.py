"""First calls and rounds: the timing subjects of a job, which live until their strategy's place is clear."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from measure import rounds, statistics
from measure.dialogue import Dialogue, Dialogues, SubjectFailed
from measure.record import Record
from measure.request import Request
from measure.run import Replica, Status
from measure.subject import Spec
from measure.timing import SAMPLE_S, calls_per_sample

# A sample that lasts this many times the usual brings its own data into the caches, without a call before it.
_WARM_WITHIN = 10
_PUBLISH_EVERY_ROUNDS = 5
_BUDGET = "the time budget was spent before the ranking was decided"


@dataclass(frozen=True)
class _Live:
    """A timing subject that waits to be sampled: ``calls`` per sample, each of about ``call_s``."""

    subject: int
    slug: str
    replica: int
    call_s: float
    calls: int


class Race:
    """Times strategies until the ranking of the leaders is decided or the budget is spent.

    ``spec`` and ``timeout_s`` make and bound a timing subject of a strategy, ``live_bytes`` is what it takes while it
    lives, ``room_bytes`` what all of them may take together; ``say`` publishes.
    """

    def __init__(
        self,
        request: Request,
        rules: rounds.Rules,
        record: Record,
        dialogues: Dialogues,
        say: Callable[..., None],
        *,
        spec: Callable[[str], Spec],
        timeout_s: Callable[[str], float],
        live_bytes: Callable[[str], int],
        room_bytes: Callable[[], int],
        started_s: float,
        sample_timeout_floor_s: float,
    ) -> None:
        self._request, self._rules, self._record = request, rules, record
        self._dialogues, self._say = dialogues, say
        self._spec, self._timeout_s = spec, timeout_s
        self._live_bytes, self._room_bytes = live_bytes, room_bytes
        self._started_s = started_s
        self._sample_timeout_floor_s = sample_timeout_floor_s
        self._live: dict[int, _Live] = {}
        self._round = 0

    def run(self, slugs: Sequence[str]) -> tuple[Status, str]:
        """Time the strategies; how the run ended, and why it stopped."""
        if not slugs:
            return "complete", "no strategy was left to be timed"
        if not self._scout(slugs):
            return "budget", _BUDGET
        levels = self._record.levels()
        if not levels:
            return "complete", "no strategy was left to be ranked"
        racing = rounds.contenders(levels, self._record.run.analysis)
        self._retire([live for live in self._live.values() if live.slug not in racing], "clear")
        status, reason = self._decide(racing)
        self.end("decided" if status == "complete" else "budget")
        return status, reason

    def end(self, reason: str) -> None:
        """Let go of every subject that still lives."""
        self._retire(list(self._live.values()), reason)

    # --- the two parts -----------------------------------------------------------------------------------------------

    def _scout(self, slugs: Sequence[str]) -> bool:
        """One process and a few rounds for everybody, in cohorts where not all fit; whether the budget sufficed."""
        cohorts = rounds.cohorts({slug: self._live_bytes(slug) for slug in slugs}, self._room_bytes())
        for number, cohort in enumerate(cohorts):
            self._say("timing first calls")
            for slug in cohort:
                if self._budget_left_s() <= 0:
                    return False
                self._dialogues.hold([self._enter(slug, len(self._record[slug].replicas))])
            self._sample_rounds(
                {
                    live.subject: rounds.scout_rounds(self._rules, live.call_s, self._request.budget_s)
                    for live in self._live.values()
                }
            )
            if number < len(cohorts) - 1:
                self._retire(list(self._live.values()), "cohort")
        return self._budget_left_s() > 0

    def _decide(self, racing: Sequence[str]) -> tuple[Status, str]:
        """Give the contenders, and the twin of the first, processes and rounds until the data decide."""
        twin = self._record.enter_twin(racing[0])
        self._say(f"starting more processes of {', '.join(racing)}")
        room = self._room_bytes() - sum(self._live_bytes(live.slug) for live in self._live.values())
        alive = [live.slug for live in self._live.values()]
        wanted = rounds.replicas([*racing, twin], alive, self._rules.replicas)
        batches = rounds.batches(wanted, self._live_bytes, room, self._room_bytes())
        for number, batch in enumerate(batches):
            if number:
                self._retire(list(self._live.values()), "cohort")
            # The first calls of replicas are not reported: they may overlap.
            self._dialogues.hold(
                (
                    self._enter(slug, len(self._record[slug].replicas))
                    for slug in batch
                    if self._budget_left_s() > 0
                ),
                at_once=2,
            )
            for done in range(1, self._rules.most_rounds + 1):
                if self._budget_left_s() <= 0 or not self._live:
                    return "budget", _BUDGET
                self._sample_rounds(dict.fromkeys(self._live, 1))
                if done >= self._rules.least_rounds and (self._is_decided(racing) or number < len(batches) - 1):
                    break
        if self._is_decided(racing):
            return "complete", "the ranking of the leaders is decided"
        return "complete", "more rounds would not separate the leaders: they tie at this run's resolution"

    def _is_decided(self, racing: Sequence[str]) -> bool:
        levels = self._record.levels()
        analysis = self._record.run.analysis
        items = self._record.items()
        control = statistics.control(items, statistics.levels(items), analysis.confidence)
        resolution = control.resolution if control else 0.0
        return rounds.decided(levels, [slug for slug in racing if slug in levels], analysis, resolution)

    # --- subjects ----------------------------------------------------------------------------------------------------

    def _enter(self, slug: str, replica: int) -> Dialogue:
        """Start a subject, time its first call and let it settle; then it lives and waits to be sampled."""
        self._record.set_stage([slug], "first call")
        self._say()
        timeout_s = self._timeout_s(slug)
        subject = self._dialogues.start(self._spec(slug))
        try:
            yield from self._dialogues.until(subject, "ready", timeout_s)
            self._dialogues.send(subject, {"op": "first_call"})
            first = yield from self._dialogues.until(subject, "first_call", timeout_s)
            self._dialogues.send(subject, {"op": "settle"})
            settled = yield from self._dialogues.until(subject, "settled", timeout_s)
        except SubjectFailed as failure:
            self._fail(slug, "first_call", failure)
            return
        calls = calls_per_sample(settled["seconds"])
        self._live[subject] = _Live(subject, slug, replica, settled["seconds"], calls)
        self._record.add_replica(
            slug,
            Replica(id=replica, first_call_s=first["seconds"], calls_per_sample=calls, ended="interrupted"),
        )
        item = self._record[slug]
        if item.first_call_s is None:
            outcome = "ok" if item.outcome == "not_run" else item.outcome
            self._record.update(slug, first_call_s=first["seconds"], outcome=outcome)
        self._record.set_stage([slug], "sampling")
        self._say(result=replica == 0)

    def _sample_rounds(self, wanted: Mapping[int, int]) -> None:
        """Sample each subject in so many rounds, in a fresh random order each round."""
        for number in range(max(wanted.values(), default=0)):
            self._round += 1
            self._say(f"timing, round {self._round}")
            taking_part = [subject for subject, count in wanted.items() if count > number]
            for subject in rounds.shuffled(taking_part, self._record.run.analysis.seed, self._round):
                live = self._live.get(subject)
                if live is None:  # it has failed in an earlier round
                    continue
                if self._budget_left_s() <= 0 and self._has_samples(live.slug):
                    continue
                self._dialogues.hold([self._sample(live)])
            if self._round % _PUBLISH_EVERY_ROUNDS == 0:
                self._record.analyse()
                self._say(result=True)

    def _sample(self, live: _Live) -> Dialogue:
        expected_s = live.call_s * live.calls
        command = {"op": "sample", "calls": live.calls, "warm": expected_s < _WARM_WITHIN * SAMPLE_S}
        self._dialogues.send(live.subject, command)
        timeout_s = self._sample_timeout_floor_s + 10 * expected_s
        try:
            message = yield from self._dialogues.until(live.subject, "sample", timeout_s)
        except SubjectFailed as failure:
            del self._live[live.subject]
            self._record.end_replica(live.slug, live.replica, failure.outcome)
            self._fail(live.slug, "sampling", failure)
            return
        at_s = time.monotonic() - self._started_s
        self._record.add_sample(live.slug, live.replica, self._round, at_s, message["seconds"])

    def _has_samples(self, slug: str) -> bool:
        return any(replica.samples_s for replica in self._record[slug].replicas)

    def _fail(self, slug: str, stage: str, failure: SubjectFailed) -> None:
        """A strategy that has failed once is no longer sampled, whatever its other processes do."""
        self._record.update(slug, outcome=failure.outcome, stage=stage, error=failure.error)
        self._retire([live for live in self._live.values() if live.slug == slug], failure.outcome)
        self._record.set_stage([slug], "done")
        self._say(result=True)

    def _retire(self, subjects: Iterable[_Live], reason: str) -> None:
        for live in subjects:
            del self._live[live.subject]
            self._dialogues.send(live.subject, {"op": "stop"})
            self._record.end_replica(live.slug, live.replica, reason)

    def _budget_left_s(self) -> float:
        return self._started_s + self._request.budget_s - time.monotonic()
