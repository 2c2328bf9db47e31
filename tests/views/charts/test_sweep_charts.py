"""What the charts of a sweep are made of, from made-up sweeps; that headline, table, charts and tooltips agree; and
that each can be drawn by itself."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

from measure.judge import sweep_findings
from measure.judge.analysis import analyse
from measure.judge.findings import findings as comparison_findings
from measure.judge.lines import measured, place, sentence
from measure.judge.sweep_findings import SweepFindings, findings
from measure.judge.verdict import verdict
from measure.output import export, sweep_table
from measure.run.encoding import decode
from measure.run.run import Axis, Point
from tests import samples, simulation, synthetic
from tests.engine import ROOT
from tests.synthetic import MIB
from views.charts import failures, files, sweep_front, sweep_lines, sweep_map

LOOP = "● loop.eager"
RUN, WINNERS = synthetic.sweep(), synthetic.winners()
SLUGS = ("loop.eager", "vectorized_map.graph", "batched.graph", "map_fn.graph", "while_loop.xla")


def of(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    return frame[frame["kind"] == kind]


def made_up(kind: str, seed: int) -> SweepFindings:
    """A sweep of two to five strategies with costs near to each other, in noise, some with peaks of memory that are
    alike; at some points one fails or is not timed."""
    rng, model = np.random.default_rng(seed), simulation.MODELS[seed % len(simulation.MODELS)]
    slugs = SLUGS[: 2 + seed % 4]
    costs_s = {slug: (10 ** rng.uniform(-4.3, -3.7), 10 ** rng.uniform(-6.5, -5.5)) for slug in slugs}
    values = [4**power for power in range(2 + seed % 5)]
    axes = [simulation.axis(values)]
    if kind == "map":
        axes.append(simulation.axis((1, 8), "side"))
    elif kind == "option":
        axes = [Axis(kind="option", name="chunk", values=values, scale="log")]
    points = []
    for number, at in enumerate(itertools.product(*(axis.values for axis in axes))):
        latencies = {slug: fixed + slope * np.prod(at) for slug, (fixed, slope) in costs_s.items()}
        if kind == "option":
            latencies = {f"{slug}?chunk={at[0]}": seconds for slug, seconds in latencies.items() if slug != SLUGS[0]}
            latencies |= {SLUGS[0]: sum(costs_s[SLUGS[0]])} if not number else {}
        made = simulation.point(at[0], latencies, rng, model, processes=1 + (seed + number) % 3, name=axes[0].name)
        items = [
            replace(item, memory=samples.memory((64 + 8 * (place % 2)) * MIB + 64 * place))
            for place, item in enumerate(made.measurements)
        ]
        if len(points) in (1, 2):
            outcome = "failed" if len(points) == 2 else "not_run"
            items[0] = replace(items[0], outcome=outcome, latency=None, replicas=[])
        made = replace(made, measurements=items)
        points.append(replace(made, at={axis.name: value for axis, value in zip(axes, at, strict=True)}))
    run = replace(synthetic.sweep(), id=f"{seed:024x}", axes=axes, points=points)
    return findings(sweep_findings.analyse(run))


@pytest.mark.parametrize("kind", ["line", "option", "map"])
def test_headline_crossings_table_chart_map_and_tooltips_are_of_one_decision_who_leads(kind: str) -> None:
    for seed in range(24):
        sweep = made_up(kind, seed)
        leaders = {point.at[sweep.run.axes[0].name]: sweep.leaders(point) for point in sweep.run.points}
        assert sweep.run.verdict == sweep_findings.verdict(sweep)
        unsure = sum(map(sweep.is_unsure, sweep.run.points))
        assert kind == "option" or (f"Not sure at {unsure} of" in sweep.run.verdict) == bool(unsure)
        written = re.findall(r"^\|.*\| (.*) \|$", export.markdown(sweep.run), re.M)[2:]
        for point, said in zip(sweep.run.points, written, strict=False):
            assert said.replace("\\", "") == sweep.statement(point)
            if kind != "option":  # where a point has no strategy that the option does not concern
                body = comparison_findings(sweep_findings.comparison(sweep.run, point))
                assert [row.slug for row in body.leaders if body.tells] == sweep.leaders(point)
                point_agrees(sweep, point, verdict(body))
        (map_agrees if kind == "map" else line_agrees)(sweep, leaders)


def point_agrees(sweep: SweepFindings, point: Point, words: str) -> None:
    """Statement and front are as sure as the verdict of the point; no two amounts of memory on the front read alike."""
    said, unsure = sweep.statement(point), sweep.is_unsure(point)
    assert said.startswith("not sure: ") == unsure == ("Not decided" in words or "Cannot tell" in words)
    assert said.endswith(" tie") == ("-way tie " in words and not unsure)
    assert ("to rank" in said) == ("to rank" in words)
    if subject := sweep_front.subject(sweep, place(point)):
        front, frame = sweep_front.sentence(subject[1]), sweep_front.frame(subject[1])
        amounts = re.findall(r"[Ww]ith (\S+ \S+)", front)
        assert len({*amounts}) == len(amounts) and ("may have" in front) == unsure and {*frame["result"]} == {said}
        assert {name.endswith("?") for name in frame["name"] if name} == {unsure}
    assert bool(subject) == bool(sweep.leaders(point))


def line_agrees(sweep: SweepFindings, leaders: dict[int, list[str]]) -> None:
    for point in sweep.run.points:
        slugs, mark = sweep_table.strategies(sweep), "*?" if sweep.is_unsure(point) else "*"
        marked = {slug for slug in slugs if sweep_table.cell(sweep, point, slug).endswith(mark)}
        assert marked == {*sweep.leaders(point)}
    for one, other in itertools.combinations(sweep.levels, 2):
        crossings = sweep.pair(one, other)
        assert len(crossings) == 1 or all(crossing.value for crossing in crossings)
        for value, names in leaders.items():
            both = value in sweep.levels[one] and value in sweep.levels[other]
            if both and names in ([one], [other]):
                assert not any("apart wherever" in (crossing.none or "") for crossing in crossings)
                wrong = one if names == [other] else other
                assert not any((crossing.none or "").startswith(f"{wrong} is faster") for crossing in crossings)
    for part in sweep.stretches:
        assert all({*part.names} <= {*sweep.leaders(point)} for point in part.points)
    if sweep.run.axes[0].kind == "size" and len(sweep.levels) > 2:
        ties = all(len(sweep.leaders(point)) > 1 for point in sweep.headline_points)
        assert "tie for the lead at" not in sweep.run.verdict or ties
    rings = of(sweep_lines.frame(sweep, "latency"), "crossing").get("crossover", [])
    crossed = [sentence(part.crossing) for part in sweep.stretches if part.crossing]
    assert list(rings) == crossed and all(f"{words}." in sweep_table.render(sweep.run) for words in crossed)
    assert sweep_lines.takeaway(sweep, "latency").endswith(sweep.run.verdict)


def map_agrees(sweep: SweepFindings, leaders: dict[int, list[str]]) -> None:
    names = {letter: slug for slug, letter in sweep_map.letters(sweep).items()}
    frame = sweep_map.frame(sweep)
    for point, row in zip(sweep.run.points, frame.to_dict("records"), strict=True):
        here, unsure = sweep.leaders(point), sweep.is_unsure(point)
        assert row["result"] == sweep.statement(point) and (row["colour"] != "") == (len(here) == 1)
        assert row["letters"].endswith("?") == unsure == (row["alpha"] < 0.5)
        lettered = {names[letter] for letter in row["letters"].strip("+?~").split("=") if letter}
        assert lettered <= {*here} and len(lettered) == min(3, len(here))
        absent = {*SLUGS} - {item.strategy for item in point.measurements}
        assert not any(slug in str(row.values()) for slug in absent), "a tooltip is of what its cell was made from"
    assert ("?: not sure" in sweep_map.about(sweep)) == any(map(sweep.is_unsure, sweep.run.points))
    assert sweep_map.takeaway(sweep).endswith(sweep.run.verdict)


class TestLines:
    def test_every_measured_value_is_a_point_with_its_interval_and_a_name_at_the_lines_end(self):
        points = of(sweep_lines.frame(findings(RUN), "latency"), "point")
        loop = points[points["strategy"] == LOOP]
        assert list(loop["x"]) == [1, 10, 100] and list(loop["beside"].notna()) == [False, False, True]
        for point, row in zip(RUN.points, loop.itertuples(), strict=False):
            latency = next(item.latency for item in point.measurements if item.mapper == "loop")
            assert (row.y, row.low, row.high) == (latency.median_s, latency.low_s, latency.high_s)
        assert list(loop[sweep_map.SELECTION]) == [sweep_map.cell(RUN, point) for point in RUN.points[:3]]
        memory = of(sweep_lines.frame(findings(RUN), "memory"), "point")
        assert memory.iloc[0]["y"] == RUN.points[0].measurements[0].memory.peak_bytes / MIB

    def test_a_failure_is_a_mark_where_it_occurred_above_all_values(self):
        frame = sweep_lines.frame(findings(RUN), "latency")
        [failure] = of(frame, "failure").to_dict("records")
        assert (failure["strategy"], failure["x"]) == (LOOP, 1000)
        svg = files.convert(files.of(RUN)["latency"], "svg").decode()
        assert re.findall(r"translate\([\d.]+,(\S+)\)[^>]*>✕<", svg) == ["-10"]
        assert failure["outcome"].startswith("timed out: ")
        [left_out] = of(frame, "no point").to_dict("records")
        assert left_out["x"] == 10_000 and "This cannot fit" in left_out["outcome"]
        [(lines, words)] = failures.by_reason(findings(RUN).lines)
        assert [line.slug for line in lines] == ["loop.eager"] and words.startswith("batch 1,000: timed out: ")

    @pytest.mark.parametrize("scale", ["log", "linear"])
    def test_a_crossing_is_on_the_line_as_the_scale_draws_it(self, scale):
        sweep = findings(replace(RUN, axes=[replace(RUN.axes[0], scale=scale)]))
        [crossing] = [turn for turn in sweep.crossovers if turn.value is not None]
        frame = sweep_lines.frame(sweep, "latency", ("vectorized_map.graph", "loop.eager"))
        [ring] = of(frame, "crossing").to_dict("records")
        assert (ring["x"], ring["from"], ring["to"]) == (crossing.value, crossing.low, crossing.high)
        loop = of(frame, "point").query(f"strategy == '{LOOP}'").set_index("x")["y"]
        along = np.log if scale == "log" else float
        share = (along(crossing.value) - along(1)) / (along(10) - along(1))
        assert ring["y"] == pytest.approx(loop[1] ** (1 - share) * loop[10] ** share)
        assert of(sweep_lines.frame(sweep, "memory"), "crossing").empty
        faded = frame[frame["strategy"] == "■ batched.graph"]["alpha"]
        assert (faded < 1).all() and (frame[frame["strategy"] == LOOP]["alpha"] == 1).all()


class TestMap:
    def test_a_winner_that_an_earlier_version_inferred_is_none(self):
        sweep = findings(WINNERS)
        [cell] = sweep_map.frame(sweep).query("colour == ''").to_dict("records")
        assert (cell["x"], cell["y"], cell["letters"]) == (10, 16, "✕") and cell["result"].startswith("left out")
        assert len(measured(WINNERS)) == 8 and "at 5 of 8" in sweep_map.takeaway(sweep)

    def test_cells_say_what_state_they_are_in_and_the_caption_has_every_look_and_no_other(self):
        assert "tie" not in sweep_map.about(findings(WINNERS))
        statuses = ("running", "waiting", "skipped", "complete", "budget")
        bare = [
            replace(point, status=status, ranking=[], measurements=[], reason="because")
            for point, status in zip(WINNERS.points, statuses, strict=False)
        ]
        tied = replace(WINNERS.points[5], ranking=[["batched.graph", "vectorized_map.graph"]])
        sweep = findings(replace(WINNERS, points=[*bare, tied]))
        frame = sweep_map.frame(sweep)
        assert list(frame["letters"])[:5] == ["…", "", "✕", "✕", ""] and not frame["colour"].any()
        assert [words.partition(":")[0] for words in frame["result"][:3]] == ["being measured", "waiting", "left out"]
        assert all(sign in sweep_map.about(sweep) for sign in ("tie", "✕", "…"))


def test_on_the_front_what_is_beaten_in_both_is_faded_and_it_opens_where_something_has_both():
    fast, tied, slow, thrifty = (
        replace(samples.measurement(slug, samples.constant(seconds, samples.FACTORS)), memory=samples.memory(peak))
        for slug, seconds, peak in (
            ("fast.xla", 6.28e-3, 64 * MIB), ("tied.xla", 6.29e-3, 64 * MIB), ("slow.xla", 26.3e-3, 64 * MIB - 64),
            ("thrifty.xla", 0.3, 5 * MIB),
        )
    )  # fmt: skip
    late = samples.measurement("late.xla", [], outcome="not_run")
    for items, words, alphas in (
        ((fast, slow), "With 64.0 MiB fast.xla has the lowest latency, 6.28 ms.", [1, 0.3]),
        ((fast, tied), "With 64.0 MiB fast.xla and tied.xla tie for the lowest latency, 6.28 ms. fast.xla and tied.xla "
         "tie.", [1, 1]),
        ((fast, thrifty, late), "With 5.00 MiB thrifty.xla may have the lowest latency, 300 ms; with 64.0 MiB fast.xla "
         "may have the lowest latency, 6.28 ms. Not sure: late.xla not timed, may be faster than fast.xla.", [1, 1]),
    ):  # fmt: skip
        found = comparison_findings(analyse(samples.run_of(*items)))
        assert sweep_front.sentence(found) == words and list(sweep_front.frame(found)["alpha"]) == alphas
    sweep = findings(RUN)
    assert sweep_front.subject(sweep)[0] == sweep_front.subject(sweep, (10_000,))[0] == {"batch": 1_000}
    assert sweep_front.subject(sweep, (10,))[0] == {"batch": 10}


def test_a_point_that_is_too_noisy_for_an_order_has_no_lowest_latency():
    def shaken(item):
        """Every second of its processes takes 20 times as long."""
        return replace(item, replicas=[
            replace(replica, samples_s=[seconds * 20 ** (replica.id % 2) for seconds in replica.samples_s])
            for replica in item.replicas
        ])  # fmt: skip

    noisy = replace(RUN.points[3], measurements=[shaken(item) for item in RUN.points[3].measurements])
    sweep = sweep_findings.analyse(replace(RUN, points=[*RUN.points[:3], noisy]))
    assert not comparison_findings(sweep_findings.comparison(sweep, sweep.points[3])).tells
    before, sweep = findings(RUN), findings(sweep)
    assert sweep_front.subject(sweep, (1_000,)) is None and sweep_front.subject(before, (1_000,))
    # Of an option each point holds the strategies without it too: this one was measured beside other programs.
    option = findings(decode((ROOT / "tests/data/option_1.json").read_bytes()))
    assert [point.at["chunk"] for point in option.ranked] == [1_000], "alone in two processes, as it says"
    assert export.markdown(option.run).count("to rank") == 4 and sweep_front.subject(option, (3,)) is None


def test_every_chart_of_a_sweep_has_a_specification_of_its_own_and_a_map_is_a_picture():
    assert set(files.of(RUN)) == {"latency", "memory", "front"} and set(files.of(WINNERS)) == {"map", "front"}
    drawn = files.of(WINNERS)["map"]
    assert drawn["title"]["subtitle"][1].startswith("A: loop.eager, B: vectorized_map.graph. ")
    svg = files.convert(drawn, "svg").decode()
    assert svg.startswith("<svg") and "batch" in svg and "height" in svg
