"""Warnings of what is seen while a run goes on: what triggers each, and a sentence that says what to do."""

import pytest

from measure.judge import advice
from measure.model import text


@pytest.mark.parametrize(("cores", "warned"), [(0.51, True), (0.50, False)])
def test_others_at_work_during_the_run_are_named(cores: float, warned: bool) -> None:
    warning = advice.busy_during(cores)
    assert (warning is not None) == warned
    assert warning is None or "0.5 cores" in warning.message


def test_the_pages_are_named_where_their_visitors_have_a_part_in_the_load() -> None:
    warning = advice.busy_during(0.2, 0.4)
    assert warning is not None and warning.values == {"cores": 0.6, "pages": 0.4}
    assert "pages used 0.4 cores" in warning.message and "other programs 0.2" in warning.message
    watched = advice.busy_during(0.45, 0.06)
    assert watched is not None and "pages" not in watched.message, "one page that watches is not what is wrong"
    assert advice.busy_during(0.2, 0.3) is None


def test_what_tensorflow_said_and_how_often_it_traced_is_attached_to_the_strategy() -> None:
    warnings = advice.of_strategy(["The name is not unique"], [], retraces=2)
    assert [warning.code for warning in warnings] == ["tensorflow", "retrace"]
    assert "traces 2 functions anew" in warnings[1].message
    assert advice.of_strategy([], [], retraces=0) == []


def test_falling_back_to_a_while_loop_is_said_once_with_the_ops() -> None:
    fallback, other = advice.of_strategy(["The name is not unique"], ["Foo", "Bar"], retraces=0)
    assert (fallback.code, fallback.values) == ("falls_back", {"ops": ["Foo", "Bar"]})
    assert fallback.message.startswith("falls back to a while loop: tf.vectorized_map cannot vectorise Foo, Bar,")
    assert (other.code, other.message) == ("tensorflow", "The name is not unique")


@pytest.mark.parametrize(
    ("call_s", "other_s", "warned"),
    [
        (0.0004, 0.012, True),
        (0.0004, 0.0023, False),  # a call that was disturbed
        (0.004, 0.0119, False),  # caches
        (0.004, 0.0121, True),
    ],
)
def test_a_call_that_is_slow_with_other_values_is_warned_about(call_s: float, other_s: float, warned: bool) -> None:
    warning = advice.compiled_values(call_s, other_s)
    assert (warning is not None) == warned
    if warning is not None:
        assert text.seconds(other_s) in warning.message and text.seconds(call_s) in warning.message
