"""The examples of the first visit: what their cards say, and that each opens in place."""

import pytest

from measure.run.encoding import decode
from tests.pages import buttons, open_page, press, words
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
    assert app.get("vega_lite_chart") or run.kind == "claims"
    assert f"open_{name}" in buttons(press(app, "examples_back"))
