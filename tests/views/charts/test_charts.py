"""What charts, tables and figures are made of, exactly, from made-up runs; colours under simulated colour blindness."""

import html
import itertools
import json
import re
import tomllib
from pathlib import Path

import altair
import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

import strategies
import workloads
from measure.model.run import Measurement, RequestRecord, Run
from measure.model.why import Why
from measure.output import rows
from tests import synthetic
from tests.synthetic import HOSTILE, MIB, OUTPUT
from views.charts import base, latency, memory, names, samples, timeline, totals
from views.choices import case
from views.result import diff, tables
from views.ui import look
from workloads.spec import Leaf

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic.run()


@pytest.fixture(scope="module")
def shown(run: Run) -> list[rows.Row]:
    return rows.make(run, "loop.eager")


def timed_run(**median_s: float) -> Run:
    """A run of strategies with these latencies (names with __ for the dot), ranked one after the other."""
    measurements = []
    for name, value in median_s.items():
        mapper, _, mode = name.partition("__")
        m = synthetic.measurement("batched.graph", np.random.default_rng(1))
        measurements.append(
            replace(
                m, strategy=f"{mapper}.{mode}", mapper=mapper, mode=mode, latency=synthetic.latency(value), replicas=[]
            )
        )
    slugs = sorted((m.strategy for m in measurements), key=lambda slug: median_s[slug.replace(".", "__")])
    request = RequestRecord(
        workload="image_sqrt", size={"batch": 1}, dtype="float32", device="CPU:0", strategies=slugs, budget_s=1.0
    )
    return Run(
        id="0" * 24, created="2025-01-01T00:00:00Z", request=request, measurements=measurements,
        ranking=[[slug] for slug in slugs],
    )  # fmt: skip


class TestRows:
    def test_ranked_first_then_wrong_then_the_others(self, shown):
        assert [row.slug for row in shown[:4]] == [
            "batched.xla",
            "batched.graph",
            "vectorized_map.xla",
            "batched.eager",
        ]
        assert [row.rank for row in shown[:6]] == [1, 1, 3, 3, 5, 6]
        assert shown[11].slug == "dataset.graph" and shown[11].outcome == "wrong" and shown[11].rank is None
        assert {row.outcome for row in shown[12:]} == {"timeout", "out_of_memory", "failed", "unsupported", "cancelled"}
        assert [row.order for row in shown] == list(range(len(shown)))

    def test_twins_are_no_rows(self, shown, run):
        assert any(m.twin_of for m in run.measurements)
        assert not any("#twin" in row.slug for row in shown)

    def test_factor_is_baseline_over_own_with_its_interval(self, shown):
        by_slug = {row.slug: row for row in shown}
        fast, base = by_slug["batched.xla"], by_slug["loop.eager"]
        assert fast.factor == pytest.approx(base.median_s / fast.median_s)
        assert fast.factor_low < fast.factor < fast.factor_high
        assert base.factor == 1.0 and base.factor_low is None

    def test_multiple_of_the_limit(self, shown, run):
        assert shown[0].of_limit == pytest.approx(shown[0].median_s / run.limit.seconds)

    @pytest.mark.parametrize(
        ("wanted", "chosen"), [(("map_fn.xla",), "map_fn.xla"), (("not.there", None), "loop.eager"), ((), "loop.eager")]
    )
    def test_baseline(self, run, wanted, chosen):
        assert rows.choose_baseline(run, *wanted) == chosen

    def test_baseline_without_loop_eager_is_the_slowest(self):
        assert rows.choose_baseline(timed_run(map_fn__xla=0.3, batched__graph=0.1)) == "map_fn.xla"

    def test_baseline_is_never_one_that_computes_the_wrong_values(self):
        run = timed_run(loop__eager=0.3, map_fn__xla=0.2, batched__graph=0.1)
        wrong = [replace(m, outcome="wrong" if m.strategy == "loop.eager" else m.outcome) for m in run.measurements]
        assert rows.choose_baseline(run) == "loop.eager"
        assert rows.choose_baseline(replace(run, measurements=wrong), "loop.eager") == "map_fn.xla"

    def test_a_run_with_nothing_in_it_yet(self):
        empty = replace(timed_run(), ranking=[])
        assert rows.make(empty) == []
        assert latency.frame([], None).empty and memory.frame([]).empty
        assert "none has been measured" in latency.takeaway([])
        assert tables.figures([], empty, None)[0]["value"] == look.MISSING


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
        found = rows.make(synthetic.partial(3))
        frame = latency.frame(found, None)
        assert list(frame["note"]).count("not timed") == len(found) - 3


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
        found = rows.make(timed_run(**{f"map_fn{at}__xla": 0.1 if alike else 0.1 * 1.3**at for at in range(count)}))
        frame = totals.frame(found)
        named = frame.dropna(subset="beside").sort_values("beside")
        assert sorted(named["strategy"]) == sorted({row.label for row in found})
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

    def test_a_few_bytes_more_than_the_least_are_not_mentioned(self):
        one = timed_run(map_fn__graph=0.1, batched__graph=0.2)
        more = replace(one.measurements[0].memory, peak_bytes=OUTPUT + 16)
        one = replace(one, measurements=[replace(one.measurements[0], memory=more), one.measurements[1]])
        assert tables.figures(rows.make(one), one, None)[2]["under"] == "none needs less"

    def test_four_figures(self, shown, run):
        fastest, faster, thriftiest, resolution = tables.figures(shown, run, "loop.eager")
        assert fastest["value"] == look.seconds(shown[0].median_s) and fastest["interval"].startswith("[")
        assert fastest["under"] == "◆\u00a0batched.xla and 1 in a tie"
        assert faster["value"].endswith(" ×") and faster["interval"].startswith("[")
        assert thriftiest["value"] == "1.00 ×" and thriftiest["under"] == "none needs less"
        assert resolution["value"] == look.percent(run.control.resolution)

    def test_more_memory_than_the_least_says_who_needs_less(self):
        one = timed_run(map_fn__graph=0.1, batched__graph=0.2)
        hungry = replace(one.measurements[0].memory, peak_bytes=2 * OUTPUT)
        one = replace(one, measurements=[replace(one.measurements[0], memory=hungry), one.measurements[1]])
        assert tables.figures(rows.make(one), one, None)[2] == {
            "label": "Its memory over the least",
            "value": "2.00 ×",
            "interval": "9.38 MiB",
            "under": "■\u00a0batched.graph needs 4.69 MiB",
        }


