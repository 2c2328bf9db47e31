"""Links, Reload, Back and Forward without a browser: each brings back the whole form, whatever was chosen."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace as with_fields
from typing import Any
from unittest import mock

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import runner
from measure.admission import NOBODY, Visitor
from measure.engine.launcher import HostState
from measure.machine import environment
from measure.model.request import Request, parse
from measure.runner import Snapshot
from measure.sweep.request import SweepRequest
from tests import synthetic
from tests.forms import requests, sweeps
from tests.pages import FakeRunner, calm, open_page, versions, words
from views.choices import address, compare, sweep
from views.choices.address import Form

# Each example is a visit of several seconds: a failing one is not made smaller.
visits = settings(max_examples=3, deadline=None, phases=(Phase.explicit, Phase.generate))


class QueueRunner(FakeRunner):
    """A runner that queues what it is asked for, each under an id of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.state = HostState("ready", "", ("CPU:0", "GPU:0", "GPU:3"))
        self.asked: list[Request | SweepRequest] = []

    def submit(self, request: Request, parent: str | None = None, visitor: Visitor = NOBODY) -> str:
        return self._queue(request, replace(synthetic.partial(0), request=request.record()))

    def submit_sweep(
        self,
        request: SweepRequest,
        parent: str | None = None,
        visitor: Visitor = NOBODY,
        continue_from: str | None = None,
    ) -> str:
        run = replace(synthetic.sweep(), request=request.base.record(), axes=list(request.axes), points=[])
        return self._queue(request, run)

    def _queue(self, request: Request | SweepRequest, run: Any) -> str:
        self.asked.append(request)
        run_id = f"{len(self.asked):024x}"
        self.snapshots[run_id] = Snapshot(replace(run, id=run_id), "queued", version=next(versions))
        return run_id


@contextmanager
def visited() -> Iterator[QueueRunner]:
    queue = QueueRunner()
    with (
        mock.patch.object(runner, "shared", return_value=queue),
        mock.patch.object(environment, "available_memory", return_value=2**38),
    ):
        yield queue


def params(app: AppTest) -> dict[str, list[str]]:
    return {name: [value] if isinstance(value, str) else list(value) for name, value in app.query_params.items()}


def chosen(app: AppTest, form: Form) -> Form:
    return {key: app.session_state[key] for key in form}


def go(app: AppTest, to: dict[str, list[str]]) -> AppTest:
    """Go back or forward to an address."""
    app.query_params.clear()
    app.query_params.update(to)
    return calm(app.run())


def navigate(app: AppTest, page: str) -> AppTest:
    """Open another page by the navigation, which drops the address."""
    app.query_params.clear()
    return calm(app.switch_page(f"views/pages/{page}.py").run())


def press_run(app: AppTest) -> AppTest:
    assert not app.button(key="run").disabled, words(app)
    return calm(app.button(key="run").click().run())


def is_brought_back(page: str, form: Form, fields: address.Fields) -> Request | SweepRequest:
    """Open the form by a link, run it, change it, go back and forth and reload; return what was asked for first."""
    with visited() as queue:
        link = address.write(form, {}, fields)
        app = open_page(page, **link)
        assert chosen(app, form) == form and params(app) == link
        app = press_run(app)
        assert params(app) == {"run": [f"{1:024x}"]}, "a run's own choices are not in its address"
        opened = chosen(app, form)

        # Other choices beside the run are in the address, so that a reload has them, too.
        other = form["seed"] - 1 if form["seed"] else 1
        app = calm(app.number_input(key="seed").set_value(other).run())
        assert params(app) == {"run": [f"{1:024x}"], "seed": [str(other)]}
        changed = {**opened, "seed": other}
        assert chosen(open_page(page, **params(app)), form) == changed
        app = press_run(app)
        assert params(app) == {"run": [f"{2:024x}"]}

        for to, expected in (
            ({"run": [f"{1:024x}"]}, opened), (link, form), ({"run": [f"{1:024x}"]}, opened),
            ({"run": [f"{2:024x}"]}, changed),
        ):  # fmt: skip
            app = go(app, to)
            assert chosen(app, form) == expected and params(app) == to
            assert chosen(open_page(page, **to), form) == expected, "and so does a reload"
        return queue.asked[0]


@visits
@given(requests())
def test_a_comparison_is_brought_back(raw):
    asked = parse(raw)
    form = compare.of_run(replace(synthetic.run(), request=asked.record()))
    assert is_brought_back("compare", form, address.fields) == with_fields(
        asked, strategies=mock.ANY
    ) and form == compare.of_run(replace(synthetic.run(), request=asked.record()))


@visits
@given(sweeps())
def test_a_sweep_or_a_map_is_brought_back(asked):
    run = replace(synthetic.sweep(), request=asked.base.record(), axes=list(asked.axes))
    assert is_brought_back("sweep", sweep.of_run(run), sweep.fields) == asked


@visits
@given(st.sampled_from(["batch", "height"]))
def test_compare_and_sweep_keep_their_own_choices(swept):
    with visited():
        app = open_page("compare", size_batch="7", strategies="loop.eager", seed="3")
        app = navigate(app, "sweep")
        assert app.session_state["seed"] == 0 and len(app.session_state["strategies"]) == 4, "nothing came along"
        app = calm(app.selectbox(key="sweep").select(swept).run())
        app = calm(app.number_input(key="seed").set_value(5).run())
        app = navigate(app, "compare")
        assert params(app) == {"size_batch": ["7"], "strategies": ["loop.eager"], "seed": ["3"]}
        assert [app.session_state[key] for key in ("size_batch", "strategies", "seed")] == [7, ["loop.eager"], 3]
        app = navigate(app, "sweep")
        assert app.session_state["sweep"] == swept and app.session_state["seed"] == 5


def test_a_page_is_found_as_it_was_left_with_its_run_and_the_open_tab():
    with visited() as queue:
        run = synthetic.run("e" * 24)
        queue.snapshots[run.id] = Snapshot(run, "finished", version=next(versions))
        app = open_page("compare", run=run.id, tab="Code", seed="7")
        app = navigate(navigate(app, "sweep"), "compare")
        assert params(app) == {"run": [run.id], "tab": ["Code"], "seed": ["7"]}
        assert run.measurements[0].code.source.strip() in [code.value.strip() for code in app.code]


def test_a_run_that_is_measured_again_has_its_own_choices_whatever_is_on_the_form():
    with visited() as queue:
        run = synthetic.run("f" * 24)
        queue.snapshots[run.id] = Snapshot(run, "finished", version=next(versions))
        app = open_page("compare", run=run.id, seed="7", size_batch="5", baseline="loop.eager")
        assert app.session_state["seed"] == 7
        app = calm(app.button(key="again").click().run())
        assert params(app) == {"run": [f"{1:024x}"], "baseline": ["loop.eager"]}
        assert (app.session_state["seed"], app.session_state["size_batch"]) == (0, 100)


def test_a_sweep_that_was_opened_on_the_compare_page_has_its_choices_on_its_own():
    with visited() as queue:
        run = synthetic.winners("d" * 24)
        queue.snapshots[run.id] = Snapshot(run, "finished", version=next(versions))
        open_page("compare", run=run.id)
        app = open_page("sweep", run=run.id)
        assert [app.session_state[key] for key in ("sweep", "to", "sweep_2", "to_2")] == [
            "batch",
            "100",
            "height",
            "32",
        ]
        assert params(app) == {"run": [run.id]}
