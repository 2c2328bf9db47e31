"""Pages of a server that strangers share, and of one that measures nothing: who may do what, and who is refused."""

import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit as st
from msgspec.structs import replace

from measure import admission, client, hosting
from measure.claims import known
from measure.claims.tries import chosen
from measure.client import Client
from measure.run.request import RequestError
from measure.run.sweep_request import of_run
from measure.store.store import Store
from tests import synthetic
from tests.engine import Own, running, small_request
from tests.pages import RUN_ID, buttons, calm, example, open_page, params, press, words
from tests.subjects import Subjects
from views.ui import session
from workloads.functions import Given

MINE = {"workload": "square", "strategies": "batched.graph"}


@pytest.fixture
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
def own(as_: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Own]:
    """A client whose worker does what waits when the test says so."""
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "measure.lock"))
    with running(Subjects(), tmp_path) as own:
        monkeypatch.setattr(client, "shared", lambda: own)
        yield own


def test_every_page_says_what_the_server_allows_and_of_every_limit(as_, stored, monkeypatch):
    limits = hosting.limits()
    for field in dataclasses.fields(limits):
        assert session.allowed(dataclasses.replace(limits, **{field.name: 77})) != session.allowed(limits), field.name
    line, everything = session.allowed(limits)
    for page in ("compare", "sweep", "claims", "runs"):
        app = open_page(page)
        (shown,) = [one for one in app.expander if one.label == line]
        assert shown.caption[0].value == everything
    monkeypatch.delenv("MAPBENCH_HOSTED")
    assert line not in [one.label for one in calm(app.run()).expander]


def test_what_is_more_than_allowed_is_said_before_run_is_pressed_and_before_a_sweep_is_forecast(as_, fake, monkeypatch):
    monkeypatch.setattr(admission, "sweep_needs", lambda request: 1 / 0)
    grid = {"sweep": "batch", "sweep_2": "height", "points": "18", "points_2": "18", "strategies": "all"}
    for page, query, named in (
        ("compare", {**MINE, "memory_limit": "100000"}, "100,000 MiB"),
        ("sweep", {"workload": "image_sqrt", **grid}, "cells"),
    ):
        app = open_page(page, **query)
        assert app.button(key="run").disabled and named in app.warning[0].value and not fake.submitted


def test_every_way_to_have_something_measured_is_refused_while_ones_run_goes_on(own):
    own.store.add(synthetic.run(RUN_ID, unhappy=False), "somebody else")
    press(open_page(**MINE), "run")
    (going,) = own.queue()
    for key, page, query in (
        ("run", "compare", {**MINE, "size_batch": "7", "budget": "20", "threads": "2"}),
        ("again", "compare", {"run": RUN_ID}),
        ("run", "sweep", MINE),
        ("try_this", "claims", {"claim": known.all_claims()[0].id}),
    ):
        assert "this server allows 1" in words(app := press(open_page(page, **query), key))
        assert not app.button(key=key).disabled, "it may be pressed again"
        assert own.queue() == (going,)


def test_an_equal_request_is_answered_at_once_and_measured_anew_where_that_is_asked_for(own):
    (run_id,) = params(press(open_page(**MINE), "run"))["run"]
    own.work()
    app = press(open_page(**MINE), "run")
    assert params(app)["run"] == [run_id] and buttons(app) & {"anew", "again"} == {"anew"}
    assert "anew" not in buttons(open_page(run=run_id)), "a link says when it was measured, and no more"
    app = press(app, "anew")
    assert params(app)["run"] != [run_id] and "anew" not in buttons(app)
    assert own.store.load(*params(app)["run"]).parent == run_id


def test_a_server_that_measures_nothing_shows_runs_without_a_button_that_measures_and_refuses_all_else(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("MAPBENCH_VIEWER", "1")
    monkeypatch.setattr(client, "shared", lambda: viewer)
    viewer = Client(Store(tmp_path))
    measuring = ("run", "again", "anew", "settle", "continue", "explain", "take", "fold", "try_", "choose_", "own")
    kept = [synthetic.run("a" * 24), synthetic.sweep("b" * 24), replace(example(), id="c" * 24)]
    for run in kept:
        assert "measures none" in words(open_page(run.kind))
        viewer.store.add(run, "")
        for app in (open_page(run.kind), open_page(run.kind, run=run.id)):
            assert not [key for key in buttons(app) if key.startswith(measuring)]
        assert run.kind == "claims" or run.verdict in words(app)
    assert "measured before" not in words(open_page("claims")), "claims of runs from elsewhere are the newest verdicts"
    for ask in (
        lambda: viewer.submit(small_request("map_fn.graph")),
        lambda: viewer.submit(of_run(kept[1])),
        lambda: viewer.submit(chosen(())),
        lambda: viewer.explain(kept[0].id),
        lambda: viewer.give(Given(code="f = abs", function="f", elems="f")),
    ):
        with pytest.raises(RequestError, match="MAPBENCH_VIEWER"):
            ask()
    assert viewer.queue() == ()
