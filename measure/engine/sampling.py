"""Sampling: one visit after the other, within a budget of time, until the ranking is decided."""

import time
from collections.abc import Callable, Sequence

from measure.engine import race
from measure.engine.bench import Bench
from measure.engine.visits import visit
from measure.model.run import Status

# While latencies are sampled, a page that shows them is drawn anew no more often: it uses the same processors.
_PUBLISH_EVERY_S = 2.0
# First visits of all strategies may take this many budgets more.
_FIRST_BEYOND = 2.0
# One more visit of a strategy that is not among the leaders may cost this share of the budget.
_AFFORDABLE_SHARE = 0.05
# So many processes are prepared side by side, which takes a third of the time of a visit off it.
_PREPARED_TOGETHER = 2
_BUDGET = "the time budget was spent before the ranking of the leaders was decided"
_STOPPED = "a person has stopped it before the ranking of the leaders was decided"


class Sampling:
    """Visits strategies of a bench. A plan, such as `race`, says who: it is given the strategies' slugs, and returns
    how it ended, and why it stopped."""

    def __init__(self, bench: Bench, budget_s: float) -> None:
        """``budget_s``: seconds from now."""
        self.budget_s = budget_s
        self._bench, self._record = bench, bench.record
        self._end_s = time.monotonic() + budget_s
        self._round = bench.record.last_round()
        self._published_s = 0.0

    @property
    def budget_left_s(self) -> float:
        return self._end_s - time.monotonic()

    def race(self, slugs: Sequence[str]) -> tuple[Status, str]:
        """Visit all strategies, then those whose rank is open until it is decided or the budget is spent."""
        rules = self._bench.settings.rules.with_budget(self.budget_s)
        if self._bench.launcher.start_method == "fresh":
            rules = rules.with_fresh_interpreters()
        self.visit_all(slugs)
        racing = race.Race(rules, self._record.standing, self._record.enter_twin, self._affordable)
        for slugs in racing.rounds():
            if not self.visit(slugs):
                break
        else:
            return "complete", racing.reason
        if racing.reason:
            return "complete", racing.reason
        return ("complete", _STOPPED) if self._bench.stopped else ("budget", _BUDGET)

    def visit_all(self, slugs: Sequence[str]) -> bool:
        """Visit every strategy once, in this order. What was asked for is timed once even beyond the budget, which is
        meant for deciding the ranking; but not without end. True if the budget sufficed."""
        self._round += 1
        for slug in slugs:
            if self.budget_left_s > -_FIRST_BEYOND * self.budget_s and not self._bench.stopped:
                self._visit([slug], f"timing {slug}")
        self._publish()
        return self.budget_left_s > 0

    def visit(self, slugs: Sequence[str]) -> bool:
        """Visit these in a fresh random order. True if the budget sufficed."""
        self._round += 1
        order = race.shuffled(slugs, self._record.run.analysis.seed, self._round)
        while order:
            if self.budget_left_s <= 0 or self._bench.stopped:
                return False
            together = order[: _PREPARED_TOGETHER if self._fit(order[:_PREPARED_TOGETHER]) else 1]
            order = order[len(together) :]
            self._visit(together, "timing those whose rank is open")
        return True

    def _visit(self, slugs: Sequence[str], message: str) -> None:
        self._bench.say(message, round_number=self._round)
        visit(self._bench, slugs, self._round)
        if time.monotonic() - self._published_s > _PUBLISH_EVERY_S:
            self._publish()

    def _fit(self, slugs: Sequence[str]) -> bool:
        """True if processes of these may live at the same time, which have all been visited before."""
        needed = sum(map(self._bench.live_bytes, slugs))
        return needed <= self._bench.room_bytes() and all(self._record[slug].replicas for slug in slugs)

    def _publish(self) -> None:
        self._record.analyse()
        self._published_s = time.monotonic()
        self._bench.say(result=True)

    def _affordable(self, slug: str) -> bool:
        """True if one more visit of a strategy costs little of the budget."""
        item = self._record[slug]
        latency_s = item.latency.median_s if item.latency else 0.0
        return (item.first_call_s or 0.0) + 2 * latency_s < _AFFORDABLE_SHARE * self.budget_s


# What is done with a sampling and the slugs of the strategies to be timed: how it ended, and why it stopped.
Plan = Callable[[Sampling, Sequence[str]], tuple[Status, str]]
