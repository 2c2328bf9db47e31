"""The page without a browser and without TensorFlow: choices, address, refusals, states of a run, hostile texts."""

import logging
import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

import strategies
import workloads
from measure import runner
from measure.engine.launcher import HostState
from measure.judge import advice
from measure.machine import environment
from measure.model.request import Request
from measure.model.run import Run
from measure.model.run_file import decode
from measure.runner import Snapshot
from tests import synthetic
from tests.engine import ROOT
from tests.pages import RUN_ID, FakeRunner, calm, open_page, versions, words
from tests.synthetic import HOSTILE
from views.choices import grid
from views.ui import look
from workloads.case import Case

OTHER = "These are results of other choices**"
GREY, HIDDEN = "filter: grayscale(1)", "display: none"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    fake = FakeRunner()
    monkeypatch.setattr(runner, "shared", lambda: fake)
    return fake


@pytest.fixture
def visit(fake: FakeRunner) -> Callable[..., AppTest]:
    """``visit(workload="outer_product", …)`` opens the page with these query parameters."""
    return open_page


def test_run_is_of_the_choices_as_they_are_now_though_the_button_was_drawn_before(fake: FakeRunner):
    app = open_page(size_batch="8")
    app.number_input(key="size_batch").set_value(9)
    calm(app.button(key="run").click().run())
    assert [request.size["batch"] for request in fake.submitted] == [9]
    assert "".join(app.query_params["run"]) == RUN_ID


def chosen(app: AppTest) -> set[str]:
    return {box.label for box in app.checkbox if box.value}


def cells(app: AppTest) -> set[str]:
    return {box.label for box in app.checkbox}


def of_grid(*modes: str, workload: str = "image_sqrt") -> set[str]:
    everything = strategies.all_strategies(workloads.get(workload))
    return {strategy.slug for strategy in everything if strategy.mode in modes}


def is_usual(slug: str) -> bool:
    """True if its mapper has a strategy that the default selection may take; the others are folded away."""
    return bool(strategies.mapper(strategies.parse(slug).mapper).default_modes)


