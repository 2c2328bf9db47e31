"""The tables, figures and sentences of a comparison, exactly, from made-up runs."""

import re

import pytest
from msgspec.structs import replace

from measure.model.run import Run
from measure.model.why import Why
from measure.output import rows
from tests import synthetic
from tests.synthetic import MIB, OUTPUT
from views.result import tables


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run()


@pytest.fixture(scope="module")
def shown(run: Run) -> list[rows.Row]:
    return rows.make(run, "loop.eager")


class TestTables:
    def test_correctness_puts_the_wrong_one_first(self, shown):
        frame = tables.correctness_frame(shown)
        assert len(frame) == 12
        assert frame.iloc[0].to_dict() == {
            "strategy": "■ dataset.graph",
            "check": "✕ wrong",
            "largest absolute error": "0.53",
            "relative": "0.71",
            "in ULP": "5.1e+06",
            "NaN differs": "3",
        }
        assert set(frame["check"][1:]) == {"✓ pass"}
        assert tables.correctness_sentence(shown) == "1 of 12 wrong: dataset.graph."

    def test_what_would_be_right_enough(self, run):
        assert tables.tolerances(run.measurement("dataset.graph")) == [
            "In output an error of relative 1.2e-06 is allowed."
        ]
        assert tables.tolerances(run.measurement("batched.xla")) == []

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

    def test_everything_in_one_table(self, shown, run):
        frame = tables.everything_frame(shown, run)
        assert len(frame) == len(shown)
        assert frame["latency"].iloc[0] == shown[0].median_s * 1e3
        assert frame["peak"].iloc[0] == OUTPUT / MIB
        assert set(tables.number_formats()) <= set(frame.columns)
        assert frame["rank"].isna().sum() == 6
        assert all(
            unit in format_
            for format_, unit in (
                (tables.number_formats()["latency"][0], "ms"),
                (tables.number_formats()["peak"][0], "MiB"),
            )
        )

    def test_the_limit_has_a_column_where_it_is_known(self, shown, run):
        assert "× limit" in tables.everything_frame(shown, run)
        without = replace(run, limit=None)
        assert "× limit" not in tables.everything_frame(rows.make(without), without)

    def test_failures_have_a_sentence_each(self, shown, run):
        lines = {row.slug: sentence for row, sentence in tables.failure_lines(shown, run)}
        assert lines["loop.xla"] == "The first call did not end within 10 s."
        assert lines["dataset.graph"] == (
            "12 % of the values differ from the reference. In output an error of relative 1.2e-06 is allowed."
        )
        assert len(lines) == 6 and all(lines.values())

    def test_out_of_memory_says_of_which(self, run):
        def sentence(limit: int | None) -> str:
            limited = replace(run, request=replace(run.request, memory_limit_mib=limit))
            found = tables.failure_lines(rows.make(limited), limited)
            return next(said for row, said in found if row.outcome == "out_of_memory")

        assert sentence(60).startswith("It needs more memory than the limit of 60 MiB: ")
        assert sentence(None).startswith("It needs more memory than there is: ")

    def test_an_error_that_only_announces_itself_is_left_to_the_full_text(self, run):
        m = run.measurement("while_loop.xla")
        m = replace(m, error=replace(m.error, message="Graph execution error:"))
        one = replace(run, measurements=[m], ranking=[])
        ((_, said),) = tables.failure_lines(rows.make(one), one)
        assert said.endswith("may fit.")
