"""The tab «Why»: it asks for an explanation, follows it, and shows sentences, figures and artifacts."""

from collections.abc import Callable
from dataclasses import replace as replace_snapshot

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.jobs import Snapshot
from measure.model.run import Run
from measure.model.why import Fusion, Why
from tests import synthetic
from tests.explanations import GRAPH, ON_GPU, ran
from tests.pages import RUN_ID, ExplainedRunner, calm, open_page, words
from tests.synthetic import HOSTILE


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    def open_tab(fake: ExplainedRunner, **params: str) -> AppTest:
        monkeypatch.setattr(runner, "shared", lambda: fake)
        return open_page(**{"run": RUN_ID, "tab": "Why", **params})

    return open_tab


def with_reasons(found: Why) -> Run:
    run = synthetic.run(RUN_ID, ("batched.xla", "loop.eager"), unhappy=False)
    return replace(run, measurements=[replace(item, why=found) for item in run.measurements])


def test_the_tab_asks_only_when_it_is_told_to_and_then_shows_how_far_it_is(visit: Callable[..., AppTest]):
    fake = ExplainedRunner(synthetic.run(RUN_ID, ("batched.xla", "loop.eager"), unhappy=False))
    app = visit(fake)
    assert not fake.asked
    app = calm(app.button(key="explain").click().run())
    assert fake.asked == [RUN_ID] and "explaining loop.eager, 1 of 2" in words(app)
    assert app.button(key="cancel_why") is not None


class _Hurried(ExplainedRunner):
    """A runner whose explanation ends after a page has read the run, and before it asks how far the reasons are."""

    def explanation(self, run_id: str) -> tuple[str, Snapshot] | None:
        if self.job is not None and self.job.state == "running":
            self.job = replace_snapshot(self.job, run=with_reasons(GRAPH), state="finished")
            self.shown = replace_snapshot(self.job, version=self.shown.version + 1)
        return super().explanation(run_id)


def test_reasons_that_come_while_the_page_is_drawn_are_shown(visit: Callable[..., AppTest]):
    app = visit(_Hurried(synthetic.run(RUN_ID, ("batched.xla", "loop.eager"), unhappy=False)))
    app = calm(app.button(key="explain").click().run())
    assert "runs a while loop in its graph" in words(app)


def test_the_tab_says_why_a_run_cannot_be_explained(visit: Callable[..., AppTest]):
    fake = ExplainedRunner(synthetic.run(RUN_ID, ("batched.xla",), unhappy=False))
    fake.refusal = "the code of batched.xla has changed"
    app = calm(visit(fake).button(key="explain").click().run())
    assert "The code of batched.xla has changed." in words(app)
    imported = visit(ExplainedRunner(synthetic.run(RUN_ID, ("batched.xla",), unhappy=False), imported=True))
    assert "«Measure again here» gives one" in words(imported)
    assert not [button for button in imported.button if button.key == "explain"]


def test_the_tab_shows_sentences_figures_and_artifacts(visit: Callable[..., AppTest]):
    app = visit(ExplainedRunner(with_reasons(GRAPH)))
    assert "runs a while loop in its graph: 1,005 ops" in words(app)
    (figures,) = (each.value for each in app.dataframe if "profiled" in each.value.columns)
    assert figures["between ops"].tolist() == pytest.approx([4 - 0.5 - 0.2] * 2)
    assert {element.proto.label for element in app.get("link_button")} >= {"Graph", "Trace"}


def test_the_tab_names_the_floor_where_it_tells_something(visit: Callable[..., AppTest]):
    run = with_reasons(GRAPH)
    assert run.limit is not None
    assert "Theoretical floor (estimate): 710 µs." in words(visit(ExplainedRunner(run)))
    idle = replace(run, limit=replace(run.limit, term="dispatch-bound"))
    assert "floor" not in words(visit(ExplainedRunner(idle))).lower()


def test_the_figures_of_a_gpu_are_beside_the_hosts(visit: Callable[..., AppTest]):
    (figures,) = (
        each.value for each in visit(ExplainedRunner(with_reasons(ON_GPU))).dataframe if "profiled" in each.value
    )
    row = figures.iloc[0]
    assert [row["on the GPU"], row["in ops"], row["in Python"], row["waiting"]] == pytest.approx([0.9, 0.05, 0.3, 0.55])
    assert row["between ops"] == pytest.approx(0.1) and row["ops"] == 3 and row["kernels"] == 2


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (GRAPH, "none"),
        (replace(GRAPH, traces_first=2, tracing_count=1), "2 in the first call"),
        (replace(GRAPH, traces_first=2, traces_warm=3, tracing_count=3),
         "2 in the first call, 3 in the next ones, the strategy itself 3 times"),
        (replace(GRAPH, traces_first=1, traces_per_call=0.4), "1 in the first call, 0.4 a call"),
    ],
)  # fmt: skip
def test_retraces_are_shown_whenever_they_happened(visit: Callable[..., AppTest], found: Why, says: str):
    (figures,) = (
        each.value for each in visit(ExplainedRunner(with_reasons(found))).dataframe if "profiled" in each.value
    )
    assert figures["traces"].tolist() == [says] * 2


def test_what_failed_to_be_explained_can_be_asked_for_again(visit: Callable[..., AppTest]):
    run = with_reasons(GRAPH)
    failed = replace(run.measurements[0], why=Why(note="no answer within 9 s"))
    fake = ExplainedRunner(replace(run, measurements=[failed, *run.measurements[1:]]))
    app = visit(fake)
    assert "1 of 2 strategies are explained." in words(app) and "no answer within 9 s" in words(app)
    calm(app.button(key="explain").click().run())
    assert fake.asked == [RUN_ID]


def test_hostile_reasons_stay_texts(visit: Callable[..., AppTest]):
    evil = replace(
        GRAPH, ops=ran((HOSTILE, 1_005, 1.0)), fallbacks=[HOSTILE], note=HOSTILE, loops=1, fusion_count=1,
        fusions=[Fusion(name=HOSTILE, ops=(HOSTILE,))], other_instructions=ran((HOSTILE, 3, 0.0)),
    )  # fmt: skip
    app = visit(ExplainedRunner(with_reasons(evil), imported=True))
    assert "&lt;img" in words(app) and "<img" not in words(app)
