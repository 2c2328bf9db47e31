"""The Sweep page without a browser and without TensorFlow: ranges, refusals, forecasts, states of a sweep, links."""

import re
from collections.abc import Callable
from functools import partial

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.admission import NOBODY, Visitor
from measure.judge import advice
from measure.machine import environment
from measure.model.request import RequestError
from measure.model.run import Crossover, Point, Run
from measure.runner import Snapshot
from measure.sweep import findings, omissions
from measure.sweep.request import SweepRequest, parse_sweep
from tests import synthetic
from tests.engine import ROOT
from tests.pages import RUN_ID, FakeRunner, calm, open_page, versions, words
from views.charts import sweep_front
from views.choices import examples, ranges
from views.result import progress, sweep_continue

GIB = 2**30
MAP = {"workload": "outer_product", "from": "1", "to": "8", "points": "3",
       "sweep_2": "side", "from_2": "2", "to_2": "8", "points_2": "2"}  # fmt: skip
OPTION = {"workload": "outer_reduce", "sweep": "chunk", "from": "1", "to": "8", "points": "3",
          "strategies": "chunked.graph"}  # fmt: skip


class SweepRunner(FakeRunner):
    """A runner that takes sweeps, with nothing behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.submitted: list[tuple[SweepRequest, str | None]] = []
        self.parents: list[str | None] = []

    def submit_sweep(
        self,
        request: SweepRequest,
        parent: str | None = None,
        visitor: Visitor = NOBODY,
        continue_from: str | None = None,
    ) -> str:
        if self.refusal:
            raise RequestError(self.refusal)
        self.parents.append(parent)
        self.submitted.append((request, continue_from))
        run = replace(synthetic.sweep(RUN_ID), status="interrupted", points=[], crossovers=[], fits=[], verdict="")
        self.snapshots[RUN_ID] = Snapshot(run, "queued", position=1, version=next(versions))
        return RUN_ID

    def cancel(self, run_id: str, visitor: Visitor = NOBODY) -> None:
        self.cancelled.append(run_id)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> SweepRunner:
    fake = SweepRunner()
    monkeypatch.setattr(runner, "shared", lambda: fake)
    monkeypatch.setattr(environment, "available_memory", lambda: 8 * GIB)
    return fake


@pytest.fixture
def visit(fake: SweepRunner) -> Callable[..., AppTest]:
    """``visit(sweep="batch", …)`` opens the Sweep page with these query parameters."""
    return partial(open_page, "sweep")


@pytest.fixture
def show(fake: SweepRunner, visit: Callable[..., AppTest]) -> Callable[..., AppTest]:
    """``show(run)`` opens the page with a run as it is, or while it is measured."""

    def open_run(run: Run, state: str = "finished", **more: object) -> AppTest:
        fake.snapshots[run.id] = Snapshot(run, state, version=next(versions), **more)
        return visit(run=run.id)

    return open_run


def without_code(run: Run) -> Run:
    """As a sweep was whose strategies' code nobody noted: made-up code is not what is here."""
    points = [
        replace(point, measurements=[replace(item, code=None) for item in point.measurements]) for point in run.points
    ]
    return replace(run, points=points)


def over_budget(run_id: str = RUN_ID) -> Run:
    """A complete sweep in whose 60 s there was no time for the loop at the two largest points."""
    run = without_code(synthetic.sweep(run_id))
    left_out = synthetic.failure("loop", "eager", "not_run", "")
    left_out = replace(left_out, error=omissions.over_budget(1_200.0, 60.0))
    values = [1, 10, 100, 1_000_000, 5_000_000]
    points = [
        replace(
            point,
            at={"batch": value},
            status="complete",
            reason="",
            measurements=[left_out, *run.points[2].measurements[1:]] if value > 100 else point.measurements,
            ranking=run.points[2].ranking,
        )
        for value, point in zip(values, run.points, strict=True)
    ]
    request = replace(run.request, workload="square", size={"batch": 1}, budget_s=60.0)
    return replace(run, request=request, points=points, axes=[replace(run.axes[0], values=values)])


