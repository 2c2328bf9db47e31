"""The bound of a run: whatever a simulated subject is doing when the time is over, the run ends with what there is."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.explanation import Explanation
from measure.model import why
from measure.model.request import RequestError, parse
from measure.model.run import Run
from measure.model.why import Explained
from measure.sweep.request import parse_sweep
from tests.engine import QUICK, running, small_request
from tests.hanging import BOUND_S, OVER, Hanging, stopped_clock
from tests.subjects import Subjects

SLUGS = ("batched.eager", "batched.graph", "loop.eager")
ID = "0" * 24
# A step that nothing but its own timeout ends fails the test soon.
SETTINGS = Settings(most_processes=QUICK, bound_s=BOUND_S, timeout_floor_s=2.0)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return stopped_clock(monkeypatch)


def compare(subjects: Subjects, *, keep: Any = None, settings: Settings = SETTINGS) -> Run:
    return Comparison(ID, small_request(*SLUGS), subjects, lambda view: None, settings=settings, keep=keep).run()


def outcomes(run: Run) -> dict[str, str]:
    return {item.strategy: item.outcome for item in run.measurements if not item.twin_of}


@pytest.mark.parametrize(
    ("at", "slug", "stage"),
    [
        ("reference", "", "reference"),
        ("memory", "loop.eager", "memory"),
        ("timing", "loop.eager", "first_call"),
        ("first_call", "loop.eager", "first_call"),
        ("turn", "loop.eager", "sampling"),
    ],
)
def test_what_goes_on_when_the_time_is_over_ends_as_a_timeout_and_the_rest_stays_as_it_is(
    clock: SimpleNamespace, at: str, slug: str, stage: str
) -> None:
    subjects = Hanging(clock=clock, at=at, slug=slug)
    run = compare(subjects)
    assert (run.status, run.stop_reason) == ("budget", f"{OVER} before everything was measured")
    assert subjects.living == [] and {*subjects.hung} == {len(subjects.specs)}, "nothing is started after that"
    for item in run.measurements:
        if item.strategy == slug or at == "reference":
            assert (item.outcome, item.stage) == ("timeout", stage) and item.error and OVER in item.error.message
        else:
            # Two start at once.
            assert item.outcome in ("ok" if item.latency else "not_run", "timeout" if at == "first_call" else "")
            assert item.memory is not None or at == "memory"


@pytest.mark.parametrize("at", ["probes", "why"])
def test_after_the_verdict_it_costs_what_is_shown_beside_it_alone_and_is_said(clock: SimpleNamespace, at: str) -> None:
    subjects = Hanging(clock=clock, at=at)
    run = compare(subjects, keep=lambda *_: True)
    assert run.status == "complete" and run.ranking and set(outcomes(run).values()) == {"ok"}
    (said,) = [warning.message for warning in run.warnings if warning.code == "cut_short"]
    assert said.startswith(f"{OVER} before all strategies were explained")
    assert subjects.living == [] and subjects.roles[-1] == at
    assert (run.limit is None) == (at == "probes")


def test_an_explanation_ends_too_and_what_it_has_found_is_kept(clock: SimpleNamespace) -> None:
    run = compare(Subjects(), settings=Settings(most_processes=QUICK))
    kept: dict[str, Any] = {}
    subjects = Hanging(clock=clock, at="why", which=2)
    Explanation(run, subjects, lambda view: None, lambda slug, found, _: not kept.update({slug: found}),
                settings=SETTINGS).run()  # fmt: skip
    first, second = kept.values()
    assert why.known(first) is not None and isinstance(second, Explained) and OVER in second.note
    assert subjects.living == [] and len(subjects.specs) == 2


@pytest.mark.parametrize("server", ["a person's own", "hosted"])
def test_a_runner_refuses_what_cannot_end_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    monkeypatch.setenv("MAPBENCH_HOSTED", "1" if server == "hosted" else "")
    subjects = Subjects()
    raw = {"workload": "square", "strategies": "loop.eager", "budget_s": 1}
    with running(subjects, tmp_path) as own:
        with pytest.raises(RequestError, match=r"^A budget of 1.00 s is too short: before the first sample "):
            own.submit(parse({**raw, "size": {"batch": 10**6}}))
        with pytest.raises(RequestError, match=r"^This cannot end in time: "):
            own.submit_sweep(parse_sweep({**raw, "axes": [{"name": "batch", "values": [500_000, 10**6]}]}))
        assert own.store.ids() == [] and subjects.specs == []
