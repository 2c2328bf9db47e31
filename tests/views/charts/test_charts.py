"""The charts of a comparison, exactly, from made-up runs."""

import dataclasses
import json

import altair
import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

from measure.model.run import Measurement, Replica, Run
from measure.output import rows
from tests import synthetic
from tests.synthetic import MIB, OUTPUT, timed_run
from views.charts import base, files, latency, memory, names, samples, timeline, totals
from views.ui import look


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run()


@pytest.fixture(scope="module")
def shown(run: Run) -> list[rows.Row]:
    return rows.make(run, "loop.eager")


class TestLatency:
    def test_one_line_per_strategy_with_its_figures(self, shown, run):
        frame = latency.frame(shown, latency.floor_of(run))
        assert len(frame) == len(shown)
        first = frame.iloc[0]
        assert first["strategy"] == "◆ batched.xla" and first["colour"] == "batched" and first["mode"] == "xla"
        assert first["low"] < first["median"] < first["high"]
        assert first["value"] == look.seconds(shown[0].median_s)

    def test_ties_are_bracketed(self, shown):
        ties = latency.frame(shown, None).dropna(subset="tie")
        assert list(zip(ties["strategy"], ties["tie"], strict=True)) == [
            ("◆ batched.xla", 0),
            ("■ batched.graph", 0),
            ("◆ vectorized_map.xla", 1),
            ("● batched.eager", 1),
        ]

    def test_only_the_strategy_decides_the_order_of_rows(self):
        """A second field on the axis would take part in its sort."""
        fields = {layer["encoding"].get("y2", {}).get("field") for layer in latency.specification(floor=True)["layer"]}
        assert fields == {None}

    def test_failures_are_rows_with_their_reason(self, shown):
        frame = latency.frame(shown, None).set_index("strategy")
        assert frame.loc["◆ while_loop.xla", "note"] == "out of memory"
        assert frame.loc["◆ loop.xla", "note"] == "timed out"
        assert np.isnan(frame.loc["◆ loop.xla", "median"])
        assert frame.loc["■ dataset.graph", "value"].endswith("✕")

    def test_the_axis_is_logarithmic_and_rows_share_a_sort(self):
        encodings = [layer["encoding"] for layer in latency.specification(floor=True)["layer"]]
        ys = [encoding["y"] for encoding in encodings if "field" in encoding.get("y", {})]
        assert len(ys) == 5 and all(y["sort"] == {"op": "min", "field": "order"} for y in ys)
        xs = [encoding["x"] for encoding in encodings if "field" in encoding["x"]]
        assert {x["field"] for x in xs} == {"floor", "low", "median"}
        assert all(x["scale"]["type"] == "log" for x in xs)

    def test_the_floor_is_drawn_and_named_where_it_tells_something(self, shown, run):
        def texts(floor: bool) -> str:
            return json.dumps(latency.specification(floor=floor), ensure_ascii=False)

        assert '"× theoretical floor"' in texts(True) and '"text": "theoretical floor (estimate)"' in texts(True)
        assert "theoretical" not in texts(False)
        floor = latency.floor_of(run)
        assert set(latency.frame(shown, floor)["floor"]) == {run.limit.seconds}
        assert "dashed: theoretical floor (estimate), 710 µs" in latency.caption(shown, run)
        idle = replace(run, limit=replace(run.limit, term="dispatch-bound"))
        assert latency.floor_of(idle) is None and "floor" not in latency.caption(shown, idle)
        assert not [name for name in latency.frame(shown, None) if "floor" in name]

    def test_one_process_is_a_dot_without_a_bar_and_without_a_bracket(self, run):
        items = [
            replace(item, replicas=item.replicas[:1]) if item.strategy in ("batched.eager", "map_fn.eager") else item
            for item in run.measurements
        ]
        lone = replace(run, measurements=items)
        listed = rows.make(lone)
        frame = latency.frame(listed, None).set_index("strategy")
        for name in ("● batched.eager", "● map_fn.eager"):
            line = frame.loc[name]
            assert line["median"] > 0 and np.isnan(line["low"]) and np.isnan(line["high"]) and np.isnan(line["tie"])
            assert line["latency"].endswith(" (1 process)")
        # Who would tie with it alone has no bracket to stand in.
        assert np.isnan(frame.loc["◆ vectorized_map.xla", "tie"]) and frame.loc["◆ batched.xla", "tie"] == 0
        assert "no bar: 1 process" in latency.caption(listed, lone)
        assert "1 process" not in latency.caption(rows.make(run), run)

    def test_a_bracket_over_bars_that_lie_apart_says_why(self, shown, run):
        apart = replace(
            run, control=replace(run.control, resolution=0.5), ranking=[["batched.xla", "batched.eager", "loop.graph"]]
        )
        assert latency.caption(rows.make(apart), apart).endswith(
            " Joined although the bars lie apart: "
            "batched.eager: differing by less than the 50 % that this run can tell; "
            "loop.graph: too few processes to separate so many strategies."
        )
        assert "Joined" not in latency.caption(shown, run)

    @pytest.mark.parametrize("count", [0, 1, 11])
    def test_the_axis_has_labels_whatever_is_timed(self, run, count):
        """Labels stand at 1, 2 and 5 of every decade: two of them are within any factor of 5."""
        items = [
            item if place < count else replace(item, latency=None, replicas=[], outcome="out_of_memory")
            for place, item in enumerate(run.measurements)
        ]
        frame = latency.frame(rows.make(replace(run, measurements=items, ranking=[])), None)
        low, high = frame["axis_low"].iloc[0], frame["axis_high"].iloc[0]
        assert high / low >= 4.999
        assert not count or (low <= frame["median"].min() and frame["median"].max() <= high)
        (axis,) = [layer for layer in latency.specification(floor=False)["layer"] if "axis_low" in json.dumps(layer)]
        assert axis["encoding"]["x"]["field"] == "low" and axis["encoding"]["x2"]["field"] == "high"

    def test_takeaway_names_the_tie_and_the_slowest(self, shown):
        said = latency.takeaway(shown)
        assert "batched.xla and batched.graph tie fastest" in said and "map_fn.eager is slowest" in said

    def test_while_running_what_is_not_timed_says_so(self):
        listed = rows.make(synthetic.partial(3))
        frame = latency.frame(listed, None)
        assert list(frame["note"]).count("not timed") == len(listed) - 3


