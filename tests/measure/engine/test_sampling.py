"""Sampling with simulated subjects: who warms up for how long, in which rounds, and who is asked at all."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from measure.engine import sampling as module
from measure.engine.bench import Bench, Settings
from measure.engine.record import Record
from measure.engine.rounds import Rules
from measure.engine.sampling import Sampling
from measure.judge.advice import COMPILED_VALUES
from measure.machine import environment
from measure.model.request import parse
from measure.model.run import Memory
from measure.statistics.effects import detrend
from measure.subject.timing import LEAST_WARM_S, SAMPLE_S
from tests.subjects import Subjects

SLUGS = ("loop.eager", "batched.graph", "batched.xla")
THREADED = ("batched.graph", "batched.xla")
RULES = Rules(scout_rounds=4, scout_round_s=0.15)
BUDGET_S = 15.0

# Makes the sampling of a launcher's subjects, with its bench; ``room``: how many processes may live at once.
Make = Callable[..., tuple[Sampling, Record]]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    opened: list[Bench] = []

    def make(subjects: Subjects, room: int = 100, budget_s: float = BUDGET_S) -> tuple[Sampling, Record]:
        settings = Settings(rules=RULES, memory_share=1.0)
        asked = parse({"workload": "square", "strategies": list(SLUGS)})
        bench = Bench("0" * 24, asked, subjects, lambda view: None, settings=settings)
        same = Memory(
            peak_bytes=64, output_bytes=8, temporary_bytes=0, input_bytes=0, captured_bytes=0, method="events"
        )
        for slug in SLUGS:
            bench.record.update(slug, memory=same)
        monkeypatch.setattr(environment, "available_memory", lambda: room * bench.live_bytes(SLUGS[0]))
        bench.open(0.0)
        opened.append(bench)
        return Sampling(bench, len(SLUGS), budget_s), bench.record

    yield make
    for bench in opened:
        bench.remove_files()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of the budget, which stands still unless a test sets its ``now_s``."""
    clock = SimpleNamespace(now_s=0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    return clock


def living(sampling: Sampling) -> list[tuple[str, int]]:
    return [(live.slug, live.replica) for live in sampling.living]


def test_what_a_round_leaves_goes_to_those_whose_calls_are_of_several_threads(make: Make) -> None:
    subjects = Subjects(threaded=THREADED)
    sampling, _ = make(subjects)
    assert sampling.scout(SLUGS)
    assert {slug: len(told) for slug, told in subjects.warm_s.items()} == dict.fromkeys(SLUGS, RULES.scout_rounds)
    known = {slug: set(told[1:]) for slug, told in subjects.warm_s.items()}
    assert known["loop.eager"] == {LEAST_WARM_S}
    (warm_s,) = known["batched.graph"]
    assert known["batched.xla"] == {warm_s}
    assert 2 * warm_s + LEAST_WARM_S + 3 * SAMPLE_S == pytest.approx(RULES.scout_round_s)


def test_a_strategy_of_which_nothing_is_known_yet_warms_up_as_if_it_ran_in_several_threads(make: Make) -> None:
    subjects = Subjects(threaded=THREADED)
    make(subjects)[0].scout(SLUGS)
    assert all(told[0] > 2 * LEAST_WARM_S for told in subjects.warm_s.values())


def test_of_a_strategy_that_fails_in_a_round_nothing_more_is_asked(make: Make) -> None:
    subjects = Subjects(threaded=THREADED, failing=("batched.xla", 2))
    sampling, record = make(subjects)
    sampling.scout(SLUGS)
    assert len(subjects.warm_s["batched.xla"]) == 2 and record["batched.xla"].outcome == "failed"
    assert [len(record[slug].replicas[0].samples_s) for slug in SLUGS] == [4, 4, 1]
    # The others share what the round leaves from then on.
    assert subjects.warm_s["batched.graph"][2] > 1.5 * subjects.warm_s["batched.graph"][1]


def test_a_strategy_that_is_slow_with_other_values_is_said_to_be(make: Make) -> None:
    sampling, record = make(Subjects(compiled=["batched.xla"]))
    sampling.scout(SLUGS)
    warned = [slug for slug in SLUGS if COMPILED_VALUES in {warning.code for warning in record[slug].warnings}]
    assert warned == ["batched.xla"]


def rounds_of(record: Record, slug: str) -> list[list[int]]:
    return [list(replica.rounds) for replica in record[slug].replicas]


def test_one_process_of_the_anchor_lives_through_all_cohorts(make: Make) -> None:
    sampling, record = make(Subjects(), room=2)
    sampling.scout(SLUGS)
    assert rounds_of(record, "loop.eager") == [[*range(1, 9)]], "a second process would link nothing"
    assert rounds_of(record, "batched.graph") == [[1, 2, 3, 4]] and rounds_of(record, "batched.xla") == [[5, 6, 7, 8]]
    assert set(detrend(list(record.items())).phases[:4]) == {0}


def test_what_rests_leaves_one_process_of_the_anchor(make: Make) -> None:
    sampling, _ = make(Subjects())
    sampling.scout(SLUGS)
    sampling.start(["batched.xla"])
    sampling.rest(SLUGS, "batched.xla")
    assert living(sampling) == [("batched.xla", 0)]


def test_where_the_leaders_anchor_is_gone_that_of_the_cohorts_stays(make: Make) -> None:
    sampling, _ = make(Subjects(), room=2)
    sampling.scout(SLUGS)
    sampling.rest(SLUGS, "batched.graph")
    assert living(sampling) == [("loop.eager", 0)]


def test_where_more_processes_need_room_one_stays_to_link_the_rounds_unless_it_is_in_the_way(make: Make) -> None:
    sampling, record = make(Subjects(), room=3)
    sampling.scout(SLUGS)
    sampling.start(["batched.graph", "batched.xla"])
    assert living(sampling) == [("loop.eager", 0), ("batched.graph", 1), ("batched.xla", 1)]
    sampling.sample_everybody(0.15)
    linked = set(rounds_of(record, "loop.eager")[0])
    assert all(linked & set(rounds) for slug in SLUGS for rounds in rounds_of(record, slug))
    alone, _ = make(Subjects(), room=1)
    alone.scout(SLUGS)
    alone.start(["batched.graph"])
    assert living(alone) == [("batched.graph", 1)]


def test_no_subject_lives_on_when_sampling_has_ended(make: Make) -> None:
    subjects = Subjects()
    sampling, record = make(subjects)
    sampling.scout(SLUGS)
    assert sorted(subjects.living) == sorted(SLUGS)
    sampling.end("budget")
    assert subjects.living == [] and not sampling.living
    assert {replica.ended for slug in SLUGS for replica in record[slug].replicas} == {"budget"}


def test_rounds_go_on_from_those_that_the_record_knows(make: Make) -> None:
    sampling, record = make(Subjects())
    sampling.scout(SLUGS)
    assert record.last_round() == RULES.scout_rounds
    sampling.sample_few(2)
    assert rounds_of(record, "loop.eager") == [[*range(1, 7)]]


# --- the budget ------------------------------------------------------------------------------------------------------


def test_a_budget_that_ends_before_the_lead_is_decided_is_why_the_run_stopped(
    make: Make, clock: SimpleNamespace
) -> None:
    class Slow(Subjects):
        def start(self, *arguments: object) -> int:
            clock.now_s += 3.0
            return super().start(*arguments)  # type: ignore[arg-type]

    sampling, _ = make(Slow())
    status, reason = sampling.race(SLUGS)
    assert (status, reason) == ("budget", "the time budget was spent before the ranking of the leaders was decided")


@pytest.mark.parametrize(("left_s", "processes"), [(2.6, 1), (2.7, 5)])
def test_no_process_is_started_where_the_budget_has_no_time_left_to_sample_it(
    make: Make, clock: SimpleNamespace, left_s: float, processes: int
) -> None:
    """Four rounds of two thirds of a second are what it takes to the first look at a race of three strategies."""
    sampling, record = make(Subjects())
    clock.now_s = BUDGET_S - left_s
    sampling.race(SLUGS)
    assert [len(record[slug].replicas) for slug in SLUGS] == [processes] * 3
    assert all(replica.samples_s for slug in SLUGS for replica in record[slug].replicas)


@pytest.mark.parametrize(("left_s", "started"), [(3.7, 0), (3.8, 1)])
def test_where_calls_are_long_a_quarter_of_the_budget_is_kept_for_sampling(
    make: Make, clock: SimpleNamespace, left_s: float, started: int
) -> None:
    sampling, _ = make(Subjects(call_s=0.5))
    sampling.scout(SLUGS)
    clock.now_s = BUDGET_S - left_s
    sampling.start(["batched.xla"])
    assert len(sampling.living) == 3 + started
