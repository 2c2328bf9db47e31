"""Sampling: one visit after the other, within a budget of time, until the ranking is decided."""

from collections.abc import Callable, Sequence

from measure.engine import race
from measure.engine.bench import Bench
from measure.engine.visits import call_seconds, prepare, sample
from measure.model import forecast
from measure.model.run import Status

# While latencies are sampled, a page that shows them is drawn anew no more often: it uses the same processors.
_PUBLISH_EVERY_S = 2.0
# First visits of all strategies may take this many budgets more.
_FIRST_BEYOND = 2.0
# One more visit of a strategy that is not among the leaders may cost this share of the budget.
_AFFORDABLE_SHARE = 0.05
# At most so many processes are prepared before the first of them is sampled, which takes half as long as preparing them
# one after the other. Their visits take at most so many seconds together: a person wants to see figures come.
_PREPARED_TOGETHER = 12
_TOGETHER_S = 4.0
# Of the time of the whole run, what is left for the limit, which is measured after the verdict.
_FOR_THE_LIMIT_S = 5.0
_UNDECIDED = "before the ranking of the leaders was decided"
_BUDGET = f"the time budget was spent {_UNDECIDED}"
_STOPPED = f"a person has stopped it {_UNDECIDED}"


class Sampling:
    """Visits strategies of a bench. A plan, such as `race`, says who: it is given the strategies' slugs, and returns
    how it ended, and why it stopped."""

    def __init__(self, bench: Bench, budget_s: float) -> None:
        """``budget_s``: seconds from now."""
        self.budget_s = budget_s
        self._bench, self._record, self._clock = bench, bench.record, bench.clock
        self._end_s = bench.dialogues.now_s + budget_s
        self._round = bench.record.last_round()
        self._published_s = 0.0

    @property
    def _now_s(self) -> float:
        return self._bench.dialogues.now_s

    @property
    def budget_left_s(self) -> float:
        return self._end_s - self._now_s

    @property
    def _run_left_s(self) -> float:
        """Seconds that the run as a whole has left for latencies."""
        return self._clock.left_s - _FOR_THE_LIMIT_S

    def race(self, slugs: Sequence[str]) -> tuple[Status, str]:
        """Visit all strategies, then those whose rank is open until it is decided or the budget is spent."""
        rules = self._bench.settings.rules.with_budget(self.budget_s)
        if self._bench.launcher.start_method == "fresh":
            rules = rules.with_fresh_interpreters()
        self.visit_all(slugs)
        if self._bench.stopped:
            return "complete", _STOPPED
        if self.budget_left_s > -_FIRST_BEYOND * self.budget_s:
            self._end_s = max(self._end_s, self._now_s + forecast.DECIDING_SHARE * self.budget_s)
        racing = race.Race(rules, self._record.standing, self._record.enter_twin, self._affordable)
        for slugs in racing.rounds():
            if not self.visit(slugs):
                break
        else:
            return "complete", racing.reason
        if racing.reason:
            return "complete", racing.reason
        if self._bench.stopped:
            return "complete", _STOPPED
        return "budget", _BUDGET if self._run_left_s > 0 else f"{self._clock.over} {_UNDECIDED}"

    def visit_all(self, slugs: Sequence[str]) -> bool:
        """Visit every strategy once, in this order. What was asked for is timed once even beyond the budget, which is
        meant for deciding the ranking; but not without end. True if the budget sufficed."""
        self._round += 1
        self._visit_each(slugs, -_FIRST_BEYOND * self.budget_s)
        self._publish()
        return self.budget_left_s > 0

    def visit(self, slugs: Sequence[str]) -> bool:
        """Visit these in a fresh random order. True if the budget sufficed."""
        self._round += 1
        return self._visit_each(race.shuffled(slugs, self._record.run.analysis.seed, self._round), 0.0)

    def _visit_each(self, order: Sequence[str], least_left_s: float) -> bool:
        """Visit these while more than ``least_left_s`` of the budget is left. True if it sufficed."""
        while order:
            left_s = min(self.budget_left_s - least_left_s, self._run_left_s)
            if left_s <= 0 or self._bench.stopped:
                return False
            count = min(_PREPARED_TOGETHER, len(order))
            while count > 1 and not self._fit(order[:count], left_s):
                count -= 1
            message = "timing every strategy once" if self._round == 1 else "timing those whose rank is open"
            self._bench.say(message, round_number=self._round)
            self._visit_together(order[:count], least_left_s)
            order = order[count:]
            if self._now_s - self._published_s > _PUBLISH_EVERY_S:
                self._publish()
        return True

    def _visit_together(self, slugs: Sequence[str], least_left_s: float) -> None:
        prepared = prepare(self._bench, slugs)
        # Preparing takes longer than sampling: what is prepared is sampled, though forecasts may have been short, and
        # though nothing is left of the budget where processes are slow to start.
        end_s = max(self._end_s - least_left_s, self._now_s) + _TOGETHER_S
        sample(self._bench, prepared, self._round, lambda: self._now_s < end_s and not self._bench.stopped)

    def _fit(self, slugs: Sequence[str], left_s: float) -> bool:
        """True if processes of these may wait for each other, in memory and within what is left of the budget."""
        bench = self._bench
        seconds = sum(forecast.visit_s(*call_seconds(bench, slug)) for slug in slugs)
        return seconds <= min(_TOGETHER_S, left_s) and sum(map(bench.live_bytes, slugs)) <= bench.room_bytes()

    def _publish(self) -> None:
        self._record.analyse()
        self._published_s = self._now_s
        self._bench.say(result=True)

    def _affordable(self, slug: str) -> bool:
        """True if one more visit of a strategy costs little of the budget."""
        first_call_s, latency_s = call_seconds(self._bench, slug)
        return first_call_s + 2 * latency_s < _AFFORDABLE_SHARE * self.budget_s


# What is done with a sampling and the slugs of the strategies to be timed: how it ended, and why it stopped.
Plan = Callable[[Sampling, Sequence[str]], tuple[Status, str]]
