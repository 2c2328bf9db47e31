"""Where a page says what a run cannot tell: beside the verdict whole, and of strategies where notes are."""

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from measure import client
from measure.judge import advice
from measure.model.run import Run, Warning
from measure.output import rows
from tests import synthetic
from tests.pages import RUN_ID, ExplainedClient, open_page
from views.result import problems, tables
from views.result.sweep import doubts

DRIFT = Warning(code="drift", message="the machine became 30 % slower: close others and measure again")
NO_LIMIT = advice.no_limit("division by zero")
CHOSEN = [advice.chosen(f"chunk {number}", {}) for number in range(4)]


@pytest.fixture(scope="module")
def run() -> Run:
    return replace(synthetic.run(RUN_ID, unhappy=False), warnings=[])


def with_notes(run: Run, of_run: list[Warning], **of_strategies: list[Warning]) -> Run:
    """``of_strategies``: warnings by slug, with ``_in_`` for the dot."""
    by_slug = {name.replace("_in_", "."): warnings for name, warnings in of_strategies.items()}
    items = [replace(item, warnings=by_slug.get(item.strategy, [])) for item in run.measurements]
    return replace(run, warnings=of_run, measurements=items)


def visit(run: Run, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setattr(client, "shared", lambda: ExplainedClient(run))
    return open_page(run=RUN_ID)


def test_doubts_about_the_run_are_apart_from_its_notes_and_whole(run: Run) -> None:
    # As long as both are, TensorFlow's words could be a page, and ours end with what to do.
    theirs = Warning(code="tensorflow", message="word " * 50)
    ours = Warning(code="chosen", message="ours " * 50 + "measure again")
    noted = with_notes(run, [NO_LIMIT, DRIFT], batched_in_xla=[ours, theirs])
    assert tables.doubts(noted) == ["The machine became 30 % slower: close others and measure again."]
    notes = problems.notes(rows.make(noted), noted)
    assert NO_LIMIT.message in notes and DRIFT.message not in notes
    assert f"batched.xla: {ours.message}" in notes
    (said,) = [note for note in notes if "word" in note]
    assert len(said) < len(theirs.message) and said.endswith("…")


def test_a_page_says_doubts_beside_the_verdict_and_shows_noise_of_strategies_first(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = visit(with_notes(run, [DRIFT], batched_in_xla=CHOSEN), monkeypatch)
    [said] = [value for each in app.markdown if "became 30 %" in (value := each.value.replace("\\", ""))]
    assert said.startswith(":orange[:material/warning:] ")
    (folded,) = [each for each in app.expander if each.label.startswith("Good to know")]
    assert "(4)" in folded.label and not folded.proto.expanded
    two_paces = Warning(code="multimodal", message="two paces")
    noisy = with_notes(run, [], batched_in_xla=CHOSEN, map_fn_in_xla=[two_paces])
    assert problems.notes(rows.make(noisy), noisy)[0] == "map_fn.xla: two paces"
    (open_,) = [each for each in visit(noisy, monkeypatch).expander if each.label.startswith("Good to know")]
    assert "(5)" in open_.label and open_.proto.expanded


def test_a_sweep_says_at_which_points_its_machine_was_busy() -> None:
    busy, busier = advice.busy_during(0.8), advice.busy_during(1.2)
    run = synthetic.sweep(RUN_ID)
    warnings = ([NO_LIMIT], [busy], [busier, DRIFT], [busier], [])
    points = [
        replace(point, warnings=list(filter(None, of_point)))
        for point, of_point in zip(run.points, warnings, strict=True)
    ]
    noted = replace(run, points=points)
    of_load, of_drift = doubts(noted)
    assert of_load.startswith("At batch 10, and likewise at 2 more points: other programs used 0.8 cores")
    assert of_drift.startswith("At batch 100: the machine became 30 % slower") and doubts(run) == []