class TestChoosing:
    def test_every_strategy_is_a_cell_once_the_further_mappers_are_asked_for(self, visit):
        app = visit()
        usual = set(filter(is_usual, of_grid("eager", "graph", "xla")))
        assert cells(app) == usual
        assert {"loop.eager", "map_fn.xla", "vectorized_map.graph", "chunked.graph", "batched.xla"} <= usual
        app = calm(app.button(key="more").click().run())
        assert cells(app) == of_grid("eager", "graph", "xla")
        app = calm(app.button(key="more").click().run())
        assert "dataset.graph" not in cells(app)

    @pytest.mark.parametrize("workload", ["per_example_gradients", "dp_sgd"])
    def test_a_workloads_own_rewrites_are_not_folded_away(self, visit, workload):
        own = {each.slug for each in strategies.mappers() if each.rewrite in workloads.get(workload).rewrites}
        assert {f"{mapper}.xla" for mapper in own - {"numpy_batched"}} <= cells(visit(workload=workload))

    def test_the_further_mappers_unfold_when_the_first_of_them_is_chosen(self, visit):
        assert chosen(visit(strategies=["loop.eager", "dataset.graph"])) == {"loop.eager", "dataset.graph"}
        app = calm(visit(strategies="loop.eager").button(key="column_xla").click().run())
        assert chosen(app) == {"loop.eager"} | of_grid("xla")
        # Folded again they stay chosen, and that is said.
        app = calm(app.button(key="more").click().run())
        assert "dataset.xla" not in cells(app)
        more = {slug for slug in of_grid("eager", "graph", "xla") if not is_usual(slug)}
        mappers = {strategies.parse(slug).mapper for slug in more}
        assert app.button(key="more").label == f"▸ {len(mappers)} more mappers, {len(more & of_grid('xla'))} chosen"
        app = calm(app.checkbox(key="cell_loop_eager").uncheck().run())
        assert "dataset.xla" not in cells(app)
        app = calm(
            calm(app.pills(key="strategy_preset").set_value("Default").run()).button(key="row_loop").click().run()
        )
        assert "dataset.xla" not in cells(app)
        app = calm(app.pills(key="strategy_preset").set_value("All").run())
        assert "dataset.xla" in chosen(app)

    def test_a_cell_is_one_click(self, visit):
        app = visit(strategies=["loop.eager", "map_fn.graph"])
        app = calm(app.checkbox(key="cell_map_fn_graph").uncheck().run())
        assert chosen(app) == {"loop.eager"}
        app = calm(app.checkbox(key="cell_batched_xla").check().run())
        assert chosen(app) == {"loop.eager", "batched.xla"}

    def test_a_row_and_a_column_are_one_click_and_a_second_takes_them_back(self, visit):
        app = calm(visit(strategies="loop.eager").button(key="row_map_fn").click().run())
        assert chosen(app) == {"loop.eager", "map_fn.eager", "map_fn.graph", "map_fn.xla"}
        app = calm(app.button(key="row_map_fn").click().run())
        assert chosen(app) == {"loop.eager"}
        app = calm(app.button(key="column_graph").click().run())
        assert chosen(app) == {"loop.eager"} | of_grid("graph")

    @pytest.mark.parametrize(
        ("preset", "slugs"),
        [
            ("The usual four", {"loop.eager", "map_fn.graph", "vectorized_map.graph", "batched.graph"}),
            ("Everything in graph mode", of_grid("graph")),
            ("All", of_grid("eager", "graph", "xla")),
        ],
    )
    def test_presets(self, visit, preset, slugs):
        app = calm(visit(strategies="loop.xla").pills(key="strategy_preset").set_value(preset).run())
        assert chosen(app) == slugs
        assert app.pills(key="strategy_preset").value == preset

    def test_memory_savers_are_those_with_the_least_forecast_peak(self, visit):
        app = calm(visit(workload="outer_product").pills(key="strategy_preset").set_value("Memory savers").run())
        assert "batched.graph" in chosen(app) and "map_fn.graph" not in chosen(app)

    @pytest.mark.parametrize("workload", workloads.names())
    def test_memory_savers_are_enough_for_a_comparison(self, workload):
        found = workloads.get(workload)
        case = Case(found, found.default_size(), found.dtypes[0])
        savers = grid.presets_of(case)["Memory savers"][1]
        assert "map_fn.xla" in savers and len(savers) >= 3

    def test_a_workload_brings_its_own_sizes_and_presets(self, visit):
        app = calm(visit(size_batch="7").selectbox(key="workload").select("outer_product").run())
        workload = workloads.get("outer_product")
        assert {
            box.label: box.value for box in app.number_input if box.key.startswith("size_")
        } == workload.default_size()
        app = calm(app.pills(key="size_preset").set_value("Small").run())
        assert app.number_input(key="size_batch").value == workload.presets["Small"]["batch"]

    def test_workloads_are_in_the_order_of_their_groups_which_their_labels_name(self, visit):
        labels = visit().selectbox(key="workload").options
        assert "Gradients · dp_sgd" in labels
        assert labels.pop() == "Your own · a function that you write …"
        assert len(labels) == len(workloads.names())
        groups = list(dict.fromkeys(label.partition(" · ")[0] for label in labels))
        assert groups[: len(workloads.GROUPS)] == list(workloads.GROUPS)

    def test_the_picture_shows_shapes_in_and_out(self, visit):
        assert "100 × 16 × 16 × 16 × 16" in words(visit(workload="outer_product"))

    def test_the_forecast_follows_every_change(self, visit):
        app = visit()
        before = words(app)
        app = calm(app.number_input(key="size_batch").set_value(4_000).run())
        assert "needs about" in before and "needs about" in words(app)
        assert words(app).split("needs about")[1][:20] != before.split("needs about")[1][:20]

    def test_no_strategy_is_said_and_nothing_can_be_run(self, visit):
        app = visit(strategies="none")
        assert chosen(app) == set()
        assert "Choose at least one strategy." in [warning.value.replace("\\", "") for warning in app.warning]
        assert app.button(key="run").disabled

    def test_what_cannot_fit_is_refused_with_the_nearest_size(self, visit, monkeypatch):
        monkeypatch.setattr(environment, "available_memory", lambda: 2**30)
        app = visit(size_batch="100000")
        refusal = app.warning[0].value.replace("\\", "")
        assert refusal.startswith("This cannot fit: ") and "is the largest that fits" in refusal
        assert app.button(key="run").disabled

    def test_what_cannot_end_in_time_is_refused_with_what_can(self, visit):
        app = visit(workload="square", size_batch="1000000", strategies=["loop.eager"], budget="1")
        refusal = app.warning[0].value.replace("\\", "")
        assert refusal.startswith("This cannot end in time: ") and "it can with batch=" in refusal
        assert app.button(key="run").disabled

    def test_beside_run_is_said_which_strategies_may_not_fit_into_a_memory_limit(self, visit):
        asked = {"size_batch": "1000", "strategies": ["batched.graph", "map_fn.graph"]}
        app = visit(**asked, memory_limit="110")
        assert "May not fit into the memory limit of 110 MiB: map_fn.graph." in words(app)
        assert not app.button(key="run").disabled
        app = visit(**{**asked, "strategies": "map_fn.graph"}, memory_limit="100")
        assert "Nothing can fit into the memory limit of 100 MiB: map_fn.graph needs least" in words(app)
        assert app.button(key="run").disabled

    def test_a_strategys_own_options_can_be_typed(self, visit):
        app = visit(strategies=["map_fn.graph?parallel_iterations=1"])
        assert not app.warning
        assert "parallel_iterations=1" in words(app)
        app.button(key="run").click().run()


