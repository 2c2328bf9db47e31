"""The rules of racing, as functions of data: the next strategy to sample, the ones that get more processes, the end."""

import hashlib
import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

from measure.model.processes import BEHIND, CONTENDER, DOUBTED, FRESH, MORE, MOST
from measure.model.run import Analysis
from measure.statistics.intervals import Level
from measure.statistics.ranking import Order, equivalent


@dataclass(frozen=True)
class Rules:
    """The amounts of sampling: trades of time against certainty."""

    scout_rounds: int = 5  # everybody's first rounds, with one process each
    # Seconds that a round over all subjects may take at the least, so that each can come back to its pace; longer where
    # there are few strategies to share the time. In scouting rounds of 0.15 s the leader of twelve read 1.5 times as
    # long as later, in those of 0.3 s 1.1 to 1.4 times, in these 0.9 to 1.2 times.
    scout_round_s: float = 0.4
    side_round_s: float = 0.3
    round_s: float = 0.45
    shared_round_s: float = 2.0
    # One process in some dozens is about twice as slow as others of its strategy. So what is up to this many times
    # slower than the leader, by one process each, gets a second opinion before it counts as clearly slower.
    doubted_within: float = 3.0
    replicas_doubted: int = DOUBTED
    rounds_doubted: int = 3
    replicas: int = CONTENDER
    more_replicas: int = MORE  # further processes where the ranking is still open
    most_replicas: int = MOST
    # Ranks behind the contenders matter less: a few processes, whose spread is pooled over the run, and few rounds.
    most_behind: int = 4  # the fastest of them; the others stay ties
    replicas_behind: int = BEHIND
    rounds_behind: int = 3
    least_rounds: int = 4  # with all processes of the contenders, before the first look at the ranking
    rounds_between_looks: int = 2  # every look is a chance to stop on a coincidence
    most_rounds: int = 8  # beyond, the spread between processes dominates and more rounds add little
    # A sample of a slow strategy takes this share of the budget at most, all its scouting rounds together.
    slow_share: float = 0.15

    def __post_init__(self) -> None:
        looks = range(self.least_rounds, self.most_rounds + 1)
        if self.more_replicas < 1 or not any(number % self.rounds_between_looks == 0 for number in looks):
            raise ValueError(f"{self} never ends: it needs more_replicas, and a look within its rounds")

    def among(self, strategies: int) -> "Rules":
        """The plan for so many strategies: the rounds of few may take longer."""
        return replace(self, round_s=max(self.round_s, self.shared_round_s / max(1, strategies)))

    def with_fresh_interpreters(self) -> "Rules":
        """The plan where each process has to import TensorFlow for seconds: fewer of them, and wider intervals."""
        few = min(FRESH, self.replicas)
        return replace(self, replicas=few, most_replicas=few)


def seed(run_id: str) -> int:
    """The seed of a run's shuffling: another in each run, so that what an order does is not the same in all reruns."""
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:4])


def shuffled(subjects: Iterable[int], seed: int, round_number: int) -> list[int]:
    """A fresh random order for each round, reproducible from the run's seed."""
    order = sorted(subjects)
    random.Random(seed * 1_000_003 + round_number).shuffle(order)
    return order


def scout_rounds(rules: Rules, call_s: float, budget_s: float) -> int:
    """Rounds for a strategy while scouting: fewer where a call is long, never none."""
    affordable = int(rules.slow_share * budget_s / max(call_s, 1e-9))
    return max(1, min(rules.scout_rounds, affordable))


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

    def ordered(self) -> list[str]:
        """Slugs, fastest first."""
        return self.order.fastest_first

    def is_open(self, faster: str, slower: str) -> bool:
        """True if two neighbours are neither separated nor shown equivalent within the margin."""
        return not equivalent(self.order.ratio(slower, faster), self.analysis.margin) and not self.order.separated(
            slower, faster
        )

    def undecided(self, among: Collection[str] | None = None) -> list[str]:
        """Strategies whose place among their neighbours is open, fastest first; ``among``: only these are looked at."""
        ordered = [slug for slug in self.ordered() if among is None or slug in among]
        members = {slug for pair in pairwise(ordered) if self.is_open(*pair) for slug in pair}
        return [slug for slug in ordered if slug in members]

    def near(self) -> list[str]:
        """The leader, and all whose ratio to it, at the low end of its interval, is within the margin: those worth
        more processes while one process of each is all that there is."""
        ordered = self.ordered()
        margin = self.analysis.margin
        return [slug for slug in ordered if slug == ordered[0] or self.order.ratio(slug, ordered[0]).low < 1 + margin]

    def within(self, factor: float) -> list[str]:
        """The leader, and all that are less than ``factor`` times slower, as far as is known."""
        ordered = self.ordered()
        return [
            slug for slug in ordered if self.levels[slug].log_mean < self.levels[ordered[0]].log_mean + math.log(factor)
        ]

    def contenders(self) -> list[str]:
        """The leader, and all that the ranking does not separate from it."""
        return self.order.groups()[0] if self.levels else []


