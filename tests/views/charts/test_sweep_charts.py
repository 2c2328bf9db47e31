"""What the charts of a sweep are made of, from made-up sweeps; and that each can be drawn by itself."""

import pandas as pd
import pytest
from msgspec.structs import replace

from measure.run.run import Crossover, Run
from tests import synthetic
from tests.synthetic import MIB
from views.charts import files, sweep_front, sweep_lines, sweep_map
from views.ui import look

LOOP, VECTORIZED = "● loop.eager", "■ vectorized_map.graph"


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.sweep()


@pytest.fixture(scope="module")
def winners() -> Run:
    return synthetic.winners()


def of(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    return frame[frame["kind"] == kind]


class TestLines:
    def test_every_measured_value_is_a_point_with_its_interval_and_a_name_at_the_lines_end(self, run):
        points = of(sweep_lines.frame(run, "latency"), "point")
        loop = points[points["strategy"] == LOOP]
        assert list(loop["x"]) == [1, 10, 100] and list(loop["beside"].notna()) == [False, False, True]
        for point, row in zip(run.points, loop.itertuples(), strict=False):
            latency = next(item.latency for item in point.measurements if item.mapper == "loop")
            assert (row.y, row.low, row.high) == (latency.median_s, latency.low_s, latency.high_s)
        assert list(loop[sweep_map.SELECTION]) == [sweep_map.cell(run, point) for point in run.points[:3]]
        memory = of(sweep_lines.frame(run, "memory"), "point")
        assert memory.iloc[0]["y"] == run.points[0].measurements[0].memory.peak_bytes / MIB

    def test_a_failure_is_a_mark_where_it_occurred_at_the_height_that_the_line_had(self, run):
        frame = sweep_lines.frame(run, "latency")
        [failure] = of(frame, "failure").to_dict("records")
        assert (failure["strategy"], failure["x"], failure["from"]) == (LOOP, 1000, 100)
        assert failure["y"] == of(frame, "point").query(f"strategy == '{LOOP}'")["y"].iloc[-1]
        assert failure["outcome"].startswith("timed out: ")
        [left_out] = of(frame, "point without strategies").to_dict("records")
        assert left_out["x"] == 10_000 and "This cannot fit" in left_out["outcome"]

    @pytest.mark.parametrize(("scale", "middle"), [("log", 10**0.5), ("linear", 5.5)])
    def test_a_crossing_is_on_the_line_as_the_scale_draws_it(self, run, scale, middle):
        """Halfway between two points as they are drawn, the line is at the geometric mean of their heights."""
        crossed = Crossover(a="loop.eager", b="vectorized_map.graph", axis="batch", value=middle, low=2.0, high=9.0)
        drawn = replace(run, axes=[replace(run.axes[0], scale=scale)], crossovers=[crossed])
        frame = sweep_lines.frame(drawn, "latency")
        loop = of(frame, "point").query(f"strategy == '{LOOP}'").set_index("x")["y"]
        [ring] = of(frame, "crossing").to_dict("records")
        assert (ring["x"], ring["from"], ring["to"]) == (middle, 2.0, 9.0)
        assert ring["y"] == pytest.approx((loop[1] * loop[10]) ** 0.5)
        assert of(sweep_lines.frame(drawn, "memory"), "crossing").empty


class TestMap:
    def test_what_is_inferred_in_a_file_of_an_earlier_version_is_paler_and_says_why(self, winners):
        frame = sweep_map.frame(winners)
        [pale] = frame[frame["alpha"] < 0.5].to_dict("records")
        assert (pale["x"], pale["y"]) == (10, 16) and pale["state"].startswith("inferred: all around it")
        assert pale["by"] == look.MISSING

    def test_cells_say_what_state_they_are_in_and_the_legend_has_every_shade_and_no_other(self, winners):
        assert sweep_map.shades(winners) == ["measured", "inferred"]
        statuses = ("running", "waiting", "skipped", "complete", "budget")
        bare = [
            replace(point, status=status, ranking=[], measurements=[], reason="because")
            for point, status in zip(winners.points, statuses, strict=False)
        ]
        tied = replace(winners.points[5], ranking=[["batched.graph", "loop.eager"]])
        run = replace(winners, points=[*bare, tied])
        frame = sweep_map.frame(run)
        assert list(frame["letters"])[:5] == ["…", "", "✕", "✕", ""] and not frame["colour"][:5].any()
        assert [said.partition(":")[0] for said in frame["state"][:3]] == ["being measured", "waiting", "left out"]
        assert sweep_map.shades(run) == ["measured", "tie", "without", "running", "waiting", "missed"]
        legend = sweep_map.legend_html(run)
        assert "a tie" in legend and "neighbours agree" not in legend


def test_on_the_front_what_is_beaten_in_both_is_faded_and_what_ran_out_of_memory_is_on_the_rim(run):
    fast, slow, *_ = synthetic.run().measurements
    slow = replace(slow, latency=synthetic.latency(1.0), memory=replace(slow.memory, peak_bytes=20 * MIB))
    fast = replace(fast, latency=synthetic.latency(0.5), memory=replace(fast.memory, peak_bytes=10 * MIB))
    large = synthetic.failure("while_loop", "xla", "out_of_memory", "It asked for 1.00 GiB.")
    frame = sweep_front.frame([slow, fast, large], None)
    beaten, best = of(frame, "strategy")["alpha"]
    assert beaten < best and list(of(sweep_front.frame([slow, fast], 15 * MIB), "limit")["x"]) == [15]
    [rim] = of(frame, "rim").to_dict("records")
    assert rim["strategy"] == "◆ while_loop.xla ✕" and rim["standing"].startswith("out of memory: ")
    assert f"15.0 MiB available, {fast.strategy} is fastest" in sweep_front.sentence([slow, fast, large], 15 * MIB)
    assert sweep_front.sentence([slow, fast], MIB).startswith("Nothing fits into 1.00 MiB")


def test_every_chart_of_a_sweep_has_a_specification_of_its_own_and_a_map_is_a_picture(run, winners):
    assert set(files.titles(run)) == {"latency", "memory", "front"}
    assert set(files.titles(winners)) == {"map", "front"}
    drawn = files.specification(winners, "map")
    assert drawn["title"]["subtitle"][1] == "A: loop.eager, B: vectorized_map.graph"
    for shown in (drawn, files.specification(run, "latency")):
        assert "'orient': 'bottom'" in str(shown) and "'values': ['']" not in str(shown)
    svg = files.convert(winners, "map", "svg").decode()
    assert svg.startswith("<svg") and "batch" in svg and "height" in svg
