"""The tab «Why»: it asks for an explanation, follows it, and shows sentences, figures and artifacts."""

from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure.run.run import Run
from tests import synthetic
from tests.explanations import GRAPH
from tests.pages import RUN_ID, FakeClient, buttons, calm, open_page, press, words


def unexplained() -> Run:
    return synthetic.run(RUN_ID, ("batched.xla", "loop.eager"), unhappy=False)


def visit(fake: FakeClient, run: Run, *, imported: bool = False) -> AppTest:
    fake.show(run, imported=imported)
    return open_page(run=RUN_ID, tab="Why")


def test_the_tab_asks_only_when_it_is_told_to_and_says_how_far_it_is_or_why_it_cannot(fake: FakeClient) -> None:
    app = visit(fake, unexplained())
    assert fake.explained is None
    fake.refusal = "the code of batched.xla has changed"
    assert "The code of batched.xla has changed." in words(press(app, "explain"))
    fake.refusal = None
    app = press(app, "explain")
    assert "explaining loop.eager, 1 of 2" in words(app) and "cancel_why" in buttons(app)
    fake.explained = None
    imported = visit(fake, unexplained(), imported=True)
    assert "«Measure again here»" in words(imported) and "explain" not in buttons(imported)


def test_the_tab_shows_sentences_and_what_one_call_runs_holds_and_leaves(fake: FakeClient) -> None:
    run = unexplained()
    app = visit(fake, replace(run, measurements=[replace(item, why=GRAPH) for item in run.measurements]))
    assert "runs 1,005 ops" in words(app) and "it runs a while loop in its graph" in words(app)
    app = calm(app.selectbox(key="why_of").select("loop.eager").run())
    assert any("Mul" in table.value.to_string() for table in app.dataframe), "the ops of its call"
    assert any("TensorListStack" in table.value.to_string() for table in app.dataframe), "what held its memory"
    assert {element.proto.label for element in app.get("link_button")} >= {"Graph", "Trace"}


def test_a_link_to_a_tab_of_an_earlier_version_opens_the_run(fake: FakeClient) -> None:
    fake.show(unexplained())
    assert "batched.xla" in words(open_page(run=RUN_ID, tab="Side by side"))
    assert "× faster than" in words(open_page(run=RUN_ID, tab="Table"))
