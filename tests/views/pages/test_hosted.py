"""The pages of a server that strangers share: what it allows, whose runs are whose, and who is refused."""

import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit as st
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import hosting, runner
from measure.claims import known
from measure.engine.bench import Settings
from measure.runner import Runner, Snapshot
from measure.store.store import Store
from tests import synthetic
from tests.engine import DEADLINE_S, QUICK
from tests.pages import RUN_ID, ExplainedRunner, FakeRunner, StoredRunner, calm, open_page, words
from tests.subjects import Gated
from views.ui import session

MINE = {"workload": "square", "strategies": "batched.graph"}


@pytest.fixture(autouse=True)
def as_(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """``as_("ann")`` makes whoever opens pages this visitor, and returns the owner of its runs; at first it is ann."""
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    cookies: dict[str, str] = {}
    for name, value in (("cookies", cookies), ("headers", SimpleNamespace(get_all=lambda _: [])), ("ip_address", None)):
        monkeypatch.setattr(type(st.context), name, property(lambda _, value=value: value))

    def become(name: str) -> str:
        cookies[session.COOKIE] = hashlib.md5(name.encode()).hexdigest()
        return session.visitor().owner

    become("ann")
    return become


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    fake = FakeRunner()
    monkeypatch.setattr(runner, "shared", lambda: fake)
    return fake


def keys(app: AppTest) -> set[str | None]:
    return {button.key for button in app.button}


# --- what it allows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["compare", "sweep", "claims", "runs"])
def test_every_page_says_in_one_line_what_the_demo_allows(tmp_path, monkeypatch, page):
    monkeypatch.setattr(runner, "shared", lambda: stored)
    stored = StoredRunner(tmp_path)
    monkeypatch.setenv("MAPBENCH_RUN_S", "45")
    said = "What this demo allows**: 45 s for a comparison, 30 s of it for latencies, 5 min for a sweep or claims; "
    said += "1 run at a time, 3 runs of one address, 12 runs in the queue, and 30 min of measuring a day;"
    assert said in words(open_page(page))
    monkeypatch.delenv("MAPBENCH_HOSTED")
    assert "What this demo allows" not in words(open_page(page))


@pytest.mark.parametrize("limit", [field.name for field in fields(hosting.Limits)])
def test_the_line_tells_of_every_limit(fake, monkeypatch, limit):
    usual = words(open_page())
    monkeypatch.setenv(f"MAPBENCH_{limit.upper()}", "777" if limit == "memory_mib" else "77")
    assert words(open_page()) != usual


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"budget": "86400"}, "A budget of 86400 s was asked for, and this server allows 30 s."),
        ({"threads": "1000"}, "1,000 threads were asked for, and this server allows 16."),
        ({"memory_limit": "100000"}, "A memory limit of 100,000 MiB was asked for, and this server allows 2,048 MiB."),
    ],
)
def test_what_is_more_than_allowed_is_said_before_run_is_pressed(fake, asked, said):
    app = open_page(**MINE, **asked)
    assert said in words(app) and app.button(key="run").disabled
    assert not fake.submitted, "an address starts nothing"


# --- whose run it is -------------------------------------------------------------------------------------------------


def running(owner: str) -> Snapshot:
    run = synthetic.partial(2, RUN_ID)
    return Snapshot(run, "running", stages={run.measurements[0].strategy: "sampling"}, version=3, owner=owner)


def test_who_started_a_run_may_end_it_and_others_are_told_that_it_is_anothers(fake, as_):
    fake.snapshots[RUN_ID] = running(as_("bob"))
    as_("ann")
    app = open_page(run=RUN_ID)
    assert not keys(app) & {"cancel", "stop"} and "started by another visitor" in words(app)
    as_("bob")
    app = open_page(run=RUN_ID)
    assert keys(app) >= {"cancel", "stop"} and "started by another visitor" not in words(app)


