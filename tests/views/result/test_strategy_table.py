"""The one table of strategies: its figures, its names, and the columns that a person picks."""

import dataclasses
from collections.abc import Callable

import pyarrow as pa
import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.judge import analysis
from measure.model.run import Run
from measure.output import columns, rows
from tests import synthetic
from tests.pages import RUN_ID, ExplainedRunner, calm, open_page
from tests.synthetic import MIB, OUTPUT
from views.result import strategy_table

AT_FIRST = ["strategy", "rank", "latency", "95 % interval", "× faster", "first call", "peak memory", "outcome"]


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run(RUN_ID)


def in_one_process(run: Run, *but: str) -> Run:
    """The run as if all strategies but these had been sampled in one process."""
    items = [item if item.strategy in but else replace(item, replicas=item.replicas[:1]) for item in run.measurements]
    return analysis.analyse(replace(run, measurements=items))


class TestFrame:
    def test_figures_are_numbers_in_milliseconds_and_mebibytes(self, run: Run):
        listed = rows.make(run, "loop.eager")
        frame = strategy_table.frame(listed, run)
        assert len(frame) == len(listed)
        assert frame["latency"].iloc[0] == listed[0].median_s * 1e3
        assert frame["peak memory"].iloc[0] == OUTPUT / MIB
        assert frame["rank"].isna().sum() == 6

    def test_the_floor_has_a_column_where_it_tells_something(self, run: Run):
        def has_floor(run: Run) -> bool:
            return "× floor" in strategy_table.frame(rows.make(run), run)

        assert run.limit is not None and has_floor(run)
        assert not has_floor(replace(run, limit=None))
        assert not has_floor(replace(run, limit=replace(run.limit, term="dispatch-bound")))

    def test_one_process_has_no_interval_and_says_so(self, run: Run):
        lone = in_one_process(run, "batched.xla", "batched.graph", "batched.xla#twin")
        frame = strategy_table.frame(rows.make(lone), lone).set_index("strategy")
        assert frame.loc["■ batched.graph", "95 % interval"].count("ms") == 2
        assert frame.loc["● loop.eager", "95 % interval"] == "1 process"

    def test_one_process_has_a_rank_only_far_beyond_what_processes_differ_by(self, run: Run):
        lone = in_one_process(run, "batched.xla", "batched.graph", "batched.xla#twin")
        rank = strategy_table.frame(rows.make(lone), lone).set_index("strategy")["rank"]
        assert rank["◆ batched.xla"] == rank["■ batched.graph"] == 1
        # 6 % slower than the fastest by a single process each: nobody knows. 37 times slower: everybody does.
        assert run.ranking[1] == ["vectorized_map.xla", "batched.eager"]
        assert rank[["◆ vectorized_map.xla", "● batched.eager"]].isna().all()
        assert rank["● map_fn.eager"] == 11

    def test_the_width_of_names_is_that_of_the_longest(self, run: Run):
        row = rows.make(run)[0]
        short, long, longest = (
            strategy_table.name_width([row, dataclasses.replace(row, slug=slug)])
            for slug in ("batched.xla", "tape_batch_jacobian.graph", "x" * 1000)
        )
        assert short < 115 < 180 < long < 220 < longest <= 420

    @pytest.mark.parametrize(("count", "pixels"), [(14, "content"), (15, 15 * 30 + 2)])
    def test_tables_end_with_a_whole_row(self, count: int, pixels: int | str):
        assert strategy_table.height(pa.table({"strategy": ["x"] * count})) == pixels


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch, run: Run) -> Callable[..., AppTest]:
    def open_run(**params: str) -> AppTest:
        monkeypatch.setattr(runner, "shared", lambda: ExplainedRunner(run))
        return open_page(run=RUN_ID, **params)

    return open_run


def shown(app: AppTest) -> list[str]:
    """The columns of the table, in their order."""
    (table,) = [each for each in app.dataframe if "process peak" in each.value.columns]
    return list(table.proto.column_order)


def opened(app: AppTest) -> AppTest:
    app.session_state["columns"] = True
    return calm(app.run())


class TestColumns:
    def test_a_few_are_shown_at_first_and_all_are_offered(self, visit: Callable[..., AppTest]):
        app = visit()
        assert shown(app) == AT_FIRST
        offered = opened(app).pills(key="columns_shown").options
        assert set(offered) == {column.page for column in columns.of("page")} - {"strategy"}

    def test_what_is_picked_stays_through_other_tabs_and_is_not_in_the_address(self, visit: Callable[..., AppTest]):
        app = opened(visit())
        app = calm(app.pills(key="columns_shown").set_value(["rank", "largest error", "latency"]).run())
        assert shown(app) == ["strategy", "rank", "latency", "largest error"]
        app.session_state["tab"] = "Environment"
        assert "columns_shown" not in [pills.key for pills in calm(app.run()).pills]
        app.session_state["tab"] = "Table"
        assert shown(calm(app.run())) == ["strategy", "rank", "latency", "largest error"]
        assert not any("columns" in name for name in app.query_params)

    def test_without_any_the_names_are_left(self, visit: Callable[..., AppTest]):
        app = opened(visit())
        assert shown(calm(app.pills(key="columns_shown").set_value([]).run())) == ["strategy"]
