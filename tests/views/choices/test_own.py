"""A function of one's own on the page, without a browser: who may write one, and what is taken from the code."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from measure import client
from measure.admission import NOBODY
from measure.client import Busy
from measure.run.request import RequestError
from measure.store.store import Snapshot
from tests import synthetic
from tests.pages import RUN_ID, FakeClient, buttons, calm, open_page, press, words
from views.choices import own
from views.ui import permission, session
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


class GivingClient(FakeClient):
    """A client that takes functions, and remembers at which sizes it was asked to look at them."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[dict[str, int]] = []
        self.fault: RequestError | None = None

    def give(self, given: Given, size: Mapping[str, int] | None = None, seed: int = 0, waiting: Any = None) -> str:
        self.asked.append(dict(size or {}))
        if waiting is not None:
            waiting(Snapshot(synthetic.partial(2), "running", remaining_s=7.0))
        if self.fault is not None:
            raise self.fault
        return functions.add(OwnFunction(given=given, facts=replace(FACTS, size={**FACTS.size, **(size or {})})))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> GivingClient:
    fake = GivingClient()
    monkeypatch.setattr(client, "shared", lambda: fake)
    return fake


def test_where_code_may_not_be_run_the_window_says_how_to_do_it_at_home(
    fake: GivingClient, monkeypatch: pytest.MonkeyPatch
):
    def opened() -> AppTest:
        return press(open_page(), "own_window")

    assert "own_check" in buttons(opened())
    with monkeypatch.context() as patch:
        patch.setenv("MAPBENCH_HOSTED", "1")
        app = opened()
    assert "On this server no code of yours can be run" in words(app) and "own_check" not in buttons(app)
    assert own.COMMANDS in [code.value for code in app.code]
    monkeypatch.setattr(ContextProxy, "cookies", property(lambda _: {}))
    app = opened()
    assert permission.LOCKED in words(app) and "own_check" not in buttons(app)


def test_what_python_cannot_read_is_said_with_its_line_as_one_types_and_is_not_checked(
    fake: GivingClient, monkeypatch: pytest.MonkeyPatch
):
    code = "xs = [1.0]\ndef f(x):\n    return (x\n"
    monkeypatch.setattr("streamlit_ace.st_ace", lambda **_: code)
    app = press(open_page(), "own_window")
    assert any("ine 3" in warning.value for warning in app.warning) and app.button(key="own_check").disabled
    code = "xs = [1.0]\ndef f(x):\n    return x\n"
    app = calm(app.run())
    assert not app.warning and not app.button(key="own_check").disabled and fake.asked == []
    fake.fault = RequestError("line 3: it returns <nothing>")
    app = app.button(key="own_check").click().run()
    assert "returns <nothing>" in app.error[0].value.replace("\\", "") and "own_use" not in buttons(app)
    fake.fault = None
    app = press(app, "own_check")
    assert fake.asked == [{}, {}] and "&lt;assertions&gt;" in words(app)
    app = press(app, "own_use")
    assert app.selectbox(key="workload").value == Given(code=code, function="f", elems="xs").slug


def test_a_function_is_in_the_list_by_its_name_and_is_looked_at_at_new_sizes(fake: GivingClient):
    slug = fake.give(Given(code="def f(x): return x", function="f", elems="xs"))
    app = open_page(workload=slug)
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


def test_an_imported_function_is_shown_and_not_executed(fake: GivingClient, monkeypatch: pytest.MonkeyPatch):
    given = Given(code="def strange(x): return x", function="strange", elems="xs")
    run = synthetic.run(RUN_ID)
    run = replace(run, request=replace(run.request, own=OwnFunction(given=given, facts=FACTS), workload=given.slug))
    fake.snapshots[RUN_ID] = Snapshot(run, "finished", version=1, imported=True)
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    monkeypatch.setattr(session, "visitor", lambda: NOBODY)
    app = open_page(run=RUN_ID)
    assert given.code in [code.value for code in app.code]
    assert "On this server no code of others is run" in words(app)
    assert not buttons(app) & {"trust_it", "again"} and not app.get("page_link")
    monkeypatch.delenv("MAPBENCH_HOSTED")
    with monkeypatch.context() as patch:
        patch.setattr(ContextProxy, "cookies", property(lambda _: {}))
        app = open_page(run=RUN_ID)
        assert permission.LOCKED in words(app) and "trust_it" not in buttons(app)
    app = open_page(run=RUN_ID)
    assert fake.asked == []
    fake.fault = RequestError("line 1: it needs a package that is not here")
    app = calm(app.button(key="trust_it").click().run())
    assert "The code of this run cannot be measured here: line 1: it needs a package" in words(app)
    assert fake.asked == [run.request.size]
