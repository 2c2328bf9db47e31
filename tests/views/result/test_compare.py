"""The answer of a run that did not go to its end: why, what there is of it, and the next step, each once."""

import pytest
from msgspec.structs import replace

from measure.judge.findings import findings
from measure.run.run import Run, Status
from tests import synthetic
from tests.pages import RUN_ID, FakeClient, buttons, open_page, words
from views.result import compare, problems

GONE = "the process that measured it ended unexpectedly; what was measured is kept"


def nothing(run: Run) -> Run:
    """The run before anything of it was measured."""
    bare = {"memory": None, "correctness": None, "latency": None, "replicas": [], "outcome": "not_run"}
    return replace(run, measurements=[replace(item, **bare) for item in run.measurements], ranking=[], limit=None)


@pytest.mark.parametrize(
    ("status", "reason", "named", "kept"),
    [
        ("cancelled", "", "Cancelled", True),
        ("interrupted", GONE, "ended unexpectedly", True),
        ("complete", "", "", False),
        ("budget", "", "", False),  # the headline names who had no time
    ],
)
def test_why_a_run_ended_is_said_once_with_what_there_is_of_it(status: Status, reason: str, named: str, kept: bool):
    run = replace(synthetic.run(), status=status, stop_reason=reason)
    sentence = compare.ended(findings(run))
    assert named in sentence and sentence.count("is kept") == kept and bool(sentence) == bool(named)
    empty = compare.ended(findings(nothing(run)))
    assert "kept" not in empty and bool(empty) == (status != "complete")


def test_the_next_step_is_in_sight_whatever_became_of_a_run(fake: FakeClient) -> None:
    run = synthetic.run(RUN_ID)
    for shown in (replace(run, status="cancelled"), replace(nothing(run), status="interrupted", stop_reason=GONE)):
        fake.show(shown)
        app = open_page(run=RUN_ID)
        text = words(app)
        assert ("settle" in buttons(app)) != ("«Measure again here» measures all of it" in text)
        assert "again" in buttons(app) and text.count("is kept") <= 1


def test_where_nothing_worked_the_reasons_are_the_answer(fake: FakeClient) -> None:
    run = synthetic.run(RUN_ID)
    failed = [replace(item, outcome="out_of_memory", latency=None, replicas=[]) for item in run.measurements]
    fake.show(replace(run, measurements=failed, ranking=[], control=None))
    assert problems.nothing_worked(findings(fake.snapshots[RUN_ID].run))
    app = open_page(run=RUN_ID)
    [box] = [element for element in app.expander if element.label.startswith("Did not work")]
    assert box.proto.expanded and "a smaller batch may fit" in words(app)