@dataclass(frozen=True)
class Start:
    """Start one more process of each of these, in this order."""

    slugs: tuple[str, ...]


@dataclass(frozen=True)
class Sample:
    """Sample every living process in one more round, which may take ``round_s`` seconds."""

    round_s: float


@dataclass(frozen=True)
class Rest:
    """Let go of the processes of these: their place is clear. One of ``anchor`` stays, so that there is a process that
    takes part in every round and links all of them."""

    slugs: tuple[str, ...]
    anchor: str


Action = Start | Sample | Rest

NOBODY = "no strategy was left to be ranked"


class StopRule(Protocol):
    """Says when sampling has been enough, and why."""

    @property
    def reason(self) -> str: ...

    def finished(self, standing: Standing, racing: Collection[str], processes: int, rounds_done: int) -> bool: ...


@dataclass(frozen=True)
class Decided:
    """Every two neighbours among the contenders are separated, or shown equivalent within the margin, and each has the
    processes of a contender: a budget that is nearly spent leaves some without."""

    least_processes: int
    reason: str = "the leaders are separated, or shown equivalent within the margin"

    def finished(self, standing: Standing, racing: Collection[str], processes: int, rounds_done: int) -> bool:
        known = [standing.levels[slug].processes for slug in racing if slug in standing.levels]
        return all(processes >= self.least_processes for processes in known) and not standing.undecided(racing)


@dataclass(frozen=True)
class Exhausted:
    """The stop rule that holds once as many processes and rounds have been sampled as the rules allow."""

    most_processes: int
    most_rounds: int
    reason: str = "more processes would hardly separate the leaders: they tie at this run's resolution"

    def finished(self, standing: Standing, racing: Collection[str], processes: int, rounds_done: int) -> bool:
        return processes >= self.most_processes and rounds_done >= self.most_rounds


