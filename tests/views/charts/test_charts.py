"""The charts of a comparison, exactly, from made-up runs."""

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
from views.charts import base, latency, memory, names, samples, timeline, totals
from views.ui import look


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run()


@pytest.fixture(scope="module")
def shown(run: Run) -> list[rows.Row]:
    return rows.make(run, "loop.eager")


class TestLatency:
    def test_one_line_per_strategy_with_its_figures(self, shown, run):
        frame = latency.frame(shown, run.limit)
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
        fields = {
            layer["encoding"].get("y2", {}).get("field") for layer in latency.specification(limited=True)["layer"]
        }
        assert fields == {None}

    def test_failures_are_rows_with_their_reason(self, shown):
        frame = latency.frame(shown, None).set_index("strategy")
        assert frame.loc["◆ while_loop.xla", "note"] == "out of memory"
        assert frame.loc["◆ loop.xla", "note"] == "timed out"
        assert np.isnan(frame.loc["◆ loop.xla", "median"])
        assert frame.loc["■ dataset.graph", "value"].endswith("✕")

    def test_the_axis_is_logarithmic_and_rows_share_a_sort(self):
        encodings = [layer["encoding"] for layer in latency.specification(limited=True)["layer"]]
        ys = [encoding["y"] for encoding in encodings if "field" in encoding.get("y", {})]
        assert len(ys) == 5 and all(y["sort"] == {"op": "min", "field": "order"} for y in ys)
        xs = [encoding["x"] for encoding in encodings if "field" in encoding["x"]]
        assert {x["field"] for x in xs} == {"limit", "low", "median"}
        assert all(x["scale"]["type"] == "log" for x in xs)

    def test_the_limit_is_drawn_where_it_is_known(self, shown, run):
        def texts(limited: bool) -> str:
            return json.dumps(latency.specification(limited=limited))

        assert '"multiple of the limit"' in texts(True) and '"text": {"field": "name of the limit"' in texts(True)
        assert "limit" not in texts(False).replace("labelLimit", "")
        bound = latency.frame(shown, replace(run.limit, term="memory-bound"))
        assert set(bound["name of the limit"]) == {"limit, memory-bound"}
        earlier = latency.frame(shown, replace(run.limit, term=""))
        assert set(earlier["name of the limit"]) == {"limit"}
        without = latency.frame(rows.make(replace(run, limit=None)), None)
        assert not [name for name in without if "limit" in name]

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
        assert line["output_mib"] == OUTPUT / MIB
        assert line["peak_mib"] == 3 * OUTPUT / MIB
        assert line["process_mib"] == (3 * OUTPUT + 300_000) / MIB
        assert line["value"] == "14.1 MiB" and line["temporary"] == "9.38 MiB"

    def test_an_aliased_output_ends_at_the_peak(self):
        one = timed_run(batched__graph=0.1)
        aliased = replace(one.measurements[0].memory, peak_bytes=0, temporary_bytes=0)
        one = replace(one, measurements=[replace(one.measurements[0], memory=aliased)])
        line = memory.frame(rows.make(one)).iloc[0]
        assert line["output_mib"] == 0.0 and line["peak_mib"] == 0.0 and line["value"] == "0 B"

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


@pytest.mark.parametrize(
    "spec",
    [
        latency.specification(limited=True),
        latency.specification(limited=False),
        memory.specification(limited=True),
        memory.specification(limited=False),
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


def test_a_revision_changes_the_corner_cells_that_the_front_end_compares(shown):
    frame = latency.frame(shown, None)
    old, new = base.revised(frame, "run", 1), base.revised(frame, "run", 2)
    assert old.columns[-1] == "revision"
    assert old.iloc[0, -1] != new.iloc[0, -1] and old.iloc[-1, -1] != new.iloc[-1, -1]
