"""Two strategies of a run side by side: the sentence, the table of ops, the texts, and the tab."""

import random
import sys
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
from tests.engine import ROOT
from tests.explanations import EAGER, GRAPH, ran
from tests.pages import RUN_ID, ExplainedRunner, calm, words
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


def test_a_tie_may_be_chance_and_memory_is_beside_the_ratio(run: Run):
    assert "the difference may be chance; both need 4.69 MiB." in sentence(run, "batched.xla", "batched.graph")
    said = sentence(run, "batched.xla", "map_fn.graph")
    assert "chance" not in said and said.endswith("map_fn.graph needs 9.38 MiB of memory, batched.xla 4.69 MiB.")


def test_a_pair_that_the_ranking_ties_is_a_tie_here_whatever_its_own_interval_says(run: Run):
    """One interval of two strategies asks for less than a ranking of many does."""
    levels = levels_of(run.measurements).by_slug
    ratio = intervals.ratio(levels["map_fn.graph"], levels["batched.xla"], run.analysis.confidence)
    assert ratio.low > 1
    tied = replace(run, ranking=[["batched.xla", "map_fn.graph"], ["loop.eager"]])
    words = ": they tie in this run's ranking, so the difference may be chance; "
    assert words in sentence(tied, "batched.xla", "map_fn.graph") == sentence(tied, "map_fn.graph", "batched.xla")
    assert "tie" not in sentence(tied, "batched.xla", "loop.eager")
    apart = replace(run, ranking=[["batched.xla"], ["map_fn.graph"]])
    assert "chance" not in sentence(apart, "batched.xla", "map_fn.graph")


def test_what_has_no_latency_is_named(run: Run):
    assert sentence(run, "batched.xla", "loop.xla") == "loop.xla has no latency."
    assert sentence(run, "chunked.xla", "loop.xla") == "chunked.xla and loop.xla have no latency."


def test_ops_stand_beside_each_other_and_the_longest_first(run: Run):
    one, other = run.measurement("loop.eager"), run.measurement("map_fn.graph")
    frame = side_by_side.op_table(one, replace(EAGER, kernels=ran(("gemm", 2, 1.0))), other, GRAPH)
    assert frame["op or kernel"].tolist() == ["gemm", "Mul", "Add"]
    assert frame["loop.eager: count"].tolist() == ["2", "200", "100"]
    assert frame["map_fn.graph: count"].tolist()[1] == "1,005" and frame["map_fn.graph: time"].isna().tolist() == [
        True, False, True,
    ]  # fmt: skip


def test_an_op_and_a_kernel_of_one_name_are_two_rows_and_each_has_its_difference(run: Run):
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


def test_diff_pairs_lines():
    assert diff.pairs("a\nb\nc", "a\nx\nc\nd") == [
        ("a", "a", True), ("b", "x", False), ("c", "c", True), (None, "d", False),
    ]  # fmt: skip
    drawn = diff.side_by_side("a", "b", "left", "right")
    assert "− a" in drawn and "+ b" in drawn


class TooMuchWork(Exception):
    """More was done than a page can wait for."""


def steps_of(function: Callable[[], object], most: int = 3_000_000) -> int:
    """Lines of Python that run, counted: a time would be the machine's. Stops at ``most``."""
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        if count > most:
            raise TooMuchWork
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def repeated(seed: int, kinds: int) -> str:
    """As many lines as are compared, of few kinds, in an order of its own."""
    return "\n".join(random.Random(seed).choices([f"x = {kind}" for kind in range(kinds)], k=diff.MOST_LINES))


@pytest.mark.parametrize("kinds", [1, 2, 18, 200])
def test_lines_that_repeat_make_no_comparison_hang(kinds: int):
    left, right = repeated(1, kinds), f"y = 0\n{repeated(2, kinds)}".rpartition("\n")[0]
    assert steps_of(lambda: diff.pairs(left, right)) > 0


def test_what_repeats_is_matched_beside_what_does_not():
    """As it is where nothing repeats: with lines that are too common to be searched for, too."""
    block = [line for number in range(500) for line in (f"a = {number}", ")")]
    left, right = "\n".join(block), "\n".join([*block[:200], "new = 1", *block[200:]])
    found = diff.pairs(left, right)
    assert [pair for pair in found if not pair[2]] == [(None, "new = 1", False)] and len(found) == 1_001


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x0b", "\u2028"])
def test_a_line_is_a_line_however_it_ends(end: str):
    """Texts that are too long are not compared, and said to be."""
    longest, longer = (f"x{end}" * (diff.MOST_LINES + more) for more in (0, 1))
    assert len(diff.pairs(longest, "x")) == diff.MOST_LINES
    for texts in ((longer, "x"), ("x", longer)):
        with pytest.raises(diff.TooLong, match="more than 1,500 lines, too many to be compared here"):
            diff.pairs(*texts)
        assert "too many to be compared here" in diff.side_by_side(*texts, "a", "b")