class TestEscaping:
    def test_markdown_signs_are_shown_as_they_are(self):
        assert look.plain("a*b_c`d[e](f)$g$<b>") == r"a\*b\_c\`d\[e\]\(f\)\$g\$\<b\>"
        assert look.plain("two\nlines \u2028 or\tmore ") == "two lines or more"
        assert look.plain("a\u00a0b") == "a\u00a0b", "no line is to break there"

    def test_icons_and_colours_of_streamlit_are_broken_up(self):
        for text in (":red[x]", ":material/home:", ":smile:", ":streamlit:"):
            assert ":\u2060" in look.plain(text)

    def test_html_is_escaped(self):
        assert "<img" not in look.strategy_html(HOSTILE, HOSTILE, HOSTILE)
        assert "<img" not in diff.side_by_side(HOSTILE, "x", HOSTILE, HOSTILE)
        assert "<img" not in look.legend_html([HOSTILE], [HOSTILE], lines=True)
        assert "<img" not in case.picture_html(1, [Leaf((1,), "float32")], [Leaf((1,), "float32")])

    def test_keys_are_class_names(self):
        assert look.key("detail", "map_fn.graph?chunk=4&x=<b>").replace("_", "").replace("-", "").isalnum()


def test_diff_pairs_lines():
    assert diff.pairs("a\nb\nc", "a\nx\nc\nd") == [
        ("a", "a", True), ("b", "x", False), ("c", "c", True), (None, "d", False),
    ]  # fmt: skip
    drawn = diff.side_by_side("a", "b", "left", "right")
    assert "− a" in drawn and "+ b" in drawn


