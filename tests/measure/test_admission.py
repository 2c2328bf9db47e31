"""Who may have what measured on a server that strangers share: the rules, and that every way in goes through them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from measure import runner
from measure.admission import NOBODY, Admission, Going, Recent, Visitor, beyond
from measure.engine.bench import Bench, Settings
from measure.engine.launcher import Launcher
from measure.hosting import Limits
from measure.machine import environment as machine
from measure.machine import load
from measure.model.place import StoreError
from measure.model.request import Request, RequestError, parse
from measure.model.run import Run
from measure.runner import Runner
from measure.store.store import Store
from measure.sweep.request import parse_sweep
from tests.deadlines import ANSWER_S, RUN_S
from tests.engine import QUICK, small_request
from tests.subjects import Gated, Subjects

ANN, BOB = Visitor("ann", "ann", "here"), Visitor("bob", "bob", "there")
LATE = datetime(2026, 1, 31, 20, 40, tzinfo=UTC)


# --- what a request may ask for --------------------------------------------------------------------------------------


def asked(**more: object) -> Request:
    return parse({"workload": "outer_product", "strategies": ["batched.graph"], **more})


def swept(points: int = 30, **more: object) -> object:
    axes = [{"kind": "size", "name": "batch", "values": list(range(1, points + 1))}]
    return parse_sweep({"workload": "outer_product", "strategies": ["batched", "map_fn"], "axes": axes, **more})


def test_a_request_beyond_a_cap_is_refused_with_what_was_asked_and_what_is_allowed():
    limits = Limits(budget_s=30, sweep_s=300, most_threads=16, memory_mib=2_048, most_strategies=80, most_cells=180)
    many = [f"chunked.graph?chunk={n}" for n in range(2, 3_002)]
    for request, said in (
        (asked(budget_s=86_400), "a budget of 86400 s was asked for, and this server allows 30 s"),
        (asked(threads=1_024), "1,024 threads were asked for, and this server allows 16"),
        (asked(memory_limit_mib=4_096), "a memory limit of 4,096 MiB was asked for, and this server allows 2,048 MiB"),
        (asked(strategies=many), "3,000 strategies were chosen, and this server allows 80"),
        (swept(budget_s=301), "a budget of 301 s was asked for, and this server allows 300 s"),
        (swept(31), "the sweep has 186 cells, strategies × points, and this server allows 180"),
    ):
        assert beyond(request, limits) == said
        assert beyond(request, Limits()) is None
    at_caps = (asked(budget_s=30, threads=16, memory_limit_mib=2_048, strategies=many[:80]), swept(budget_s=300))
    assert [beyond(request, limits) for request in at_caps] == [None, None]


# --- who may have a run now ------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.at = LATE

    def __call__(self) -> datetime:
        return self.at


def test_sessions_addresses_and_the_queue_have_so_many_runs_each():
    rules = Admission(Limits(session_runs=1, address_runs=2, queue_length=3))
    going = [Going(BOB, 20.2), Going(ANN, 60.0)]
    eve, new = Visitor("eve", "eve", "here"), Visitor("new", "new", "here")
    assert rules.refusal(ANN, going, 9.0) == (
        "1 run of yours is going or waiting, and this server allows 1: come again in about 81 s"
    )
    assert rules.refusal(eve, going, 9.0) is None and rules.refusal(ANN, going[:1], 9.0) is None
    going = [Going(Visitor(f"{n}", f"{n}", "here"), 200.0) for n in range(2)]
    assert "2 runs of your address are going or waiting, and this server allows 2" in rules.refusal(new, going, 9.0)
    assert rules.refusal(BOB, going, 9.0) is None
    going = [Going(Visitor(f"{n}", f"{n}", f"{n}"), 30.0) for n in range(3)]
    assert "3 runs are going or waiting, and this server allows 3" in rules.refusal(ANN, going, 9.0)
    assert rules.refusal(ANN, going[1:], 9.0) is None
    # Sessions without a cookie count as one of their address.
    assert "1 run of yours" in rules.refusal(Visitor("b", "here", "here"), [Going(Visitor("a", "here", "here"), 9)], 9)


def test_the_seconds_of_an_address_end_at_its_day_and_begin_with_the_next_one():
    clock = Clock()
    rules = Admission(Limits(address_day_s=100), clock)
    rules.spend(ANN, 70.5)
    assert rules.refusal(ANN, [], 29.5) is None
    assert rules.refusal(ANN, [], 29.6) == (
        "this takes about 30 s, and of the 100 s that this server measures for an address in a day 29 s are left: "
        "come again after midnight UTC, in 3 h 20 min"
    )
    assert "0 s are left" in rules.refusal(ANN, [Going(ANN, 60.0)], 9.0), "what goes on is counted by its forecast"
    assert rules.refusal(BOB, [Going(ANN, 60.0)], 99.0) is None
    clock.at += timedelta(hours=4)
    assert rules.refusal(ANN, [], 99.0) is None


def test_a_command_line_is_not_counted_and_where_nothing_is_limited_nobody_is_but_a_drained_server_takes_nothing():
    strict = Admission(Limits(session_runs=1, address_runs=1, queue_length=1, address_day_s=1))
    assert strict.refusal(NOBODY, [Going(NOBODY, 9.0)], 9.0) is None
    rules = Admission(Limits())
    assert rules.refusal(ANN, [Going(ANN, 9.0)] * 50, 9e9) is None
    rules.is_drained = lambda: True
    assert rules.refusal(ANN, [], 1.0) and rules.refusal(NOBODY, [], 1.0)


# --- recent runs -----------------------------------------------------------------------------------------------------


def test_a_recent_run_is_the_newest_that_is_kept_and_not_too_old():
    now, gone = [0.0], set()
    recent = Recent(60.0, lambda run_id: run_id not in gone, lambda: now[0])
    recent.note(asked(), "first")
    now[0] = 30.0
    recent.note(asked(), "second")
    assert recent.find(asked()) == "second" and recent.find(asked(seed=1)) is None
    now[0] = 89.0
    assert recent.find(asked()) == "second"
    now[0] = 90.0
    assert recent.find(asked()) is None
    recent.note(asked(), "third")
    gone.add("third")
    assert recent.find(asked()) is None

    def broken(run_id: str) -> bool:
        raise StoreError("disk I/O error")

    recent = Recent(60.0, broken)
    recent.note(asked(), "first")
    assert recent.find(asked()) is None, "it is measured"


# --- the runner ------------------------------------------------------------------------------------------------------


def nobody_else_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a busy machine is measured on, it is waited for."""
    nobody = SimpleNamespace(cores_of_others=lambda least_s=0.0: 0.0, cores_of_pages=lambda: 0.0, held=lambda: 0.0)
    monkeypatch.setattr(load, "Watch", lambda: nobody)


