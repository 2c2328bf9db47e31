"""Sampling with made-up subjects: who warms up for how long, in which rounds, and who is asked at all."""

import itertools
import queue
from typing import Any

import pytest
from msgspec.structs import replace

from measure.engine.dialogue import Dialogues
from measure.engine.launchers import Event
from measure.engine.record import Record
from measure.engine.rounds import Rules
from measure.engine.sampling import Sampling
from measure.judge.advice import COMPILED_VALUES
from measure.model.request import parse
from measure.statistics import levels as statistics
from measure.subject.subject import Spec
from measure.subject.timing import LEAST_WARM_S, SAMPLE_S, SEVERAL_THREADS
from tests import synthetic

SLUGS = ("loop.eager", "batched.graph", "batched.xla")
THREADED = ("batched.graph", "batched.xla")
COMPILED = "batched.xla"
RULES = Rules(scout_rounds=4, scout_round_s=0.15)


class Subjects:
    """Answers at once; calls of `THREADED` keep more than one processor busy, and `COMPILED` is slow with other values
    than those that are timed. ``failing``: (slug, which sample of it) that ends in an error. ``call_s``: what a call is
    found to take. ``warm_s``: slug → how long it was told to warm up, one entry a sample."""

    def __init__(self, failing: tuple[str, int] | None = None, call_s: float = 0.001) -> None:
        self.warm_s: dict[str, list[float]] = {}
        self._failing, self._call_s = failing, call_s
        self._numbers = itertools.count(1)
        self._alive: dict[int, tuple[str, queue.Queue[Event]]] = {}

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        number = next(self._numbers)
        self._alive[number] = spec.name, events
        events.put(Event(number, "message", {"event": "ready", "runtime_s": 0.1}))
        return number

    def send(self, subject: int, message: dict[str, Any]) -> None:
        slug, events = self._alive[subject]
        if message["op"] == "stop":
            self.kill(subject)
            return
        # A sample that was disturbed does not make calls ones of a single thread.
        seen = len(self.warm_s.get(slug, ()))
        busy_cores = SEVERAL_THREADS + (0.3 if slug in THREADED and seen != 1 else -0.1)
        answer: dict[str, Any] = {
            "first_call": {"event": "first_call", "seconds": 0.01},
            "settle": {"event": "settled", "seconds": self._call_s, "calls": 3},
            "other_values": {"event": "other_values", "seconds": 0.02 if slug == COMPILED else 0.001},
            "sample": {"event": "sample", "seconds": 0.001, "busy_cores": busy_cores},
        }[message["op"]]
        if message["op"] == "sample":
            told = self.warm_s.setdefault(slug, [])
            told.append(message["warm_s"])
            if self._failing == (slug, len(told)):
                error = {"stage": "sampling", "outcome": "failed", "type": "ValueError", "message": "", "detail": ""}
                answer = {"event": "error", **error}
        events.put(Event(subject, "message", answer))

    def kill(self, subject: int) -> None:
        if known := self._alive.pop(subject, None):
            known[1].put(Event(subject, "exit", {"status": 0, "signal": None, "tail": ""}))


class Scouting(Sampling):
    """The first part alone, and what follows it by hand."""

    def scout(self) -> Record:
        assert self._scout(SLUGS)
        return self._record

    def start(self, *slugs: str) -> None:
        self._start(slugs)

    def round(self) -> None:
        self._sample_rounds(dict.fromkeys(self._live, 1), 0.15)

    def rest(self, *slugs: str, anchor: str) -> None:
        self._rest(slugs, anchor)

    @property
    def record(self) -> Record:
        return self._record

    @property
    def living(self) -> list[tuple[str, int]]:
        return [(live.slug, live.replica) for live in self._live.values()]


def scout(subjects: Subjects) -> Record:
    return sampling(subjects).scout()


def sampling(subjects: Subjects, room: int = 100) -> Scouting:
    """``room``: how many processes may live at once."""
    record = Record(replace(synthetic.run(unhappy=False), measurements=[]), dict.fromkeys(SLUGS, ""))
    return Scouting(
        parse({"workload": "square", "strategies": list(SLUGS)}),
        RULES,
        record,
        Dialogues(subjects),  # type: ignore[arg-type]
        lambda *_, **__: None,
        spec=lambda slug: Spec(role="timing", name=slug),
        timeout_s=lambda slug: 10.0,
        live_bytes=lambda slug: 1,
        room_bytes=lambda: room,
        started_s=0.0,
        sample_timeout_floor_s=10.0,
    )


def test_what_a_round_leaves_goes_to_those_whose_calls_are_of_several_threads() -> None:
    subjects = Subjects()
    scout(subjects)
    assert {slug: len(told) for slug, told in subjects.warm_s.items()} == dict.fromkeys(SLUGS, RULES.scout_rounds)
    known = {slug: set(told[1:]) for slug, told in subjects.warm_s.items()}
    assert known["loop.eager"] == {LEAST_WARM_S}
    (warm_s,) = known["batched.graph"]
    assert known["batched.xla"] == {warm_s}
    assert 2 * warm_s + LEAST_WARM_S + 3 * SAMPLE_S == pytest.approx(RULES.scout_round_s)


