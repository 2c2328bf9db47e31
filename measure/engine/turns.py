"""Latency: processes of the strategies, all alive, take turns of a few hundredths of a second, in rounds.

All strategies start one process. After a few rounds those that are near the fastest get a second one, among them the
leader's twin, which is the leader once more, and whoever may still lead gets further ones. Only one process works at a
time: the machine does the same to all that take their turn in a round, and the analysis takes the round out.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from measure.engine.bench import Bench
from measure.engine.record import original
from measure.judge.default_memory import USUAL
from measure.judge.verdict import TELLING
from measure.machine import allocator
from measure.model.request import script_of
from measure.model.run import DEFAULT_MEMORY, Stage, Status
from measure.pool.dialogue import TIME_OVER, Dialogue, Part, SubjectFailed
from measure.subject import messages
from measure.subject.timing import LONG_CALL_S, TURN_S, WARM_S

# Rounds of one process each. Who is so many times slower than the fastest gets no second one, and ends where a call
# takes longer than a turn; where it is a long one, as soon as one round has told that.
FIRST_ROUNDS, FAR = 3, 3.0
# Rounds of the same processes, before it is looked whether further ones are needed.
ROUNDS = 16
# Processes are started within this share of the time that is left, so that there is some for turns.
_STARTS_SHARE = 2 / 3
_STARTED_AT_ONCE = 2
# While latencies are sampled, a page that shows them is drawn anew no more often: it uses the same processors.
_PUBLISH_EVERY_S = 2.0
# Of the time of the whole run, what is left for the limit, which is measured after the verdict, and its largest share.
_FOR_THE_LIMIT_S, _LIMIT_SHARE = 5.0, 0.2
# The last turn, and the analysis after it.
_LAST_S = 0.5

NOBODY = "no strategy was left to be ranked"
DECIDED = "the fastest is told from all others"
EXHAUSTED = "more processes would hardly tell the fastest from others"
_UNDECIDED = "before the fastest was told from all others"
_NO_TIME = "the time budget was spent before anything was timed: the machine is slower than forecast"
_SPENT, _STOPPED = f"the time budget was spent {_UNDECIDED}", f"a person has stopped it {_UNDECIDED}"


@dataclass
class Process:
    """A process of a strategy, or twin: its ``subject``, None while it has none that answers, and which replica of the
    strategy it is."""

    slug: str
    subject: int | None = None
    replica: int | None = None


class Turns:
    """The processes of a bench, which take turns for a budget of seconds from now on."""

    def __init__(self, bench: Bench, budget_s: float) -> None:
        self._bench, self._record, self._dialogues = bench, bench.record, bench.dialogues
        self._budget_s, self._end_s = budget_s, self._now_s + budget_s - _LAST_S
        self._room_bytes = bench.room_bytes()
        self._alive: list[Process] = []
        self._round = bench.record.last_round()
        self._published_s = self._now_s

    @property
    def _now_s(self) -> float:
        return self._dialogues.now_s

    def race(self, slugs: Sequence[str]) -> tuple[Status, str]:
        """Time all strategies; then those that may lead, until the fastest is known or the time is over. How that
        ended, and why. ``slugs``: the quickest first, so that a short budget leaves out what takes long."""
        self.time_first(slugs)
        near = self._record.order().within(FAR)
        if not near:
            open_ = [item.error for item in self._record.items() if item.outcome in ("ok", "not_run")]
            lacks_time = any(error is None or error.type == TIME_OVER for error in open_)
            return ("budget", _NO_TIME) if lacks_time else ("complete", NOBODY)
        far = [p.slug for p in self._alive if p.slug not in near and self._call_s(p.slug) < WARM_S + TURN_S]
        short = [slug for slug in self._record.order().fastest_first if self._call_s(slug) <= LONG_CALL_S]
        controls = self._bench.settings.controls
        defaults = self._enter_defaults(near, short) if controls else []
        if controls:
            near.append(self._record.enter_twin(near[0]))
        if defaults:  # these are not ranked, and few rounds are enough
            self._take_turns(dict.fromkeys(near, 2) | dict.fromkeys([*far, *defaults], 1), FIRST_ROUNDS)
        for processes in range(2, self._bench.settings.most_processes + 1):
            leaders = next(iter(self._record.order().groups()), [])
            wanted = {slug: processes if original(slug) in leaders else 2 for slug in near}
            if not self._take_turns(wanted | dict.fromkeys(far, 1)):
                break
            order = self._record.order()
            if len(next(iter(order.groups()), near)) == 1 and order.resolution <= TELLING:
                return "complete", DECIDED
        if self._bench.stopped:
            return "complete", _STOPPED
        if self._now_s < self._end_s and processes == self._bench.settings.most_processes:
            return "complete", EXHAUSTED
        return "budget", f"{self._bench.clock.over} {_UNDECIDED}" if self._run_left_s <= 0 else _SPENT

    def _enter_defaults(self, near: Sequence[str], short: Sequence[str]) -> list[str]:
        """Enter those ``near`` the fastest, and the baseline where it is among those whose calls are ``short``, once
        more with the default allocator, where it is the C library's and this run has memory from a pool; their names. A
        strategy whose script is the same with it is left out."""
        request, known = self._bench.request, self._record.run.environment.get("tensorflow_allocator")
        if self._bench.on_gpu or request.allocator != "pool" or known != allocator.C_LIBRARY:
            return []
        baseline = next((slug for slug in USUAL if slug in short), None)
        entered = []
        for slug in dict.fromkeys([*near, *([baseline] if baseline else [])]):
            source, code = script_of(request, slug, allocator="default"), self._record[slug].code
            if code is not None and source != code.source:
                entered.append(self._record.enter_default(slug, source))
        return entered

    def time_first(self, slugs: Sequence[str]) -> None:
        """Time one process of each strategy."""
        is_fresh = self._bench.launcher.start_method == "fresh"
        for group in self._groups(slugs, 1):
            # Who is begun now may take its first turn after the budget is spent, as long as the run has time.
            left_s = max(self._end_s - self._now_s, self._run_left_s / 2)
            self._bring(dict.fromkeys(group, 1), math.inf if is_fresh else left_s)
            if is_fresh:
                self._end_s = self._now_s + self._budget_s
            for _ in self._rounds(FIRST_ROUNDS, first=True):
                near = self._record.order().within(FAR)
                self.end([p for p in self._alive if p.slug not in near and self._call_s(p.slug) > LONG_CALL_S])
        self._publish()

    def _take_turns(self, wanted: Mapping[str, int], rounds: int = ROUNDS) -> bool:
        """Have so many processes of each strategy take their turns. True if the time sufficed."""
        groups, end_s, done = self._groups([*wanted], max(wanted.values(), default=1)), self._end_s, 0
        for place, group in enumerate(groups):
            # Those that do not fit into memory together share the time.
            self._end_s = self._now_s + (end_s - self._now_s) / (len(groups) - place)
            self._bring({slug: wanted[slug] for slug in group}, self._end_s - self._now_s)
            done += sum(1 for _ in self._rounds(rounds))
            self._end_s = end_s
        self._publish()
        return done == rounds * len(groups)

    # --- who lives ---------------------------------------------------------------------------------------------------

    def _groups(self, slugs: Sequence[str], processes: int) -> list[list[str]]:
        """The strategies, those together of which so many processes fit into memory. The first one is in each group, so
        that all are compared with it."""
        groups: list[list[str]] = [[]]
        for slug in slugs:
            needed_bytes = processes * sum(map(self._bench.live_bytes, [*groups[-1], slug]))
            if len(groups[-1]) > 1 and needed_bytes > self._room_bytes:
                groups.append([slugs[0]])
            groups[-1].append(slug)
        return groups if slugs else []

    def _bring(self, wanted: Mapping[str, int], left_s: float) -> None:
        """End the processes of all others, and start those that are missing, as far as there is time."""
        self.end([process for process in self._alive if process.slug not in wanted])
        alive = [process.slug for process in self._alive]
        missing = [slug for slug, count in wanted.items() for _ in range(count - alive.count(slug))]
        order = self._bench.starting_order(missing, _STARTS_SHARE * left_s)
        order.sort(key=lambda slug: slug.endswith(DEFAULT_MEMORY))  # what is not ranked comes last
        until_s = self._now_s + _STARTS_SHARE * left_s
        self._bench.say("starting processes")
        self._dialogues.hold((self._start(slug, until_s) for slug in order), at_once=_STARTED_AT_ONCE)

    def _start(self, slug: str, until_s: float) -> Dialogue:
        """Start a process and have it make its first call."""
        record = self._record
        if self._now_s > until_s or self._bench.stopped or record[slug].outcome not in ("ok", "wrong", "not_run"):
            return
        record.set_stage([slug], "first call")
        self._bench.say()
        process = Process(slug)
        try:
            ready, first = yield from self._dialogues.undisturbed(lambda: self._first_call(process))
        except SubjectFailed as failure:
            self._fail(process, "first_call", failure)
            return
        process.replica = record.add_replica(slug, first.seconds)
        self._alive.append(process)
        if process.replica == 0:
            # What TensorFlow and XLA spend once in each process, whatever the strategy, is kept apart.
            why = replace(record[slug].why, runtime_start_s=ready.runtime_s)
            outcome = "ok" if record[slug].outcome == "not_run" else record[slug].outcome
            record.update(slug, first_call_s=first.seconds, outcome=outcome, why=why)

    def _first_call(self, process: Process) -> Part[tuple[messages.Ready, messages.FirstCall]]:
        self._stop(process)
        subject = self._dialogues.start(self._bench.spec("timing", process.slug))
        ready = yield from self._bench.step("start", process.slug, subject, messages.Ready)
        self._dialogues.send(subject, messages.CallFirst())
        first = yield from self._bench.step("first call", process.slug, subject, messages.FirstCall)
        process.subject = subject
        return ready, first

    def _stop(self, process: Process) -> None:
        if process.subject is not None:
            self._dialogues.send(process.subject, messages.Stop())
            process.subject = None

    def end(self, processes: Sequence[Process] | None = None) -> None:
        """End these processes, or all."""
        for process in [*(self._alive if processes is None else processes)]:
            self._stop(process)
            self._alive.remove(process)
            self._record.end_replica(process.slug, process.replica, "done")

    def _fail(self, process: Process, stage: Stage, failure: SubjectFailed) -> None:
        ended = "interrupted" if failure.error.type == TIME_OVER else failure.outcome
        self._record.end_replica(process.slug, process.replica, ended)
        self._bench.fail(process.slug, stage, failure)

    # --- turns -------------------------------------------------------------------------------------------------------

    def _rounds(self, count: int, *, first: bool = False) -> Iterator[None]:
        """Rounds of those that live, each in a random order; fewer, where the time is over. ``first``: who lives has
        no sample yet, so that the first round goes on as long as the run may."""
        for number in range(count):
            self._round += 1
            self._bench.say("taking turns", round_number=self._round)
            for process in self._shuffled():
                left_s = self._run_left_s
                if number or not first:
                    left_s = min(left_s, self._end_s - self._now_s)
                if left_s < self._call_s(process.slug) or self._bench.stopped:
                    return
                self._dialogues.hold([self._turn(process)])
            if self._now_s - self._published_s > _PUBLISH_EVERY_S:
                self._publish()
            yield

    def _shuffled(self) -> list[Process]:
        """Those that live, in another order in each round of each run; long calls last, for which time may be short."""
        order = sorted(self._alive, key=lambda process: (process.slug, process.replica))
        random.Random(f"{self._record.run.analysis.seed} {self._round}").shuffle(order)
        return sorted(order, key=lambda process: self._call_s(process.slug) > LONG_CALL_S)

    def _turn(self, process: Process) -> Dialogue:
        self._record.set_stage([process.slug], "sampling")
        try:
            sampled = yield from self._dialogues.undisturbed(lambda: self._sampled(process))
        except SubjectFailed as failure:
            self._alive.remove(process)
            self._fail(process, "sampling", failure)
        else:
            self._record.add_samples(process.slug, process.replica, self._round, self._bench.passed_s, sampled)

    def _sampled(self, process: Process) -> Part[messages.Sampled]:
        if process.subject is None:
            # It stood still until its time was over, and goes on as another process.
            _, first = yield from self._first_call(process)
            process.replica = self._record.add_replica(process.slug, first.seconds)
        assert process.subject is not None, "it has made its first call"
        subject, process.subject = process.subject, None
        self._dialogues.send(subject, messages.TakeTurn())
        sampled = yield from self._bench.step("turn", process.slug, subject, messages.Sampled)
        process.subject = subject
        return sampled

    def _call_s(self, slug: str) -> float:
        """Seconds of a call, as sampled or else by forecast."""
        samples_s = [min(replica.samples_s) for replica in self._record[slug].replicas if replica.samples_s]
        return min(samples_s, default=self._bench.forecast.per_strategy[original(slug)].latency_s)

    @property
    def _run_left_s(self) -> float:
        """Seconds that the run as a whole has left for latencies."""
        clock = self._bench.clock
        return clock.left_s - min(_FOR_THE_LIMIT_S, _LIMIT_SHARE * (clock.bound_s or math.inf))

    def _publish(self) -> None:
        self._record.analyse()
        self._published_s = self._now_s
        self._bench.say(result=True)
