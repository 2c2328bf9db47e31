"""What the charts of a sweep are made of, exactly, from made-up sweeps; and that each can be drawn by itself."""

import dataclasses
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

import workloads
from measure.model.run import Axis, Crossover, Error, Latency, Measurement, Point, RequestRecord, Run
from measure.sweep import cells, omissions
from measure.sweep.crossovers import sentence
from measure.sweep.omissions import OVER_BUDGET
from strategies.spec import Strategy
from tests import synthetic
from tests.synthetic import MIB
from views.charts import base, failures, files, sweep_front, sweep_lines, sweep_map
from views.result.sweep_point import point_run
from views.ui import look


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.sweep()


@pytest.fixture(scope="module")
def winners() -> Run:
    return synthetic.winners()


def of(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    return frame[frame["kind"] == kind]


def _left_out(error: Error | None) -> Measurement:
    return replace(synthetic.failure("loop", "eager", "not_run", ""), error=error)


def dial() -> Run:
    """`outer_reduce` over `chunk`: from `map_fn`'s pace and memory to `vectorized_map`'s, which ran out of memory under
    XLA."""
    rng = np.random.default_rng(0)
    base = synthetic.measurement("map_fn.graph", rng)

    def item(mapper: str, seconds: float, mib: float, **options: int):
        assert base.memory is not None
        return replace(
            base, strategy=Strategy(mapper, "graph", options).slug, mapper=mapper, options=options, outcome="ok",
            latency=Latency(median_s=seconds, low_s=0.95 * seconds, high_s=1.05 * seconds),
            memory=replace(base.memory, peak_bytes=int(mib * MIB)),
        )  # fmt: skip

    points = []
    for chunk in (1, 8, 64):
        measurements = [item("chunked", 8e-3 / chunk + 1e-3, chunk, chunk=chunk)]
        if chunk == 1:
            measurements += [item("map_fn", 9e-3, 0.9), item("vectorized_map", 1.2e-3, 100)]
            measurements.append(synthetic.failure("vectorized_map", "xla", "out_of_memory", "It asked for 1.00 GiB."))
        points.append(Point(at={"chunk": chunk}, status="complete", measurements=measurements))
    request = RequestRecord(
        workload="outer_reduce", size=workloads.get("outer_reduce").default_size(), dtype="float32", device="CPU:0",
        strategies=["chunked.graph", "map_fn.graph", "vectorized_map.graph", "vectorized_map.xla"], budget_s=60.0,
    )  # fmt: skip
    return Run(
        id="1" * 24, kind="sweep", created="2025-01-15T09:30:00Z", status="complete", request=request, points=points,
        axes=[Axis(kind="option", name="chunk", values=[1, 8, 64], scale="log")],
    )  # fmt: skip


class TestLines:
    def test_every_measured_value_is_a_point_with_its_interval(self, run):
        points = of(sweep_lines.frame(run, "latency"), "point")
        loop = points[points["strategy"] == "● loop.eager"]
        assert list(loop["x"]) == [1, 10, 100]
        for value, row in zip((1, 10, 100), loop.itertuples(), strict=True):
            [item] = [m for p in run.points if p.at["batch"] == value for m in p.measurements if m.mapper == "loop"]
            assert (row.y, row.low, row.high) == (item.latency.median_s, item.latency.low_s, item.latency.high_s)

    def test_a_failure_is_a_mark_where_it_occurred_at_the_height_that_the_line_had(self, run):
        frame = sweep_lines.frame(run, "latency")
        [failure] = of(frame, "failure").to_dict("records")
        loop = of(frame, "point").query("strategy == '● loop.eager'")
        assert (failure["strategy"], failure["x"], failure["from"]) == ("● loop.eager", 1000, 100)
        assert failure["y"] == loop["y"].iloc[-1]
        assert failure["outcome"].startswith("timed out: no answer within 10 s")
        assert [words for _, words in failures.did_not_work(run)] == [f"batch 1,000: {failure['outcome']}"]

    def test_what_a_person_cancelled_is_no_failure(self, run):
        """No mark and no line in the list; the cell of a map still names who did not compete there."""
        cancelled = [
            replace(item, outcome="cancelled", latency=None, memory=None, replicas=[])
            for item in run.points[2].measurements
        ]
        points = [*run.points[:2], replace(run.points[2], measurements=cancelled), *run.points[3:]]
        stopped = replace(run, points=points)
        assert list(of(sweep_lines.frame(stopped, "latency"), "failure")["x"]) == [1000]
        assert [words.partition(":")[0] for _, words in failures.did_not_work(stopped)] == ["batch 1,000"]
        assert failures.without(points[2]).endswith(": cancelled")

    def test_a_reason_that_strategies_share_is_said_once(self, run):
        beyond = [_left_out(omissions.over_budget(30.0, 60.0)), _left_out(omissions.over_budget(30.0, 60.0))]
        beyond[1] = replace(beyond[1], strategy="map_fn.xla", mapper="map_fn", mode="xla")
        at = Point(at={"batch": 20_000}, status="complete", measurements=beyond)
        ((alike, words),) = failures.not_run(replace(run, points=[*run.points, at]))
        assert [line.slug for line in alike] == [item.strategy for item in beyond]
        assert words.startswith("batch 20,000: it would take about 30.0 s")

    def test_a_point_that_was_left_out_is_a_mark_with_its_reason(self, run):
        [left_out] = of(sweep_lines.frame(run, "latency"), "point without strategies").to_dict("records")
        assert left_out["x"] == 10_000
        assert left_out["outcome"].startswith("left out: This cannot fit")

    def test_a_crossing_is_on_the_line_with_its_interval(self, run):
        crossings = of(sweep_lines.frame(run, "latency"), "crossing")
        known = [each for each in run.crossovers if each.value is not None]
        assert known
        assert list(crossings["x"]) == [each.value for each in known]
        assert (crossings["from"] <= crossings["x"]).all() and (crossings["x"] <= crossings["to"]).all()
        first = crossings.iloc[0]
        loop = of(sweep_lines.frame(run, "latency"), "point").query("strategy == '● loop.eager'")
        assert loop["y"].min() < first["y"] < loop["y"].max()
        assert of(sweep_lines.frame(run, "memory"), "crossing").empty

    @pytest.mark.parametrize("scale", ["log", "linear"])
    def test_a_crossing_is_on_the_line_as_the_scale_draws_it(self, run, scale):
        """Halfway between two points as they are drawn, the line is at the geometric mean of their heights."""
        axis = replace(run.axes[0], scale=scale)
        middle = {"log": 10**0.5, "linear": 5.5}[scale]
        crossed = Crossover(a="loop.eager", b="vectorized_map.graph", axis="batch", value=middle, low=2.0, high=9.0)
        frame = sweep_lines.frame(replace(run, axes=[axis], crossovers=[crossed]), "latency")
        loop = of(frame, "point").query("strategy == '● loop.eager'").set_index("x")["y"]
        [ring] = of(frame, "crossing").to_dict("records")
        assert ring["x"] == middle
        assert ring["y"] == pytest.approx((loop[1] * loop[10]) ** 0.5)

    def test_what_was_not_run_is_said_apart_once_and_with_all_values_of_one_reason(self, run):
        late = "it would take about {} of the sweep's 60 s; with a larger budget it is measured"
        spent = "the time budget was spent; continue the sweep, or give it more"
        former = f"not run here: {late.format('5.00 min')}"
        errors = {
            20_000: omissions.over_budget(31.8, 60.0),
            30_000: omissions.over_budget(133.0, 60.0),
            40_000: omissions.untimed(),
            50_000: Error(type=OVER_BUDGET, message=former),
            60_000: Error(type=OVER_BUDGET, message=former),
        }
        points = [
            Point(at={"batch": value}, status="complete", measurements=[_left_out(error)])
            for value, error in errors.items()
        ]
        whole = replace(run, points=[*run.points, *points])
        assert [words for _, words in failures.not_run(whole)] == [
            f"batch 20,000; batch 30,000: {late.format('31.8 s to 2.22 min')}",
            f"batch 40,000: {spent}",
            f"batch 50,000; batch 60,000: {former}",
        ]
        assert [words.partition(":")[0] for _, words in failures.did_not_work(whole)] == ["batch 1,000"]
        marks = of(sweep_lines.frame(whole, "latency"), "failure").set_index("x")["outcome"]
        assert marks[20_000].startswith("not run: it would take about 31.8 s")
        assert marks[40_000] == f"not run: {spent}"
        assert marks[50_000] == former

    def test_each_line_has_its_name_once_at_its_end(self, run):
        points = of(sweep_lines.frame(run, "latency"), "point")
        named = points[points["beside"].notna()]
        assert list(named["strategy"]) == list(points["strategy"].unique())
        assert (named["x"] == points.groupby("strategy", sort=False)["x"].max().to_numpy()).all()

    def test_memory_that_hardly_varies_has_an_axis_with_room_and_names_beside_it(self, run):
        """Its ticks are powers of two: between 3 and 4 MiB there is none."""
        points = [
            replace(point, measurements=[
                replace(item, memory=replace(item.memory, peak_bytes=3 * MIB)) if item.memory else item
                for item in point.measurements
            ])
            for point in run.points
        ]  # fmt: skip
        rows = of(sweep_lines.frame(replace(run, points=points), "memory"), "point")
        assert set(rows["least"]) == {1.5} and set(rows["most"]) == {6.0} and set(rows["y"]) == {3.0}
        beside = sorted(rows["beside"].dropna())
        assert len(beside) == 3 and beside[1] == pytest.approx(3.0) and beside[0] < 3.0 < beside[2]
        latency = of(sweep_lines.frame(run, "latency"), "point")
        assert set(latency["least"]) == {latency["low"].min()} and set(latency["most"]) == {latency["high"].max()}

    def test_lines_between_the_powers_of_ten_are_faint_where_an_axis_is_logarithmic(self, run):
        def faint(channel: str, scale: str) -> bool:
            drawn = sweep_lines.specification("latency", replace(run.axes[0], scale=scale))
            axes = [layer["encoding"].get(channel, {}).get("axis") or {} for layer in drawn["layer"]]
            [opacity] = {str(axis["gridOpacity"]) for axis in axes if "gridOpacity" in axis}
            return opacity == str(base.DECADES) and base.DECADES["value"] < 0.5

        assert faint("x", "log") and faint("y", "log")
        assert not faint("x", "linear") and faint("y", "linear")

    def test_lines_beside_two_that_are_asked_about_fade_and_their_crossing_is_marked(self, run):
        assert set(sweep_lines.frame(run, "latency")["alpha"]) == {1.0}
        pair = ("batched.graph", "loop.eager")
        crossed = Crossover(a="loop.eager", b="batched.graph", axis="batch", value=3.5, low=3.0, high=4.0)
        frame = sweep_lines.frame(run, "latency", pair, [crossed])
        alphas = of(frame, "point").groupby("strategy")["alpha"].agg(set).to_dict()
        assert alphas["● loop.eager"] == alphas["■ batched.graph"] == {1.0}
        [faded] = alphas["■ vectorized_map.graph"]
        assert faded < 0.5
        rings = of(frame, "crossing")
        assert list(rings["x"]) == [*of(sweep_lines.frame(run, "latency"), "crossing")["x"], 3.5]
        again = sweep_lines.frame(run, "latency", pair, run.crossovers)
        assert len(of(again, "crossing")) == len(rings) - 1, "one that is the run's own is marked once"

    def test_a_click_on_a_point_of_a_line_selects_it_by_its_place(self, run):
        [param] = sweep_lines.specification("latency", run.axes[0])["params"]
        assert (param["name"], param["select"]["fields"]) == (sweep_map.SELECTION, [sweep_map.SELECTION])
        assert "params" not in sweep_lines.specification("memory", run.axes[0])
        loop = of(sweep_lines.frame(run, "latency"), "point").query("strategy == '● loop.eager'")
        assert list(loop[sweep_map.SELECTION]) == [sweep_map.cell(run, point) for point in run.points[:3]]

    def test_memory_is_in_mib(self, run):
        points = of(sweep_lines.frame(run, "memory"), "point")
        item = run.points[0].measurements[0]
        assert points.iloc[0]["y"] == item.memory.peak_bytes / MIB

    def test_what_an_option_does_not_concern_is_a_level(self):
        points = of(sweep_lines.frame(dial(), "latency"), "point")
        level = points[points["strategy"] == "■ map_fn.graph"]
        assert list(level["x"]) == [1, 64]
        assert level["y"].nunique() == 1
        assert list(points[points["strategy"] == "■ chunked.graph"]["x"]) == [1, 8, 64]

    def test_nothing_yet_is_an_empty_frame_and_says_so(self, run):
        empty = replace(run, points=[Point(at={"batch": 1}), Point(at={"batch": 10})], crossovers=[])
        assert sweep_lines.frame(empty, "latency").empty
        assert "nothing has been measured yet" in sweep_lines.takeaway(empty, "latency")

    def test_the_takeaway_names_who_is_least_at_both_ends_and_the_crossings(self, run):
        words = sweep_lines.takeaway(run, "latency")
        assert "at 1 loop.eager has the least" in words
        assert "overtakes loop.eager at batch" in words


class TestMap:
    def test_a_tie_has_two_colours_and_both_letters(self, winners):
        tied = [["batched.graph", "vectorized_map.graph"], ["loop.eager"]]
        winners = replace(winners, points=[replace(winners.points[0], ranking=tied), *winners.points[1:]])
        frame = sweep_map.frame(winners)
        codes = sweep_map.letters(winners)
        for row, point in zip(frame.itertuples(), winners.points, strict=True):
            assert row.letters == "=".join(codes[slug] for slug in point.ranking[0])
            assert bool(row.second) == (len(point.ranking[0]) > 1)
            assert bool(row.third) == (len(point.ranking[0]) > 1)
        assert list(frame.loc[0, ["colour", "second", "third"]]) == ["batched", "vectorized_map", "vectorized_map"]

    def test_a_tie_of_three_has_three_colours(self, winners):
        tied = [["batched.graph", "vectorized_map.graph", "loop.eager"]]
        frame = sweep_map.frame(replace(winners, points=[replace(winners.points[0], ranking=tied)]))
        assert list(frame.loc[0, ["colour", "second", "third"]]) == ["batched", "vectorized_map", "loop"]

    def test_a_tie_is_striped_and_the_stripes_have_edges_where_both_are_of_one_colour(self, winners):
        layers = sweep_map.specification("batch", "height")["layer"]
        fields = ("second", "third")
        stripes = [each for each in layers if each["encoding"].get("color", {}).get("field") in fields]
        assert [each["encoding"]["color"]["field"] for each in stripes] == list(fields)
        assert [each["transform"][0]["filter"] for each in stripes] == [f"datum.{field} !== ''" for field in fields]
        assert all(each["mark"]["strokeOpacity"] and each["mark"]["stroke"] for each in stripes)
        offsets = [each["mark"]["yOffset"] for each in stripes]
        assert offsets[0] == -offsets[1] and stripes[0]["mark"]["height"] < 2 * offsets[1], "the letters are between"

    def test_letters_stay_within_their_cell(self):
        [text] = [each for each in sweep_map.specification("batch", "height")["layer"] if "text" in each["encoding"]]
        assert text["mark"]["limit"] == {"expr": "bandwidth('x')"}

    def test_what_is_inferred_is_paler_and_says_why(self, winners):
        frame = sweep_map.frame(winners)
        [pale] = frame[frame["alpha"] < 0.5].to_dict("records")
        assert (pale["x"], pale["y"]) == (10, 16)
        assert pale["state"].startswith("inferred: all around it")

    def test_by_how_much_it_wins_has_its_interval(self, winners):
        row = sweep_map.frame(winners).iloc[0]
        assert row["fastest"] == "loop.eager"
        assert row["by"].endswith("faster than vectorized_map.graph") or row["by"].endswith("than batched.graph")
        assert "× [" in row["by"]

    def test_where_all_tie_the_ratio_to_the_best_of_the_others_has_its_interval(self, winners):
        point = winners.points[0]
        tied = [["batched.graph", "loop.eager", "vectorized_map.graph"]]
        words = sweep_map.lead(replace(point, ranking=tied), winners)
        ratio, low, high, slug = re.fullmatch(
            r"([\d.]+) × \[([\d.]+), ([\d.]+)\] faster than (\S+), a tie", words
        ).groups()
        assert float(low) <= float(ratio) <= float(high)
        latency = {item.strategy: item.latency.median_s for item in point.measurements}
        assert slug == min(tied[0][1:], key=lambda each: latency[each])
        assert float(ratio) == pytest.approx(latency[slug] / latency["batched.graph"], rel=0.05)

    def test_what_is_inferred_says_the_leads_that_it_rests_on(self, winners):
        middle = winners.points[4]
        assert middle.at == {"batch": 10, "height": 16}
        around = [tuple(point.at.values()) for point in cells.rests_on(winners, middle)]
        assert around == [(1, 16), (100, 16), (10, 8), (10, 32)]
        leads = [float(sweep_map.lead(point, winners).partition(" ")[0]) for point in cells.rests_on(winners, middle)]
        words = f"{min(leads)} to {max(leads)} × faster than the next at the 4 measured cells around it"
        assert sweep_map.frame(winners)["by"][4] == words
        # Without two sides in its row or its column, it rests on the quarters around it.
        corners = [point for number, point in enumerate(winners.points) if number in (0, 2, 4, 6, 8)]
        around = [tuple(point.at.values()) for point in cells.rests_on(replace(winners, points=corners), middle)]
        assert around == [(1, 8), (1, 32), (100, 8), (100, 32)]

    def test_who_was_left_out_at_a_cell_is_said_with_the_reason(self, winners):
        assert sweep_map.frame(winners)["without"][0] == "–"
        items = [
            _left_out(omissions.beyond_available(2**41, 2**34)),
            replace(_left_out(omissions.beyond_available(2**42, 2**34)), strategy="map_fn.graph"),
            synthetic.failure("while_loop", "graph", "timeout", "no answer within 10 s"),
        ]
        point = replace(winners.points[0], measurements=[*winners.points[0].measurements, *items])
        said = sweep_map.frame(replace(winners, points=[point]))["without"][0]
        assert said == (
            "loop.eager, map_fn.graph: not run (it would need about 2.00 TiB to 4.00 TiB, and 16.0 GiB are available); "
            "while_loop.graph: timed out (no answer within 10 s)"
        )
        layers = sweep_map.specification("batch", "height")["layer"]
        tips = [[tip["field"] for tip in each["encoding"]["tooltip"]] for each in layers]
        assert all("without" in tip for tip in tips)

    def test_cells_say_what_state_they_are_in(self, winners):
        states = ("waiting", "running", "skipped", "budget")
        points = [replace(point, status=state, ranking=[], measurements=[], reason="because")
                  for point, state in zip(winners.points, states, strict=False)]  # fmt: skip
        frame = sweep_map.frame(replace(winners, points=points))
        assert list(frame["letters"]) == ["", "…", "✕", ""]
        assert list(frame["state"]) == [
            "waiting: because", "being measured: because", "left out: because", "not reached: because"
        ]  # fmt: skip
        assert not frame["colour"].any()
        assert "nothing has been measured yet" in sweep_map.takeaway(replace(winners, points=points))

    def test_a_person_who_cancelled_is_named_once(self, winners):
        cancelled = replace(winners.points[0], status="cancelled", ranking=[], reason="cancelled by a person")
        assert sweep_map.state(cancelled) == "cancelled by a person"
        assert sweep_map.state(replace(cancelled, reason="")) == "cancelled"

    def test_the_legend_has_every_shade_of_this_run_and_no_other(self, winners):
        assert sweep_map.shades(winners) == ["measured", "inferred"]
        said = re.sub("<[^>]*>", "", sweep_map.legend_html(winners))
        assert "measured" in said and "not measured: its neighbours agree" in said
        for absent in ("a tie", "no winner", "being measured", "waiting", "not reached"):
            assert absent not in said
        statuses = ("running", "waiting", "skipped", "complete", "cancelled")
        bare = [replace(point, status=status, ranking=[], measurements=[])
                for point, status in zip(winners.points, statuses, strict=False)]  # fmt: skip
        tied = replace(winners.points[5], ranking=[["batched.graph", "loop.eager"]])
        run = replace(winners, points=[*bare, tied])
        assert sweep_map.shades(run) == ["measured", "tie", "without", "running", "waiting", "missed"]
        assert set(sweep_map.frame(run)["shade"]) | {"tie"} == set(sweep_map.shades(run))
        said = re.sub("<[^>]*>", "", sweep_map.legend_html(run))
        assert all(entry in said for entry in ("a tie", "✕ no winner", "… being measured", "waiting", "not reached"))
        assert "neighbours agree" not in said

    def test_a_shade_in_the_legend_is_as_strong_as_in_the_map(self, winners):
        strengths = set(sweep_map.frame(winners)["alpha"])
        assert strengths == {0.14, 0.5}
        for strength in strengths:
            assert f"currentColor {round(100 * strength)}%" in sweep_map.legend_html(winners)

    def test_a_strategy_s_letter_is_in_its_colour(self, winners):
        for name, letter in sweep_map.letters(winners).items():
            colour = look.css_colour(name.partition(".")[0])
            assert re.search(rf"background:color-mix\(in srgb, {re.escape(colour)} 50%[^>]*>{letter}</span>",
                             sweep_map.legend_html(winners))  # fmt: skip

    def test_a_click_selects_a_cell_of_this_run_by_its_place(self, winners):
        drawn = sweep_map.specification("batch", "height")
        [param] = drawn["params"]
        assert (param["name"], param["select"]["fields"]) == (sweep_map.SELECTION, [sweep_map.SELECTION])
        cells = list(sweep_map.frame(winners)[sweep_map.SELECTION])
        assert cells[:2] == [f"{winners.id} 1 8", f"{winners.id} 1 16"] and len(set(cells)) == 9
        fewer = replace(winners, points=winners.points[1:])
        assert list(sweep_map.frame(fewer)[sweep_map.SELECTION]) == cells[1:], "whatever its number is"
        assert not set(cells) & set(sweep_map.frame(replace(winners, id="f" * 24))[sweep_map.SELECTION])


def test_a_point_of_an_option_is_a_comparison_whose_strategies_have_their_value():
    run = dial()
    case = point_run(run, replace(run.points[1], ranking=[["chunked.graph?chunk=8"]]))
    assert (case.kind, case.points, case.request.strategies) == ("compare", [], ["chunked.graph?chunk=8"])
    assert [item.strategy for item in case.measurements] == ["chunked.graph?chunk=8"]
    assert case.ranking == [["chunked.graph?chunk=8"]]
    assert case.id != point_run(run, run.points[2]).id


def apart(names: pd.DataFrame) -> None:
    """No two texts are at one height: 16 pixels or more, of the 240 that the points have."""
    heights, marks = np.log(names["beside"].astype(float)), np.log(names["y"])
    assert (np.diff(np.sort(heights)) * 240 / (marks.max() - marks.min()) > 15.9).all()


class TestFront:
    def test_where_an_option_is_swept_all_its_values_are_strategies_of_one_case(self):
        measurements, dials = sweep_front.subject(dial())
        assert {item.strategy for item in measurements if item.mapper == "chunked"} == {
            "chunked.graph?chunk=1", "chunked.graph?chunk=8", "chunked.graph?chunk=64"
        }  # fmt: skip
        assert (dials[0].start, dials[0].end) == ("map_fn.graph", "vectorized_map.graph")

    def test_the_dial_is_a_curve_from_map_fn_to_vectorized_map_with_the_chosen_chunk_on_it(self):
        frame = sweep_front.frame(*sweep_front.subject(dial()), None)
        curve = of(frame, "dial").sort_values("order")
        assert list(curve["x"]) == pytest.approx([0.9, 1, 8, 64, 100])
        assert list(curve["colour"].unique()) == ["chunked"]
        [chosen] = of(frame, "chosen").to_dict("records")
        assert chosen["x"] in {1, 8, 64}
        assert "Mapbench would choose" in chosen["standing"]

    def test_what_is_beaten_in_both_is_faded_and_what_ran_out_of_memory_is_on_the_rim(self):
        frame = sweep_front.frame(*sweep_front.subject(dial()), None)
        strategies = of(frame, "strategy").set_index("strategy")
        # chunk=64 takes 1.125 ms and 64 MiB: vectorized_map is slower and larger.
        assert strategies.loc["■ vectorized_map.graph", "alpha"] < strategies.loc["■ chunked.graph?chunk=64", "alpha"]
        assert strategies.loc["■ vectorized_map.graph", "standing"] == ("another is faster and needs no more memory")
        [rim] = of(frame, "rim").to_dict("records")
        assert rim["strategy"] == "◆ vectorized_map.xla"
        assert rim["standing"] == "out of memory: It asked for 1.00 GiB."
        run = dial()
        without = _left_out(omissions.beyond_available(2**40, 2**34))
        first = replace(run.points[0], measurements=[*run.points[0].measurements, without])
        measurements, dials = sweep_front.subject(replace(run, points=[first, *run.points[1:]]))
        assert "loop.eager ✕" in set(of(sweep_front.frame(measurements, dials, None), "rim")["name"])

    def test_both_ends_of_the_dial_and_chunks_along_it_are_named(self):
        chunks = [2**power for power in range(9)]
        measurements, [found] = sweep_front.subject(dial())
        one = next(item for item in measurements if item.mapper == "chunked")
        along = [
            replace(one, strategy=f"chunked.graph?chunk={chunk}", options={"chunk": chunk},
                    latency=synthetic.latency(8e-3 / chunk + 1e-3), memory=replace(one.memory, peak_bytes=chunk * MIB))
            for chunk in chunks
        ]  # fmt: skip
        others = [item for item in measurements if item.mapper != "chunked"]
        found = dataclasses.replace(found, chunks=tuple((chunk, f"chunked.graph?chunk={chunk}") for chunk in chunks))
        names = of(sweep_front.frame([*others, *along], [found], None), "name")
        labels = set(names["name"])
        assert {"map_fn.graph", "vectorized_map.graph", "chunk=1", "chunk=256"} <= labels
        assert labels & {"2", "4", "8"}
        apart(names)

    def test_what_is_beaten_has_a_pale_name_where_there_is_room(self):
        names = of(sweep_front.frame(*sweep_front.subject(synthetic.sweep()), None), "name").set_index("name")
        assert names.loc["batched.graph", "alpha"] < names.loc["vectorized_map.graph", "alpha"] == 1
        assert names.loc["batched.graph", "beside"] == names.loc["batched.graph", "y"]

    def test_names_of_one_place_have_a_height_each_within_the_axis(self):
        """And those of beaten strategies make room."""
        measurements, dials = sweep_front.subject(dial())
        near = [
            replace(item, latency=replace(item.latency, median_s=8.9e-3 - 1e-5 * number))
            if item.mapper == "chunked" else item
            for number, item in enumerate(measurements)
        ]  # fmt: skip
        hungry = replace(near[0].memory, peak_bytes=99 * MIB)
        beaten = [
            replace(item, strategy=f"beaten{number}.graph", mapper="loop", memory=hungry)
            for number, item in enumerate(near)
            if item.memory and item.mapper == "chunked"
        ]  # fmt: skip
        frame = sweep_front.frame([*near, *beaten], dials, None)
        apart(frame.dropna(subset="beside"))
        marks = of(frame, "strategy")["y"]
        assert marks.min() * (1 - 1e-9) <= frame["beside"].min() and frame["beside"].max() <= marks.max() * (1 + 1e-9)
        names = set(of(frame, "name")["name"])
        assert "map_fn.graph" in names and not [name for name in names if name.startswith("beaten")]

    def test_a_name_that_would_leave_the_chart_stands_at_the_left_of_its_point(self):
        names = of(sweep_front.frame(*sweep_front.subject(dial()), None), "name").set_index("name")
        assert 0 <= names.loc["map_fn.graph", "share"] < 0.1 and 0.9 < names.loc["vectorized_map.graph", "share"] <= 1
        [text] = [layer["mark"] for layer in sweep_front.SPEC["layer"] if "expr" in str(layer["mark"].get("align"))]
        assert text["align"]["expr"] == "(1 - datum.share) * width > 150 ? 'left' : 'right'"

    def test_where_all_take_the_same_memory_the_axis_has_room(self):
        measurements, dials = sweep_front.subject(synthetic.sweep())
        assert len({item.memory.peak_bytes for item in measurements if item.memory}) == 1
        frame = sweep_front.frame(measurements, dials, None)
        ends = of(frame, "end")["x"]
        assert ends.max() / ends.min() == pytest.approx(4)

    def test_the_slider_names_the_fastest_that_fits(self):
        measurements, dials = sweep_front.subject(dial())
        assert sweep_front.sentence(measurements, 10 * MIB).startswith(
            "With 10.0 MiB available, chunked.graph?chunk=8 is fastest"
        )
        assert sweep_front.sentence(measurements, MIB // 2).startswith("Nothing fits into 512.0 KiB")
        frame = sweep_front.frame(measurements, dials, 10 * MIB)
        assert list(of(frame, "limit")["x"]) == [10]
        strategies = of(frame, "strategy").set_index("strategy")
        assert strategies.loc["■ chunked.graph?chunk=8", "standing"] == "the fastest that fits"
        assert "needs more memory than is available" in strategies.loc["■ chunked.graph?chunk=64", "standing"]

    def test_the_sliders_steps_are_logarithmic_and_reach_from_the_least_to_the_most(self):
        steps = sweep_front.steps(sweep_front.subject(dial())[0])
        assert steps[0] <= 0.9 * MIB and steps[-1] >= 100 * MIB
        ratios = [after / before for before, after in pairwise(steps)]
        assert ratios == pytest.approx([2**0.25] * len(ratios), rel=1e-3)

    def test_of_sizes_the_largest_point_that_was_measured_is_shown(self, run):
        measurements, dials = sweep_front.subject(run)
        assert measurements == run.points[3].measurements
        assert dials == []


@pytest.mark.parametrize(("sweep", "names"), [
    (synthetic.sweep, {"latency", "memory", "front"}), (synthetic.winners, {"map", "front"}), (dial, {"latency"}),
])  # fmt: skip
def test_every_chart_of_a_sweep_is_a_picture(sweep, names):
    run = sweep()
    assert names <= set(files.of(run))
    for name in names:
        svg = (files.convert(run, name, "svg") or b"").decode()
        assert svg.startswith("<svg")
        assert run.axes[0].name in svg


def test_a_picture_of_a_map_says_which_letter_is_whom_and_a_legend_is_below_the_names(run, winners):
    drawn = files.specification(winners, "map")
    assert drawn["title"]["subtitle"][1] == "A: loop.eager, B: vectorized_map.graph"
    for shown in (drawn, files.specification(run, "latency")):
        text = str(shown)
        assert "'orient': 'bottom'" in text and "'values': ['']" not in text and "['', " not in text


def test_a_crossover_is_said_as_the_first_whole_size_at_which_it_is_faster():
    crossed = Crossover(a="loop.eager", b="vectorized_map.graph", axis="batch", value=5.4, low=4.2, high=7.9)
    assert sentence(crossed) == "vectorized_map.graph overtakes loop.eager at batch 6 [5, 8]"