class TestAddress:
    def test_a_link_opens_its_choices_and_starts_nothing(self, visit, fake):
        app = visit(
            workload="outer_product", size_batch="12", size_side="8", dtype="float64", strategies=["batched.xla"],
            budget="45", memory_limit="512", threads="1", seed="9", baseline="map_fn.eager",
        )  # fmt: skip
        assert app.selectbox(key="workload").value == "outer_product"
        assert app.number_input(key="size_side").value == 8
        assert fake.submitted == []
        app.button(key="run").click().run()
        (request,) = fake.submitted
        assert request.record() == Request(
            workload="outer_product", size={"batch": 12, "side": 8}, dtype="float64", device="CPU:0",
            strategies=("batched.xla",), budget_s=45.0, memory_limit_mib=512, threads=1, seed=9,
        ).record()  # fmt: skip
        assert app.query_params["run"] == RUN_ID

    def test_the_address_names_the_workload_by_its_slug(self, visit):
        app = calm(visit().selectbox(key="workload").select("dp_sgd").run())
        assert app.query_params["workload"] == "dp_sgd"
        assert app.selectbox(key="workload").value == "dp_sgd"
        app = calm(app.selectbox(key="workload").select(workloads.names()[0]).run())
        assert "workload" not in app.query_params

    def test_what_no_field_can_show_is_replaced_and_said(self, visit):
        said = {
            "workload": ("nope", "Workload 'nope' is not known", "image_sqrt"),
            "size_batch": ("x", "Batch=x is not valid", 100),
            "dtype": ("float99", "Dtype 'float99' is not valid", "float32"),
            "device": ("TPU:0", "Device 'TPU:0' is not valid", "CPU:0"),
            "budget": ("long", "Budget long is not valid", 9.0),
            "threads": ("1.5", "Threads=1.5 is not valid", None),
            "baseline": ("fast", "malformed", "auto"),
        }
        app = visit(**{name: bad for name, (bad, _, _) in said.items()})
        boxes = {box.key: box.value for box in (*app.selectbox, *app.number_input)}
        for name, (_, sentence, value) in said.items():
            assert sentence.lower() in words(app).lower() and boxes[name] == value
        assert "is needed. none is used instead" in words(app), "no number of threads"
        assert not app.button(key="run").disabled
        assert set(said).isdisjoint(app.query_params), "the address is that of what is shown"

    @pytest.mark.parametrize("typed", [True, False], ids=["typed", "in the address"])
    def test_a_number_out_of_range_stays_in_its_field_which_says_so_and_refuses_run(self, visit, fake, typed):
        bad = {"size_batch": 10**9, "budget": 0.5, "memory_limit": -1, "threads": 0, "seed": -1}
        app = visit(**({} if typed else {name: str(value) for name, value in bad.items()}))
        if typed:
            for name, value in bad.items():
                app.number_input(key=name).set_value(value)
            app = calm(app.run())
        assert {name: app.number_input(key=name).value for name in bad} == bad
        for said in ("Batch=1000000000", "Budget 0.5", "Memory limit=-1", "Threads=0", "Seed=-1"):
            assert f"{said} is not valid" in words(app)
        assert "Run waits for a valid batch and time budget and memory limit and threads and seed." in words(app)
        assert app.button(key="run").disabled
        app = calm(app.number_input(key="size_batch").set_value(7).run())
        assert app.button(key="run").disabled, "the others are not valid yet"
        assert app.query_params["size_batch"] in ("7", ["7"])

    def test_a_device_that_is_not_here_refuses_run(self, visit):
        app = visit(device="GPU:7")
        assert app.selectbox(key="device").value == "GPU:7"
        assert "GPU:7 is not on this machine: CPU:0 can be used." in words(app) and app.button(key="run").disabled

    def test_a_strategy_that_is_not_valid_refuses_run_until_another_choice_is_made(self, visit):
        app = visit(strategies=["map_fn.graph", "bogus"])
        assert chosen(app) == {"map_fn.graph"}
        assert "'bogus' is malformed" in words(app) and app.button(key="run").disabled
        app = calm(app.checkbox(key="cell_batched_xla").check().run())
        assert chosen(app) == {"map_fn.graph", "batched.xla"} and not app.button(key="run").disabled

    def test_a_link_to_a_run_opens_its_result_and_its_choices(self, visit, fake):
        run = synthetic.run(RUN_ID, unhappy=False)
        run = replace(
            run, request=replace(run.request, workload="image_sqrt_uint8", size={**run.request.size, "batch": 64})
        )
        fake.snapshots[RUN_ID] = Snapshot(run, "finished", version=next(versions))
        app = visit(run=RUN_ID)
        assert app.selectbox(key="workload").value == "image_sqrt_uint8"
        assert run.verdict in words(app)
        assert app.number_input(key="size_batch").value == 64
        assert OTHER not in words(app) and GREY not in words(app)
        assert list(app.query_params) == ["run"]
        app = calm(app.number_input(key="size_batch").set_value(65).run())
        assert f"{OTHER}: batch 64. Run measures the new ones." in words(app) and GREY in words(app)
        app = calm(app.button(key="take").click().run())
        assert app.number_input(key="size_batch").value == 64 and OTHER not in words(app)

    def test_beside_a_run_the_address_has_what_is_not_its_own(self, visit, fake):
        run = synthetic.run(RUN_ID, unhappy=False)
        run = replace(run, request=replace(run.request, size={**run.request.size, "batch": 64}, memory_limit_mib=512))
        fake.snapshots[RUN_ID] = Snapshot(run, "finished", version=next(versions))
        app = visit(run=RUN_ID, workload="image_sqrt", size_height="32", memory_limit="")
        numbers = {box.key: box.value for box in app.number_input}
        assert (numbers["size_batch"], numbers["size_height"], numbers["memory_limit"]) == (64, 32, None)
        assert f"{OTHER}: height 64, memory limit 512 MiB." in words(app)
        assert set(app.query_params) == {"run", "size_height", "memory_limit"}
        app.button(key="run").click().run()
        assert fake.submitted[0].size == {**run.request.size, "height": 32}

    def test_a_result_that_goes_on_or_is_an_example_is_not_grey(self, visit, fake):
        fake.snapshots[RUN_ID] = Snapshot(synthetic.partial(4, RUN_ID), "running", version=next(versions))
        for app in (visit(run=RUN_ID, size_batch="5"), visit(size_batch="5")):
            assert OTHER not in words(app) and GREY not in words(app)

    def test_a_run_that_cannot_be_asked_for_here_says_so_and_is_not_grey(self, visit, fake):
        run = synthetic.run(RUN_ID)
        run = replace(run, request=replace(run.request, workload="somebody's own"))
        fake.snapshots[RUN_ID] = Snapshot(run, "finished", version=next(versions), imported=True)
        app = visit(run=RUN_ID)
        assert "the choices are other ones" in words(app)
        assert OTHER not in words(app) and GREY not in words(app)

    def test_a_run_folds_the_choices_to_a_line(self, visit, fake):
        assert HIDDEN not in words(visit()), "before it, they are open"
        run = synthetic.run(RUN_ID, unhappy=False)
        fake.snapshots[RUN_ID] = Snapshot(run, "finished", version=next(versions))
        app = visit(run=RUN_ID)
        count = len(run.request.strategies)
        line = f"▸ image_sqrt · 100×64×64×3 · float32 · CPU:0 · {count} strategies"
        assert app.button(key="fold").label.replace("\\", "").replace("\u2060", "") == line
        assert HIDDEN in words(app)
        app = calm(app.button(key="fold").click().run())
        assert HIDDEN not in words(app)
        assert HIDDEN in words(calm(app.button(key="fold").click().run()))

    @pytest.mark.parametrize("run_id", ["f" * 24, "x", "../../etc/passwd", "<script>", ""])
    def test_an_unknown_run_is_said(self, visit, run_id):
        app = visit(run=run_id)
        said = [warning.value.replace("\\", "") for warning in app.warning]
        assert len(said) == bool(run_id)
        assert ("An example, measured before." in words(app)) == (not run_id), "a dead link has its sentence alone"
        assert bool(app.get("vega_lite_chart")) == (not run_id)

    def test_a_damaged_run_file_is_said(self, visit, fake, monkeypatch):
        def damaged(run_id: str) -> None:
            raise ValueError("this is not a valid run file: Object missing required field `id`")

        monkeypatch.setattr(fake, "snapshot", damaged)
        assert "cannot be read" in visit(run=RUN_ID).warning[0].value

    def test_a_link_to_a_run_may_name_what_its_maker_compares_with(self, visit, fake):
        run = synthetic.run(RUN_ID)
        run = replace(run, request=replace(run.request, size={**run.request.size, "batch": 64}))
        fake.snapshots[RUN_ID] = Snapshot(run, "finished", version=next(versions))
        app = visit(run=RUN_ID, baseline="map_fn.eager")
        assert app.selectbox(key="baseline").value == "map_fn.eager"
        assert app.number_input(key="size_batch").value == 64, "the choices are the run's all the same"
        assert "× faster than map_fn.eager" in words(app)