def grown(seconds: Callable[[int], float], apart: float = 1.0) -> Run:
    """A complete sweep of three strategies at 1 to 1,000 elements, each a call of as many ``seconds``. ``apart``: the
    slowest of its processes over the fastest."""
    run = synthetic.sweep()
    points = []
    for point in run.points[:3]:
        value = point.at["batch"]
        measurements = [
            replace(
                item,
                replicas=[
                    replace(each, samples_s=[seconds(value) * apart ** (place / 2)] * 9, at_s=[1.0] * 9)
                    for place, each in enumerate(item.replicas)
                ],
            )
            for item in point.measurements
        ]
        points.append(replace(point, measurements=measurements))
    return findings.analyse(without_code(replace(run, points=points)))


def charts(app: AppTest) -> list[str]:
    return [element.proto.alt for element in app.get("vega_lite_chart")]


class TestChoosing:
    def test_a_range_of_the_batch_is_swept_with_the_usual_four_and_the_forecast_is_shown(self, fake, visit):
        app = visit(workload="square", to="100000")
        assert "9 points, 4 strategies: needs about" in words(app)
        app = calm(app.button(key="run").click().run())
        [(request, continued)] = fake.submitted
        assert continued is None
        assert [(axis.kind, axis.name, axis.scale) for axis in request.axes] == [("size", "batch", "log")]
        assert (request.axes[0].values[0], request.axes[0].values[-1], len(request.axes[0].values)) == (1, 100_000, 9)
        assert request.base.strategies == ("loop.eager", "map_fn.graph", "vectorized_map.graph", "batched.graph")
        assert request.base.budget_s == 60.0
        assert app.query_params["run"] in (RUN_ID, [RUN_ID])
        assert "waiting in the queue" in words(app)

    @pytest.mark.parametrize(
        ("params", "says"),
        [
            ({"from": "1000", "to": "10"}, "is reversed: write the smaller end first"),
            ({"from": "", "to": ""}, "is empty"),
            ({"from": "7", "to": "7"}, "is one point"),
            ({"from": "1", "to": "100", "points": "5000"}, "5000 points is not valid"),
            ({"from": "1", "to": "999999999999"}, "batch=999999999999 is not valid: a whole number from"),
            ({"from": "one", "to": "10"}, "whole numbers are needed"),
            ({"from": "0", "to": "10"}, "batch=0 has no place on a log scale"),
            ({"from": "0, 3, 8"}, "batch=0 has no place on a log scale"),
            ({"from": "3, 3,"}, "whole number from"),
            ({"from": "3, 3"}, "is one point"),
            ({"from": ", ".join(map(str, range(1, 99)))}, "98 values of batch are too many"),
            ({"from": "1, 2, two"}, "is not valid: a whole number from"),
            ({"from": "-5", "to": "10"}, "is not valid: a whole number from"),
        ],
    )
    def test_a_bad_range_is_said_once_beside_it_and_nothing_can_start(self, fake, visit, params, says):
        app = visit()
        for key, value in params.items():
            if key == "points":
                app.number_input(key=key).set_value(int(value))
            else:
                app.text_input(key=key).set_value(value)
        app = calm(app.run())
        [warning] = [each.value.replace("\\", "") for each in app.warning]
        assert says in warning
        assert app.button(key="run").disabled
        assert "needs about" not in words(app)
        assert not fake.submitted

    @pytest.mark.parametrize(
        ("address", "number", "bad"),
        [
            ({"scale": "linear"}, "", {("200", "10"): "batch=200:10 is reversed", ("-5", "10"): "a whole number from"}),
            (MAP, "_2", {("8", "2"): "side=8:2 is reversed", ("0", "8"): "side=0 is not valid: a whole number from"}),
            (OPTION, "", {("8", "2"): "chunk=8:2 is reversed", ("0", "8"): "has no place on a log scale"}),
        ],
        ids=["linear", "second axis", "option"],
    )
    def test_so_it_is_with_whatever_is_swept_until_it_is_put_right(self, visit, address, number, bad):
        app = visit(**address)
        good = {key: app.text_input(key=f"{key}{number}").value for key in ("from", "to")}
        assert not app.warning and not app.button(key="run").disabled
        for ends, says in bad.items():
            for key, value in zip(good, ends, strict=True):
                app.text_input(key=f"{key}{number}").set_value(value)
            app = calm(app.run())
            [warning] = [each.value.replace("\\", "").replace("\u2060", "") for each in app.warning]
            assert says in warning and app.button(key="run").disabled
        for key, value in good.items():
            app.text_input(key=f"{key}{number}").set_value(value)
        app = calm(app.run())
        assert not app.warning and not app.button(key="run").disabled

    @pytest.mark.parametrize(
        ("address", "says"),
        [
            ({"from": "9", "to": "3", "points": "1"}, "is reversed"),
            # Two axes that are good by themselves.
            ({**MAP, "to": "9999", "points": "64", "to_2": "100", "points_2": "64"}, "points are too many"),
        ],
    )
    def test_a_bad_range_in_an_address_is_said_and_nothing_can_start(self, visit, address, says):
        app = visit(**address)
        [warning] = [each.value.replace("\\", "") for each in app.warning]
        assert says in warning and app.button(key="run").disabled

    def test_two_axes_are_a_map_and_the_swept_sizes_have_no_other_field(self, fake, visit):
        app = visit(workload="outer_product")
        assert "size_side" in {each.key for each in app.number_input}
        app = calm(app.selectbox(key="sweep_2").set_value("side").run())
        assert not {"size_side", "size_batch"} & {each.key for each in app.number_input}
        app.text_input(key="to_2").set_value("8")
        app.text_input(key="to").set_value("64")
        app = calm(app.run())
        calm(app.button(key="run").click().run())
        [(request, _)] = fake.submitted
        assert [axis.name for axis in request.axes] == ["batch", "side"]
        assert request.axes[1].values[-1] == 8

    def test_an_option_of_a_strategy_can_be_swept(self, fake, visit):
        app = visit(workload="outer_reduce", strategies=["chunked.graph", "map_fn.graph"], sweep="chunk")
        assert app.selectbox(key="sweep_2").options == ["none"], "an option is swept alone"
        calm(app.button(key="run").click().run())
        [(request, _)] = fake.submitted
        assert [(axis.kind, axis.name) for axis in request.axes] == [("option", "chunk")]

    def test_an_option_chooses_strategies_that_have_it(self, fake, visit):
        app = visit(workload="outer_reduce", strategies=["map_fn.graph"])
        app = calm(app.selectbox(key="sweep").set_value("chunk").run())
        assert {box.label for box in app.checkbox if box.value} == {"map_fn.graph", "chunked.graph"}
        assert (app.text_input(key="from").value, app.text_input(key="to").value) == ("1", "256")
        calm(app.button(key="run").click().run())
        [(request, _)] = fake.submitted
        assert request.base.strategies == ("map_fn.graph", "chunked.graph")
        # By an address, as well.
        app = visit(workload="outer_reduce", sweep="chunk")
        assert "chunked.graph" in {box.label for box in app.checkbox if box.value}
        # One that has it already is enough.
        app = visit(workload="outer_reduce", strategies=["chunked.xla"])
        app = calm(app.selectbox(key="sweep").set_value("chunk").run())
        assert {box.label for box in app.checkbox if box.value} == {"chunked.xla"}

    def test_an_option_that_no_chosen_strategy_has_is_refused(self, visit):
        app = visit(workload="outer_reduce", strategies=["map_fn.graph"], sweep="chunk")
        assert "choose one that has it, or sweep parallel_iterations" in words(app)
        assert app.button(key="run").disabled

    def test_a_second_size_makes_a_map_that_fits_and_keeps_a_range_that_a_person_has_set(self, fake, visit):
        app = visit(workload="outer_product")
        assert app.text_input(key="to").value == "1000"
        app = calm(app.selectbox(key="sweep_2").set_value("side").run())
        assert (app.text_input(key="to").value, app.text_input(key="to_2").value) == ("300", "16")
        assert "is not run" not in words(app) and "is left out" not in words(app)
        assert not app.button(key="run").disabled
        app = calm(app.selectbox(key="sweep_2").set_value("nothing").run())
        assert app.text_input(key="to").value == "1000"
        app.text_input(key="to").set_value("77")
        app = calm(app.run())
        app = calm(app.selectbox(key="sweep_2").set_value("side").run())
        assert (app.text_input(key="to").value, app.text_input(key="to_2").value) == ("77", "16")

    def test_points_that_cannot_fit_are_named_before_the_run_and_where_none_fits_there_is_none(
        self, visit, monkeypatch
    ):
        app = visit(workload="outer_product", to="1000000")
        assert "is left out: This cannot fit" in words(app)
        assert not app.button(key="run").disabled
        monkeypatch.setattr(environment, "available_memory", lambda: 1)
        app = visit(workload="outer_product", to="1001")
        assert "No point of this sweep can fit." in words(app)
        assert app.button(key="run").disabled

    def test_a_memory_limit_into_which_no_strategy_fits_anywhere_is_refused(self, visit):
        # Inputs and outputs fit, but not what map_fn needs beside them.
        sizes = {"from": "1000", "to": "1100", "points": "2", "strategies": "map_fn.graph"}
        assert not visit(**sizes, memory_limit="200").button(key="run").disabled
        app = visit(**sizes, memory_limit="105")
        assert "No point of this sweep can fit. map_fn.graph is not run at " in words(app)
        assert app.button(key="run").disabled

    def test_strategies_that_the_budget_leaves_out_are_named_before_the_run(self, visit):
        app = visit(workload="square", to="1000000", strategies=["loop.eager", "batched.graph"])
        assert "loop.eager is not run at batch " in words(app) and "of the sweep's 60 s" in words(app)
        assert not app.button(key="run").disabled

    def test_values_that_are_no_grid_are_swept_as_they_are_written(self, fake, visit):
        app = visit(workload="square", strategies="batched.graph")
        app = calm(app.text_input(key="from").set_value("500,1, 20").run())
        assert app.text_input(key="to").disabled and app.number_input(key="points").disabled
        calm(app.button(key="run").click().run())
        [(request, _)] = fake.submitted
        assert request.axes[0].values == [1, 20, 500]

    def test_another_workload_has_a_range_of_its_own(self, visit):
        app = visit(workload="square", to="77")
        app = calm(app.selectbox(key="workload").set_value("outer_product").run())
        assert app.text_input(key="to").value == "1000"

    def test_what_the_engine_refuses_is_said(self, fake, visit):
        fake.refusal = "there is no device GPU:7"
        app = calm(visit().button(key="run").click().run())
        assert "There is no device GPU:7." in words(app)
        assert "run" not in app.query_params


