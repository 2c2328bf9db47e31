"""First calls and rounds: the timing subjects of a job, which live until their strategy's place is clear."""

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from measure.engine import rounds
from measure.engine.dialogue import Dialogue, Dialogues, SubjectFailed
from measure.engine.record import TWIN, Record
from measure.judge import advice
from measure.machine import load
from measure.model.request import Request
from measure.model.run import Replica, Status
from measure.subject.subject import Spec
from measure.subject.timing import LEAST_WARM_S, SAMPLE_S, SEVERAL_THREADS, calls_per_sample, warm_up_s

_LEAST_SAMPLE_S = 1e-9
# A sample that lasts this many times the usual brings its own data into the caches, without a call before it.
_WARM_WITHIN = 10
# Where a call is longer, calling it with other values would take more time than it is worth.
_LONG_CALL_S = 0.1
# While latencies are sampled, a page that shows them is drawn anew no more often: it uses the same processors.
_PUBLISH_EVERY_S = 5.0
# First calls and first samples of all strategies may take this many budgets more.
_SCOUTING_BEYOND = 2.0
# One more process of a strategy that is not among the leaders may cost this share of the budget.
_AFFORDABLE_SHARE = 0.03
# The rounds to the first look are waited for with this share of the budget at most: where calls are long, another
# process says more than another round.
_FIRST_LOOK_SHARE = 0.25
_BUDGET = "the time budget was spent before the ranking of the leaders was decided"


@dataclass(frozen=True)
class _Live:
    """A timing subject that waits to be sampled: ``calls`` per sample, each of about ``call_s``."""

    subject: int
    slug: str
    replica: int
    call_s: float
    calls: int


