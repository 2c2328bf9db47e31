"""Latency: processes of the strategies, all alive, are timed in interleaved slices of a hundredth of a second.

In a round each process has one slice. Only one process works at a time, so that the machine does the same to all in a
round, and the analysis takes the round out. All strategies start one process, and after a few rounds a second one; the
fastest is entered once more as a control. Those that may be the fastest get further processes. Where the budget is
automatic, sampling goes on after its planned end for as long as the answer is not usable.
"""

import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from measure.engine import record
from measure.engine.bench import Bench
from measure.engine.record import TWIN, original
from measure.judge import analysis
from measure.judge.findings import TELLING, USUAL, findings, open_question
from measure.judge.levels import RERUN, Levels, Order, has_samples, levels_of, slices_of
from measure.judge.warnings import BUSY_DURING_CORES
from measure.machine.environment import C_LIBRARY
from measure.pool.dialogue import Dialogue, Part, SubjectFailed
from measure.run import forecast
from measure.run.request import script_of
from measure.run.run import DEFAULT_MEMORY, TIME_OVER, Replica, Status
from measure.subject import messages
from measure.subject.timing import LONG_CALL_S, TURN_S, WARM_S

# Rounds with one process of each strategy, then with two, which is enough for a ratio; and how many times slower than
# the fastest a strategy is that is clearly no choice.
FIRST_ROUNDS, SECOND_ROUNDS, FAR = 2, 3, 3.0
# Until there are enough for a ratio, a clearly slower strategy has slices whose call takes no more than this share of
# the time that is left; then those that take this share of the time, so that they are spread over all of it.
_CALL_SHARE, _SLOW_SHARE = 0.04, 0.02
# A clearly slower strategy whose first call takes longer gets its second process only after the planned end.
_QUICK_START_S = 0.5
# Rounds of the same processes, before it is looked whether further ones are needed. One is where processes of one
# strategy differ by more than reruns do.
ROUNDS = 12
# More samples hardly help once the variance of a latency is this multiple of that of reruns.
_SHARP = 0.75
# Seconds between two checks after the planned end whether the answer is usable.
_ASK_EVERY_S = 1.0
# Fastest strategies whose medians differ by no more are as good as each other.
_EQUAL = 0.05
# Processes are started within this share of the time that is left, so that there is some for turns.
_STARTS_SHARE = 2 / 3
# While latencies are sampled, a page that shows them is drawn anew no more often: it uses the same processors.
_PUBLISH_EVERY_S = 2.0
# Of the time of the whole run, this share is left for the limit, which is measured after the verdict.
_LIMIT_SHARE = 0.2
# The last turn, and the analysis after it.
_LAST_S = 0.5
_SPENT, _UNDECIDED = "the time budget was spent", "before the fastest was told from all others"


@dataclass(eq=False)
class Process:
    """A process of a strategy, or twin. ``subject``: None while it has none that answers; ``place``: of what it has
    given, among the replicas of its strategy."""

    slug: str
    subject: int | None = None
    place: int = 0


