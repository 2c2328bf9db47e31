"""A result in large figures: it has the verdict and the picture, and nothing to press but its end."""

import pytest
from msgspec.structs import replace

from measure.run import decision
from measure.run.run import Run
from tests import synthetic
from tests.pages import RUN_ID, FakeClient, buttons, open_page, params, press, words


def verdict_of(page: str) -> str:
    return page.partition("<h2")[2].partition("</h2>")[0]


@pytest.mark.parametrize("run", [synthetic.run(RUN_ID), synthetic.sweep(RUN_ID), synthetic.winners(RUN_ID)])
def test_a_result_is_shown_in_large_until_that_is_ended_with_the_choices_as_they_were(fake: FakeClient, run: Run):
    fake.show(replace(run, decision=decision.make("We take it")))
    app = open_page(run.kind, run=RUN_ID, seed="7", baseline="loop.eager")
    said, asked = words(app), params(app)
    app = press(app, "present").run()
    assert params(app) == {**asked, "present": ["1"]}
    assert buttons(app) == {"present_end"} and not [*app.selectbox, *app.number_input, *app.checkbox, *app.tabs]
    large = words(app)
    assert "We take it" in large and "Measured" in large and app.get("vega_lite_chart")
    assert verdict_of(large) == verdict_of(said)
    assert words(open_page(run.kind, **params(app))) == large, "a copied address is it, too"
    app = press(app, "present_end").run()
    assert params(app) == asked and words(app) == said and app.session_state["seed"] == 7


def test_a_run_that_goes_on_is_shown_as_ever_and_so_is_a_page_without_a_run(fake: FakeClient):
    fake.show(synthetic.partial(4, RUN_ID), "running")
    assert {"run", "cancel"} <= buttons(open_page(run=RUN_ID, present="1"))
    assert "run" in buttons(open_page(present="1"))