def measured_here(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runners of this process measure with that, quickly."""
    nobody_else_works(monkeypatch)
    quick = partial(Settings, most_processes=QUICK, probes=False, process_peaks=False, timeout_floor_s=RUN_S)
    monkeypatch.setattr(runner, "launcher", lambda *_: launcher)
    monkeypatch.setattr(runner, "Settings", quick)


@pytest.fixture
def subjects(monkeypatch: pytest.MonkeyPatch) -> Gated:
    subjects = Gated()
    measured_here(subjects, monkeypatch)
    return subjects


@pytest.fixture
def hosted(subjects: Gated, tmp_path: Path, monkeypatch) -> Iterator[Runner]:
    """A server on which a visitor has a run at a time, and equal requests are answered by recent runs."""
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "measure.lock"))
    limits = Limits(session_runs=1, address_runs=3, recent_s=3_600, most_threads=4)
    own = Runner(store_=Store(tmp_path), name="a test", limits_=limits)
    yield own
    own.close()


def finished(own: Runner, run_id: str) -> Run:
    assert own.wait(run_id, ANSWER_S)
    snapshot = own.snapshot(run_id)
    assert snapshot is not None and snapshot.state == "finished" and not snapshot.fault
    return snapshot.run


def small_sweep() -> object:
    return parse_sweep(
        {
            "workload": "square",
            "strategies": ["batched.graph"],
            "axes": [{"kind": "size", "name": "batch", "values": [1, 2]}],
            "budget_s": 60.0,
        }
    )


WAYS_IN = {
    "a comparison": lambda own, visitor, run_id: own.submit(small_request("loop.eager"), None, visitor),
    "a repetition": lambda own, visitor, run_id: own.submit(small_request("batched.eager"), run_id, visitor),
    "a sweep": lambda own, visitor, run_id: own.submit_sweep(small_sweep(), None, visitor),
    "claims": lambda own, visitor, run_id: own.submit_claims((), None, visitor),
    "an explanation": lambda own, visitor, run_id: own.explain(run_id, visitor),
}


def test_every_way_in_is_refused_to_who_has_a_run_already_and_to_all_where_it_is_drained(
    hosted: Runner, subjects: Gated
):
    subjects.gate.set()
    run_id = hosted.submit(small_request("batched.eager"), None, ANN)
    finished(hosted, run_id)
    subjects.gate.clear()
    going = hosted.submit(small_request("batched.graph"), None, ANN)
    for submit in WAYS_IN.values():
        with pytest.raises(RequestError, match="1 run of yours is going or waiting, and this server allows 1"):
            submit(hosted, ANN, run_id)
    hosted.admission.is_drained = lambda: True
    for submit in WAYS_IN.values():
        for visitor in (ANN, NOBODY):
            with pytest.raises(RequestError, match="takes no new runs"):
                submit(hosted, visitor, run_id)
    assert hosted.queue() == (going,) and len(hosted.store.ids()) == 2, "what is refused leaves nothing"
    hosted.cancel(going)  # who runs the server may end and delete all
    assert finished(hosted, going).status == "cancelled" and hosted.delete([going]) == [going]


def test_a_request_beyond_a_cap_is_refused_by_the_runner_whatever_the_page_showed(hosted: Runner):
    for submit, request in ((hosted.submit, asked(threads=64)), (hosted.submit_sweep, swept(threads=64))):
        with pytest.raises(RequestError, match="64 threads were asked for, and this server allows 4"):
            submit(request, None, ANN)
    assert hosted.queue() == ()


def test_what_needs_more_memory_than_a_run_may_have_is_refused_with_the_size_that_may(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "available_memory", lambda: 2**36)
    monkeypatch.setenv("MAPBENCH_MEMORY_MIB", "256")
    own = Runner(store_=Store(tmp_path), launcher_=Subjects(), name="a test")
    batches = [{"kind": "size", "name": "batch", "values": [10**5, 2 * 10**5]}]
    with pytest.raises(RequestError, match=r"this server allows 256.0 MiB; batch=16 is the largest"):
        own.submit(asked(size={"batch": 10**5, "side": 32}))
    with pytest.raises(RequestError, match="This cannot fit"):
        own.submit_sweep(swept(size={"side": 32}, axes=batches))
    own.close()
    assert own.store.ids() == []
    bench = Bench("0" * 24, asked(), Subjects(), lambda _: None, settings=Settings(most_bytes=2**28, memory_share=0.5))
    assert bench.room_bytes() == 2**27, "what is measured at the same time has no more room"


def test_what_is_measured_is_counted_for_who_asked_also_where_it_ends_early(hosted: Runner, subjects: Gated):
    spent: list[tuple[Visitor, float]] = []
    hosted.admission.spend = lambda visitor, seconds: spent.append((visitor, seconds))
    subjects.gate.set()
    run_id = hosted.submit(small_request("batched.eager"), None, ANN)
    finished(hosted, run_id)
    finished(hosted, hosted.submit_sweep(small_sweep(), None, BOB))
    hosted.wait(hosted.explain(run_id, ANN), ANSWER_S)
    assert [visitor for visitor, _ in spent] == [ANN, BOB, ANN] and all(seconds > 0 for _, seconds in spent)


def test_who_waits_is_told_how_long_at_most_by_the_bounds_of_those_before(hosted: Runner, monkeypatch):
    monkeypatch.setenv("MAPBENCH_RUN_S", "60")
    monkeypatch.setenv("MAPBENCH_SWEEP_S", "300")
    first = hosted.submit(small_request("batched.eager"), None, ANN)
    second = hosted.submit_sweep(small_sweep(), None, BOB)
    third = hosted.submit(small_request("loop.eager"), None, Visitor("eve", "eve", "here"))
    at_most = [hosted.snapshot(run_id).wait_most_s for run_id in (first, second, third)]
    assert at_most == [0.0, 62.0, 364.0], "two seconds more of each, from its end to the next one's start"
    assert all(hosted.snapshot(run_id).wait_s <= most for run_id, most in ((second, 62.0), (third, 364.0)))


def test_only_who_started_a_run_ends_explains_or_deletes_it(hosted: Runner, subjects: Gated):
    run_id = hosted.submit(small_request("batched.eager"), None, ANN)
    for end in (hosted.cancel, hosted.stop):
        with pytest.raises(RequestError, match="only who started a run can"):
            end(run_id, BOB)
    assert hosted.queue() == (run_id,)
    subjects.gate.set()
    assert finished(hosted, run_id).status == "complete"
    with pytest.raises(RequestError, match="only who started a run can have it explained"):
        hosted.explain(run_id, BOB)
    assert hosted.delete([run_id], BOB) == [] and hosted.store.ids() == [run_id]
    subjects.gate.clear()
    explaining = hosted.explain(run_id, ANN)
    with pytest.raises(RequestError, match="only who started a run can cancel it"):
        hosted.cancel(explaining, BOB)
    hosted.cancel(explaining, ANN)
    hosted.wait(explaining, ANSWER_S)
    assert hosted.delete([run_id], ANN) == [run_id]


def test_an_equal_request_is_answered_by_a_recent_run_and_measured_where_it_repeats_one(
    hosted: Runner, subjects: Gated
):
    subjects.gate.set()
    run_id = hosted.submit(small_request("batched.eager"), None, ANN)
    finished(hosted, run_id)
    assert hosted.submit(small_request("batched.eager"), None, BOB) == run_id and hosted.queue() == ()
    anew = hosted.submit(small_request("batched.eager"), run_id, BOB)
    assert anew != run_id and finished(hosted, anew).parent == run_id
    assert hosted.submit(small_request("batched.eager"), None, ANN) == anew, "the newest"
    sweep = hosted.submit_sweep(small_sweep(), None, ANN)
    finished(hosted, sweep)
    assert hosted.submit_sweep(small_sweep(), None, BOB) == sweep


def test_a_run_that_did_not_end_well_or_is_gone_answers_nothing(hosted: Runner, subjects: Gated):
    first = hosted.submit(small_request("batched.eager"), None, ANN)
    hosted.cancel(first, ANN)
    finished(hosted, first)
    subjects.gate.set()
    second = hosted.submit(small_request("batched.eager"), None, ANN)
    finished(hosted, second)
    assert hosted.delete([second], ANN) == [second]
    assert len({first, second, hosted.submit(small_request("batched.eager"), None, ANN)}) == 3
