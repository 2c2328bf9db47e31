"""Links, Reload, Back and Forward: each brings back the whole form, whatever was chosen."""

from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure.model.request import Request, parse
from measure.pool.launcher import HostState
from measure.sweep.request import SweepRequest, parse_sweep
from tests import synthetic
from tests.pages import FakeClient, calm, open_page, params, press
from views.choices import address, compare, sweep
from views.choices.address import Form

FIRST, SECOND = "1".rjust(24, "0"), "2".rjust(24, "0")
COMPARED = {"workload": "outer_product", "size": {"batch": 12, "side": 5}, "dtype": "float64", "device": "GPU:3",
            "strategies": ["map_fn.graph?parallel_iterations=3", "batched.xla"], "budget_s": 45.5,
            "memory_limit_mib": 512, "threads": 2, "seed": 9}  # fmt: skip
SWEPT = {"workload": "outer_product", "strategies": ["loop.eager", "batched.graph"], "budget_s": 333.0, "seed": 3,
         "axes": [{"name": "side", "values": [2, 3, 9]}, {"name": "batch", "range": "1:9", "points": 3}]}  # fmt: skip


def chosen(app: AppTest, form: Form) -> Form:
    return {key: app.session_state[key] for key in form}


def navigate(app: AppTest, page: str) -> AppTest:
    """Open another page by the navigation, which drops the address."""
    app.query_params.clear()
    return calm(app.switch_page(f"views/pages/{page}.py").run())


def test_a_form_is_brought_back_by_its_link_its_run_a_step_in_the_history_and_a_reload(fake: FakeClient):
    fake.state = HostState("ready", "", ("CPU:0", "GPU:0", "GPU:3"))
    compared, swept = parse(COMPARED), parse_sweep(SWEPT)
    run = replace(synthetic.sweep(), request=swept.base.record(), axes=list(swept.axes))
    of_compared = compare.of_run(replace(synthetic.run(), request=compared.record()))
    is_brought_back(fake, "compare", of_compared, address.fields, compared)
    is_brought_back(fake, "sweep", sweep.of_run(run), sweep.fields, swept)


def is_brought_back(
    fake: FakeClient, page: str, form: Form, fields: address.Fields, asked: Request | SweepRequest
) -> None:
    """Open the form by a link, run it, change it and run that; then go back and forth, and reload."""
    fake.new_id = iter((FIRST, SECOND)).__next__
    link = address.write(form, {}, fields)
    app = open_page(page, **link)
    assert chosen(app, form) == form and params(app) == link
    app = press(app, "run")
    assert asked in (*fake.submitted, *fake.submitted_sweeps)
    assert params(app) == {"run": [FIRST]}, "a run's own choices are not in its address"
    opened = chosen(app, form)
    # Other choices beside the run are in the address, so that a reload has them, too.
    changed = {**opened, "seed": 1}
    app = calm(app.number_input(key="seed").set_value(1).run())
    assert params(app) == {"run": [FIRST], "seed": ["1"]}
    assert chosen(open_page(page, **params(app)), form) == changed
    app = press(app, "run")
    for to, expected in (({"run": [FIRST]}, opened), (link, form), ({"run": [SECOND]}, changed)):
        app.query_params.clear()
        app.query_params.update(to)
        app = calm(app.run())
        assert chosen(app, form) == expected and params(app) == to
        assert chosen(open_page(page, **to), form) == expected, "and so does a reload"


def test_a_page_is_found_as_it_was_left_with_its_own_choices_its_run_and_the_open_tab(fake: FakeClient):
    run = synthetic.run("e" * 24)
    fake.show(run)
    app = open_page("compare", run=run.id, tab="Code", seed="7", size_batch="5")
    app = navigate(app, "sweep")
    assert app.session_state["seed"] == 0 and len(app.session_state["strategies"]) == 4, "nothing came along"
    app = calm(app.selectbox(key="sweep").select("height").run())
    app = navigate(app, "compare")
    assert params(app) == {"run": [run.id], "tab": ["Code"], "seed": ["7"], "size_batch": ["5"]}
    assert run.measurements[0].code.source.strip() in [code.value.strip() for code in app.code]
    assert navigate(app, "sweep").session_state["sweep"] == "height"