class TestMemory:
    def test_output_and_temporary_stack_up_to_the_peak(self, shown):
        frame = memory.frame(shown).set_index("strategy")
        line = frame.loc["◆ map_fn.xla"]
        assert memory.unit(shown) == "MiB"
        assert line["output_at"] == OUTPUT / MIB
        assert line["peak_at"] == 3 * OUTPUT / MIB
        assert line["process_at"] == (3 * OUTPUT + 300_000) / MIB
        assert line["value"] == "14.1 MiB" and line["temporary"] == "9.38 MiB"
        assert (frame["beyond"] == "").all() and "→" not in memory.caption(shown)

    def test_an_aliased_output_ends_at_the_peak(self):
        one = timed_run(batched__graph=0.1)
        aliased = replace(one.measurements[0].memory, peak_bytes=0, temporary_bytes=0)
        one = replace(one, measurements=[replace(one.measurements[0], memory=aliased)])
        line = memory.frame(rows.make(one)).iloc[0]
        assert line["output_at"] == 0.0 and line["peak_at"] == 0.0 and line["value"] == "0 B"

    def test_a_large_process_peak_does_not_crush_the_bars_and_is_named(self, run):
        """The axis is cut at what the bars need; the tick that lies beyond has its value at the end of the row."""
        items = [
            replace(item, memory=replace(item.memory, process_peak_bytes=900 * MIB))
            if item.strategy in ("loop.graph", "loop.eager")
            else item
            for item in run.measurements
        ]
        listed = rows.make(replace(run, measurements=items))
        frame = memory.frame(listed).set_index("strategy")
        assert frame["peak_at"].max() / frame["axis_high"].iloc[0] >= 0.6
        crushed = frame[frame["beyond"] != ""]
        assert set(crushed.index) == {"■ loop.graph", "● loop.eager"} and set(crushed["beyond"]) == {"900.0 MiB →"}
        assert crushed["process_at"].isna().all() and frame.loc["◆ batched.xla", "process_at"] > 0
        assert "→: a process peak beyond the axis" in memory.caption(listed)

    @pytest.mark.parametrize(
        ("peak", "unit"), [(16, "B"), (4_000, "KiB"), (5 * MIB, "MiB"), (3_000 * MIB, "GiB"), (None, "MiB")]
    )
    def test_the_axis_has_a_unit_in_which_its_labels_are_short(self, peak, unit):
        one = timed_run(batched__graph=0.1)
        held = replace(
            one.measurements[0].memory, peak_bytes=peak or 0, output_bytes=peak or 0, process_peak_bytes=None
        )
        one = replace(one, measurements=[replace(one.measurements[0], memory=held if peak else None)])
        listed = rows.make(one)
        assert memory.unit(listed) == unit
        assert 1 <= memory.frame(listed)["axis_high"].iloc[0] < 1024

    def test_same_order_as_latency(self, shown):
        assert list(memory.frame(shown)["order"]) == list(latency.frame(shown, None)["order"])


