"""Where a page says what a run cannot tell: beside the verdict whole, and of strategies where notes are."""

import pytest
from msgspec.structs import replace

from measure.judge import warnings
from measure.judge.findings import findings
from measure.run.run import Run, Warning
from tests import synthetic
from tests.pages import RUN_ID, FakeClient, open_page
from views.result import problems
from views.result.sweep import doubts

DRIFT = Warning(code="drift", message="the machine became 30 % slower: close others and measure again")
NO_LIMIT = warnings.no_limit("division by zero")
CHOSEN = [warnings.chosen(f"chunk {number}", {}) for number in range(4)]


@pytest.fixture(scope="module")
def run() -> Run:
    return replace(synthetic.run(RUN_ID, unhappy=False), warnings=[])


def with_notes(run: Run, of_run: list[Warning], **of_strategies: list[Warning]) -> Run:
    """``of_strategies``: warnings by slug, with ``_in_`` for the dot."""
    by_slug = {name.replace("_in_", "."): warnings for name, warnings in of_strategies.items()}
    items = [replace(item, warnings=by_slug.get(item.strategy, [])) for item in run.measurements]
    return replace(run, warnings=of_run, measurements=items)


def test_doubts_stand_beside_the_verdict_and_notes_apart_noise_of_strategies_first(run: Run, fake: FakeClient) -> None:
    # As long as both are, TensorFlow's words could be a page, and ours end with what to do.
    theirs = Warning(code="tensorflow", message="word " * 50)
    ours = Warning(code="chosen", message="ours " * 50 + "measure again")
    noted = with_notes(run, [NO_LIMIT, DRIFT], batched_in_xla=[ours, theirs])
    notes = problems.notes(findings(noted))
    assert NO_LIMIT.message in notes and DRIFT.message not in notes and f"batched.xla: {ours.message}" in notes
    (shortened,) = [note for note in notes if "word" in note]
    assert len(shortened) < len(theirs.message) and shortened.endswith("…")
    two_paces = Warning(code="multimodal", message="two paces")
    noisy = with_notes(run, [DRIFT], batched_in_xla=CHOSEN, map_fn_in_xla=[two_paces])
    assert problems.notes(findings(noisy))[0] == "map_fn.xla: two paces"
    for shown, count in ((with_notes(run, [DRIFT], batched_in_xla=CHOSEN), "(4)"), (noisy, "(5)")):
        fake.show(shown)
        app = open_page(run=RUN_ID)
        [doubt] = [text for element in app.markdown if "became 30 %" in (text := element.value.replace("\\", ""))]
        assert doubt.startswith(":orange[:material/warning:] ")
        (folded,) = [element for element in app.expander if element.label.startswith("Good to know")]
        assert count in folded.label and folded.proto.expanded == (shown is noisy)


def test_a_sweep_says_at_which_points_its_machine_was_busy() -> None:
    busy, busier = warnings.busy_during(0.8), warnings.busy_during(1.2)
    run = synthetic.sweep(RUN_ID)
    given = ([NO_LIMIT], [busy], [busier, DRIFT], [busier], [])
    points = [
        replace(point, warnings=list(filter(None, of_point))) for point, of_point in zip(run.points, given, strict=True)
    ]
    # The run itself has what its points have, and what is of the whole.
    noted = replace(run, points=points, warnings=[busy, warnings.stood_still(20.0)])
    of_load, of_drift, of_run = doubts(noted)
    assert of_load.startswith("At batch 10, and likewise at 2 more points: other programs used 0.8 cores")
    assert of_drift.startswith("At batch 100: the machine became 30 % slower") and doubts(run) == []
    assert "stood still for about 20" in of_run