class Turns:
    """The processes of a bench, which take turns until ``planned_s``, and while the answer is not usable until
    ``end_s``."""

    def __init__(self, bench: Bench, planned_s: float, end_s: float) -> None:
        self._bench, self._dialogues, self._clock = bench, bench.dialogues, bench.clock
        self._planned_s, self._end_s = planned_s - _LAST_S, end_s - _LAST_S
        self._extended, self._asked_s = "", 0.0  # why sampling goes on after its planned end, and when that was asked
        self._room_bytes = bench.room_bytes()
        self._alive: list[Process] = []
        self._round = 0
        self._begun_s = self._published_s = self._clock.now_s
        self._near: set[str] = set()

    def race(self, slugs: Sequence[str]) -> tuple[Status, str]:
        """Time all strategies; then those that may be the fastest, until the answer is known or the time is over. How
        that ended, and why. ``slugs``: the fastest first, so that a short budget leaves out the slowest."""
        bench = self._bench
        self._take_turns(dict.fromkeys(slugs, 1), FIRST_ROUNDS, first=True)
        order = self._order()
        if not order.fastest_first:
            if bench.stopped:
                return "complete", "a person has stopped it before anything was timed"
            open_ = [item.error for item in bench.record.measurements if item.outcome in ("ok", "not_run")]
            if any(error is None or error.type == TIME_OVER for error in open_):
                return "budget", f"{_SPENT} before anything was timed: the machine is slower than forecast"
            return "complete", "no strategy was left to be ranked"
        near, late = order.within(FAR), list[str]()
        if bench.settings.controls:
            others = [slug for slug in slugs if slug not in near and bench[slug].error is None]
            late = [slug for slug in others if not self._starts_quickly(slug)]
            others = [slug for slug in others if slug not in late]
            defaults = self._enter_defaults(near, order.fastest_first)
            first, *next_ = near
            near.append(bench.enter(first + TWIN, script_of(bench.request, first)))
            # A ratio needs two processes of both. The fastest come last, and stay where not all fit into memory.
            self._take_turns(dict.fromkeys([first, *others, *defaults, *next_, near[-1]], 2), SECOND_ROUNDS)
        living = Counter(process.slug for process in self._alive)
        slow = {slug: count for slug, count in living.items() if slug in slugs and slug not in near}
        processes, most = 2, bench.settings.most_processes
        for number in itertools.count(2):
            fastest = self._fastest()
            wanted = {slug: processes if original(slug) in fastest else 2 for slug in near}
            if not self._take_turns(wanted | slow | dict.fromkeys(late if self._extended else (), 2), ROUNDS):
                break
            evidence, order = self._levels(), self._order()
            is_usable, fastest = not bench.settings.controls or not self._open_question(), self._fastest()
            if is_usable and len(fastest) == 1 and order.resolution <= TELLING:
                return "complete", "the fastest is told from all others"
            is_sharp = all(evidence.by_slug[slug].variance < _SHARP * RERUN**2 for slug in fastest)
            if is_usable and (is_sharp or number >= most):
                return "complete", "more samples would hardly tell the fastest from others"
            processes = min(processes + (evidence.spread.deviation > RERUN), most)
        if bench.stopped:
            return "complete", f"a person has stopped it {_UNDECIDED}"
        if self._planned_s < self._end_s and not self._open_question():
            return "complete", "the answer is usable"
        return "budget", f"{_SPENT if self._run_left_s > 0 else self._clock.over} {_UNDECIDED}"

    def end(self) -> None:
        self._end_where(lambda slug: True)

    def _open_question(self, equal: float = math.inf) -> str:
        """What is not known yet; empty once the answer is usable."""
        self._publish()
        return open_question(findings(self._bench.record), equal)

    def _has_time(self, until_s: float = math.inf) -> bool:
        """True while there is time for another round: after the planned end only while the answer is not usable, which
        watchers see."""
        bench, now_s = self._bench, self._clock.now_s
        if bench.stopped or now_s > min(until_s, self._end_s):
            return False
        if now_s <= self._planned_s:
            return True
        if self._extended and now_s - self._asked_s < _ASK_EVERY_S:
            return True
        self._asked_s, cores = now_s, bench.watch.cores_of_others()
        is_busy = cores > BUSY_DURING_CORES
        # On a quiet machine a tie stays one: more samples hardly tell its strategies apart.
        if question := self._open_question(_EQUAL if is_busy else math.inf):
            bench.extended_s = bench.forecast.max_seconds
            if is_busy:
                question = f"other programs use {cores:.1f} of {bench.record.environment['cores_granted']:g} cores"
            self._extended = f"{question}: measuring longer"
        return bool(question)

    def _levels(self) -> Levels:
        return levels_of(self._bench.record.measurements, self._bench.record.analysis)

    def _order(self) -> Order:
        """The order, as far as it is clear now, of the strategies that have a rank."""
        return Order(analysis.ranked(self._bench.record.measurements, self._levels()), self._bench.record.analysis)

    def _fastest(self) -> list[str]:
        """The strategies that may be the fastest."""
        return next(iter(self._order().groups()), [])

    def _starts_quickly(self, slug: str) -> bool:
        """True of a strategy whose second process is worth its start although it is clearly no choice."""
        is_baseline = slug == findings(self._bench.record).baseline
        return is_baseline or (self._bench[slug].first_call_s or math.inf) < _QUICK_START_S

    def _enter_defaults(self, near: Sequence[str], timed: Sequence[str]) -> list[str]:
        """Enter those ``near`` the fastest, and the baseline where its calls are short, once more with the default
        allocator, where it is the C library's and this run has memory from a pool; their slugs. A strategy whose script
        is the same with it is left out."""
        request, default = self._bench.request, self._bench.record.environment.get("tensorflow_allocator")
        if self._bench.on_gpu or request.allocator != "pool" or default != C_LIBRARY:
            return []
        baseline = [slug for slug in USUAL if slug in timed and self._call_s(slug) <= LONG_CALL_S][:1]
        scripts = {slug: script_of(request, slug, allocator="default") for slug in [*near, *baseline]}
        others = {slug: source for slug, source in scripts.items() if source != script_of(request, slug)}
        return [self._bench.enter(slug + DEFAULT_MEMORY, source) for slug, source in others.items()]

    # --- who lives ---------------------------------------------------------------------------------------------------

    def _take_turns(self, wanted: Mapping[str, int], rounds: int, *, first: bool = False) -> bool:
        """Have so many processes of each strategy take their turns. True if the time sufficed. ``first``: nobody has
        been timed yet. Those that do not fit into memory together share the time."""
        groups, done = self._groups(wanted), 0
        for number, group in enumerate(groups):
            if not (first or self._has_time()):
                break
            begun_s = self._clock.now_s
            share_s = (self._end_s - begun_s) / (len(groups) - number)
            # Who is begun first may take its first turn after the budget is spent, as long as the run has time.
            starts_s = max(share_s, self._run_left_s / 2) if first else share_s
            self._end_where(lambda slug, group=group: slug not in group)
            alive = [process.slug for process in self._alive]
            missing = [slug for slug in group for _ in range(wanted[slug] - alive.count(slug))]
            self._bench.say(self._extended or "starting processes")
            last_s = begun_s + _STARTS_SHARE * starts_s
            starts = (self._start(slug, last_s) for slug in self._bench.fastest_first(missing))
            self._dialogues.hold(starts, at_once=forecast.AT_ONCE)
            for of_group in range(rounds):
                # The first round of all goes on as long as the run may: nobody has a sample yet.
                if not self._take_round(math.inf if first and of_group == 0 else begun_s + share_s):
                    break
                done += 1
        self._publish()
        return done == rounds * len(groups)

    def _groups(self, wanted: Mapping[str, int]) -> list[list[str]]:
        """The strategies, those together of which so many processes fit into memory. The first one is in each group, so
        that all are compared with it."""
        slugs, processes = [*wanted], max(wanted.values(), default=1)
        groups = [slugs[:1]]
        for slug in slugs[1:]:
            needed_bytes = processes * sum(map(self._bench.live_bytes, [*groups[-1], slug]))
            if len(groups[-1]) > 1 and needed_bytes > self._room_bytes:
                groups.append(slugs[:1])
            groups[-1].append(slug)
        return groups if slugs else []

    def _start(self, slug: str, until_s: float) -> Dialogue:
        """Start a process, if not after ``until_s``, and have it make its first call."""
        bench, process = self._bench, Process(slug)
        if self._clock.now_s > until_s or bench.stopped or bench[slug].outcome not in ("ok", "wrong", "not_run"):
            return
        bench.stages[slug] = "first call"
        bench.say()
        try:
            ready, first = yield from self._dialogues.undisturbed(lambda: self._first_call(process))
        except SubjectFailed as failure:
            bench.fail(slug, "first_call", failure)
            return
        self._alive.append(process)
        self._begin_replica(process, first)
        if process.place == 0:
            # What TensorFlow and XLA spend once in each process, whatever the strategy, is kept apart.
            why = replace(bench[slug].why, runtime_start_s=ready.runtime_s)
            outcome = "ok" if bench[slug].outcome == "not_run" else bench[slug].outcome
            bench.update(slug, first_call_s=first.seconds, outcome=outcome, why=why)

    def _first_call(self, process: Process) -> Part[tuple[messages.Ready, messages.FirstCall]]:
        self._stop(process)
        subject = self._bench.start("timing", process.slug)
        ready = yield from self._bench.step(process.slug, subject, messages.Ready)
        self._dialogues.send(subject, messages.Command("first_call"))
        first = yield from self._bench.step(process.slug, subject, messages.FirstCall)
        process.subject = subject
        return ready, first

    def _begin_replica(self, process: Process, first: messages.FirstCall) -> None:
        place = process.place = len(self._bench[process.slug].replicas)
        self._put(process, Replica(id=place, first_call_s=first.seconds, calls_per_sample=1, ended="interrupted"))

    def _put(self, process: Process, replica: Replica) -> None:
        """Write down what a process has given."""
        replicas = [*self._bench[process.slug].replicas]
        replicas[process.place : process.place + 1] = [replica]
        self._bench.update(process.slug, replicas=replicas)

    def _stop(self, process: Process) -> None:
        if process.subject is not None:
            self._dialogues.send(process.subject, messages.Command("stop"))
            process.subject = None

    def _end_where(self, is_done: Callable[[str], bool]) -> None:
        """End the processes of strategies that are done."""
        for process in self._alive:
            if is_done(process.slug):
                self._stop(process)
        self._alive = [process for process in self._alive if not is_done(process.slug)]

    # --- turns -------------------------------------------------------------------------------------------------------

    def _take_round(self, until_s: float) -> bool:
        """Have those that live take one turn each; False where the time is over before."""
        if until_s < math.inf and not self._has_time(until_s):
            return False
        if self._bench.stopped:  # also where no process lives that would notice
            return False
        self._round += 1
        self._bench.say(self._extended or "sampling", round_number=self._round)
        # The first round in the order in which they were begun, all others in an order of their own; long calls last,
        # for which time may be short.
        order = [*self._alive]
        if self._round > 1:
            order.sort(key=lambda process: (process.slug, process.place))
            random.Random(f"{self._bench.record.analysis.seed} {self._round}").shuffle(order)
        for process in sorted(order, key=lambda process: self._call_s(process.slug) > LONG_CALL_S):
            left_s = min(self._run_left_s, until_s - self._clock.now_s)
            if left_s < (call_s := self._call_s(process.slug)) or self._bench.stopped:
                return False
            if original(process.slug) in self._near or self._is_worth(process.slug, call_s):
                self._turn(process)
        if self._round == 1 or self._clock.now_s - self._published_s > _PUBLISH_EVERY_S:
            self._publish()
        return True

    def _is_worth(self, slug: str, call_s: float) -> bool:
        """True where a slice of a strategy that is clearly no choice is worth its time."""
        item, now_s = self._bench[slug], self._clock.now_s
        if not item.is_timed:
            return True
        if has_samples(item):
            slices = slices_of(item)[1]
            return slices * max(call_s, WARM_S + TURN_S) < _SLOW_SHARE * (now_s - self._begun_s)
        is_baseline = slug == findings(self._bench.record).baseline
        end_s = self._end_s if is_baseline or self._extended else self._planned_s
        return call_s < max(_CALL_SHARE * (end_s - now_s), WARM_S + TURN_S)

    def _turn(self, process: Process) -> None:
        bench, slug = self._bench, process.slug
        bench.stages[slug] = "sampling"
        try:
            turn = self._dialogues.hold_one(lambda: self._sampled(process))
        except SubjectFailed as failure:
            ended = "interrupted" if failure.error.type == TIME_OVER else failure.outcome
            self._put(process, replace(bench[slug].replicas[process.place], ended=ended))
            self._alive.remove(process)
            bench.fail(slug, "sampling", failure)
            return
        at_s = time.monotonic() - (bench.started_s or 0.0)
        self._put(process, record.sampled(bench[slug].replicas[process.place], self._round, at_s, turn))
        bench.update(slug, stage="sampling")

    def _sampled(self, process: Process) -> Part[messages.Sampled]:
        if process.subject is None:
            # It stood still until its time was over, and goes on as another process.
            _, first = yield from self._first_call(process)
            self._begin_replica(process, first)
        assert process.subject is not None, "it has made its first call"
        subject, process.subject = process.subject, None
        self._dialogues.send(subject, messages.Command("turn"))
        turn = yield from self._bench.step(process.slug, subject, messages.Sampled)
        process.subject = subject
        return turn

    def _call_s(self, slug: str) -> float:
        """Seconds of a call, as sampled or else by forecast."""
        samples_s = [min(replica.samples_s) for replica in self._bench[slug].replicas if replica.samples_s]
        return min(samples_s, default=self._bench.forecast.per_strategy[original(slug)].latency_s)

    @property
    def _run_left_s(self) -> float:
        """Seconds that the run as a whole has left for latencies."""
        return self._clock.left_s - _LIMIT_SHARE * (self._clock.bound_s or 0.0)

    def _publish(self) -> None:
        """Publish the analysis of all samples, and note which strategies are near the fastest; after the planned end
        those that may be the fastest."""
        self._bench.analyse()
        self._published_s = self._clock.now_s
        self._near = {*(self._fastest() if self._extended else self._order().within(FAR))}