class TestExamples:
    def test_the_page_begins_with_three_cards_that_each_make_choices_that_fit(self, fake, visit):
        app = visit()
        said = words(app)
        for example in examples.EXAMPLES:
            assert example.title in said and examples.needs(example) in said
        axes = []
        for number, example in enumerate(examples.EXAMPLES):
            app = calm(visit().button(key=f"choose_{number}").click().run())
            said = words(app)
            assert "is left out" not in said and "is not run" not in said
            chosen = app.button(key=f"choose_{number}")
            assert (chosen.label, chosen.disabled) == ("Chosen: press Run", True)
            calm(app.button(key="run").click().run())
            request, _ = fake.submitted[-1]
            assert request == example.request()
            axes.append([(axis.kind, axis.name) for axis in request.axes])
        assert axes == [[("size", "batch")], [("option", "chunk")], [("size", "batch"), ("size", "side")]]

    def test_a_card_takes_the_place_of_whatever_was_chosen(self, fake, visit):
        app = visit(workload="image_sqrt", dtype="float64", sweep="height", budget="300", strategies="all")
        app = calm(app.button(key="choose_0").click().run())
        calm(app.button(key="run").click().run())
        assert fake.submitted[-1][0] == examples.EXAMPLES[0].request()

    def test_an_example_fits_two_cores_and_modest_memory(self):
        for example in examples.EXAMPLES:
            assert ranges.fits(example.request())

    def test_where_there_is_a_run_there_are_no_cards(self, show):
        assert "choose_0" not in {button.key for button in show(synthetic.sweep()).button}


