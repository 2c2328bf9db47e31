"""The one table of strategies: its figures, its names, and the columns that a person picks; and break-even points."""

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure.output import columns
from measure.run.run import Run
from measure.run.why import Why
from tests import synthetic
from tests.pages import RUN_ID, FakeClient, calm, open_page
from views.result import tables


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run(RUN_ID)


def test_columns_that_are_picked_stay_through_other_tabs(run: Run, fake: FakeClient) -> None:
    def shown(app: AppTest) -> list[str]:
        """The columns of the table, in their order."""
        (table,) = [one for one in app.dataframe if "process peak" in one.value.columns]
        return list(table.proto.column_order)

    fake.show(run)
    app = open_page(run=RUN_ID)
    assert shown(app) == [
        "strategy", "rank", "latency", "95 % interval", "× faster", "first call", "peak memory", "outcome"
    ]  # fmt: skip
    app.session_state["columns"] = True
    pills = calm(app.run()).pills(key="columns_shown")
    assert set(pills.options) == {column.page for column in columns.of("page", run)} - {"strategy"}
    assert shown(calm(pills.set_value([]).run())) == ["strategy"]
    picked = ["strategy", "rank", "latency", "largest error"]
    assert shown(calm(pills.set_value(["rank", "largest error", "latency"]).run())) == picked
    app.session_state["tab"] = "Environment"
    assert "columns_shown" not in [pills.key for pills in calm(app.run()).pills]
    app.session_state["tab"] = "Table"
    assert shown(calm(app.run())) == picked and not any("columns" in name for name in app.query_params)


def test_break_even_points_are_in_words_each_compiled_strategy_against_each_eager_one(run: Run) -> None:
    frame = tables.break_even_frame(run)
    assert list(frame.columns)[1:] == [f"against ● {m}.eager" for m in ("batched", "vectorized_map", "loop", "map_fn")]
    by_name = frame.set_index("compiled")
    assert by_name.loc["■ map_fn.graph", "against ● batched.eager"] == "never"
    assert not frame.isna().any(axis=None) and "■ dataset.graph" not in by_name.index
    first, *others = run.measurements
    known = replace(run, measurements=[replace(first, why=Why(runtime_start_s=0.1)), *others])
    assert "100 ms once per process" in tables.break_even_note(known)
    assert "once per process" not in tables.break_even_note(run)