class TestCurves:
    def test_who_is_cheapest_after_how_many_calls(self):
        def row(slug: str, first_call_s: float, median_s: float, spread: float = 1.0, tie: int | None = None):
            item = Measurement(strategy=slug, mapper="loop", mode="eager")
            return rows.Row(
                item, slug, "loop", "eager", "ok", "done", 0, tie=tie, first_call_s=first_call_s, median_s=median_s,
                first_low_s=first_call_s / spread, first_high_s=first_call_s * spread,
            )  # fmt: skip

        lines = [row("a", 1.0, 1.0), row("b", 10.0, 0.1), row("c", 50.0, 0.05), row("never", 60.0, 0.2)]
        # a: n; b: 10 + 0.1 (n − 1); they meet at n = 11. c: 50 + 0.05 (n − 1); it meets b at n = 801.
        exact = [totals.Stretch("a", 1), totals.Stretch("b", 12, 11, 12), totals.Stretch("c", 802, 801, 802)]
        assert totals.cheapest(lines) == exact
        # c starts with 40 to 62.5 s, b still with exactly 10: they meet after 601 to 1 051 calls.
        uncertain = totals.cheapest([*lines[:2], row("c", 50.0, 0.05, spread=1.25), lines[3]])
        assert uncertain[2] == totals.Stretch("c", 802, 601, 1051)
        assert totals.sentence(uncertain) == (
            "Cheapest in total, first call included: a at first, b from 12 [11, 12] calls on, "
            "c from 802 [601, 1,051] calls on."
        )
        tied = [row("a", 1.0, 1.0), row("b", 10.0, 0.1, tie=0), row("c", 50.0, 0.05, tie=0)]
        assert totals.cheapest(tied) == exact[:2], "who ties with the cheapest does not overtake it"
        assert totals.sentence(totals.cheapest(lines[:1])) == (
            "Cheapest in total, first call included: a, however many calls are made."
        )

    def test_totals_include_the_first_call(self, shown):
        frame = totals.frame(shown)
        first = frame[(frame["strategy"] == "● loop.eager") & (frame["calls"] == 1)].iloc[0]
        by_slug = {row.slug: row for row in shown}
        assert first["total"] == by_slug["loop.eager"].first_call_s
        assert "■ dataset.graph" not in set(frame["strategy"])  # wrong: its time does not count

    @pytest.mark.parametrize("count", [1, 2, 30])
    @pytest.mark.parametrize("alike", [False, True], ids=["apart", "alike"])
    def test_every_line_has_its_name_where_it_ends_and_no_two_names_overlap(self, count, alike):
        listed = rows.make(timed_run(**{f"map_fn{at}__xla": 0.1 if alike else 0.1 * 1.3**at for at in range(count)}))
        frame = totals.frame(listed)
        named = frame.dropna(subset="beside").sort_values("beside")
        assert sorted(named["strategy"]) == sorted({row.label for row in listed})
        assert (named["end"] == named["total"]).all() and named["end"].is_monotonic_increasing
        height = names.sized(totals.SPEC, pa.Table.from_pandas(frame))["height"]
        axis = np.log(frame["total"].max()) - np.log(frame["total"].min())
        assert (np.diff(np.log(named["beside"])) * height / axis > 15.9).all()
        assert named["beside"].between(0.999 * frame["total"].min(), 1.001 * frame["total"].max()).all()

    @pytest.mark.parametrize("drawn", [totals.SPEC, samples.SPEC, timeline.specification(share=True)])
    def test_charts_of_many_lines_write_the_names(self, drawn):
        (text,) = [layer for layer in drawn["layer"] if layer["mark"]["type"] == "text"]
        assert text["encoding"]["text"] == {"field": "strategy"} and text["encoding"]["y"]["field"] == "beside"

    def test_every_sample_is_drawn_and_the_twin_with_it(self, run):
        frame = samples.frame(run, ["batched.xla"])
        counts = frame.groupby("strategy")["seconds"].count()
        assert counts.to_dict() == {"◆ batched.xla": 60, "◆ batched.xla, entered twice": 60}
        assert frame["line"].nunique() == 10 and set(frame["replica"]) == {1, 2, 3, 4, 5}

    def test_of_very_many_samples_some_are_drawn_in_one_pass_and_that_is_said(self, run):
        """A file of 16 MiB holds half a million."""
        item = run.measurement("batched.xla")
        rounds = [1 + number // 10 for number in range(50_000)]
        many = [
            Replica(id=number, calls_per_sample=1, rounds=rounds, samples_s=[1e-3] * len(rounds)) for number in range(2)
        ]
        large = replace(run, measurements=[replace(item, replicas=many)])
        frame = samples.frame(large, ["batched.xla"])
        assert len(frame) == 20_000 and set(frame["replica"]) == {1, 2}
        assert frame["round"].max() == 5_000 and samples.one_in(large, ["batched.xla"]) == 5
        assert "one sample in 5 is drawn" in files.specification(large, "samples")["title"]["subtitle"]
        assert samples.one_in(run, [m.strategy for m in run.measurements]) == 1
        assert files.specification(run, "samples")["title"]["subtitle"][1:] == []

    def test_samples_of_a_visit_stand_beside_each_other_within_their_round(self, run):
        visits = [
            Replica(id=number, calls_per_sample=1, rounds=[number + 1] * 30, samples_s=[1e-3] * 30)
            for number in range(3)
        ]
        items = [replace(item, replicas=visits) for item in run.measurements if item.strategy == "batched.xla"]
        places = samples.frame(replace(run, measurements=items), ["batched.xla"]).groupby("round")["place"]
        assert places.count().to_dict() == {1: 30, 2: 30, 3: 30}
        # In the order in which they came, nearer to their round than to any other.
        assert places.is_monotonic_increasing.all() and (places.nunique() == 30).all()
        for number, of_round in places:
            assert of_round.between(number - 0.5, number + 0.5, inclusive="neither").all()
            assert of_round.mean() == pytest.approx(number, abs=0.02)

    def test_memory_over_a_call(self, run):
        one = [run.measurement("map_fn.graph")]
        frame = timeline.frame(one, share=False)
        assert frame["live"].max() == pytest.approx(2 * OUTPUT / MIB, abs=1e-5)
        assert timeline.frame(one, share=True)["at"].max() == pytest.approx(100)

    def test_three_of_the_timelines_matter(self, shown):
        known = [row for row in shown if row.peak_bytes]
        assert timeline.telling(known) == ["batched.xla", "map_fn.xla", "loop.eager"], "leader, hungriest, baseline"
        first, *others = known
        hungry = [dataclasses.replace(first, peak_bytes=10 * OUTPUT), *others]
        assert timeline.telling(hungry) == ["batched.xla", "batched.graph", "loop.eager"], (
            "leader, thriftiest, baseline"
        )
        assert timeline.telling(known[:2]) == ["batched.xla", "batched.graph"] and timeline.telling([]) == []


@pytest.mark.parametrize(
    "spec",
    [
        latency.specification(floor=True),
        latency.specification(floor=False),
        memory.specification("MiB", floor=True),
        memory.specification("KiB", floor=False),
        totals.SPEC,
        samples.SPEC,
        timeline.specification(share=False),
        timeline.specification(share=True),
    ],
    ids=[
        "latency",
        "latency without limit",
        "memory",
        "memory without limit",
        "totals",
        "samples",
        "timeline",
        "timeline over share",
    ],
)
def test_specifications_are_valid_vega_lite_without_facets(spec):
    altair.LayerChart.from_dict({**base.sized(spec, 3), "data": {"values": []}})
    assert not {"facet", "hconcat", "vconcat", "row", "column"} & set(json.dumps(spec).replace('"', " ").split())


@pytest.mark.parametrize("drawn", [latency.specification(floor=True), memory.specification("MiB", floor=True)])
def test_marks_that_may_be_none_are_no_picture_without_a_name(drawn):
    marks = [layer["mark"] for layer in drawn["layer"] if layer["mark"]["type"] != "text"]
    assert len(marks) >= 4 and all(mark["aria"] is False for mark in marks)


def test_a_revision_changes_the_corner_cells_that_the_front_end_compares(shown):
    frame = latency.frame(shown, None)
    old, new = base.revised(frame, "run", 1), base.revised(frame, "run", 2)
    assert old.columns[-1] == "revision"
    assert old.iloc[0, -1] != new.iloc[0, -1] and old.iloc[-1, -1] != new.iloc[-1, -1]