class Race:
    """Sends processes and rounds to where the ranking is open, until a stop rule is satisfied.

    First to the contenders for the lead, then to open ranks behind them, as far as these are ``affordable``.
    ``standing`` tells what the data say now; whoever executes `actions` adds to them. The twin of the leader gets as
    many processes as a contender does.
    """

    def __init__(
        self,
        rules: Rules,
        standing: Callable[[], Standing],
        enter_twin: Callable[[str], str],
        affordable: Callable[[str], bool] = lambda slug: True,
    ) -> None:
        self._rules, self._standing, self._enter_twin, self._affordable = rules, standing, enter_twin, affordable
        self._processes: dict[str, int] = {}
        self._anchor = ""
        self.reason = ""

    def actions(self) -> Iterator[Action]:
        """Yield what to do next, until `reason` says why it is enough. One process and the scouting rounds of every
        strategy have been done."""
        standing = self._standing()
        known, contenders = standing.ordered(), standing.near()
        self._processes, self._anchor = dict.fromkeys(known, 1), contenders[0]
        doubted = [
            slug
            for slug in standing.within(self._rules.doubted_within)
            if slug not in contenders and self._affordable(slug)
        ]
        yield self._rest(slug for slug in known if slug not in contenders and slug not in doubted)
        if doubted:
            yield from self._start(doubted, self._rules.replicas_doubted)
            for _ in range(self._rules.rounds_doubted):
                yield Sample(self._rules.side_round_s)
            near = self._standing().near()
            contenders = [slug for slug in contenders + doubted if slug in near or slug in contenders]
            yield self._rest(slug for slug in doubted if slug not in near)
        contenders = [slug for slug in contenders if slug in self._standing().levels]
        if not contenders:
            self.reason = NOBODY
            return
        twin = self._enter_twin(contenders[0])
        self._processes[twin] = 0
        yield from self._lead(contenders, twin)
        if behind := [slug for slug in self._standing().undecided() if slug not in contenders]:
            affordable = [slug for slug in behind if self._affordable(slug)]
            yield from self._behind(affordable[: self._rules.most_behind], [*contenders, twin])
            # What has more processes now may turn out to tie with the leader.
            yield from self._lead(contenders, twin)

    def settled(self) -> bool:
        """True if `reason` still says truly why it is enough."""
        standing = self._standing()
        return bool(self.reason) and (self.reason != Decided.reason or not standing.undecided(standing.contenders()))

    def _lead(self, contenders: list[str], twin: str) -> Iterator[Action]:
        """Decide the lead; whoever turns out to tie with the leader becomes one of the ``contenders``."""
        if not self.reason:
            yield from self._decide(contenders, twin)
        # With more processes, and the twin's word on what the run resolves, others may turn out to tie.
        while more := [slug for slug in self._standing().contenders() if slug not in contenders]:
            self.reason = ""
            contenders += more
            yield from self._decide(contenders, twin)
        if not self.settled():
            self.reason = Exhausted.reason

    def _behind(self, slugs: Sequence[str], leaders: Sequence[str]) -> Iterator[Action]:
        """A few more processes and rounds for open ranks behind the contenders."""
        yield self._rest(leaders)
        yield from self._start(slugs, self._rules.replicas_behind)
        for _ in range(self._rules.rounds_behind):
            yield Sample(self._rules.side_round_s)

    def _rest(self, slugs: Iterable[str]) -> Rest:
        return Rest(tuple(slugs), self._anchor)

    def _start(self, slugs: Sequence[str], target: int) -> Iterator[Action]:
        while missing := tuple(slug for slug in slugs if self._processes[slug] < target):
            for slug in missing:
                self._processes[slug] += 1
            yield Start(missing)

    def _decide(self, racing: Sequence[str], twin: str) -> Iterator[Action]:
        """Sample the contenders and the twin until the order among them is decided, or enough."""
        rules, among, target = self._rules, tuple(racing), self._rules.replicas
        stop_rules: tuple[StopRule, ...] = (Decided(rules.replicas), Exhausted(rules.most_replicas, rules.most_rounds))
        while True:
            yield from self._start([*racing, twin], target)
            standing = self._standing()
            for rounds_done in range(1, rules.most_rounds + 1):
                yield Sample(rules.round_s)
                if rounds_done >= rules.least_rounds and rounds_done % rules.rounds_between_looks == 0:
                    standing = self._standing()
                    for rule in stop_rules:
                        if rule.finished(standing, among, target, rounds_done):
                            self.reason = rule.reason
                            return
            # None is open where only processes are missing.
            still_open = standing.undecided(among) or racing
            yield self._rest(slug for slug in racing if slug not in still_open)
            racing = still_open
            target += rules.more_replicas


def cohorts(bytes_by_slug: Mapping[str, int], room: int) -> list[list[str]]:
    """Part strategies into those that can live at the same time. Where not all can, every cohort has the same
    anchor, the strategy that needs the least: a change of the machine's pace between cohorts shows on it."""
    slugs = list(bytes_by_slug)
    if sum(bytes_by_slug.values()) <= room or len(slugs) < 2:
        return [slugs]
    anchor = min(slugs, key=lambda slug: bytes_by_slug[slug])
    parts: list[list[str]] = []
    free = 0
    for slug in slugs:
        if slug == anchor:
            continue
        if not parts or bytes_by_slug[slug] > free:
            parts.append([anchor])
            free = room - bytes_by_slug[anchor]
        parts[-1].append(slug)
        free -= bytes_by_slug[slug]
    return parts


def batches(wanted: Sequence[str], live_bytes: Callable[[str], int], free: int, room: int) -> list[list[str]]:
    """Part ``wanted`` into batches that fit: the first into what is ``free`` beside the living, others in ``room``."""
    parts: list[list[str]] = [[]]
    for slug in wanted:
        if live_bytes(slug) > free and (parts[-1] or free < room):
            parts.append([])
            free = room
        parts[-1].append(slug)
        free -= live_bytes(slug)
    return parts
