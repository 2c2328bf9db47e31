"""The Sweep page: ranges and what refuses them, forecasts, examples, a sweep while it runs, and its result."""

import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure.judge import sweep_findings, warnings
from measure.machine import environment
from measure.run.encoding import decode
from measure.run.run import Run
from tests import synthetic
from tests.engine import ROOT
from tests.pages import FakeClient, buttons, calm, cannot_run, chosen, open_page, params, press, words
from tests.samples import measurement
from views.choices import axes, examples

MAP = {"workload": "outer_product", "from": "1", "to": "8", "points": "3",
       "sweep_2": "side", "from_2": "2", "to_2": "8", "points_2": "2"}  # fmt: skip


@pytest.fixture
def show(fake: FakeClient) -> Callable[..., AppTest]:
    """``show(run)`` opens the page with a run as it is, or while it is measured."""

    def open_run(run: Run, *state: str, **more: object) -> AppTest:
        fake.show(run, *state, **more)
        return open_page("sweep", run=run.id)

    return open_run


def charts(app: AppTest) -> list[str]:
    return [element.proto.alt for element in app.get("vega_lite_chart")]


def headline(app: AppTest) -> str:
    [words] = [element.value for element in app.html if element.value.startswith("<h2")]
    return re.sub("<[^>]*>", "", words)


def fields(app: AppTest, *keys: str) -> tuple[str, ...]:
    return tuple(app.text_input(key=key).value for key in keys)


def swept(app: AppTest, axis: str, name: str) -> AppTest:
    return calm(app.selectbox(key=axis).set_value(name).run())


def test_a_bad_range_is_said_once_and_nothing_can_start_until_it_is_put_right(fake):
    app = open_page("sweep", **MAP)
    for start, end, named in (("0", "8", "side=0"), ("8", "2", "side=8:2"), ("2", "8", "")):
        app.text_input(key="from_2").set_value(start)
        app.text_input(key="to_2").set_value(end)
        app = calm(app.run())
        assert len(app.warning) == bool(named) == cannot_run(app) and named in words(app).lower()
    # Two axes that are good by themselves may make too many points.
    assert cannot_run(open_page("sweep", **{**MAP, "to": "9999", "points": "64", "to_2": "100", "points_2": "64"}))
    assert calm(open_page("sweep", **{"from": "500,1, 20"}).run()).text_input(key="to").disabled, "values are no grid"


def test_two_sizes_make_a_map_that_fits(fake):
    app = open_page("sweep", workload="outer_product")
    assert fields(app, "to") == ("1000",) and "size_side" in {element.key for element in app.number_input}
    assert "4 strategies: about" in words(app)
    app = swept(app, "sweep_2", "side")
    assert fields(app, "to", "to_2") == ("100", "16")
    assert not {"size_side", "size_batch"} & {element.key for element in app.number_input}, (
        "no other field for what is swept"
    )
    assert "not run here" not in words(app) and "is left out" not in words(app)
    app = swept(app, "sweep_2", "nothing")
    assert fields(app, "to") == ("1000",)
    app = swept(app, "sweep_2", "side")
    app.text_input(key="to").set_value("77")
    press(calm(app.run()), "run")
    (request,) = fake.submitted_sweeps
    assert [(axis.name, axis.values[-1]) for axis in request.axes] == [("batch", 77), ("side", 16)]


def test_an_option_is_swept_alone_and_chooses_strategies_that_have_it(fake):
    app = swept(open_page("sweep", workload="outer_reduce", strategies="map_fn.graph", budget="12"), "sweep", "chunk")
    assert chosen(app) == {"map_fn.graph", "chunked.graph"} and fields(app, "from", "to") == ("1", "256")
    assert app.selectbox(key="sweep_2").options == ["none"]
    press(app, "run")
    (request,) = fake.submitted_sweeps
    assert [(axis.kind, axis.name) for axis in request.axes] == [("option", "chunk")] and request.base.budget_s == 12
    app = open_page("sweep", workload="outer_reduce", strategies="map_fn.graph", sweep="chunk")
    assert cannot_run(app) and "parallel_iterations" in words(app), "a link may choose none that has it"