def test_a_strategy_of_which_nothing_is_known_yet_warms_up_as_if_it_ran_in_several_threads() -> None:
    subjects = Subjects()
    scout(subjects)
    assert all(told[0] > 2 * LEAST_WARM_S for told in subjects.warm_s.values())


def test_of_a_strategy_that_fails_in_a_round_nothing_more_is_asked() -> None:
    subjects = Subjects(failing=("batched.xla", 2))
    record = scout(subjects)
    assert len(subjects.warm_s["batched.xla"]) == 2 and record["batched.xla"].outcome == "failed"
    assert [len(record[slug].replicas[0].samples_s) for slug in SLUGS] == [4, 4, 1]
    # The others share what the round leaves from then on.
    assert subjects.warm_s["batched.graph"][2] > 1.5 * subjects.warm_s["batched.graph"][1]


def test_a_strategy_that_is_slow_with_other_values_is_said_to_be() -> None:
    record = scout(Subjects())
    warned = [slug for slug in SLUGS if COMPILED_VALUES in {warning.code for warning in record[slug].warnings}]
    assert warned == [COMPILED]


def rounds_of(record: Record, slug: str) -> list[list[int]]:
    return [list(replica.rounds) for replica in record[slug].replicas]


def test_one_process_of_the_anchor_lives_through_all_cohorts() -> None:
    record = sampling(Subjects(), room=2).scout()
    assert rounds_of(record, "loop.eager") == [[*range(1, 9)]], "a second process would link nothing"
    assert rounds_of(record, "batched.graph") == [[1, 2, 3, 4]] and rounds_of(record, "batched.xla") == [[5, 6, 7, 8]]
    assert set(statistics.detrend(list(record.items())).phases[:4]) == {0}


def test_what_rests_leaves_one_process_of_the_anchor() -> None:
    timed = sampling(Subjects())
    timed.scout()
    timed.start("batched.xla")
    timed.rest(*SLUGS, anchor="batched.xla")
    assert timed.living == [("batched.xla", 0)]


def test_where_the_leaders_anchor_is_gone_that_of_the_cohorts_stays() -> None:
    timed = sampling(Subjects(), room=2)
    timed.scout()
    timed.rest(*SLUGS, anchor="batched.graph")
    assert timed.living == [("loop.eager", 0)]


def test_where_more_processes_need_room_one_stays_to_link_the_rounds_unless_it_is_in_the_way() -> None:
    timed = sampling(Subjects(), room=3)
    record = timed.scout()
    timed.start("batched.graph", "batched.xla")
    assert timed.living == [("loop.eager", 0), ("batched.graph", 1), ("batched.xla", 1)]
    timed.round()
    linked = set(rounds_of(record, "loop.eager")[0])
    assert all(linked & set(each) for slug in SLUGS for each in rounds_of(record, slug))
    alone = sampling(Subjects(), room=1)
    alone.scout()
    alone.start("batched.graph")
    assert alone.living == [("batched.graph", 1)]


def test_a_budget_that_ends_before_the_lead_is_decided_is_why_the_run_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = sampling(Subjects())
    left_s = iter([1.0] * 40)
    monkeypatch.setattr(timed, "_budget_left_s", lambda: next(left_s, -1.0))
    status, reason = timed.run(list(SLUGS))
    assert (status, reason) == ("budget", "the time budget was spent before the ranking of the leaders was decided")


@pytest.mark.parametrize(("left_s", "processes"), [(2.6, 1), (2.7, 5)])
def test_no_process_is_started_where_the_budget_has_no_time_left_to_sample_it(
    monkeypatch: pytest.MonkeyPatch, left_s: float, processes: int
) -> None:
    """Four rounds of two thirds of a second are what it takes to the first look at a race of three strategies."""
    timed = sampling(Subjects())
    monkeypatch.setattr(timed, "_budget_left_s", lambda: left_s)
    timed.run(SLUGS)
    assert [len(timed.record[slug].replicas) for slug in SLUGS] == [processes] * 3
    assert all(each.samples_s for slug in SLUGS for each in timed.record[slug].replicas)


@pytest.mark.parametrize(("left_s", "started"), [(3.7, 0), (3.8, 1)])
def test_where_calls_are_long_a_quarter_of_the_budget_is_kept_for_sampling(
    monkeypatch: pytest.MonkeyPatch, left_s: float, started: int
) -> None:
    timed = sampling(Subjects(call_s=0.5))
    timed.scout()
    monkeypatch.setattr(timed, "_budget_left_s", lambda: left_s)
    timed.start("batched.xla")
    assert len(timed.living) == 3 + started
