"""The rules of racing, as functions of data: who is visited next, and when it is enough.

A *visit* is one process of a strategy, from its start to its end. Visits go round: in each round every strategy that
still races has one, in a random order, so that each strategy's processes are spread over the whole run.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from measure.model.processes import BEHIND, CONTENDER, DOUBTED, FRESH, MOST
from measure.model.request import DEFAULT_BUDGET_S
from measure.model.run import Analysis
from measure.statistics.intervals import Level
from measure.statistics.ranking import Order, equivalent


@dataclass(frozen=True)
class Rules:
    """The number of processes of a strategy: trades of time against certainty."""

    contender: int = CONTENDER
    most: int = MOST
    most_per_s: float = MOST / DEFAULT_BUDGET_S
    # One process in some dozens is about twice as slow as others of its strategy. So what is up to this many times
    # slower than the leader, by one process each, gets a second opinion before it counts as clearly slower.
    doubted_within: float = 3.0
    doubted: int = DOUBTED
    behind: int = BEHIND

    def with_budget(self, budget_s: float) -> "Rules":
        """The plan of a run that has more time than is usual: as many more processes may decide it."""
        return replace(self, most=max(self.most, int(self.most_per_s * budget_s)))

    def with_fresh_interpreters(self) -> "Rules":
        """The plan where each process has to import TensorFlow for seconds: fewer of them, and wider intervals."""
        few = min(FRESH, self.contender)
        return replace(self, contender=few, most=max(few, self.most // 4), doubted=1, behind=1)


def seed(run_id: str) -> int:
    """The seed of a run's shuffling: another in each run, so that what an order does is not the same in all reruns."""
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:4])


def shuffled(slugs: Sequence[str], seed: int, round_number: int) -> list[str]:
    """A fresh random order for each round, reproducible from the run's seed."""
    order = sorted(slugs)
    random.Random(seed * 1_000_003 + round_number).shuffle(order)
    return order


@dataclass(frozen=True)
class Standing:
    """The state of the race at one moment: levels of the strategies that are ranked, and the smallest difference
    (relative) that the run can resolve."""

    levels: Mapping[str, Level]
    resolution: float
    analysis: Analysis

    @cached_property
    def order(self) -> Order:
        return Order(self.levels, self.analysis, self.resolution)

    def is_open(self, faster: str, slower: str) -> bool:
        """True if two neighbours are neither separated nor shown equivalent within the margin."""
        are_equal = equivalent(self.order.ratio(slower, faster), self.analysis.margin)
        return not are_equal and not self.order.separated(slower, faster)

    def undecided(self, among: Sequence[str]) -> list[str]:
        """Strategies whose place among their neighbours is open, fastest first; only those ``among`` are looked at."""
        ordered = [slug for slug in self.order.fastest_first if slug in among]
        members = {slug for pair in pairwise(ordered) if self.is_open(*pair) for slug in pair}
        return [slug for slug in ordered if slug in members]

    def within(self, factor: float) -> list[str]:
        """The leader, and all that are less than ``factor`` times slower, as far as is known."""
        ordered = self.order.fastest_first
        return [slug for slug in ordered if self.order.ratio(slug, ordered[0]).ratio < factor]

    def contenders(self) -> list[str]:
        """The leader, and all that the ranking does not separate from it."""
        return self.order.groups()[0] if self.levels else []


NOBODY = "no strategy was left to be ranked"
DECIDED = "the leaders are separated, or shown equivalent within the margin"
EXHAUSTED = "more processes would hardly separate the leaders: they tie at this run's resolution"


class Race:
    """Sends visits to where the ranking is open. ``standing`` tells what the data say now; whoever makes the visits of
    `rounds` adds to them. Every strategy has been visited once. The twin of who leads first races from the second round
    on, so that a run that ends early has a control too, and gets as many processes as a contender does."""

    def __init__(
        self,
        rules: Rules,
        standing: Callable[[], Standing],
        enter_twin: Callable[[str], str],
        affordable: Callable[[str], bool] = lambda slug: True,
    ) -> None:
        self._rules, self._standing, self._enter_twin, self._affordable = rules, standing, enter_twin, affordable
        self._visits = Counter(standing().levels.keys())
        self._twin_of = self._twin = ""
        self.reason = ""

    def rounds(self) -> Iterator[list[str]]:
        """Yield who is visited in the next round, until `reason` says why it is enough."""
        if not self._standing().levels:
            self.reason = NOBODY
            return
        for _ in range(self._rules.doubted - 1):
            near = self._standing().within(self._rules.doubted_within)
            self._enter_twin_of(near[0])
            racing = [slug for slug in near if slug == near[0] or self._affordable(slug)]
            # With two processes a twin has an interval: a run that ends after this round has a control.
            yield self._counted([*racing, self._twin, self._twin])
        yield from self._lead()
        # With more processes behind the leaders, another may turn out to tie with them.
        yield from self._behind()
        yield from self._lead()

    def _lead(self) -> Iterator[list[str]]:
        """Decide the lead; whoever turns out to tie with the leader is visited as often as a contender is."""
        while contenders := self._standing().contenders():
            self._enter_twin_of(contenders[0])
            # A twin says nothing without the strategy that it is of, which may have lost the lead.
            racing = [*dict.fromkeys([*contenders, self._twin_of]), self._twin]
            few = [slug for slug in racing if self._visits[slug] < self._rules.contender]
            still_open = few or self._standing().undecided(contenders)
            if not still_open:
                self.reason = DECIDED
                return
            going_on = [slug for slug in still_open if self._visits[slug] < self._rules.most]
            if not going_on:
                self.reason = EXHAUSTED
                return
            others = [slug for slug in going_on if slug != self._twin]
            # Whoever races, the twin races too; it entered late, and catches up.
            is_late = self._visits[self._twin] < min((self._visits[slug] for slug in others), default=0)
            of_twin = min(1 + is_late, self._rules.most - self._visits[self._twin])
            self.reason = ""  # of those who have led until now
            yield self._counted([*others, *[self._twin] * of_twin])
        self.reason = NOBODY

    def _behind(self) -> Iterator[list[str]]:
        """A few more processes for open ranks behind the leaders."""
        standing = self._standing()
        leaders, ordered = standing.contenders(), standing.order.fastest_first
        wanted = [slug for slug in standing.undecided(ordered) if slug not in leaders and self._affordable(slug)]
        while few := [slug for slug in wanted if self._visits[slug] < self._rules.behind]:
            yield self._counted(few)

    def _enter_twin_of(self, leader: str) -> None:
        """Enter the twin of who leads first; another one's, where that strategy has failed."""
        if self._twin_of not in self._standing().levels:
            self._twin_of, self._twin = leader, self._enter_twin(leader)

    def _counted(self, slugs: list[str]) -> list[str]:
        self._visits.update(slugs)
        return slugs
