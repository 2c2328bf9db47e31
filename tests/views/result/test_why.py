"""The tab «Why»: it asks for an explanation, follows it, and shows sentences, figures and artifacts."""

from collections.abc import Callable

import pandas as pd
import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import client
from measure.model.run import Run
from measure.model.why import Fusion, Why
from tests import synthetic
from tests.explanations import GRAPH, ran
from tests.pages import RUN_ID, ExplainedClient, calm, open_page, words
from tests.synthetic import HOSTILE


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Callable[[ExplainedClient], AppTest]:
    def open_tab(fake: ExplainedClient) -> AppTest:
        monkeypatch.setattr(client, "shared", lambda: fake)
        return open_page(run=RUN_ID, tab="Why")

    return open_tab


def unexplained() -> Run:
    return synthetic.run(RUN_ID, ("batched.xla", "loop.eager"), unhappy=False)


def with_reasons(*found: Why) -> Run:
    """A run whose strategies have these reasons; where there is one, all have it."""
    run = unexplained()
    return replace(
        run,
        measurements=[replace(item, why=found[place % len(found)]) for place, item in enumerate(run.measurements)],
    )


def figures(app: AppTest) -> pd.DataFrame:
    (shown,) = (element.value for element in app.dataframe if "in dispatch" in element.value.columns)
    return shown


def test_the_tab_asks_only_when_it_is_told_to_and_then_shows_how_far_it_is(visit: Callable[..., AppTest]):
    fake = ExplainedClient(unexplained())
    app = visit(fake)
    assert not fake.asked
    app = calm(app.button(key="explain").click().run())
    assert fake.asked == [RUN_ID] and "explaining loop.eager, 1 of 2" in words(app)
    assert app.button(key="cancel_why") is not None


def test_the_tab_says_why_a_run_cannot_be_explained(visit: Callable[..., AppTest]):
    fake = ExplainedClient(unexplained())
    fake.refusal = "the code of batched.xla has changed"
    assert "The code of batched.xla has changed." in words(calm(visit(fake).button(key="explain").click().run()))
    imported = visit(ExplainedClient(unexplained(), imported=True))
    assert "«Measure again here»" in words(imported)
    assert not [button for button in imported.button if button.key == "explain"]


def test_the_tab_shows_sentences_figures_artifacts_and_the_floor_where_it_tells_something(
    visit: Callable[..., AppTest],
):
    run = with_reasons(GRAPH)
    app = visit(ExplainedClient(run))
    assert "runs 1,005 ops" in words(app) and "it runs a while loop in its graph" in words(app)
    assert figures(app)["in dispatch"].tolist() == pytest.approx([100 * 0.75 * 3.3 / 3.5] * 2)
    assert figures(app)["at the peak of memory"].notna().any()
    assert {element.proto.label for element in app.get("link_button")} >= {"Graph", "Trace"}
    assert "Theoretical floor (estimate): 710 µs." in words(app)
    idle = replace(run, limit=replace(run.limit, term="dispatch-bound"))
    assert "floor" not in words(visit(ExplainedClient(idle))).lower()


def test_hostile_reasons_stay_texts(visit: Callable[..., AppTest]):
    evil = replace(
        GRAPH, ops=ran((HOSTILE, 1_005, 1.0)), fallbacks=[HOSTILE], note=HOSTILE, loops=1, fusion_count=1,
        fusions=[Fusion(name=HOSTILE, ops=(HOSTILE,))], other_instructions=ran((HOSTILE, 3, 0.0)),
    )  # fmt: skip
    said = words(visit(ExplainedClient(with_reasons(evil), imported=True)))
    assert "&lt;img" in said and "<img" not in said


def test_a_link_to_a_tab_of_an_earlier_version_opens_the_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client, "shared", lambda: ExplainedClient(unexplained()))
    assert "batched.xla" in words(open_page(run=RUN_ID, tab="Side by side"))
