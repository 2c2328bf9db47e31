"""The Compare page: choices and what refuses them, its address, a run while it waits and runs, and its result."""

import itertools
import logging
from dataclasses import replace as replace_state

from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

import strategies
import workloads
from measure.judge.findings import findings
from measure.judge.verdict import verdict
from measure.machine import environment
from measure.store.queue import WorkerState
from tests import synthetic
from tests.pages import RUN_ID, buttons, calm, cannot_run, chosen, drawn, open_page, params, press, words
from views.choices import form
from views.result import progress
from views.ui import look

GREY, HIDDEN = "filter: grayscale(1)", ".st-key-form) {display: none}"


def of_grid(*modes: str) -> set[str]:
    everything = strategies.all_strategies(workloads.get("image_sqrt"))
    return {strategy.slug for strategy in everything if strategy.mode in modes}


def numbers(app: AppTest) -> dict[str, float | None]:
    return {box.key: box.value for box in app.number_input}


def test_a_cell_a_row_a_column_and_a_preset_are_one_click(fake):
    app = open_page(strategies="loop.eager")
    assert all(app.button(key=f"column_{mode}").help for mode in ("eager", "graph", "xla"))
    app = calm(app.checkbox(key="cell_batched_xla").check().run())
    app = calm(app.checkbox(key="cell_batched_xla").uncheck().run())
    app = press(app, "row_map_fn")
    assert chosen(app) == {"loop.eager", "map_fn.eager", "map_fn.graph", "map_fn.xla"}
    app = press(press(app, "row_map_fn"), "column_graph")
    assert chosen(app) == {"loop.eager"} | of_grid("graph"), "a second click takes a row back"
    app = calm(app.pills(key="strategy_preset").set_value("The usual four").run())
    assert chosen(app) == {"loop.eager", "map_fn.graph", "vectorized_map.graph", "batched.graph"}
    app = calm(app.pills(key="strategy_preset").set_value("All").run())
    assert chosen(app) == of_grid("eager", "graph", "xla")


def test_a_workload_brings_its_own_sizes_presets_picture_and_forecast(fake):
    app = open_page()
    before = words(app)
    assert "open_image_sqrt" in buttons(app), "examples, among them one of the case that the form has at first"
    assert len(app.selectbox(key="workload").options) == len(workloads.names())
    workload = workloads.get("outer_product")
    app = calm(app.selectbox(key="workload").select("outer_product").run())
    assert {box.label: box.value for box in app.number_input if box.key.startswith("size_")} == workload.default_size()
    assert "open_image_sqrt" not in buttons(app), "beside another case one would pass for its result"
    assert params(app)["workload"] == ["outer_product"] and "× 16 × 16 × 16 × 16 float32" in words(app)
    assert words(app).split("strategies: about")[1][:40] != before.split("strategies: about")[1][:40]
    app = calm(app.pills(key="size_preset").set_value("Small").run())
    assert numbers(app)["size_batch"] == workload.presets["Small"]["batch"]


def test_what_cannot_be_measured_is_refused_with_one_reason(fake, monkeypatch):
    slow = {"workload": "square", "size_batch": "1000000", "strategies": "loop.eager", "budget": "1"}
    for asked, named in (
        ({"strategies": "none"}, "strategy"),
        (slow, "budget="),
        ({"size_batch": "1000", "memory_limit": "90"}, "90 MiB"),
        ({"device": "GPU:7"}, "CPU:0"),
    ):
        app = open_page(**asked)
        assert cannot_run(app) and named in words(app), asked
    monkeypatch.setattr(environment, "available_memory", lambda: 2**30)
    app = open_page(size_batch="100000")
    assert cannot_run(app) and len(app.warning) == 1 and " fits." in words(app)


def test_a_link_starts_nothing_and_run_asks_for_the_choices_as_they_are_then(fake):
    app = open_page(size_batch="12", strategies="map_fn.graph?parallel_iterations=1")
    assert fake.submitted == []
    # Whoever is quick changes a choice and presses Run before the page is drawn anew.
    app.number_input(key="size_batch").set_value(13)
    app = press(app, "run")
    (asked,) = fake.submitted
    assert (asked.size["batch"], asked.strategies) == (13, ["map_fn.graph?parallel_iterations=1"])
    assert params(app) == {"run": [RUN_ID]}, "a run's own choices are not in its address"


