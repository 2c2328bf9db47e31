"""Warnings of what is seen while a run goes on: what triggers each, and the figures that it has."""

from measure.judge import advice
from measure.model import text


def test_others_at_work_during_the_run_are_named_and_the_pages_where_their_visitors_have_a_part() -> None:
    assert advice.busy_during(0.51) is not None and advice.busy_during(0.50) is advice.busy_during(0.2, 0.3) is None
    warning, watched = advice.busy_during(0.2, 0.4), advice.busy_during(0.45, 0.06)
    assert warning is not None and warning.values == {"cores": 0.6, "pages": 0.4}
    assert watched is not None and "pages" not in watched.message, "one page that watches is not what is wrong"


def test_what_tensorflow_said_and_did_is_attached_to_the_strategy() -> None:
    assert advice.of_strategy([], [], retraces=0) == []
    fallback, said, retrace = advice.of_strategy(["The name is not unique"], ["Foo", "Bar"], retraces=2)
    assert (fallback.code, fallback.values) == ("falls_back", {"ops": ["Foo", "Bar"]})
    assert (said.code, said.message) == ("tensorflow", "The name is not unique")
    assert retrace.code == "retrace" and "2 functions" in retrace.message


def test_a_call_that_is_slow_with_other_values_is_warned_about() -> None:
    # A call that was disturbed, or caches, make no program of the values.
    for call_s, other_s, warned in (
        (0.0004, 0.012, True), (0.0004, 0.0023, False), (0.004, 0.0119, False), (0.004, 0.0121, True),
    ):  # fmt: skip
        warning = advice.compiled_values(call_s, other_s)
        assert (warning is not None) == warned, (call_s, other_s)
        assert warning is None or text.seconds(other_s) in warning.message
