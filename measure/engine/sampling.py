"""Sampling: who starts when, who is sampled in which round, and who makes room, within a budget of time and memory."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from measure.engine import rounds
from measure.engine.bench import Bench
from measure.engine.living import Living
from measure.engine.record import TWIN
from measure.model.run import Status
from measure.subject.timing import LEAST_WARM_S, warm_up_s

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


class Sampling:
    """Times strategies of a bench. A plan, such as `race`, says what is done: it is given the strategies' slugs, and
    returns how it ended, and why it stopped."""

    def __init__(self, bench: Bench, strategies: int, budget_s: float) -> None:
        """``strategies``: how many are to be timed; ``budget_s``: seconds from now."""
        rules = bench.settings.rules
        if bench.launcher.start_method == "fresh":
            rules = rules.with_fresh_interpreters()
        self.rules = rules.among(strategies)
        self.budget_s = budget_s
        self.living = Living(bench)
        self._bench, self._record, self._dialogues = bench, bench.record, bench.dialogues
        self._end_s = time.monotonic() + budget_s
        self._cohort_anchor = ""
        self._round = bench.record.last_round()
        self._published_s = 0.0

    @property
    def budget_left_s(self) -> float:
        return self._end_s - time.monotonic()

    def race(self, slugs: Sequence[str]) -> tuple[Status, str]:
        """Scout all strategies, then sample until their ranking is decided or the budget is spent."""
        if not self.scout(slugs):
            return "budget", _BUDGET
        ranked = self._record.standing().levels
        if not ranked:
            return "complete", rounds.NOBODY
        self.living.let_go([live for live in self.living if live.slug not in ranked], "unranked")
        race = rounds.Race(self.rules, self._record.standing, self._record.enter_twin, self._affordable)
        for action in race.actions():
            if self.budget_left_s <= 0:
                return ("complete", race.reason) if race.settled() else ("budget", _BUDGET)
            match action:
                case rounds.Start(started):
                    self.start(started)
                case rounds.Sample(round_s):
                    self.sample_everybody(round_s)
                case rounds.Rest(resting, anchor):
                    self.rest(resting, anchor)
        return "complete", race.reason

    # --- what plans are made of --------------------------------------------------------------------------------------

    def scout(self, slugs: Sequence[str]) -> bool:
        """One process and a few rounds for everybody, in cohorts where not all fit. True if the budget sufficed."""
        cohorts = rounds.cohorts({slug: self._bench.live_bytes(slug) for slug in slugs}, self._bench.room_bytes())
        for number, cohort in enumerate(cohorts):
            self._bench.say("timing first calls")
            for slug in cohort:
                if any(live.slug == slug for live in self.living):
                    continue  # the anchor, which links the rounds of all cohorts
                # What was asked for is timed once even beyond the budget, which is meant for deciding the ranking;
                # but not without end.
                if self.budget_left_s > -_SCOUTING_BEYOND * self.budget_s:
                    self._dialogues.hold([self.living.enter(slug)])
            self.sample_few(self.rules.scout_rounds)
            if number < len(cohorts) - 1:
                self._cohort_anchor = cohort[0]
                self.rest(cohort[1:], cohort[0], "cohort")
        self._publish()
        return self.budget_left_s > 0

    def start(self, slugs: Sequence[str]) -> None:
        """Start processes; where they do not fit beside those that live, these are sampled and make room first."""
        self._bench.say(f"starting more processes of {', '.join(slug for slug in slugs if not slug.endswith(TWIN))}")
        live_bytes, room_bytes = self._bench.live_bytes, self._bench.room_bytes()
        least = min((live_bytes(live.slug) for live in self.living), default=0)
        for batch in rounds.batches(slugs, live_bytes, self._free_bytes(), room_bytes - least):
            needed = sum(map(live_bytes, batch))
            if self.living and needed > self._free_bytes():
                for _ in range(self.rules.least_rounds):
                    self.sample_everybody(self.rules.round_s)
                self._make_room(needed)
            # The first calls of these are not reported: they may overlap.
            entering = (self.living.enter(slug) for slug in batch if self.budget_left_s > self._first_look_s())
            self._dialogues.hold(entering, at_once=2)

    def sample_everybody(self, round_s: float) -> None:
        """Sample all that live in one round, which may take ``round_s`` seconds."""
        self._sample_rounds({live.subject: 1 for live in self.living}, round_s)

    def sample_few(self, most_rounds: int) -> None:
        """Sample all that live in a few rounds, as in scouting: in fewer than ``most_rounds`` where calls are long."""
        rules = replace(self.rules, scout_rounds=most_rounds)
        wanted = {live.subject: rounds.scout_rounds(rules, live.call_s, self.budget_s) for live in self.living}
        self._sample_rounds(wanted, rules.scout_round_s)

    def rest(self, slugs: Collection[str], anchor: str, reason: str = "clear") -> None:
        """Let go of all processes of these strategies but one of ``anchor``, or, where none of that lives any more,
        of the anchor of the cohorts."""
        living = list(self.living)
        stays = next((live for slug in (anchor, self._cohort_anchor) for live in living if live.slug == slug), None)
        self.living.let_go([live for live in living if live.slug in slugs and live is not stays], reason)

    def end(self, reason: str) -> None:
        """Let go of every subject that still lives."""
        self.living.let_go(self.living, reason)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _sample_rounds(self, wanted: Mapping[int, int], round_s: float) -> None:
        """Sample each subject in so many rounds, in a fresh random order each round. What a round leaves of
        ``round_s`` is spent on warming up, first of what runs in several threads: the fewer take turns, the longer."""
        for number in range(max(wanted.values(), default=0)):
            self._round += 1
            self._bench.say("timing", round_number=self._round)
            taking_part = [live for live in self.living if wanted.get(live.subject, 0) > number]
            threaded = {live.subject for live in taking_part if self.living.is_threaded(live.slug)}
            single_s, threaded_s = warm_up_s(round_s, len(taking_part), len(threaded))
            order = rounds.shuffled((live.subject for live in taking_part), self._record.run.analysis.seed, self._round)
            for subject in order:
                live = self.living.get(subject)
                if live is None:  # another process of its strategy has failed in this round
                    continue
                if self.budget_left_s <= 0 and self._has_samples(live.slug):
                    continue
                warm_s = threaded_s if subject in threaded else single_s
                self._dialogues.hold([self.living.sample(live, self._round, warm_s)])
            if time.monotonic() - self._published_s > _PUBLISH_EVERY_S:
                self._publish()

    def _publish(self) -> None:
        self._record.analyse()
        self._published_s = time.monotonic()
        self._bench.say(result=True)

    def _make_room(self, needed_bytes: int) -> None:
        """Let go of all processes but the one that takes least, which links the rounds before to those that follow;
        of that too where it is in the way."""
        smallest, *others = sorted(self.living, key=lambda live: self._bench.live_bytes(live.slug))
        self.living.let_go(others, "cohort")
        if needed_bytes > self._free_bytes():
            self.living.let_go([smallest], "cohort")

    def _free_bytes(self) -> int:
        return self._bench.room_bytes() - self.living.bytes()

    def _affordable(self, slug: str) -> bool:
        """True if one more process of a strategy costs little of the budget."""
        item = self._record[slug]
        latency_s = max((replica.samples_s[-1] for replica in item.replicas if replica.samples_s), default=0.0)
        cost_s = (item.first_call_s or 0.0) + self.rules.least_rounds * latency_s
        return cost_s < _AFFORDABLE_SHARE * self.budget_s

    def _first_look_s(self) -> float:
        """Seconds of the rounds after which the ranking is looked at: a process that is started when less is left of
        the budget tells nothing itself, and takes from those that live the time to tell anything."""
        round_s = sum(LEAST_WARM_S + live.calls * live.call_s for live in self.living)
        first_look_s = self.rules.least_rounds * max(self.rules.round_s, round_s)
        return min(first_look_s, _FIRST_LOOK_SHARE * self.budget_s)

    def _has_samples(self, slug: str) -> bool:
        return any(replica.samples_s for replica in self._record[slug].replicas)


# What is done with a sampling and the slugs of the strategies to be timed: how it ended, and why it stopped.
Plan = Callable[[Sampling, Sequence[str]], tuple[Status, str]]