def test_a_value_that_is_not_valid_stays_in_its_field_and_refuses_run_until_it_is_put_right(fake):
    bad = {"size_batch": 10**9, "memory_limit": -1}
    app, good = open_page(), numbers(open_page())
    for name, value in bad.items():
        app = calm(app.number_input(key=name).set_value(value).run())
        assert numbers(app)[name] == value and cannot_run(app) and f"{value} is not valid" in words(app)
        app = calm(app.number_input(key=name).set_value(good[name]).run())
        assert not cannot_run(app)
    app = open_page(strategies=["map_fn.graph", "bogus"])
    assert chosen(app) == {"map_fn.graph"} and "'bogus'" in words(app) and cannot_run(app)
    assert "«batched» cannot be chosen: batched needs" in words(open_page(workload="random", strategies="batched"))
    app = calm(app.checkbox(key="cell_batched_xla").check().run())
    assert chosen(app) == {"map_fn.graph", "batched.xla"} and not cannot_run(app)


def test_a_link_to_a_run_opens_its_result_folds_its_choices_and_tells_of_others(fake):
    run = synthetic.run(RUN_ID, unhappy=False)
    run = replace(run, request=replace(run.request, size={**run.request.size, "batch": 64}, memory_limit_mib=512))
    fake.show(run)
    assert HIDDEN not in words(open_page()), "before a run, choices are open"
    app = open_page(run=RUN_ID)
    assert run.verdict in words(app) and numbers(app)["size_batch"] == 64
    assert "take" not in buttons(app) and GREY not in words(app) and params(app) == {"run": [RUN_ID]}
    assert HIDDEN in words(app) and "64×64×64×3" in app.button(key="fold").label.replace("\u2060", "")
    app = press(app, "fold")
    assert HIDDEN not in words(app) and HIDDEN in words(press(app, "fold"))
    # Beside a run the address has what is not its own.
    app = open_page(run=RUN_ID, workload="image_sqrt", size_height="32", memory_limit="")
    assert (numbers(app)["size_batch"], numbers(app)["memory_limit"]) == (64, None)
    assert set(params(app)) == {"run", "size_height", "memory_limit"}
    assert GREY in words(app) and "height 64, memory limit 512" in words(app)
    app = press(app, "take")
    assert numbers(app)["size_height"] == 64 and GREY not in words(app) and params(app) == {"run": [RUN_ID]}


def test_a_run_on_all_machines_is_shown_with_the_others_beside_it_and_is_one_of_these_choices(fake):
    fake.others = {name: replace_state(fake.state, machine=name) for name in ("ann", "bob")}
    fake.new_id = map("{:024x}".format, itertools.count(1)).__next__
    app = press(open_page(device="all machines / CPU:0"), "run")
    assert [asked.place for asked in fake.submitted] == ["CPU:0", "ann / CPU:0", "bob / CPU:0"]
    asked = {"run": [f"{1:024x}"], "with": [f"{2:024x}", f"{3:024x}"], "device": ["all machines / CPU:0"]}
    assert params(app) == asked
    fake.show(fake.snapshots[asked["run"][0]].run)
    assert params(app.run()) == asked and "take" not in buttons(app)


def test_a_run_that_cannot_be_shown_is_one_sentence(fake, monkeypatch):
    def damaged(run_id: str) -> None:
        raise ValueError("it has no `id`")

    monkeypatch.setattr(fake, "snapshot", damaged)
    (said,) = open_page(run=RUN_ID).warning
    assert RUN_ID in said.value and "it has no" in said.value


def test_a_run_that_waits_shows_its_place_but_not_whose_runs_are_before_it(fake):
    other = "a" * 24
    fake.waiting = (other, "b" * 24)
    fake.show(synthetic.partial(2, other), "running", remaining_s=7.0)
    app = press(open_page(), "run")
    assert "2 runs before" in words(app) and "about 7 s" in words(app) and other not in words(app)


def test_only_a_run_of_another_page_is_said_to_come_before_ones_own(fake, monkeypatch):
    said, others = [], progress.others
    monkeypatch.setattr(progress, "others", lambda: said.append(others()) or said[-1])
    fake.waiting = (RUN_ID,)
    app = open_page()
    assert "yours will wait" in words(app)
    app = press(app, "run")
    assert params(app)["run"] == [RUN_ID] and not any(said[1:])
    app.query_params.clear()
    assert "yours will wait" not in words(calm(app.run()))


