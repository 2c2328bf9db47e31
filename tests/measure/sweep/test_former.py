"""A sweep of an option from before its slugs held the option: it opens for ever, with slugs as they are made today."""

import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from measure import __main__ as command
from measure.model.run import BreakEven, Control, Measurement, Run
from measure.model.run_file import decode, encode, upgraded
from measure.output import export, sweep_table
from measure.store import imports
from measure.store.store import Store
from measure.sweep import cells, continuing, repetition
from measure.sweep.lines import lines
from measure.sweep.request import of_run
from views.charts import sweep_front, sweep_lines
from views.result.sweep_point import point_run

# Measured by a former Mapbench, and never written anew.
FILE = Path(__file__).parents[2] / "data" / "option_1.json"
CHUNKS = (3, 64, 128, 1000)


@pytest.fixture(scope="module")
def run() -> Run:
    return decode(FILE.read_bytes())


def test_its_strategies_have_the_value_that_they_were_measured_at(run: Run):
    slugs = [[item.strategy for item in point.measurements] for point in run.points]
    both = [[f"chunked.graph?chunk={chunk}", f"chunked.xla?chunk={chunk}"] for chunk in CHUNKS]
    assert slugs == [[*both[0], "batched.graph", "map_fn.graph"], *both[1:]]
    assert run.points[0].ranking == [
        ["batched.graph", "chunked.xla?chunk=3"],
        ["chunked.graph?chunk=3", "map_fn.graph"],
    ]
    assert run.points[3].ranking == [["chunked.graph?chunk=1000"], ["chunked.xla?chunk=1000"]]
    assert run.points[3].verdict == (
        "chunked.graph?chunk=1000 is fastest: 244 µs [163, 365], 2.12 × [1.11, 4.08] faster than "
        "chunked.xla?chunk=1000; it needs 256 B, all of it output. chunked.graph?chunk=1000 reuses a program that was "
        "made for the timed values: with others a call takes 2.93 ms."
    )
    assert run.request.strategies == ["chunked.graph", "chunked.xla", "batched.graph", "map_fn.graph"]


def test_nothing_else_of_it_is_another(run: Run):
    now, before = encode(run).decode(), FILE.read_text()
    for chunk in CHUNKS:
        now, before = (text.replace(f"?chunk={chunk}", "") for text in (now, before))
    assert json.loads(now) == json.loads(before)
    assert decode(encode(run)) == run, "what is as it is today stays so"


def test_it_says_what_it_said(run: Run):
    assert run.verdict == (
        "chunked.graph is fastest with chunk 1,000: 244 µs [163, 365]; it ties with chunk 128, chunked.xla with chunk "
        "3, 64, 128 and 1,000 and batched.graph; map_fn.graph takes 10 × [4.86, 22.4] as long."
    )
    assert [(crossing.a, crossing.b, crossing.none) for crossing in run.crossovers] == [
        ("chunked.xla", "chunked.graph", "chunked.xla is faster at chunk 3; otherwise they tie throughout the range"),
        (
            "chunked.graph",
            "batched.graph",
            "chunked.graph is faster at chunk 1,000; otherwise they tie throughout the range",
        ),
        ("chunked.xla", "batched.graph", "they tie throughout the range"),
    ]
    assert [line.slug for line in lines(run.points, run.axes)] == run.request.strategies
    head, *rows = sweep_table.latencies(run)
    assert head == ("chunk", "3", "64", "128", "1 000")
    assert rows == [
        ("chunked.graph", "2.23 ms", "773 µs*", "320 µs*", "244 µs*"),
        ("chunked.xla", "560 µs*", "647 µs*", "746 µs*", "518 µs"),
        ("batched.graph", "769 µs*", "–", "–", "–"),
        ("map_fn.graph", "2.55 ms", "–", "–", "–"),
    ]
    points = sweep_lines.frame(run, "latency").query("kind == 'point'")
    assert list(points["strategy"].unique()) == [
        "■ chunked.graph", "◆ chunked.xla", "■ batched.graph", "■ map_fn.graph"
    ]  # fmt: skip
    measurements, dials = sweep_front.subject(run)
    assert {dial.mode: [slug for _, slug in dial.chunks] for dial in dials} == {
        mode: [f"chunked.{mode}?chunk={chunk}" for chunk in CHUNKS] for mode in ("graph", "xla")
    }
    assert sweep_front.frame(measurements, dials, None)["strategy"].str.contains("chunk=1000").any()
    at_64 = point_run(run, run.points[1])
    assert at_64.request.strategies == ["chunked.graph?chunk=64", "chunked.xla?chunk=64"]


