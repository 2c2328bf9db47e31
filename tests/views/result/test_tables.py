"""The figures and the break-even points of a comparison, exactly, from made-up runs."""

import re

import pytest
from msgspec.structs import replace

from measure.model.run import Run
from measure.model.why import Why
from measure.output import rows
from tests import synthetic
from views.result import tables


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run()


@pytest.fixture(scope="module")
def shown(run: Run) -> list[rows.Row]:
    return rows.make(run, "loop.eager")


class TestTables:
    def test_break_even_points_are_in_words_each_compiled_strategy_against_each_eager_one(self, run):
        frame = tables.break_even_frame(run)
        assert list(frame.columns) == ["compiled", *(f"against ● {m}.eager" for m in ("batched", "vectorized_map",
                                                                                     "loop", "map_fn"))]  # fmt: skip
        assert list(frame["compiled"])[:3] == ["◆ batched.xla", "■ batched.graph", "◆ vectorized_map.xla"]
        by_name = frame.set_index("compiled")
        assert by_name.loc["■ map_fn.graph", "against ● batched.eager"] == "never"
        assert by_name.loc["◆ vectorized_map.xla", "against ● batched.eager"].startswith("cannot be told (≥ ")
        assert by_name.loc["■ batched.graph", "against ● vectorized_map.eager"] == "from the first call"
        assert re.fullmatch(r"\d+ \[\d+, \d+\]", by_name.loc["■ loop.graph", "against ● loop.eager"])
        assert not frame.isna().any(axis=None) and "■ dataset.graph" not in by_name.index

    def test_what_is_spent_once_per_process_is_said_beside_the_break_even_points(self, run):
        assert "once per process" not in tables.break_even_note(run)
        first, *others = run.measurements
        known = replace(run, measurements=[replace(first, why=Why(runtime_start_s=0.1)), *others])
        assert "TensorFlow and XLA take up to 100 ms once per process to start" in tables.break_even_note(known)