class TestOneAxis:
    def test_a_finished_sweep_has_its_lines_crossovers_fits_and_front(self, show):
        run = synthetic.sweep()
        app = show(run)
        said = words(app)
        assert "image_sqrt · batch 1 to 10,000 · height 64 · width 64 · channels 3 · float32 · CPU:0" in said
        assert run.verdict in said
        assert "overtakes loop.eager at batch" in said
        assert any(alt.startswith("Latency of 3 strategies over batch") for alt in charts(app))
        assert any(alt.startswith("Peak memory of 3 strategies") for alt in charts(app))
        assert any(alt.startswith("Latency against memory") for alt in charts(app))
        [table] = [each.value for each in app.dataframe if "cost per element, b" in each.value.columns]
        assert list(table["strategy"]) == ["■ vectorized_map.graph", "■ batched.graph", "● loop.eager"]
        assert all("[" in cell for cell in table["cost per element, b"])
        assert "Did not work" in said and "Not run" not in said
        assert "batch 1,000: timed out" in said

    def test_what_was_not_run_has_a_heading_of_its_own(self, show):
        said = words(show(over_budget()))
        assert "**Not run** (1)" in said and "Did not work" not in said
        assert "batch 1,000,000; batch 5,000,000: it would take about 20.0 min of the sweep" in said

    @pytest.mark.parametrize(
        ("axis", "column"), [("batch", "cost per element, b"), ("side", "cost for each of side, b")]
    )
    def test_a_cost_is_of_what_is_swept(self, show, axis, column):
        run = synthetic.sweep()
        points = [replace(point, at={axis: point.at["batch"]}) for point in run.points]
        app = show(replace(run, axes=[replace(run.axes[0], name=axis)], points=points))
        [table] = [each.value for each in app.dataframe if "fixed cost per call, a" in each.value.columns]
        assert list(table.columns)[2] == column

    def test_how_each_strategy_grows_stands_beside_its_costs(self, show):
        app = show(grown(lambda value: 1e-6 * value))
        [table] = [each.value for each in app.dataframe if "grows as" in each.value.columns]
        assert list(table["grows as"]) == ["batch^1.00 ± 0.01"] * 3
        assert "faster than in proportion" not in words(app)

    def test_what_grows_faster_than_in_proportion_is_said_under_the_chart(self, show):
        said = words(show(grown(lambda value: 1e-6 * value**2)))
        assert said.count("faster than in proportion") == 3
        sentence = "vectorized_map.graph grows as batch^2.00 ± 0.01: faster than in proportion."
        assert sentence in said

    def test_where_processes_differ_too_much_to_tell_no_growth_is_called_fast(self, show):
        def seconds(value: int) -> float:
            return 1e-6 * value**1.3

        assert "faster than in proportion" in words(show(grown(seconds)))
        assert "faster than in proportion" not in words(show(grown(seconds, apart=1.6)))

    def test_of_two_values_and_of_an_option_no_growth_is_said(self, show):
        run = grown(lambda value: 1e-6 * value**2)
        short = findings.analyse(replace(run, id="e" * 24, points=run.points[:2]))
        option = findings.analyse(replace(run, id="d" * 24, axes=[replace(run.axes[0], kind="option")]))
        for each in (short, option):
            app = show(each)
            assert "faster than in proportion" not in words(app)
            assert not [table for table in app.dataframe if "grows as" in table.value.columns]

    def test_the_memory_slider_names_the_fastest_that_fits(self, show):
        run = synthetic.sweep()
        app = show(run)
        assert " available, vectorized_map.graph is fastest" in words(app)
        [least, *_] = sweep_front.steps(sweep_front.subject(run)[0])
        app = calm(app.select_slider(key="memory_dial").set_value(least).run())
        assert "Nothing fits into" in words(app)
        # What a person has stays what they have, whichever point is looked at.
        app = calm(app.selectbox(key="front_at").select_index(0).run())
        assert app.select_slider(key="memory_dial").value == least

    def test_a_pair_can_be_asked_about_though_neither_leads(self, show):
        run = synthetic.sweep()
        app = show(run)
        assert (app.selectbox(key="pair_one").value, app.selectbox(key="pair_other").value) == (
            "vectorized_map.graph", "loop.eager"
        ), "the pair that the verdict names"  # fmt: skip
        app = calm(app.selectbox(key="pair_one").set_value("batched.graph").run())
        assert "batched.graph overtakes loop.eager at batch 4 [" in words(app)
        app = calm(app.selectbox(key="pair_other").set_value("vectorized_map.graph").run())
        assert "They do not cross between batch 1 and 1,000: vectorized_map.graph is " in words(app)
        app = calm(app.selectbox(key="pair_other").set_value("batched.graph").run())
        assert "Choose two different strategies." in words(app)

    def test_another_sweep_asks_about_its_own_pair(self, fake, show):
        app = show(synthetic.sweep("a" * 24))
        app = calm(app.selectbox(key="pair_one").set_value("batched.graph").run())
        other = synthetic.sweep("b" * 24)
        fake.snapshots[other.id] = Snapshot(other, "finished", version=next(versions))
        app.query_params["run"] = other.id
        assert calm(app.run()).selectbox(key="pair_one").value == "vectorized_map.graph"

    def test_a_pair_is_no_question_on_a_map_or_of_one_strategy(self, show):
        run = synthetic.sweep()
        alone = replace(run, points=[replace(p, measurements=p.measurements[:1]) for p in run.points], crossovers=[])
        for each in (synthetic.winners(), alone):
            assert "pair_one" not in {box.key for box in show(each).selectbox}

    def test_pairs_without_a_crossing_are_said_and_the_one_that_is_asked_about_is_said_once(self, show):
        run = synthetic.sweep()
        tied = Crossover(
            a="batched.graph", b="vectorized_map.graph", axis="batch", none="they tie throughout the range"
        )
        said = words(show(replace(run, crossovers=[*run.crossovers, tied])))
        assert "batched.graph and vectorized_map.graph: no crossing in range, they tie throughout the range" in said
        assert said.count("vectorized_map.graph overtakes loop.eager at batch 3 [") == 1

    def test_a_point_is_shown_as_the_comparison_that_it_is(self, show):
        run = synthetic.sweep()
        app = show(run)
        assert "Correctness" not in words(app)
        app = calm(app.selectbox(key="sweep_point").select_index(1).run())
        assert run.points[1].verdict in words(app)
        assert "Correctness" in words(app)

    def test_a_point_stays_chosen_when_the_sweep_adds_one_before_it(self, fake, show):
        run = synthetic.sweep()
        # A state is part of a point's name in the list, and it changes too.
        third = replace(run.points[2], status="running")
        app = show(replace(run, points=[*run.points[:2], third, *run.points[3:]]))
        app = calm(app.selectbox(key="front_at").select_index(1).run())
        app = calm(app.selectbox(key="sweep_point").select_index(2).run())
        added = replace(run.points[1], at={"batch": 3}, verdict="This is what was added.")
        points = [run.points[0], added, *run.points[1:]]
        fake.snapshots[run.id] = Snapshot(replace(run, points=points), "finished", version=next(versions))
        for _ in range(2):
            app = calm(app.run())
            assert app.selectbox(key="sweep_point").value == (100,)
            assert app.selectbox(key="front_at").value == (10,)
            assert run.points[2].verdict in words(app) and added.verdict not in words(app)

    def test_what_is_chosen_in_one_run_is_not_chosen_in_another(self, fake, show):
        run, other = synthetic.sweep(), synthetic.sweep("b" * 24)
        app = show(run)
        app = calm(app.selectbox(key="front_at").select_index(1).run())
        app = calm(app.selectbox(key="sweep_point").select_index(2).run())
        fake.snapshots[other.id] = Snapshot(other, "finished", version=next(versions))
        app.query_params["run"] = other.id
        app = calm(app.run())
        assert app.selectbox(key="sweep_point").value is None
        assert app.selectbox(key="front_at").value == (1000,), "its largest point"

    def test_a_point_that_was_left_out_says_why(self, show):
        app = show(synthetic.sweep())
        app = calm(app.selectbox(key="sweep_point").select_index(4).run())
        assert "Left out: This cannot fit: it needs about 1.20 TiB." in words(app)

    def test_where_all_points_were_left_out_that_is_said(self, show):
        run = synthetic.sweep()
        points = [
            replace(point, status="skipped", reason="this cannot fit", measurements=[], ranking=[])
            for point in run.points
        ]
        said = words(show(replace(run, points=points, crossovers=[], fits=[])))
        assert "No point was measured. This cannot fit." in said
        assert "leads throughout" not in said and "Where one overtakes another" not in said

    def test_while_it_runs_lines_grow_and_it_can_be_cancelled(self, fake, show):
        run = synthetic.sweep()
        points = [
            point if number < 2 else replace(point, status="waiting", measurements=[], ranking=[], reason="")
            for number, point in enumerate(run.points)
        ]
        part = replace(run, points=points, crossovers=[], fits=[], verdict="", status="interrupted")
        app = show(part, "running", elapsed_s=3.0, remaining_s=9.0, message="measuring batch 100")
        assert "points: 2 complete, 3 waiting" in words(app)
        assert any(alt.startswith("Latency of 3 strategies") for alt in charts(app))
        assert "continue" not in {button.key for button in app.button}
        calm(app.button(key="cancel").click().run())
        assert fake.cancelled == [run.id]

    def test_until_it_has_a_line_it_is_looked_at_often_and_calmly_from_then_on(self):
        run = synthetic.sweep()
        stages = {"loop.eager": "sampling"}
        first = replace(run, points=[run.points[0], *(Point(at=point.at) for point in run.points[1:])])
        every = {
            name: progress.poll_s(Snapshot(each, "running", stages=stages))
            for name, each in {"one point": first, "lines": run, "comparison": synthetic.run()}.items()
        }
        assert every["one point"] < every["lines"] == every["comparison"]

    @pytest.mark.parametrize("status", ["cancelled", "budget", "interrupted"])
    def test_one_that_ended_early_shows_what_it_has_and_can_be_continued(self, fake, show, status):
        run = without_code(synthetic.sweep("a" * 24))
        points = [*run.points[:3], *(replace(p, status=status, measurements=[], ranking=[]) for p in run.points[3:])]
        app = show(replace(run, status=status, points=points, stop_reason="that was it"))
        assert "3 of 5 points are complete" in words(app)
        calm(app.button(key="continue").click().run())
        [(request, continued)] = fake.submitted
        assert continued == "a" * 24
        assert list(request.axes) == run.axes

    def test_one_from_elsewhere_that_ended_early_does_not_promise_to_be_continued(self, show):
        run = replace(synthetic.sweep(), status="cancelled")
        assert "What was measured is kept, and Continue measures the rest." in words(show(run))
        said = words(show(run, imported=True))
        assert "4 of 5 points are complete. What was measured is kept." in said and "Continue" not in said

    def test_one_that_could_not_be_written_does_not_say_that_it_is_kept(self, show):
        run = replace(synthetic.sweep(), status="cancelled", warnings=[advice.not_saved("the disk is full")])
        said = words(show(run))
        assert "4 of 5 points are complete." in said and "is kept" not in said

    def test_it_is_continued_with_the_time_budget_of_the_page_which_says_what_is_enough(self, fake, show):
        run = over_budget("a" * 24)
        app = show(run)
        assert "A time budget of 1 min is too short for what is missing" in words(app)
        assert app.button(key="continue").disabled, "it would measure nothing"
        assert re.search(r"; [\dhmins ]+ are enough for all that is missing: set it under Advanced", words(app))
        app = calm(app.number_input(key="budget").set_value(86_400.0).run())
        assert "Continue needs about" in words(app) and "too short" not in words(app)
        calm(app.button(key="continue").click().run())
        [(request, continued)] = fake.submitted
        assert continued == "a" * 24 and request.base.budget_s == 86_400.0
        assert list(request.axes) == run.axes

    def test_it_says_how_much_a_budget_leaves_out_and_the_one_that_it_names_leaves_out_nothing(self):
        run = over_budget()
        short = sweep_continue.outlook(run, 60.0, 64 * GIB)
        assert (short.missing, short.short, short.in_vain) == (2, 2, True)
        assert short.enough_s is not None
        enough = sweep_continue.outlook(run, short.enough_s, 64 * GIB)
        assert (enough.missing, enough.short, enough.in_vain) == (2, 0, False)
        assert enough.forecast.seconds <= short.enough_s
        some = sweep_continue.outlook(run, short.enough_s / 2, 64 * GIB)
        assert (some.missing, some.short) == (2, 1)
        assert "leaves out 1 of the 2 measurements that are missing" in sweep_continue.sentence(some, 100.0)

    def test_measured_again_it_knows_its_parent_and_says_whether_the_verdict_was_reproduced(self, fake, show):
        first = synthetic.sweep("a" * 24)
        app = calm(show(first).button(key="again").click().run())
        assert fake.parents == [first.id] and fake.submitted[0][1] is None
        again = replace(synthetic.sweep("b" * 24, seed=1), parent=first.id)
        app = show(again)
        assert "The verdict was reproduced: at 4 of 4 points the same strategies lead." in words(app)
        assert "here at " in words(app) and "the intervals overlap" in words(app)
        [table] = [each.value for each in app.dataframe if "ranks that changed" in each.value.columns]
        assert list(table["batch"]) == ["1", "10", "100", "1,000"] and set(table["outcome"]) == {"reproduced"}
        calm(app.button(key="parent").click().run())
        assert app.query_params["run"] in (first.id, [first.id])

    def test_one_that_continues_another_says_so_and_compares_nothing(self, fake, show):
        first = synthetic.sweep("a" * 24)
        fake.snapshots[first.id] = Snapshot(first, "finished", version=next(versions))
        said = words(show(replace(first, id="b" * 24, parent=first.id)))
        assert "It continues an earlier sweep" in said and "reproduced" not in said
        said = words(show(replace(first, id="b" * 24, parent="c" * 24)))
        assert "It repeats or continues a run that is not known here." in said

    def test_what_is_to_be_known_of_it_as_a_whole_stands_under_its_verdict(self, show):
        noted = replace(synthetic.sweep(), warnings=[advice.stood_still(20.0)])
        assert "Measuring stood still for about 20" in words(show(noted))

    def test_a_complete_one_has_nothing_to_continue(self, show):
        assert "continue" not in {button.key for button in show(synthetic.sweep()).button}