class Sampling:
    """Times strategies until their ranking is decided or the budget is spent.

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
        self._end_s = time.monotonic() + request.budget_s
        self._sample_timeout_floor_s = sample_timeout_floor_s
        self._live: dict[int, _Live] = {}
        self._busy_cores: dict[str, float] = {}  # the most of any sample of a strategy
        self._cohort_anchor = ""
        self._round = 0
        self._published_s = 0.0

    def run(self, slugs: Sequence[str]) -> tuple[Status, str]:
        """Time the strategies; how the run ended, and why it stopped."""
        if not slugs:
            return "complete", "no strategy was left to be timed"
        self._rules = self._rules.among(len(slugs))
        watch = load.Watch()
        try:
            return self._time(slugs)
        finally:
            if warning := advice.busy_during(watch.cores_of_others()):
                self._record.warn(warning)

    def _time(self, slugs: Sequence[str]) -> tuple[Status, str]:
        if not self._scout(slugs):
            return "budget", _BUDGET
        ranked = self._record.standing().levels
        if not ranked:
            return "complete", rounds.NOBODY
        self._retire([live for live in self._live.values() if live.slug not in ranked], "unranked")
        race = rounds.Race(self._rules, self._record.standing, self._record.enter_twin, self._affordable)
        for action in race.actions():
            if self._budget_left_s() <= 0:
                return ("complete", race.reason) if race.settled() else ("budget", _BUDGET)
            match action:
                case rounds.Start(started):
                    self._start(started)
                case rounds.Sample(round_s):
                    self._sample_rounds(dict.fromkeys(self._live, 1), round_s)
                case rounds.Rest(resting, anchor):
                    self._rest(resting, anchor)
        return "complete", race.reason

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
                if any(live.slug == slug for live in self._live.values()):
                    continue  # the anchor, which links the rounds of all cohorts
                # What was asked for is timed once even beyond the budget, which is meant for deciding the ranking;
                # but not without end.
                if self._budget_left_s() > -_SCOUTING_BEYOND * self._request.budget_s:
                    self._dialogues.hold([self._enter(slug)])
            self._sample_rounds(
                {
                    live.subject: rounds.scout_rounds(self._rules, live.call_s, self._request.budget_s)
                    for live in self._live.values()
                },
                self._rules.scout_round_s,
            )
            if number < len(cohorts) - 1:
                self._cohort_anchor = cohort[0]
                self._rest(cohort[1:], cohort[0], "cohort")
        self._publish()
        return self._budget_left_s() > 0

    def _start(self, slugs: Sequence[str]) -> None:
        """Start processes; where they do not fit beside those that live, these are sampled and make room first."""
        self._say(f"starting more processes of {', '.join(slug for slug in slugs if not slug.endswith(TWIN))}")
        least = min((self._live_bytes(live.slug) for live in self._live.values()), default=0)
        for batch in rounds.batches(slugs, self._live_bytes, self._free_bytes(), self._room_bytes() - least):
            needed = sum(map(self._live_bytes, batch))
            if self._live and needed > self._free_bytes():
                for _ in range(self._rules.least_rounds):
                    self._sample_rounds(dict.fromkeys(self._live, 1), self._rules.round_s)
                self._make_room(needed)
            # The first calls of these are not reported: they may overlap.
            entering = (self._enter(slug) for slug in batch if self._budget_left_s() > self._first_look_s())
            self._dialogues.hold(entering, at_once=2)

    def _make_room(self, needed_bytes: int) -> None:
        """Let go of all processes but the one that takes least, which links the rounds before to those that follow;
        of that too where it is in the way."""
        smallest, *others = sorted(self._live.values(), key=lambda live: self._live_bytes(live.slug))
        self._retire(others, "cohort")
        if needed_bytes > self._free_bytes():
            self._retire([smallest], "cohort")

    def _rest(self, slugs: Collection[str], anchor: str, reason: str = "clear") -> None:
        """Let go of all processes of these strategies but one of ``anchor``, or, where none of that lives any more,
        of the anchor of the cohorts."""
        living = list(self._live.values())
        stays = next((live for each in (anchor, self._cohort_anchor) for live in living if live.slug == each), None)
        self._retire([live for live in living if live.slug in slugs and live is not stays], reason)

    def _affordable(self, slug: str) -> bool:
        """Whether one more process of a strategy costs little of the budget."""
        item = self._record[slug]
        latency_s = max((replica.samples_s[-1] for replica in item.replicas if replica.samples_s), default=0.0)
        cost_s = (item.first_call_s or 0.0) + self._rules.least_rounds * latency_s
        return cost_s < _AFFORDABLE_SHARE * self._request.budget_s

    def _first_look_s(self) -> float:
        """Seconds of the rounds after which the ranking is looked at: a process that is started when less is left of
        the budget tells nothing itself, and takes from those that live the time to tell anything."""
        round_s = sum(LEAST_WARM_S + live.calls * live.call_s for live in self._live.values())
        first_look_s = self._rules.least_rounds * max(self._rules.round_s, round_s)
        return min(first_look_s, _FIRST_LOOK_SHARE * self._request.budget_s)

    def _free_bytes(self) -> int:
        return self._room_bytes() - sum(self._live_bytes(live.slug) for live in self._live.values())

    # --- subjects ----------------------------------------------------------------------------------------------------

    def _enter(self, slug: str) -> Dialogue:
        """Start a subject, time its first call and let it settle; then it lives and waits to be sampled."""
        if self._record[slug].outcome not in ("ok", "wrong", "not_run"):
            return  # another process of it has failed meanwhile
        self._record.set_stage([slug], "first call")
        self._say()
        timeout_s = self._timeout_s(slug)
        subject = self._dialogues.start(self._spec(slug))
        try:
            ready = yield from self._dialogues.until(subject, "ready", timeout_s)
            self._dialogues.send(subject, {"op": "first_call"})
            first = yield from self._dialogues.until(subject, "first_call", timeout_s)
            self._dialogues.send(subject, {"op": "settle"})
            settled = yield from self._dialogues.until(subject, "settled", timeout_s)
            other_s = None
            if self._record[slug].first_call_s is None and settled["seconds"] < _LONG_CALL_S:
                self._dialogues.send(subject, {"op": "other_values"})
                other_s = (yield from self._dialogues.until(subject, "other_values", timeout_s))["seconds"]
        except SubjectFailed as failure:
            self._fail(slug, "first_call", failure)
            return
        calls, replica = calls_per_sample(settled["seconds"]), len(self._record[slug].replicas)
        self._live[subject] = _Live(subject, slug, replica, settled["seconds"], calls)
        self._record.add_replica(
            slug,
            Replica(id=replica, first_call_s=first["seconds"], calls_per_sample=calls, ended="interrupted"),
        )
        item = self._record[slug]
        if item.first_call_s is None:
            outcome = "ok" if item.outcome == "not_run" else item.outcome
            # What TensorFlow and XLA spend once in each process, whatever the strategy, is kept apart.
            why = {**item.why, "runtime_start_s": ready["runtime_s"]}
            self._record.update(slug, first_call_s=first["seconds"], outcome=outcome, why=why)
            if other_s is not None and (warning := advice.compiled_values(settled["seconds"], other_s)):
                self._record.update(slug, warnings=[*item.warnings, warning])
        self._record.set_stage([slug], "sampling")
        self._say()

    def _sample_rounds(self, wanted: Mapping[int, int], round_s: float) -> None:
        """Sample each subject in so many rounds, in a fresh random order each round. What a round leaves of
        ``round_s`` is spent on warming up, first of what runs in several threads: the fewer take turns, the longer."""
        for number in range(max(wanted.values(), default=0)):
            self._round += 1
            self._say(f"timing, round {self._round}")
            taking_part = [subject for subject, count in wanted.items() if count > number and subject in self._live]
            threaded = {subject for subject in taking_part if self._is_threaded(self._live[subject].slug)}
            single_s, threaded_s = warm_up_s(round_s, len(taking_part), len(threaded))
            for subject in rounds.shuffled(taking_part, self._record.run.analysis.seed, self._round):
                live = self._live.get(subject)
                if live is None:  # another process of its strategy has failed in this round
                    continue
                if self._budget_left_s() <= 0 and self._has_samples(live.slug):
                    continue
                self._dialogues.hold([self._sample(live, threaded_s if subject in threaded else single_s)])
            if time.monotonic() - self._published_s > _PUBLISH_EVERY_S:
                self._publish()

    def _publish(self) -> None:
        self._record.analyse()
        self._published_s = time.monotonic()
        self._say(result=True)

    def _sample(self, live: _Live, warm_s: float) -> Dialogue:
        expected_s = live.call_s * live.calls
        warm_s = warm_s if expected_s < _WARM_WITHIN * SAMPLE_S else 0.0
        command = {"op": "sample", "calls": live.calls, "warm_s": warm_s}
        self._dialogues.send(live.subject, command)
        timeout_s = self._sample_timeout_floor_s + 10 * (expected_s + live.call_s)
        try:
            message = yield from self._dialogues.until(live.subject, "sample", timeout_s)
        except SubjectFailed as failure:
            del self._live[live.subject]
            self._record.end_replica(live.slug, live.replica, failure.outcome)
            self._fail(live.slug, "sampling", failure)
            return
        self._busy_cores[live.slug] = max(self._busy_cores.get(live.slug, 0.0), message["busy_cores"])
        at_s = time.monotonic() - self._started_s
        # A clock of coarse resolution may not have moved; the analysis takes logarithms.
        sample_s = max(message["seconds"], _LEAST_SAMPLE_S)
        self._record.add_sample(live.slug, live.replica, self._round, at_s, sample_s)

    def _is_threaded(self, slug: str) -> bool:
        """Whether its calls are of several threads, as far as is known."""
        return self._busy_cores.get(slug, math.inf) > SEVERAL_THREADS

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
        return self._end_s - time.monotonic()
