"""The charts of a comparison, from made-up runs: their figures and scales, and what they are by themselves."""

from dataclasses import replace
from typing import Any

import altair
import numpy as np
import pytest
from msgspec import UNSET, structs

from measure.judge.findings import Findings, Row, findings
from measure.judge.verdict import verdict
from tests import synthetic
from tests.measure.judge.test_findings import runs
from tests.synthetic import MIB, OUTPUT
from views.charts import latency_memory_error, memory_timeline, samples, total_time

RUN = synthetic.run()
RESULT = findings(RUN, "loop.eager")


class TestPicture:
    def test_it_does_not_contradict_the_headline(self):
        """Comparisons of every kind: near and far, quiet and noisy, of few and of many, short, busy, with failures."""
        for run in runs():
            found = findings(run)
            frame, alt = latency_memory_error.frame(found), latency_memory_error.takeaway(found)
            assert frame["strategy"].to_list() == [row.slug for row in found.rows]
            values = [row.latency if row.interval or row.rough_s else "" for row in found.rows]
            assert frame["value"].to_list() == values, alt
            bands = frame.dropna(subset="tie_top")
            assert len(bands) == len({row.tie for row in found.rows if row.tied}), "a band is a tie of the table"
            assert found.run.finished is None or verdict(found) in alt
            if found.word == "tie":
                assert bands.iloc[0]["tie_bottom"].round() == len(found.leaders)

    def test_a_row_has_its_figures_and_the_band_of_its_tie(self):
        frame = latency_memory_error.frame(RESULT)
        assert len(frame) == len(RESULT.rows)
        first = frame.iloc[0]
        assert (first["strategy"], first["colour"], first["mode"]) == ("batched.xla", "batched", "xla")
        assert (first["low"], first["median"], first["high"]) == (
            RESULT.rows[0].interval[0], RESULT.rows[0].median_s, RESULT.rows[0].interval[1]
        )  # fmt: skip
        assert frame.dropna(subset="tie_top")["tie_bottom"].round().to_list() == [2, 4], "rows 0 and 1, and 2 and 3"
        rows = frame.set_index("strategy")
        assert (rows.loc["loop.eager", "factor"], rows.loc["dataset.graph", "factor"]) == ("baseline", "✗ wrong")

    def test_memory_stacks_up_to_the_peak_in_one_unit_and_a_crushing_process_peak_is_an_arrow(self):
        line = latency_memory_error.frame(RESULT).set_index("strategy").loc["map_fn.xla"]
        assert line["peak"] == "14.1 MiB"
        assert (line["output_at"], line["peak_at"]) == (OUTPUT / MIB, 3 * OUTPUT / MIB)
        assert line["process_at"] == (3 * OUTPUT + 300_000) / MIB
        item = RESULT.rows[0].measurement
        huge = Row(
            measurement=structs.replace(item, memory=structs.replace(item.memory, process_peak_bytes=100 * OUTPUT))
        )
        (line,) = latency_memory_error.frame(replace(RESULT, rows=[huge])).to_dict("records")
        assert line["beyond"] and np.isnan(line["process_at"]) and line["memory_high"] <= 2 * OUTPUT / MIB

    def test_an_error_stands_against_its_tolerance_and_what_is_exact_at_the_edge(self):
        item = RESULT.rows[0].measurement
        leaf = structs.replace(item.correctness.leaves[0], max_abs=0.0, max_rel=0.0)
        check = structs.replace(item.correctness, max_abs=0.0, leaves=[leaf])
        exact = Row(measurement=structs.replace(item, correctness=check))
        frame = latency_memory_error.frame(replace(RESULT, rows=[*RESULT.rows, exact]))
        right, wrong = (frame[frame["strategy"] == slug].iloc[0] for slug in ("batched.graph", "dataset.graph"))
        assert right["error"] < right["allowed"] == wrong["allowed"] == 1.2e-6 < wrong["error"] == 0.71
        assert frame[frame["right"] == "exact ✓"]["error"].to_list() == [frame["error_low"].iloc[0]]
        large = structs.replace(item.correctness, leaves=[structs.replace(leaf, max_rel=9e-6)])
        frame = latency_memory_error.frame(
            replace(RESULT, rows=[Row(measurement=structs.replace(item, correctness=large))])
        )
        assert frame["error"].to_list() == frame["allowed"].to_list(), "what is right is not beyond its line"
        assert right["right"].endswith("✓") and wrong["right"].endswith("✗")

    def test_values_that_are_wrong_by_a_nan_have_no_error_beside_the_cross(self):
        item = RESULT.row("dataset.graph").measurement
        leaf = structs.replace(item.correctness.leaves[0], max_abs=1e-9, max_rel=1e-9, nan_mismatches=3)
        check = structs.replace(item.correctness, max_abs=1e-9, leaves=[leaf])
        wrong = Row(measurement=structs.replace(item, correctness=check))
        assert latency_memory_error.frame(replace(RESULT, rows=[wrong]))["right"].to_list() == ["wrong ✗"]

    def test_latencies_of_a_run_that_is_too_noisy_are_grey_but_not_while_it_runs(self):
        def opacity(one: Findings) -> float:
            return {param["name"]: param.get("value") for param in latency_memory_error.specification(one)["params"]}[
                "sure"
            ]

        running = [replace(row, running=True) for row in RESULT.rows]
        assert opacity(replace(RESULT, word="too noisy")) < opacity(RESULT) == 1
        assert opacity(replace(RESULT, word="nothing", rows=running)) == 1

    def test_a_row_without_a_latency_says_why(self):
        notes = latency_memory_error.frame(RESULT).set_index("strategy")["note"]
        assert notes["loop.xla"] == "✗ timed out: The first call did not end within 10 s."
        assert notes["chunked.xla"] == "not timed: Cancelled before it was sampled." and notes["batched.xla"] == ""

    def test_rows_fill_in_the_quickest_first(self):
        rough_s, run = {"loop.eager": 0.0014, "map_fn.graph": 0.011, "batched.xla": 9.0}, synthetic.partial(2)
        items = [structs.replace(item, rough_s=rough_s.get(item.strategy, UNSET)) for item in run.measurements]
        frame = latency_memory_error.frame(findings(structs.replace(run, measurements=items)))
        assert frame["strategy"].to_list()[2:4] == ["loop.eager", "map_fn.graph"] and len(frame) == len(synthetic.TIMED)
        assert frame["value"].to_list()[2:4] == ["~1 ms", "~10 ms"] and not frame["rough"].iloc[0]
        assert set(frame["note"][4:]) == {"sampling …"} and set(frame["peak_at"].notna()) == {True}

    def test_its_marks_without_text_are_no_picture_without_a_name(self):
        def marks(part: dict[str, Any]) -> list[dict[str, Any]]:
            return [part["mark"]] if "mark" in part else [mark for layer in part["layer"] for mark in marks(layer)]

        drawn = marks(latency_memory_error.specification(RESULT))
        assert all(mark.get("aria") is False for mark in drawn if mark["type"] != "text")


def test_specifications_are_valid_vega_lite():
    for spec in (total_time.SPEC, samples.SPEC, memory_timeline.SPEC):
        altair.LayerChart.from_dict({**spec, "data": {"values": []}})


def test_every_sample_is_drawn_and_the_memory_of_a_whole_call():
    counts = samples.frame(RUN, ["batched.xla"]).groupby("strategy")["seconds"].count()
    assert counts.to_dict() == {"◆ batched.xla": 60, "◆ batched.xla, entered twice": 60}
    frame = memory_timeline.frame([RUN.measurement("map_fn.graph")])
    assert frame["live"].max() == pytest.approx(2 * OUTPUT / MIB, abs=1e-5) and frame["at"].max() == pytest.approx(100)