def with_other_samples(run: Run) -> Run:
    """The sweep as if its samples were others; what it shows stays."""

    def equal(item: Measurement) -> Measurement:
        return replace(item, replicas=[replace(each, samples_s=[1.0] * len(each.samples_s)) for each in item.replicas])

    points = [replace(point, measurements=[equal(item) for item in point.measurements]) for point in run.points]
    return replace(run, points=points)


def test_what_it_shows_counts_where_it_is_compared_with_a_repetition(run: Run):
    answer = repetition.compare(run, run)
    assert answer.outcome == "reproduced" and any(point.answer.strategies for point in answer.points)
    assert repetition.compare(with_other_samples(run), with_other_samples(run)) == answer


def test_by_how_much_a_cell_of_a_former_map_is_won_is_said_as_it_was():
    run = decode((FILE.parent / "map_1.json").read_bytes())
    point = next(point for point in run.points if len(point.measurements) > 1)
    lead = cells.lead(run, point)
    assert lead is not None
    altered = with_other_samples(run)
    assert cells.lead(altered, next(other for other in altered.points if other.at == point.at)) == lead


def test_it_comes_in_from_a_file_and_out_of_a_store_that_a_former_mapbench_filled(run: Run, tmp_path: Path):
    data = FILE.read_bytes()
    assert imports.read(data) == run
    former = msgspec.json.decode(data, type=Run)
    assert former.points[0].measurements[0].strategy == "chunked.graph"
    kept = Store(tmp_path)
    assert kept.add(former) and kept.load(run.id) == run
    kept.close()


def test_it_is_exported_by_the_command_line_and_can_be_continued(run: Run, tmp_path: Path):
    assert command.main(["export", str(FILE), "--csv", "--markdown", "--into", str(tmp_path)]) == 0
    assert (tmp_path / "option_1.csv").read_text() == "".join(export.table_csv(run))
    assert "\n64,1,chunked.xla?chunk=64,chunked,xla,ok," in "".join(export.table_csv(run))
    assert "| 1,000 | 244 µs | 518 µs | – | – | `chunked.graph` |" in (tmp_path / "option_1.md").read_text()
    assert continuing.points_kept(run, of_run(run)) == run.points


def test_all_that_names_a_strategy_of_a_point_names_it_as_it_is_today(run: Run):
    former = msgspec.json.decode(FILE.read_bytes(), type=Run)
    first, second, *others = former.points[1].measurements
    twin = replace(first, strategy="chunked.graph#twin", twin_of="chunked.graph")
    second = replace(second, break_even=[BreakEven(against="chunked.graph")])
    control = Control(strategy="chunked.graph", ratio=1.0, low=0.9, high=1.1, resolution=0.1)
    point = replace(former.points[1], measurements=[first, second, *others, twin], control=control)
    now = upgraded(replace(former, points=[point])).points[0]
    assert now.measurements[1].break_even[0].against == "chunked.graph?chunk=64"
    assert (now.control.strategy, now.measurements[-1].twin_of) == ("chunked.graph?chunk=64",) * 2
    by_size = replace(former, axes=[replace(former.axes[0], kind="size")])
    assert upgraded(by_size) == by_size, "only a swept option is in question"


def test_an_option_whose_value_is_the_default_stands_in_no_slug_and_others_keep_their_place(run: Run):
    first = run.points[0].measurements[0]
    given = replace(first, strategy="m.graph?a=1&z=2", options={"a": 1, "chunk": 3, "z": 2})
    default = replace(first, strategy="m.xla", options={})
    point = replace(run.points[0], measurements=[given, default], ranking=[], verdict="")
    now = upgraded(replace(run, points=[point])).points[0]
    assert [item.strategy for item in now.measurements] == ["m.graph?a=1&chunk=3&z=2", "m.xla"]