def test_what_is_left_out_is_named_before_the_run_and_where_all_is_it_is_refused(fake, monkeypatch):
    two = ["loop.eager", "batched.graph"]
    for workload, strategies, named in (
        ("outer_product", [], "is left out"),
        ("square", two, "is short for all of it"),
    ):
        app = open_page("sweep", workload=workload, to="1000000", strategies=strategies)
        assert named in words(app) and not cannot_run(app)
    monkeypatch.setattr(environment, "available_memory", lambda: 1)
    app = open_page("sweep", workload="outer_product", to="1001")
    assert cannot_run(app)
    monkeypatch.setattr(environment, "available_memory", lambda: 8 * 2**30)
    assert not cannot_run(calm(app.run())), "whoever took the memory has ended"


def test_an_example_takes_the_place_of_whatever_was_chosen_and_fits_modest_machines(fake, show):
    app = open_page("sweep", workload="image_sqrt", dtype="float64", sweep="height", budget="300", strategies="all")
    for number in range(len(examples.EXAMPLES)):
        app = press(app, f"choose_{number}")
        assert app.button(key=f"choose_{number}").disabled, "it is what is chosen"
        assert "is left out" not in words(app) and "not run here" not in words(app)
        press(app, "run")
        assert axes.fits(fake.submitted_sweeps[-1])
        app = open_page("sweep")
    assert "choose_0" not in buttons(show(synthetic.sweep())), "where there is a run there are none"


def test_a_finished_sweep_has_question_answer_lines_costs_front_and_failures(show):
    run = synthetic.sweep()
    app = show(replace(run, warnings=[warnings.warning("stood_still", seconds=20.0)]))
    shown = words(app)
    assert run.verdict in shown and "as **batch** grows from 1 to 10,000?" in shown
    assert "stood still for about 20" in shown and "has the lowest latency" in shown
    for beginning in ("Latency of 3 strategies", "Peak memory of 3 strategies"):
        assert any(alt.startswith(beginning) for alt in charts(app))
    (table,) = [element.value for element in app.dataframe if "cost per element, b" in element.value.columns]
    assert list(table["strategy"]) == ["■ vectorized_map.graph", "■ batched.graph", "● loop.eager"]
    assert all("[" in cell for cell in table["cost per element, b"])
    assert sum(cell.startswith("batch^") for cell in table["grows as"]) == 3
    assert "Did not work" in shown and "batch 1,000: timed out" in shown
    assert "continue" not in buttons(app), "a complete one has nothing to continue"
    poor = replace(run, fits=[replace(run.fits[0], note="poor fit"), *run.fits[1:]])
    (table,) = [element.value for element in show(poor).dataframe if "cost per element, b" in element.value.columns]
    assert len(table) == 2 and run.fits[0].strategy not in str(list(table["strategy"]))


def test_a_pair_that_is_picked_is_what_the_headline_answers_and_two_strategies_are_picked_at_once(show):
    of_three, of_two = synthetic.sweep(), synthetic.sweep("2" * 24)
    app = show(of_three)
    assert app.selectbox(key=f"pair_0_{of_three.id}").value is None
    app = swept(swept(app, f"pair_0_{of_three.id}", "batched.graph"), f"pair_1_{of_three.id}", "loop.eager")
    assert headline(app).startswith("batched.graph overtakes loop.eager at batch 4 [")
    two = [replace(point, measurements=point.measurements[:2]) for point in of_two.points]
    app = show(sweep_findings.analyse(replace(of_two, points=two)))
    assert headline(app).startswith("vectorized_map.graph overtakes loop.eager at batch 3 [")
    picked = [app.selectbox(key=f"pair_{number}_{of_two.id}").value for number in (0, 1)]
    assert picked == ["vectorized_map.graph", "loop.eager"]


def test_a_sweep_with_one_or_no_strategy_that_works_has_the_headline_of_its_verdict(show):
    whole = synthetic.sweep()
    for works in (["loop.eager"], []):
        points = [
            replace(point, ranking=[works] if works and point.ranking else [], measurements=[
                item if item.strategy in works else synthetic.failure(item.mapper, item.mode, "failed", "no")
                for item in point.measurements if item.strategy != "batched.graph"
            ])
            for point in whole.points[:3]
        ]  # fmt: skip
        run = replace(whole, id=f"{len(works):024x}", points=points, fits=[], crossovers=[])
        app = show(run)
        assert headline(app) == sweep_findings.verdict(sweep_findings.findings(run))
        assert any(alt.startswith("Latency") for alt in charts(app)) == bool(works), "no axis without a figure"