class TestMap:
    def test_the_map_says_who_wins_where(self, show):
        run = synthetic.winners()
        app = show(run)
        assert any(alt.startswith("Map of winners over batch and height, 9 cells") for alt in charts(app))
        assert "8 of 9 cells measured" in words(app)
        assert "loop.eager" in words(app)

    def test_a_cell_is_shown_as_the_comparison_that_it_is(self, show):
        run = synthetic.winners()
        app = calm(show(run).selectbox(key="sweep_point").select_index(0).run())
        assert run.points[0].verdict in words(app)

    def test_what_did_not_work_on_a_map_is_said_under_it(self, show):
        run = synthetic.winners()
        failed = synthetic.failure("map_fn", "graph", "timeout", "no answer within 10 s")
        points = [replace(point, measurements=[*point.measurements, failed]) for point in run.points[:2]]
        said = words(show(replace(run, points=[*points, *run.points[2:]])))
        assert "Did not work" in said and "batch 1, height 8; batch 1, height 16: timed out" in said

    def test_an_inferred_cell_says_so(self, show):
        app = calm(show(synthetic.winners()).selectbox(key="sweep_point").select_index(4).run())
        assert "Inferred: all around it" in words(app)


class TestLinks:
    def test_a_link_shows_the_sweep_with_its_makers_choices(self, show):
        app = show(synthetic.sweep())
        assert (app.text_input(key="from").value, app.text_input(key="to").value) == ("1", "10000")
        assert app.number_input(key="points").value == 5
        assert app.selectbox(key="workload").value == "image_sqrt"
        assert {box.label for box in app.checkbox if box.value} == {
            "loop.eager", "vectorized_map.graph", "batched.graph"
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("range_", "shown"),
        [
            ({"range": "1:10", "points": 9}, {"from": "1", "to": "10", "points": 9}),
            ({"range": "1:1000", "points": 7}, {"from": "1", "to": "1000", "points": 7}),
            ({"range": "1:10", "points": 4, "scale": "linear"}, {"from": "1", "to": "10", "points": 4}),
            ({"values": [1, 2, 8, 300]}, {"from": "1, 2, 8, 300", "to": "300", "points": 4}),
            ({"values": [0, 3, 4], "scale": "linear"}, {"from": "0, 3, 4", "to": "4", "points": 3}),
        ],
    )
    def test_an_opened_sweep_would_measure_the_same_points_again(self, fake, show, range_, shown):
        axis = {"name": "batch", **range_}
        asked = parse_sweep({"workload": "square", "axes": [axis], "strategies": ["batched.graph"]})
        run = synthetic.sweep()
        run = replace(run, request=asked.base.record(), axes=list(asked.axes), points=run.points[:1], crossovers=[])
        app = show(run)
        assert {key: app.session_state[key] for key in shown} == shown
        calm(app.button(key="run").click().run())
        [(request, _)] = fake.submitted
        assert request == asked
        # By the address that this leaves, too.
        asked_again = {key: str(app.session_state[key]) for key in ("from", "to", "points", "scale")}
        app = open_page("sweep", workload="square", strategies="batched.graph", **asked_again)
        calm(app.button(key="run").click().run())
        assert fake.submitted[1][0].axes == asked.axes

    def test_the_compare_page_hands_a_sweep_over_and_the_sweep_page_a_comparison(self, fake):
        fake.snapshots[RUN_ID] = Snapshot(synthetic.sweep(RUN_ID), "finished", version=next(versions))
        other = "b" * 24
        fake.snapshots[other] = Snapshot(synthetic.run(other), "finished", version=next(versions))
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params["run"] = RUN_ID
        app = calm(app.run())
        assert "sweep" in {box.key for box in app.selectbox}
        assert app.query_params["run"] in (RUN_ID, [RUN_ID])
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.switch_page("views/pages/sweep.py")
        app.query_params["run"] = other
        app = calm(app.run())
        assert "sweep" not in {box.key for box in app.selectbox}
        assert synthetic.run(other).verdict in words(app)

    def test_an_unknown_run_is_one_sentence(self, visit):
        assert f"Run {'c' * 24} is not known here" in words(visit(run="c" * 24))