def test_only_who_started_a_run_is_offered_its_explanation(monkeypatch, as_):
    explained = ExplainedRunner(synthetic.run(RUN_ID, ("batched.xla", "loop.eager"), unhappy=False))
    explained.shown = dataclasses.replace(explained.shown, owner=as_("bob"))
    monkeypatch.setattr(runner, "shared", lambda: explained)
    as_("ann")
    app = open_page(run=RUN_ID, tab="Why")
    assert "explain" not in keys(app) and "Only who started a run can have it explained here" in words(app)
    as_("bob")
    assert "explain" in keys(open_page(run=RUN_ID, tab="Why"))


# --- every way in ----------------------------------------------------------------------------------------------------


@pytest.fixture
def subjects() -> Gated:
    return Gated()


@pytest.fixture
def own(subjects: Gated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "measure.lock"))
    own = Runner(
        store_=Store(tmp_path),
        launcher_=subjects,
        settings=Settings(rules=QUICK, probes=False, process_peaks_s=0.0),
        name="a test",
    )
    monkeypatch.setattr(runner, "shared", lambda: own)
    yield own
    own.close()


def pressed(app: AppTest, key: str) -> AppTest:
    return calm(app.button(key=key).click().run())


def run_of(app: AppTest) -> str:
    """The id that stands in the address."""
    return "".join(app.query_params["run"])


WAYS_IN = {
    "Run": lambda: pressed(open_page(**MINE), "run"),
    "a link to other choices": lambda: pressed(open_page(**MINE, size_batch="7", budget="20", threads="2"), "run"),
    "a run from elsewhere that is measured again": lambda: pressed(open_page(run=RUN_ID), "again"),
    "a sweep": lambda: pressed(open_page("sweep", **MINE), "run"),
    "a claim": lambda: pressed(open_page("claims", claim=known.all_claims()[0].id), "try_this"),
}


@pytest.mark.parametrize("way", WAYS_IN)
def test_every_way_to_have_something_measured_is_refused_while_ones_run_goes_on(own: Runner, way: str):
    own.store.add(synthetic.run(RUN_ID, unhappy=False), "somebody else")
    pressed(open_page(**MINE), "run")
    (going,) = own.queue()
    said = words(WAYS_IN[way]())
    assert "1 run of yours is going or waiting, and this server allows 1" in said and "come again in about" in said
    assert own.queue() == (going,)


def test_run_can_be_pressed_again_after_a_refusal_that_passes(fake):
    fake.refusal = "1 run of yours is going or waiting, and this server allows 1: come again in about 9 s"
    app = pressed(open_page(**MINE), "run")
    assert fake.refusal in words(app) and not app.button(key="run").disabled


def test_an_equal_request_is_answered_at_once_and_measured_anew_where_that_is_asked_for(own: Runner, subjects: Gated):
    subjects.gate.set()
    app = pressed(open_page(**MINE), "run")
    run_id = run_of(app)
    assert own.wait(run_id, DEADLINE_S)
    other = pressed(open_page(**MINE), "run")
    assert run_of(other) == run_id and "Measured " in words(other) and " ago**" in words(other)
    other = pressed(other, "anew")
    assert run_of(other) != run_id and "anew" not in keys(other)
    assert own.store.load(run_of(other)).parent == run_id


def test_the_age_of_an_answer_is_told_coarsely(fake):
    ago = (datetime.now(UTC) - timedelta(seconds=200)).isoformat()
    run = replace(synthetic.run(RUN_ID, unhappy=False), finished=ago)
    fake.snapshots[RUN_ID] = Snapshot(run, "finished", version=1)
    fake.submit = lambda *_: RUN_ID
    app = pressed(open_page(**MINE), "run")
    assert "Measured 3 min ago**, with the same request" in words(app) and keys(app) & {"anew", "again"} == {"anew"}
    assert "anew" not in keys(open_page(run=RUN_ID)), "a link says when it was measured, and no more"