def test_long_lines_wrap_within_their_half():
    assert "pre-wrap" in diff.side_by_side("a", "b", "x", "y")


# --- the tab ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Callable[[ExplainedRunner], AppTest]:
    def open_page(fake: ExplainedRunner) -> AppTest:
        monkeypatch.setattr(runner, "shared", lambda: fake)
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params["run"], app.query_params["tab"] = RUN_ID, "Side by side"
        return calm(app.run())

    return open_page


def choose(app: AppTest, a: str, b: str) -> AppTest:
    calm(app.selectbox(key="side_a").set_value(a).run())
    return calm(app.selectbox(key="side_b").set_value(b).run())


def test_any_two_can_be_chosen_and_what_is_not_known_says_how_to_get_it(
    visit: Callable[[ExplainedRunner], AppTest], run: Run
):
    app = choose(visit(ExplainedRunner(run)), "map_fn.xla", "batched.xla")
    said = words(app)
    assert "batched.xla is" in said and "as fast as map_fn.xla" in said
    assert "What runs in a call of map_fn.xla and batched.xla is not known. Open the tab «Why»" in said
    assert "mb-diff" in said and "# map_fn.xla" in said
    assert "map_fn.xla" not in app.selectbox(key="side_b").options


def test_with_reasons_ops_and_programs_are_compared(visit: Callable[[ExplainedRunner], AppTest], run: Run):
    items = [replace(item, why=GRAPH) for item in run.measurements]
    fake = ExplainedRunner(replace(run, measurements=items))
    fake.artifact = lambda run_id, slug, name: f"ENTRY of {slug} {HOSTILE}".encode()  # type: ignore[method-assign]
    app = choose(visit(fake), "map_fn.xla", "batched.xla")
    said = words(app)
    assert "ENTRY of map_fn.xla" in said and "<img" not in said and "not known" not in said
    (table,) = (table.value for table in app.dataframe if "op or kernel" in table.value.columns)
    assert list(table)[:4] == ["op or kernel", "kind", "Δ count", "Δ time"], "seen without scrolling"
    assert "Δ: how much more batched.xla has than map_fn.xla." in said


def test_without_a_second_program_of_xla_it_says_why_there_is_no_comparison(
    visit: Callable[[ExplainedRunner], AppTest], run: Run
):
    app = choose(visit(ExplainedRunner(run)), "map_fn.graph", "batched.xla")
    assert "Only batched.xla is compiled by XLA, so there are no two programs to compare." in words(app)
    assert "Optimised HLO" not in words(choose(app, "map_fn.graph", "batched.graph"))


def test_texts_too_long_to_compare_are_not_compared(visit: Callable[[ExplainedRunner], AppTest], run: Run):
    item = run.measurement("batched.xla")
    long = replace(item, code=replace(item.code, source="x = 1\n" * 2_000))
    items: list[Any] = [long if each is item else each for each in run.measurements]
    app = choose(visit(ExplainedRunner(replace(run, measurements=items))), "batched.xla", "map_fn.xla")
    assert "too many to be compared here" in words(app)


@pytest.mark.parametrize("slug", ["loop_compiled.graph?jit_compile=true", "dataset.graph?jit_compile=true"])
def test_the_program_of_an_element_function_is_compared_and_said_to_be_one(
    visit: Callable[[ExplainedRunner], AppTest], run: Run, slug: str
):
    mapper = slug.partition(".")[0]
    items = [
        replace(item, strategy=slug, mapper=mapper, mode="graph", options={"jit_compile": True})
        if item.strategy == "map_fn.graph" else item
        for item in run.measurements
    ]  # fmt: skip
    fake = ExplainedRunner(replace(run, measurements=items))
    fake.artifact = lambda run_id, slug, name: f"ENTRY of {slug}".encode()  # type: ignore[method-assign]
    said = words(choose(visit(fake), slug, "batched.xla"))
    assert f"That of {slug} is the element function's alone." in said and f"ENTRY of {slug}" in said
    assert "Only batched.xla is compiled" not in said


def test_where_reasons_cannot_be_asked_for_nobody_is_told_to_ask(visit: Callable[..., AppTest], run: Run):
    imported = ExplainedRunner(run, imported=True)
    imported.artifact = lambda run_id, slug, name: None  # type: ignore[method-assign]
    said = words(choose(visit(imported), "map_fn.xla", "batched.xla"))
    assert "is not known. «Measure again here» gives a run that can be asked for it." in said
    assert "XLA's programs are not known. «Measure again here»" in said and "Open the tab" not in said
    said = words(choose(visit(ExplainedRunner(run)), "batched.graph", "loop.xla"))
    assert "What runs in a call of batched.graph and loop.xla is not known." in said and "Open the tab" not in said


def test_one_strategy_alone_has_no_other_side(visit: Callable[[ExplainedRunner], AppTest]):
    assert "has only one strategy" in words(
        visit(ExplainedRunner(synthetic.run(RUN_ID, ("batched.xla",), unhappy=False)))
    )
