"""Two strategies of a run side by side: the sentence, the table of ops, the texts, and the tab."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.model.run import Run
from measure.statistics import intervals
from measure.statistics.levels import levels_of
from tests import synthetic
from tests.explanations import EAGER, GRAPH, ran
from tests.pages import RUN_ID, ExplainedRunner, calm, open_page, words
from tests.synthetic import HOSTILE
from views.result import diff, side_by_side
from views.ui import look


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run(RUN_ID)


def sentence(run: Run, a: str, b: str) -> str:
    return side_by_side.sentence(run, run.measurement(a), run.measurement(b))


def test_the_ratio_has_the_interval_of_the_levels_whichever_is_chosen_first(run: Run):
    levels = levels_of(run.measurements).by_slug
    ratio = intervals.ratio(levels["map_fn.eager"], levels["map_fn.graph"], run.analysis.confidence)
    value, interval = look.factor_with_interval(ratio.ratio, ratio.low, ratio.high)
    said = sentence(run, "map_fn.eager", "map_fn.graph")
    assert said.startswith(f"map_fn.graph is {value} {interval} as fast as map_fn.eager; ")
    assert said == sentence(run, "map_fn.graph", "map_fn.eager")
    assert sentence(run, "batched.xla", "map_fn.graph").endswith(
        "map_fn.graph needs 9.38 MiB of memory, batched.xla 4.69 MiB."
    )
    assert sentence(run, "chunked.xla", "loop.xla") == "chunked.xla and loop.xla have no latency."


def test_a_pair_that_the_ranking_ties_is_a_tie_here_whatever_its_own_interval_says(run: Run):
    """One interval of two strategies asks for less than a ranking of many does."""
    assert "may be chance" in sentence(run, "batched.xla", "batched.graph")
    tied = replace(run, ranking=[["batched.xla", "map_fn.graph"], ["loop.eager"]])
    assert "they tie in this run's ranking" in sentence(tied, "batched.xla", "map_fn.graph")
    assert "tie" not in sentence(tied, "batched.xla", "loop.eager")
    apart = replace(run, ranking=[["batched.xla"], ["map_fn.graph"]])
    assert "chance" not in sentence(apart, "batched.xla", "map_fn.graph")


def test_ops_stand_beside_each_other_and_an_op_and_a_kernel_of_one_name_are_two_rows(run: Run):
    one, other = run.measurement("loop.eager"), run.measurement("map_fn.graph")
    a = replace(EAGER, ops=ran(("other", 1_200, 3e-3), ("Sin", 5, 1e-3)), kernels=ran(("other", 2, 1e-3)))
    b = replace(GRAPH, ops=ran(("other", 200, 4e-3), ("While", 1, 9.0)), kernels=ran(("other", 2, 5e-4)))
    frame = side_by_side.op_table(one, a, other, b)
    assert list(zip(frame["op or kernel"], frame["kind"], strict=True)) == [
        ("other", "op"), ("other", "kernel"), ("Sin", "op"),
    ]  # fmt: skip
    assert frame["loop.eager: count"].tolist() == ["1,200", "2", "5"]
    assert frame["Δ count"].tolist() == ["−1,000", "0", "−5"]
    assert frame["Δ time"].tolist() == ["+1.00 ms", "−500 µs", "−1.00 ms"]


def test_lines_of_two_texts_are_paired():
    assert diff.pairs("a\nb\nc", "a\nx\nc\nd") == [
        ("a", "a", True), ("b", "x", False), ("c", "c", True), (None, "d", False),
    ]  # fmt: skip
    with pytest.raises(diff.TooLong, match="1,500 lines"):
        diff.pairs("x", "x\n" * (diff.MOST_LINES + 1))


# --- the tab ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> Callable[[ExplainedRunner, str, str], AppTest]:
    def choose(fake: ExplainedRunner, a: str, b: str) -> AppTest:
        monkeypatch.setattr(runner, "shared", lambda: fake)
        app = open_page(run=RUN_ID, tab="Side by side")
        calm(app.selectbox(key="side_a").set_value(a).run())
        return calm(app.selectbox(key="side_b").set_value(b).run())

    return choose


def artifacts_of(run: Run, **more: Any) -> ExplainedRunner:
    fake = ExplainedRunner(run, **more)
    fake.artifact = lambda run_id, slug, name: f"ENTRY of {slug} {HOSTILE}".encode()  # type: ignore[method-assign]
    return fake


def test_any_two_can_be_chosen_and_what_is_not_known_says_how_to_get_it(compare: Callable[..., AppTest], run: Run):
    app = compare(ExplainedRunner(run), "map_fn.xla", "batched.xla")
    said = words(app)
    assert "batched.xla is" in said and "as fast as map_fn.xla" in said
    assert "is not known. Open the tab «Why»" in said and "# map_fn.xla" in said
    assert "map_fn.xla" not in app.selectbox(key="side_b").options
    imported = ExplainedRunner(run, imported=True)
    imported.artifact = lambda run_id, slug, name: None  # type: ignore[method-assign]
    said = words(compare(imported, "map_fn.xla", "batched.xla"))
    assert "«Measure again here»" in said and "Open the tab" not in said


def test_with_reasons_ops_and_programs_are_compared(compare: Callable[..., AppTest], run: Run):
    fake = artifacts_of(replace(run, measurements=[replace(item, why=GRAPH) for item in run.measurements]))
    app = compare(fake, "map_fn.xla", "batched.xla")
    said = words(app)
    assert "ENTRY of map_fn.xla" in said and "<img" not in said and "not known" not in said
    (table,) = (table.value for table in app.dataframe if "op or kernel" in table.value.columns)
    assert list(table)[:4] == ["op or kernel", "kind", "Δ count", "Δ time"], "seen without scrolling"
