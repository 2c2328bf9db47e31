"""A function of one's own on the page, without a browser: who may write one, and what is taken from the code."""

from collections.abc import Callable, Mapping

import pytest
import streamlit as st
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.engine.deriving import Busy
from measure.model.request import RequestError
from measure.runner import Snapshot
from tests import synthetic
from tests.engine import ROOT
from tests.pages import RUN_ID, FakeRunner, calm, open_page, words
from views.choices import own, texts
from views.ui import permission
from workloads import functions
from workloads.functions import Facts, Given, OwnFunction

FACTS = Facts(
    size={"batch": 4, "side": 8},
    element=["leaf", {"shape": [8, 8], "dtype": "float32"}],
    result=["dict", {"a": ["leaf", {"shape": [], "dtype": "int64"}], "b": ["leaf", {"shape": [3], "dtype": "bool"}]}],
    dtype="float32",
    reference="own",
    flops=1_200,
    notes=["It has <assertions>."],
)


class GivingRunner(FakeRunner):
    """A runner that takes functions, and remembers at which sizes it was asked to look at them."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[dict[str, int]] = []
        self.fault: RequestError | None = None

    def give(self, given: Given, size: Mapping[str, int] | None = None, seed: int = 0) -> str:
        self.asked.append(dict(size or {}))
        if self.fault is not None:
            raise self.fault
        return functions.add(OwnFunction(given=given, facts=replace(FACTS, size={**FACTS.size, **(size or {})})))


@pytest.fixture(autouse=True)
def _no_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    for known in ("_known", "_workloads"):
        monkeypatch.setattr(functions, known, {})
    monkeypatch.delenv("MAPBENCH_OWN_CODE", raising=False)
    monkeypatch.delenv("MAPBENCH_HOSTED", raising=False)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> GivingRunner:
    fake = GivingRunner()
    monkeypatch.setattr(runner, "shared", lambda: fake)
    return fake


@pytest.fixture
def visit(fake: GivingRunner) -> Callable[..., AppTest]:
    def open_page(**query: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params.update(query)
        return calm(app.run())

    return open_page


# --- who may ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "headers", "variables", "may"),
    [
        ("localhost", {}, {}, True),
        ("127.0.0.1", {}, {}, True),
        ("::1", {}, {}, True),
        (None, {}, {}, False),
        ("0.0.0.0", {}, {}, False),
        ("example.org", {}, {}, False),
        ("localhost", {"X-Forwarded-For": "10.0.0.1"}, {}, False),
        ("0.0.0.0", {}, {"MAPBENCH_OWN_CODE": "1"}, True),
        ("localhost", {}, {"MAPBENCH_OWN_CODE": "0"}, False),
        ("localhost", {}, {"MAPBENCH_OWN_CODE": "1", "MAPBENCH_HOSTED": "1"}, False),
    ],
)
def test_code_is_executed_for_this_machine_alone_unless_the_operator_says_so(
    monkeypatch: pytest.MonkeyPatch, address: str, headers: dict[str, str], variables: dict[str, str], may: bool
):
    monkeypatch.setattr(st, "get_option", {"server.address": address}.get)
    monkeypatch.setattr(type(st.context), "headers", property(lambda _: headers))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert permission.may_execute() is may


def test_the_server_listens_to_this_machine_alone():
    assert st.get_option("server.address") == "localhost"


def test_where_code_may_not_be_run_the_window_says_how_to_do_it_at_home(
    visit: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    app = calm(visit().selectbox(key="workload").select(own.ENTRY).run())
    assert "On this server no code of yours can be run" in words(app)
    assert texts.OWN_COMMANDS in [code.value for code in app.code]
    assert not [button for button in app.button if button.key == "own_check"]
    assert app.selectbox(key="workload").value != own.ENTRY


# --- what is taken from the code -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "function", "elems"),
    [
        (texts.OWN_EXAMPLE, "standardize", "images"),
        ("xs = [1.0]\ndef f(x): return x", "f", "xs"),
        ("def f(x): return x\ndef made(): return [1.0]", "f", "made"),
        ("def helper(a): ...\ndef f(x): return helper(x)\na, b = 1, 2", "f", "a"),
        ("f = lambda x: x\ninputs: list = [1.0]", "f", "inputs"),
        ("def f(x", "", ""),
        ("", "", ""),
        ("x = " + "-" * 100_000 + "1", "", ""),
    ],
)
def test_the_likeliest_function_and_elements_are_chosen(code: str, function: str, elems: str):
    usual = own.usual_roles(*own.defined(code))
    assert (usual["function"], usual["elems"]) == (function, elems)


def test_what_was_derived_is_said_and_stays_text():
    said = own.facts_html(FACTS)
    assert "8×8 float32" in said and "scalar int64 and 3 bool" in said
    assert "batch 4, side 8" in said and "1,200 floating-point operations" in said
    assert "It has &lt;assertions&gt;." in said
    partly = own.facts_html(replace(FACTS, unknown_work=["Where"]))
    assert "at least 1,200 floating-point operations" in partly and "at least" not in said


# --- as a workload ---------------------------------------------------------------------------------------------------


def test_a_function_is_in_the_list_by_its_name_and_is_looked_at_at_new_sizes(
    visit: Callable[..., AppTest], fake: GivingRunner
):
    slug = fake.give(Given(code="def f(x): return x", function="f", elems="xs"))
    app = visit(workload=slug)
    assert f"Your own · f ({slug[2:6]})" in app.selectbox(key="workload").options
    assert fake.asked == [{}]
    for _ in range(2):  # once for a size
        app = calm(app.number_input(key="size_side").set_value(9).run())
    assert fake.asked == [{}, {"batch": 4, "side": 9}]
    fake.fault = RequestError("line 3: it fails for 10")
    app = calm(app.number_input(key="size_side").set_value(10).run())
    assert "Line 3: it fails for 10." in words(app)
    assert app.button(key="run").disabled
    fake.fault = Busy("a neighbour is measuring on this machine")
    app = calm(app.number_input(key="size_side").set_value(11).run())
    assert "neighbour" not in words(app) and not app.button(key="run").disabled


def test_strategies_that_another_workload_has_not_are_left_out(visit: Callable[..., AppTest], fake: GivingRunner):
    slug = fake.give(Given(code="def f(x): return x", function="f", elems="xs"))
    app = calm(visit().multiselect(key="strategies").set_value(["batched.graph", "map_fn.graph", "batched"]).run())
    app = calm(app.selectbox(key="workload").select(slug).run())
    assert app.multiselect(key="strategies").value == ["map_fn.graph"]
    assert not app.button(key="run").disabled


def test_an_imported_function_is_shown_and_not_executed(
    visit: Callable[..., AppTest], fake: GivingRunner, monkeypatch: pytest.MonkeyPatch
):
    given = Given(code="def strange(x): return x", function="strange", elems="xs")
    run = synthetic.run(RUN_ID)
    run = replace(run, request=replace(run.request, own=OwnFunction(given=given, facts=FACTS), workload=given.slug))
    fake.snapshots[RUN_ID] = Snapshot(run, "finished", version=1, imported=True)
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    app = visit(run=RUN_ID)
    assert given.code in [code.value for code in app.code]
    assert "On this server no code of others is run" in words(app)
    assert not [button for button in app.button if button.key == "trust_it"]
    monkeypatch.delenv("MAPBENCH_HOSTED")
    app = visit(run=RUN_ID)
    assert fake.asked == []
    fake.fault = RequestError("line 1: it needs a package that is not here")
    app = calm(app.button(key="trust_it").click().run())
    assert "The code of this run cannot be measured here: line 1: it needs a package" in words(app)
    assert fake.asked == [run.request.size]


@pytest.mark.parametrize("page", ["compare", "sweep"])
@pytest.mark.parametrize("imported", [True, False], ids=["imported", "measured before the server was started anew"])
def test_a_run_of_code_that_is_not_known_here_can_be_exported(
    fake: GivingRunner, monkeypatch: pytest.MonkeyPatch, page: str, imported: bool
):
    """Where strangers visit, the page says to export it and to run its code at home."""
    made = synthetic.run(RUN_ID) if page == "compare" else synthetic.sweep(RUN_ID)
    fake.snapshots[RUN_ID] = Snapshot(synthetic.of_function(made), "finished", version=1, imported=imported)
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    app = open_page(page, run=RUN_ID)
    assert "Export the run and import it where Mapbench runs on your machine" in words(app)
    app.session_state["export"] = True
    offered = [link.proto.url for link in calm(app.run()).get("link_button")]
    assert f"export/{RUN_ID}/json" in offered
