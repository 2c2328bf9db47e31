"""Pages that are left and come back to by the navigation, which drops the address."""

from streamlit.testing.v1 import AppTest

from tests import synthetic
from tests.pages import FakeClient, calm, open_page, params


def navigate(app: AppTest, page: str) -> AppTest:
    app.query_params.clear()
    return calm(app.switch_page(f"views/pages/{page}.py").run())


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