def test_picture_tells_shapes_and_bytes():
    inputs, outputs = [Leaf((16, 16), "float32")], [Leaf((16, 16, 16, 16), "float32")]
    drawn = case.picture_html(100, inputs, outputs)
    assert "100 × 16 × 16 × 16 × 16" in drawn and "out 25.0 MiB" in drawn
    assert html.escape(case.picture_text(100, inputs, outputs)) in drawn
    case.picture_html(1, [Leaf((), "float32")], [Leaf((), "float32"), Leaf((3,), "float64")])  # scalars, several leaves


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "–"), (0.2, "under 1 s"), (6.4, "6 s"), (65, "1 min 5 s"), (7_500, "2 h 5 min")]
)
def test_durations(seconds, text):
    assert look.duration(seconds) == text


class TestColours:
    # Machado, Oliveira & Fernandes 2009, severity 1.0, on linear RGB.
    SIGHTS = {
        "normal": np.eye(3),
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
        "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
    }

    @staticmethod
    def linear(colour: str) -> np.ndarray:
        value = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
        return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)

    @staticmethod
    def oklab(linear: np.ndarray) -> np.ndarray:
        """Ottosson 2020."""
        to_lms = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                  [0.0883024619, 0.2817188376, 0.6299787005]]  # fmt: skip
        to_lab = [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
                  [0.0259040371, 0.7827717662, -0.808675766]]  # fmt: skip
        return np.array(to_lab) @ np.cbrt(np.array(to_lms) @ np.clip(linear, 0, 1))

    @pytest.mark.parametrize("sight", SIGHTS)
    @pytest.mark.parametrize("palette", [look.LIGHT, look.DARK], ids=["light", "dark"])
    def test_any_two_mappers_can_be_told_apart(self, sight, palette):
        """The more, the more often they are seen together."""
        matrix = np.array(self.SIGHTS[sight])
        seen = {
            name: 100 * self.oklab(matrix @ self.linear(colour))
            for name, colour in zip(look.COLOUR_NAMES, palette, strict=True)
        }
        own = {name for name in seen if not name.startswith("further ")}

        def least(*groups: set[str]) -> float:
            pairs = {pair for group in groups for pair in itertools.combinations(sorted(group), 2)}
            return min(float(np.linalg.norm(seen[a] - seen[b])) for a, b in pairs)

        offered = [
            [each for each in strategies.mappers() if each.slug in own and strategies.offered(each, workload)]
            for workload in workloads.all()
        ]
        assert least(*({mapper.slug for mapper in each if mapper.default_modes} for each in offered)) >= 10.5
        assert least(*({mapper.slug for mapper in each} for each in offered)) >= 8.5
        assert least(own) >= 6.8
        assert least(set(seen)) >= 6

    def test_no_colour_is_left_without_its_mapper(self):
        own = {name for name in look.COLOUR_NAMES if not name.startswith("further ")}
        assert own <= {mapper.slug for mapper in strategies.mappers()}
        rewrites = {rewrite for workload in workloads.all() for rewrite in workload.rewrites}
        assert rewrites <= {mapper.rewrite for mapper in strategies.mappers()}

    @pytest.mark.parametrize("name", ["light", "dark"])
    def test_colours_stand_out_from_the_theme_and_are_the_themes(self, name):
        theme = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())["theme"][name]
        palette = look.LIGHT if name == "light" else look.DARK
        assert tuple(theme["chartCategoricalColors"]) == palette

        def luminance(colour: str) -> float:
            return float(self.linear(colour) @ [0.2126, 0.7152, 0.0722])

        ground = luminance(theme["backgroundColor"])
        for colour in palette:
            light, dark = sorted((luminance(colour), ground), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 3

    def test_shape_and_dash_of_every_mode_differ(self):
        assert len(set(look.SHAPES)) == len(set(map(tuple, look.DASHES))) == len(set(look.GLYPHS.values())) == 3

    def test_a_mapper_without_a_colour_has_the_one_that_its_name_decides_in_charts_and_text(self):
        names = [look.colour_name(mapper) for mapper in ("newcomer", "another", "one_at_a_time")]
        assert len(set(names)) == 3
        for mapper, name in zip(("newcomer", "another", "one_at_a_time"), names, strict=True):
            light = look.LIGHT[look.COLOUR_NAMES.index(name)]
            assert name.startswith("further ") and light in look.css_colour(mapper)
