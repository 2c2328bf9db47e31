"""The reasons why a strategy is not measured at a point: what is written, and what is said of several of a kind."""

import msgspec
import pytest

from measure.model.run import Error
from measure.sweep import omissions
from measure.sweep.omissions import DOES_NOT_FIT, OVER_BUDGET, SMALLER_FAILED


@pytest.mark.parametrize(
    ("error", "type_", "message"),
    [
        (
            omissions.over_budget(31.8, 60.0),
            OVER_BUDGET,
            "not run here: it would take about 31.8 s of the sweep's 60 s; with a larger budget it is measured",
        ),
        (omissions.untimed(), OVER_BUDGET,
         "not timed here: the time budget was spent; continue the sweep, or give it more"),
        (omissions.beyond_limit(2**31, 2**30), DOES_NOT_FIT,
         "not run here: it would need about 2.00 GiB, and the memory limit is 1024 MiB"),
        (omissions.beyond_available(2**31, 2**30), DOES_NOT_FIT,
         "not run here: it would need about 2.00 GiB, and 1.00 GiB are available"),
        (omissions.smaller_failed({"batch": 4, "side": 3}, "timeout"), SMALLER_FAILED,
         "not run here: at batch=4, side=3 it ran into the time limit already"),
        (omissions.smaller_failed({"batch": 4}, "out_of_memory"), DOES_NOT_FIT,
         "not run here: at batch=4 it ran out of memory already"),
    ],
)  # fmt: skip
def test_an_omission_says_why_in_a_sentence_and_keeps_its_amounts(error: Error, type_: str, message: str):
    assert (error.type, error.message) == (type_, message)
    assert omissions.reason(error) == message.partition(": ")[2]
    assert msgspec.json.decode(msgspec.json.encode(error), type=Error) == error


def test_an_outcome_that_says_nothing_of_larger_points_leaves_nothing_out():
    assert omissions.smaller_failed({"batch": 4}, "failed") is None


def test_errors_of_a_kind_are_one_sentence_with_the_first_and_the_last_amount():
    errors = [omissions.over_budget(seconds, 60.0) for seconds in (31.8, 60.0, 133.0)]
    assert len({omissions.kind(error) for error in errors}) == 1
    assert omissions.reason(*errors).startswith("it would take about 31.8 s to 2.22 min of the sweep's 60 s;")
    others = [omissions.untimed(), omissions.beyond_limit(2, 1), omissions.beyond_available(2, 1)]
    assert len({omissions.kind(error) for error in (*errors, *others)}) == 4


def test_an_error_without_amounts_is_written_and_said_as_before():
    error = Error(type="OverBudget", message="not run here: it would take about 20 min")
    assert msgspec.json.encode(error) == (
        b'{"type":"OverBudget","message":"not run here: it would take about 20 min","detail":""}'
    )
    assert omissions.reason(error) == error.message
