"""The examples of the first visit: what their cards say, and that each opens in place."""

import pytest

from measure.run.encoding import decode
from measure.run.request import again
from tests.pages import buttons, calm, open_page, params, press, words
from views.result import examples

RUNS = {name: decode((examples.FOLDER / f"{name}.json").read_bytes()) for name in examples.NAMES}


@pytest.mark.parametrize("name", examples.NAMES)
def test_a_card_has_case_answer_machine_and_date_and_opens_the_run_in_place(fake, name):
    app = open_page()
    assert {f"open_{name}" for name in examples.NAMES} <= buttons(app) and not app.get("vega_lite_chart")
    run, card = RUNS[name], examples.card(name)
    assert card in [block.value for block in app.html]
    assert run.created[:10] in card and str(run.environment["cpu_model"]) in card
    names = [run.ranking[0][0], run.request.workload] if run.ranking else []
    assert all(part in card for part in names) and ("position:absolute" in card) == (run.kind == "compare")
    app = press(app, f"open_{name}")
    assert run.created[:10] in words(app) and f"open_{name}" not in buttons(app)
    assert app.get("vega_lite_chart") or "try it under Claims" in words(app)
    app = press(app, "examples_back")
    assert f"open_{name}" in buttons(app) and params(app) == {}


@pytest.mark.parametrize("name", examples.NAMES[:-1])
def test_run_measures_the_open_example_which_closes_for_another_case(fake, name):
    press(press(open_page(), f"open_{name}"), "run")
    assert fake.submitted == [again(RUNS[name].request)]
    app = press(open_page(), f"open_{name}")
    assert "Run measures these choices" in words(calm(app.number_input(key="size_batch").set_value(7).run()))