class TestRunning:
    def test_run_queues_and_shows_the_place_but_not_who(self, visit, fake):
        app = visit()
        fake.waiting = ("a" * 24, "b" * 24)
        fake.snapshots["a" * 24] = Snapshot(synthetic.partial(2, "a" * 24), "running", remaining_s=7.0, version=3)
        app = calm(app.button(key="run").click().run())
        assert "waiting in the queue: 2 runs before this one" in words(app)
        assert "about 7 s left" in words(app) and "a" * 24 not in words(app)

    def test_a_visitor_is_told_of_a_run_that_is_going_on(self, visit, fake):
        fake.waiting = ("a" * 24,)
        fake.snapshots["a" * 24] = Snapshot(synthetic.partial(2, "a" * 24), "running", version=3)
        assert "A run is being measured on this machine; yours will wait" in words(visit())

    def test_stages_and_results_so_far(self, visit, fake):
        run = synthetic.partial(4, RUN_ID)
        stages = {m.strategy: "sampling" for m in run.measurements} | {"loop.eager": "first call"}
        fake.snapshots[RUN_ID] = Snapshot(
            run, "running", message="timing", round_number=7, stages=stages, elapsed_s=3.2, remaining_s=5.4, version=12
        )
        app = visit(run=RUN_ID)
        assert "timing, round 7" in words(app) and "3 s elapsed" in words(app) and "about 5 s left" in words(app)
        assert "first call" in words(app) and "#twin" not in words(app)
        assert len(app.get("vega_lite_chart")) == 2
        assert not app.get("tab")  # what is behind a result comes with the result

    def test_until_there_are_latencies_rough_figures_tell_the_order(self, visit, fake):
        run = synthetic.partial(0, RUN_ID)
        rough_s = {"batched.xla": 0.0196, "loop.eager": 0.0014, "map_fn.graph": 0.011}
        stages = dict.fromkeys((m.strategy for m in run.measurements), "waiting")
        fake.snapshots[RUN_ID] = Snapshot(run, "running", stages=stages, rough_s=rough_s, elapsed_s=3.0)
        text = words(visit(run=RUN_ID))
        progress = text[text.index('role="status"') :]
        places = [progress.index(slug) for slug in ("loop.eager", "map_fn.graph", "batched.xla", "map_fn.eager")]
        assert places == sorted(places), "the fastest first, and those of which nothing is known last"
        assert all(figure in progress for figure in ("≈ 1 ms", "≈ 10 ms", "≈ 20 ms"))
        dots = set(re.findall("[●◐○]{4}", progress))
        assert dots == {"●○○○"}, "a strategy that waits has done the first step where its memory is known"

    @pytest.mark.parametrize(
        ("left_s", "stage", "said"),
        [
            (65.2, "memory", "about 1 min 5 s left"),
            (0.4, "sampling", "nearly done"),
            (0.0, "process peak", "nearly done"),
            (0.0, "memory", "it takes longer than forecast"),
        ],
    )
    def test_what_is_left_is_never_zero_seconds(self, visit, fake, left_s, stage, said):
        run = synthetic.partial(2, RUN_ID)
        stages = {m.strategy: stage for m in run.measurements}
        fake.snapshots[RUN_ID] = Snapshot(run, "running", stages=stages, elapsed_s=9.0, remaining_s=left_s)
        text = words(visit(run=RUN_ID))
        assert f"9 s elapsed · {said}" in text and "0 s left" not in text

    def test_a_long_message_leaves_room_for_the_rest(self, visit, fake):
        message = "starting more processes of " + ", ".join(synthetic.TIMED)
        fake.snapshots[RUN_ID] = Snapshot(synthetic.partial(2, RUN_ID), "running", message=message, elapsed_s=3.0)
        text = words(visit(run=RUN_ID))
        assert "starting more processes of batched.xla, batched.graph … · 3 s elapsed" in text

    def test_cancel_keeps_what_there_is(self, visit, fake):
        fake.snapshots[RUN_ID] = Snapshot(synthetic.partial(4, RUN_ID), "running", elapsed_s=1.0, remaining_s=2.0)
        app = visit(run=RUN_ID)
        app = calm(app.button(key="cancel").click().run())
        assert fake.cancelled == [RUN_ID]
        assert "Cancelled" in words(app) and "What was measured is kept." in words(app)

    def test_a_run_that_is_timed_can_be_ended_with_what_it_knows(self, visit, fake):
        run = synthetic.partial(4, RUN_ID)
        early, timing = ({item.strategy: stage for item in run.measurements} for stage in ("memory", "sampling"))
        fake.snapshots[RUN_ID] = Snapshot(run, "running", stages=timing, elapsed_s=5.0, remaining_s=2.0)
        app = visit(run=RUN_ID)
        app = calm(app.button(key="stop").click().run())
        assert fake.stopped == [RUN_ID] and not fake.cancelled
        # Before that, there is nothing to end with; and another process is not told to.
        for changes in ({"stages": early}, {"stages": timing, "here": False}):
            fake.snapshots[RUN_ID] = Snapshot(run, "running", elapsed_s=1.0, remaining_s=6.0, **changes)
            assert "stop" not in [button.key for button in visit(run=RUN_ID).button]

    def test_a_run_that_another_process_measures_is_watched_and_cannot_be_cancelled(self, visit, fake):
        run = synthetic.partial(4, RUN_ID)
        fake.snapshots[RUN_ID] = Snapshot(run, "running", message="another Mapbench is measuring", here=False)
        app = visit(run=RUN_ID)
        assert "another Mapbench is measuring" in words(app) and "batched.xla" in words(app)
        assert "cancel" not in [button.key for button in app.button]

    @pytest.mark.parametrize("state", ["starting", "restarting"])
    def test_the_measuring_process_is_seen(self, visit, fake, state):
        fake.state = HostState(state, "TensorFlow is being loaded")
        assert "TensorFlow is being loaded" in words(visit())

    def test_a_measuring_process_that_does_not_start_is_an_error(self, fake):
        fake.state = HostState("failed", "no module named tensorflow")
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
        assert not app.exception
        assert "Nothing can be measured now: no module named tensorflow" in app.error[0].value.replace("\\", "")

    def test_a_refusal_at_the_last_moment_is_said(self, visit, fake):
        app = visit()
        fake.refusal = "device 'GPU:7' is not on this machine: CPU:0 can be used"
        app = calm(app.button(key="run").click().run())
        assert "Device 'GPU:7' is not on this machine: CPU:0 can be used." in words(app)
        assert "run" not in app.query_params