def test_a_point_is_shown_as_the_comparison_that_it_is_and_stays_chosen_while_others_are_added(fake, show):
    run = synthetic.sweep("a" * 24)
    key = f"sweep_point_{run.id}"
    app = show(replace(run, points=[*run.points[:2], replace(run.points[2], status="running"), *run.points[3:]]))
    app = calm(app.selectbox(key=key).select_index(2).run())
    fake.show(replace(run, points=[run.points[0], replace(run.points[1], at={"batch": 3}), *run.points[1:]]))
    app = calm(app.run())
    assert app.selectbox(key=key).value == (100,) and run.points[2].verdict in words(app)
    assert [link.proto.page for link in app.get("page_link")] == [""], "to Compare, and to no other sweep"
    # In another run nothing is chosen yet.
    fake.show(synthetic.sweep("b" * 24))
    app.query_params["run"] = "b" * 24
    app = calm(app.run())
    key = f"sweep_point_{'b' * 24}"
    assert app.selectbox(key=key).value is None
    app = calm(app.selectbox(key=key).select_index(4).run())
    assert "Left out" in words(app) and "1.20 TiB" in words(app)


def test_a_point_of_an_option_also_says_what_holds_among_all_strategies(show):
    run = decode((ROOT / "tests/data/option_1.json").read_bytes())
    app = calm(show(run).selectbox(key=f"sweep_point_{run.id}").select_index(3).run())
    assert "Among all strategies here: chunked.graph is fastest" in words(app)


def test_the_map_says_who_wins_where_and_what_did_not_work(show):
    run = synthetic.winners()
    failed = synthetic.failure("map_fn", "graph", "timeout", "no answer within 10 s")
    points = [replace(point, measurements=[*point.measurements, failed]) for point in run.points[:2]]
    app = show(replace(run, points=[*points, *run.points[2:]]))
    assert "batch 1, height 8; batch 1, height 16: timed out" in words(app)
    app = show(run)
    assert any(alt.startswith("Map of winners over batch and height, 9 cells") for alt in charts(app))
    assert "8 of 9 points measured" in words(app)
    app = calm(app.selectbox(key=f"sweep_point_{run.id}").select_index(0).run())
    assert run.points[0].verdict in words(app)
    app = calm(app.selectbox(key=f"sweep_point_{run.id}").select_index(4).run())
    assert not app.get("page_link"), "what cannot be asked for opens nothing else"
    assert "Left out: inferred" in words(app)


def test_one_that_ended_early_can_be_continued_where_it_was_measured_and_kept(fake, show):
    run = synthetic.sweep("a" * 24)  # whose made-up code is not what is here
    points = [replace(p, measurements=[replace(item, code=None) for item in p.measurements]) for p in run.points[:3]]
    points += [replace(p, status="cancelled", measurements=[], ranking=[]) for p in run.points[3:]]
    late = measurement("late.graph", [], outcome="not_run")
    points[1] = replace(points[1], measurements=[*points[1].measurements, late])
    ended = replace(run, status="cancelled", points=points, stop_reason="that was it")
    app = show(ended)
    assert "3 of 5 points measured, 1 with strategies not timed. " in (shown := words(app))
    assert "Continue measures the rest" in shown
    press(calm(app.number_input(key="budget").set_value(86_400.0).run()), "continue")
    assert list(fake.submitted_sweeps[-1].axes) == run.axes and fake.sweeps_of[-1] == (None, run.id)
    assert fake.submitted_sweeps[-1].base.budget_s == 86_400.0
    app = show(ended, imported=True)
    assert "continue" not in buttons(app) and "is kept" in words(app) and "Continue" not in words(app)


def test_a_sweep_that_is_measured_again_says_whether_the_verdict_was_reproduced(fake, show):
    first = synthetic.sweep("a" * 24)
    press(show(first), "again")
    assert fake.sweeps_of == [(first.id, None)]
    app = show(replace(synthetic.sweep("b" * 24, seed=1), parent=first.id))
    assert "The verdict was reproduced" in words(app) and params(press(app, "parent"))["run"] == [first.id]
