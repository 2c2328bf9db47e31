"""Where a page says what a run cannot tell: beside the verdict whole, and of strategies where notes are."""

import dataclasses

from msgspec.structs import replace

from measure.judge import warnings
from measure.judge.findings import findings
from measure.run.run import Warning
from tests import synthetic
from tests.pages import RUN_ID, FakeClient, open_page
from views.result import problems
from views.result.heading import doubts, doubts_of

DRIFT = Warning(code="drift", message="the machine became 30% slower: close others and measure again")
CHANGED = Warning(code="changed", message="checksums do not fit $.verdict")
NO_LIMIT = warnings.warning("no_limit", reason="division by zero")


def test_doubts_stand_beside_the_verdict_and_notes_apart_noise_of_strategies_first(fake: FakeClient) -> None:
    # As long as both are, TensorFlow's words could be a page, and ours end with what to do.
    theirs = Warning(code="tensorflow", message="word " * 50)
    ours = Warning(code="chosen", message="ours " * 50 + "measure again")
    two_paces = Warning(code="multimodal", message="two paces")
    of_strategies = {"batched.xla": [ours, theirs], "map_fn.xla": [two_paces]}
    run = replace(synthetic.run(RUN_ID, unhappy=False), warnings=[NO_LIMIT, DRIFT, CHANGED])
    items = [replace(item, warnings=of_strategies.get(item.strategy, [])) for item in run.measurements]
    noisy = replace(run, measurements=items)
    first, *notes = problems.notes(findings(noisy))
    assert first == "map_fn.xla: two paces" and {NO_LIMIT.message, f"batched.xla: {ours.message}"} <= {*notes}
    assert not {DRIFT.message, CHANGED.message} & {*notes}
    [shortened] = [note for note in notes if "word" in note]
    assert len(shortened) < len(theirs.message) and shortened.endswith("…")
    fake.show(noisy)
    app = open_page(run=RUN_ID)
    [doubt] = [text for element in app.markdown if "became 30%" in (text := element.value.replace("\\", ""))]
    assert doubt.startswith(":orange[:material/warning:] ")
    assert any("do not fit $.verdict" in element.value.replace("\\", "") for element in app.markdown)
    [box] = [element for element in app.expander if element.label == "Good to know (4)"]
    assert box.proto.expanded, "for the noise in it"


def test_load_is_a_detail_where_the_answer_is_usable() -> None:
    busy = warnings.warning("busy_during", cores=1.4)
    result = findings(replace(synthetic.run(RUN_ID, unhappy=False), warnings=[busy]))
    for word, is_doubt, is_note in (("clear", False, True), ("tie", False, True), ("cannot tell", True, False)):
        found = dataclasses.replace(result, word=word)
        assert (doubts_of(found) != []) == is_doubt and (busy.message in problems.notes(found)) == is_note


def test_a_sweep_says_at_which_points_its_machine_was_busy() -> None:
    busy, busier = (warnings.warning("busy_during", cores=cores) for cores in (0.8, 1.2))
    run = synthetic.sweep(RUN_ID)
    given = ([NO_LIMIT], [busy], [busier, DRIFT], [busier], [])
    points = [replace(point, warnings=of_point) for point, of_point in zip(run.points, given, strict=True)]
    # The run itself has what its points have, and what is of the whole.
    noted = replace(run, points=points, warnings=[busy, warnings.warning("stood_still", seconds=20.0)])
    of_load, of_drift, of_run = doubts(noted)
    assert of_load.startswith("At batch 10: other programs used 0.8 cores") and "at 2 more points" in of_load
    assert of_drift.startswith("At batch 100: the machine became 30% slower") and doubts(run) == []
    assert "stood still for about 20" in of_run