def test_the_picture_is_there_from_the_start_and_the_bar_says_what_is_left_of_what_is_done(fake):
    run = synthetic.partial(0, RUN_ID)
    fake.show(run, "queued", position=1)
    (waiting,) = open_page(run=RUN_ID).get("vega_lite_chart")
    told = {"message": ", ".join(synthetic.TIMED), "round_number": 3, "elapsed_s": 6.0}
    fake.show(run, "running", remaining_s=2.0, **told)
    app = open_page(run=RUN_ID)
    (chart,) = app.get("vega_lite_chart")
    (bar,) = app.get("progress")
    assert chart.proto.spec == waiting.proto.spec, "nothing jumps"
    assert bar.proto.value == 75 and "round 3" in bar.proto.text and "about 2 s left" in bar.proto.text
    assert "map_fn.eager," not in bar.proto.text
    fake.show(run, "running", remaining_s=0.2, **told)
    (bar,) = open_page(run=RUN_ID).get("progress")
    assert bar.proto.value < 100 and " 0 s left" not in bar.proto.text


def test_while_a_run_goes_on_its_answer_so_far_is_there_and_how_much_longer_it_may_take(fake):
    run = replace(synthetic.run(RUN_ID, unhappy=False), finished=None)
    words_ = "other programs use 1.4 of 2 cores: measuring longer"
    fake.show(run, "running", message=words_, elapsed_s=24.0, remaining_s=40.0, extended_s=64.0)
    app = open_page(run=RUN_ID)
    (bar,) = app.get("progress")
    assert f"{words_} · 24 s elapsed · up to 40 s more" in bar.proto.text.replace("\\", "")
    assert f"So far: {verdict(findings(run))}" in words(app)
    fake.show(synthetic.partial(0, RUN_ID), "running", elapsed_s=1.0)
    assert "The answer appears here." in words(open_page(run=RUN_ID))


def test_a_run_is_cancelled_or_ended_with_what_it_knows_where_that_can_be(fake):
    run = synthetic.partial(4, RUN_ID)
    memory, sampling = ({m.strategy: stage for m in run.measurements} for stage in ("memory", "sampling"))
    for offered, more in (
        ({"cancel"}, {"stages": memory}),
        ({"cancel", "stop"}, {"stages": sampling}),
    ):
        fake.show(run, "running", **more)
        app = open_page(run=RUN_ID)
        assert buttons(app) & {"cancel", "stop"} == offered
    app = press(app, "stop")
    assert (fake.stopped, fake.cancelled) == ([RUN_ID], [])
    app = press(app, "cancel")
    assert fake.cancelled == [RUN_ID] and not buttons(app) & {"cancel", "stop"}
    assert synthetic.run().verdict in words(app)


def test_a_measuring_process_that_starts_or_fails_is_seen_and_a_refusal_is_said(fake):
    fake.state = WorkerState("starting", "TensorFlow is being loaded")
    assert "TensorFlow is being loaded" in words(open_page())
    fake.state = WorkerState("failed", "no module named tensorflow")
    app = drawn()
    assert not app.exception and "no module named tensorflow" in app.error[0].value.replace("\\", "")
    fake.state, fake.refusal = WorkerState("ready", "", ("CPU:0",)), "device 'GPU:7' is not on this machine"
    app = press(open_page(), "run")
    assert "Device 'GPU:7' is not on this machine" in words(app) and "run" not in params(app)


def test_an_unexpected_exception_becomes_a_sentence_and_a_log_entry_and_the_run_is_still_drawn(
    fake, monkeypatch, caplog
):
    fake.show(run := synthetic.run(RUN_ID))
    for owner, name, is_drawn in ((form, "choose", True), (look, "style", False)):
        monkeypatch.setattr(owner, name, lambda *_: 1 / 0)
        with caplog.at_level(logging.ERROR):
            app = drawn(run=RUN_ID)
        assert not app.exception and len(app.error) == 1 and "ZeroDivisionError" in caplog.text
        assert (run.verdict in words(app)) is is_drawn
