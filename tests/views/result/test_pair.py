"""Two comparisons on a page: what changed between them, the ways there, and what cannot be compared."""

import pytest
from msgspec.structs import replace

from measure.judge import pair
from measure.output import pair_table
from tests import synthetic
from tests.pages import RUN_ID, FakeClient, buttons, open_page, params, press, words

FIRST, OTHER = synthetic.run(RUN_ID, unhappy=False), "e" * 24
SECOND = replace(
    synthetic.run(RUN_ID, seed=1), id=OTHER, parent=RUN_ID, environment={"tensorflow": f"3.0 {synthetic.HOSTILE}"}
)


def test_the_second_run_is_beside_the_first_in_place_of_its_picture_and_tabs(fake: FakeClient):
    fake.show(FIRST)
    fake.show(SECOND)
    app = press(open_page(run=OTHER), "both")
    assert params(app) == {"run": [RUN_ID], "with": [OTHER]}
    of_both = pair.of(FIRST, SECOND)
    head, *body = pair_table.cells(of_both)
    head[1] = "earlier, this run"
    table, facts = (frame.value for frame in app.dataframe)
    assert [list(table.columns), *table.to_numpy().tolist()] == [head, *body]
    assert facts.to_numpy().tolist() == [list(fact) for fact in of_both.facts]
    said = words(app).replace("`", "")
    assert all(sentence in said for sentence in pair_table.sentences(of_both))
    assert not app.tabs and not app.get("vega_lite_chart")
    alone = press(app, "pair_end")
    assert params(alone) == {"run": [RUN_ID]} and alone.tabs
    assert params(press(open_page(run=RUN_ID, **{"with": OTHER}), f"pair_other_{OTHER}")) == {"run": [OTHER]}


def test_several_are_beside_it_and_one_that_goes_on_has_its_bar_until_it_ends(fake: FakeClient):
    fake.show(FIRST)
    fake.show(SECOND)
    fake.show(synthetic.partial(4, "d" * 24), "running")
    app = open_page(run=RUN_ID, **{"with": [OTHER, "d" * 24, "e" * 24]})
    assert len(app.dataframe) == 2 and "cancel" in buttons(app) and "has not ended" in words(app)
    fake.show(replace(SECOND, id="d" * 24))
    app = app.run()
    assert len(app.dataframe) == 4 and "cancel" not in buttons(app)
    for run_id in ("a" * 24, "b" * 24):
        fake.show(synthetic.sweep(run_id), "running")
    assert "cancel" in buttons(open_page("sweep", run="a" * 24, **{"with": "b" * 24})), "of the run that is shown"


@pytest.mark.parametrize("other", ["f" * 24, "<img src=x>", "c" * 24, "a" * 24])
def test_what_cannot_be_compared_is_a_sentence_above_the_result(fake: FakeClient, other: str):
    fake.show(FIRST)
    fake.show(synthetic.sweep("c" * 24))
    fake.show(replace(FIRST, id="a" * 24, measurements=[], ranking=[], control=None))
    app = open_page(run=RUN_ID, **{"with": other})
    assert "pair_end" in buttons(app) and other in words(app) and app.tabs and len(app.warning) == 1
    app = open_page("sweep", run="c" * 24, **{"with": RUN_ID})
    assert "two comparisons can be" in words(app) and app.get("vega_lite_chart")
