"""The charts of a comparison, from made-up runs: their figures and scales, and what they are by themselves."""

import json

import altair
import numpy as np
import pytest

from measure.output import rows
from measure.run.run import Latency, Measurement, Run
from tests import synthetic
from tests.synthetic import MIB, OUTPUT
from views.charts import base, latency, memory, samples, timeline, totals


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run()


@pytest.fixture(scope="module")
def shown(run: Run) -> list[rows.Row]:
    return rows.make(run, "loop.eager")


class TestLatency:
    def test_one_line_per_strategy_with_its_figures_and_its_tie_or_its_failure(self, shown):
        frame = latency.frame(shown, None)
        first = frame.iloc[0]
        assert len(frame) == len(shown)
        assert (first["strategy"], first["colour"], first["mode"]) == ("◆ batched.xla", "batched", "xla")
        assert (first["low"], first["median"], first["high"]) == (
            shown[0].interval[0], shown[0].median_s, shown[0].interval[1]
        )  # fmt: skip
        ties = frame.dropna(subset="tie")
        assert dict(zip(ties["strategy"], ties["tie"], strict=True)) == {
            "◆ batched.xla": 0, "■ batched.graph": 0, "◆ vectorized_map.xla": 1, "● batched.eager": 1
        }  # fmt: skip
        by_name = frame.set_index("strategy")
        assert by_name.loc["◆ while_loop.xla", "note"] == "out of memory" and np.isnan(
            by_name.loc["◆ loop.xla", "median"]
        )
        assert by_name.loc["■ dataset.graph", "value"].endswith("✕"), "wrong"
        partial = rows.make(synthetic.partial(3))
        assert list(latency.frame(partial, None)["note"]).count("not timed") == len(partial) - 3


class TestMemory:
    def test_output_and_temporary_stack_up_to_the_peak_in_the_order_of_latencies(self, shown):
        frame = memory.frame(shown)
        assert list(frame["order"]) == list(latency.frame(shown, None)["order"])
        line = frame.set_index("strategy").loc["◆ map_fn.xla"]
        assert (memory.unit(shown), line["value"]) == ("MiB", "14.1 MiB")
        assert (line["output_at"], line["peak_at"]) == (OUTPUT / MIB, 3 * OUTPUT / MIB)
        assert line["process_at"] == (3 * OUTPUT + 300_000) / MIB


class TestCurves:
    def test_who_is_cheapest_after_how_many_calls(self):
        def row(slug: str, first_call_s: float, median_s: float, spread: float = 1.0, tie: int | None = None):
            took = Latency(median_s=median_s, low_s=median_s, high_s=median_s)
            item = Measurement(
                strategy=slug, mapper="loop", mode="eager", outcome="ok", first_call_s=first_call_s, latency=took
            )
            ends = {"first_low_s": first_call_s / spread, "first_high_s": first_call_s * spread}
            return rows.Row(item, tie=tie, **ends)

        lines = [row("a", 1.0, 1.0), row("b", 10.0, 0.1), row("c", 50.0, 0.05), row("never", 60.0, 0.2)]
        # a: n; b: 10 + 0.1 (n − 1); they meet at n = 11. c: 50 + 0.05 (n − 1); it meets b at n = 801.
        exact = [totals.Stretch("a", 1), totals.Stretch("b", 12, 11, 12), totals.Stretch("c", 802, 801, 802)]
        assert totals.cheapest(lines) == exact
        # c starts with 40 to 62.5 s, b still with exactly 10: they meet after 601 to 1 051 calls.
        uncertain = totals.cheapest([*lines[:2], row("c", 50.0, 0.05, spread=1.25), lines[3]])
        assert uncertain[2] == totals.Stretch("c", 802, 601, 1051)
        assert "b from 12 [11, 12] calls on, c from 802 [601, 1,051]" in totals.sentence(uncertain)
        tied = [row("a", 1.0, 1.0), row("b", 10.0, 0.1, tie=0), row("c", 50.0, 0.05, tie=0)]
        assert totals.cheapest(tied) == exact[:2], "who ties with the cheapest does not overtake it"


def test_specifications_are_valid_vega_lite_without_facets():
    named = latency.specification(floor=True), memory.specification("MiB", floor=True)
    for spec in (*named, totals.SPEC, samples.SPEC, timeline.specification(share=True)):
        altair.LayerChart.from_dict({**base.sized(spec, 3), "data": {"values": []}})
        assert not {"facet", "hconcat", "vconcat", "row", "column"} & set(json.dumps(spec).replace('"', " ").split())
    # A mark of which there may be none would be a picture without a name.
    marks = [layer["mark"] for spec in named for layer in spec["layer"] if layer["mark"]["type"] != "text"]
    assert all(mark["aria"] is False for mark in marks)


def test_every_sample_is_drawn_and_the_memory_of_a_whole_call(run):
    counts = samples.frame(run, ["batched.xla"]).groupby("strategy")["seconds"].count()
    assert counts.to_dict() == {"◆ batched.xla": 60, "◆ batched.xla, entered twice": 60}
    frame = timeline.frame([run.measurement("map_fn.graph")], share=True)
    assert frame["live"].max() == pytest.approx(2 * OUTPUT / MIB, abs=1e-5) and frame["at"].max() == pytest.approx(100)