class TestResult:
    def show(self, visit, fake, run: Run, **params: str) -> AppTest:
        fake.snapshots[RUN_ID] = Snapshot(run, "finished", version=next(versions))
        return visit(run=RUN_ID, **params)

    def test_a_first_visit_shows_the_example_with_machine_and_date(self, visit):
        example = decode((ROOT / "views/example_run.json").read_bytes())
        app = visit()
        assert "An example, measured before." in words(app) and example.created[:10] in words(app)
        assert len(app.get("vega_lite_chart")) >= 2

    def test_charts_have_alternative_text(self, visit, fake):
        app = self.show(visit, fake, synthetic.run(RUN_ID))
        told = [chart.proto.alt for chart in app.get("vega_lite_chart")]
        assert len(told) == 2 and all(len(text) > 30 for text in told)
        # The tab that is open.
        assert len(app.dataframe) == 1 and all(frame.proto.alt for frame in app.dataframe)

    @pytest.mark.parametrize("known", [True, False])
    def test_the_floor_is_spoken_of_where_it_is_known(self, visit, fake, known):
        run = synthetic.run(RUN_ID)
        app = self.show(visit, fake, run if known else replace(run, limit=None))
        assert ("dashed: theoretical floor (estimate), 710 µs" in words(app)) == known
        assert any("× floor" in frame.value.columns for frame in app.dataframe) == known

    def test_the_baseline_can_be_changed_in_the_result_and_is_in_the_address(self, visit, fake):
        app = self.show(visit, fake, synthetic.run(RUN_ID))
        assert app.selectbox(key="against").value == "map_fn.graph" and "as fast as map_fn.graph" in words(app)
        app = calm(app.selectbox(key="against").select("map_fn.eager").run())
        assert app.selectbox(key="baseline").value == "map_fn.eager"
        assert "as fast as map_fn.eager, the baseline" in words(app)

    @pytest.mark.parametrize("tab", ["Table", "Break even", "Samples", "Memory over one call", "Code", "Environment"])
    def test_every_tab_can_be_opened_by_a_link(self, visit, fake, tab):
        app = self.show(visit, fake, synthetic.run(RUN_ID), tab=tab)
        drawn = {"Code": len(app.code) - 1, "Environment": len(app.dataframe), "Table": len(app.dataframe)}
        # The lines to take and two charts are there on every tab.
        assert drawn.get(tab, len(app.get("vega_lite_chart")) - 2) == 1

    def test_where_elements_are_vectorised_the_code_says_what_is_not_checked(self, visit, fake):
        run = synthetic.run(RUN_ID)
        run = replace(run, measurements=[replace(m, code=None) for m in run.measurements])  # so they are real scripts
        said = "tf.print and assertions in the function run for only one of them"
        app = self.show(visit, fake, run, tab="Code")
        for slug in ("loop.eager", "vectorized_map.graph"):
            app = calm(app.selectbox(key="code_of").select(slug).run())
            assert (said in words(app).replace("`", "")) == slug.startswith("vectorized")
        app = calm(app.selectbox(key="code_of").select("loop.eager").run())
        app = calm(app.selectbox(key="code_against").select("vectorized_map.graph").run())
        assert said in words(app).replace("`", "")

    def test_code_is_the_script_that_ran_and_two_make_a_diff(self, visit, fake):
        run = synthetic.run(RUN_ID)
        app = self.show(visit, fake, run, tab="Code")
        assert run.measurements[0].code.source.strip() in [code.value.strip() for code in app.code]
        app = calm(app.selectbox(key="code_against").select("loop.eager").run())
        assert any("mb-diff" in element.value and "loop.eager" in element.value for element in app.html)

    def test_failures_have_their_sentence_and_the_full_text(self, visit, fake):
        app = self.show(visit, fake, synthetic.run(RUN_ID))
        assert "The first call did not end within 10 s." in words(app)
        assert not any("ResourceExhaustedError" in code.value for code in app.code)
        app.session_state["detail_2"] = True  # the full text is there when it is opened
        assert any("ResourceExhaustedError" in code.value for code in calm(app.run()).code)

    def test_correctness_is_a_sentence_and_its_table_is_there_when_it_is_opened(self, visit, fake):
        app = self.show(visit, fake, synthetic.run(RUN_ID, unhappy=False))
        assert "All 11 agree with float64 within 1 ULP of float32." in words(app)
        assert "in ULP" not in [column for frame in app.dataframe for column in frame.value.columns]
        app.session_state["errors"] = True
        (errors,) = [frame for frame in calm(app.run()).dataframe if "in ULP" in frame.value.columns]
        assert len(errors.value) == 11

    def test_the_tabs_stand_right_under_the_charts(self, visit, fake):
        app = self.show(visit, fake, synthetic.run(RUN_ID))
        kinds = [element.type for element in app.main if element.type != "flex_container"]
        tabs = kinds.index("tab_container")
        assert kinds[tabs - 2 : tabs] == ["vega_lite_chart", "caption"] and kinds.count("tab_container") == 1

    def test_one_that_could_not_be_written_does_not_say_that_it_is_kept(self, visit, fake):
        run = replace(synthetic.run(RUN_ID), status="cancelled")
        assert "What was measured is kept." in words(self.show(visit, fake, run))
        unsaved = replace(run, warnings=[advice.not_saved("the disk is full")])
        assert "is kept" not in words(self.show(visit, fake, unsaved))

    def test_warnings_are_shown(self, visit, fake):
        app = self.show(visit, fake, synthetic.run(RUN_ID))
        assert "vectorized_map.eager: tf.vectorized_map in eager mode traces anew at every call." in words(app)

    def test_hostile_texts_stay_texts(self, visit, fake):
        run = synthetic.run(RUN_ID)
        evil = [
            replace(m, strategy=f"{HOSTILE}{index}", mapper=HOSTILE, mode=HOSTILE, break_even=[])
            for index, m in enumerate(run.measurements[:2])
        ]
        evil += [m for m in run.measurements if m.outcome != "ok"]
        run = replace(run, verdict=HOSTILE, stop_reason=HOSTILE, status="interrupted", measurements=evil,
                      ranking=[[evil[0].strategy, evil[1].strategy]], environment={"cpu_model": HOSTILE})  # fmt: skip
        for tab in ("Table", "Break even", "Samples", "Memory over one call", "Code", "Environment"):
            app = self.show(visit, fake, run, tab=tab)
            assert "<img" not in " ".join(element.value for element in app.html)  # and Markdown needs a backslash:
            for element in (*app.markdown, *app.caption, *app.warning):
                assert not re.search(r"(?<!\\)(<img|\$x|\*\*b)|:red|:smile", element.value), element.value

    @pytest.mark.parametrize("keep", [0, 1])
    def test_runs_with_nothing_or_little_in_them(self, visit, fake, keep):
        run = synthetic.run(RUN_ID)
        bare = [
            replace(m, memory=None, correctness=None, latency=None, replicas=[], code=None) for m in run.measurements
        ]
        run = replace(run, measurements=bare[:keep], ranking=[], limit=None, control=None, environment={}, verdict="")
        for tab in ("Table", "Break even", "Samples", "Memory over one call", "Code", "Environment"):
            self.show(visit, fake, run, tab=tab)

    def test_an_unexpected_exception_becomes_a_sentence(self, fake, monkeypatch, caplog):
        monkeypatch.setattr(look, "style", lambda mappers: 1 / 0)
        with caplog.at_level(logging.ERROR):
            app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
        assert not app.exception
        assert "A fault in Mapbench kept the page from being shown." in app.error[0].value
        assert "ZeroDivisionError" in caplog.text
