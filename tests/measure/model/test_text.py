"""Numbers as people read them."""

import math

import pytest

from measure.model import text


@pytest.mark.parametrize(
    ("low_s", "high_s", "words"),
    [
        (1.0e-3, 1.02e-3, "1.00 to 1.02 ms"),
        (980e-6, 1.02e-3, "980 µs to 1.02 ms"),
        (1.001e-3, 1.002e-3, "1.00 ms"),
        (90_000.0, 96_000.0, "1 500 to 1 600 min"),
    ],
)
def test_a_span_names_its_unit_once_where_both_ends_have_it(low_s: float, high_s: float, words: str) -> None:
    assert text.span_of_seconds(low_s, high_s) == words


def test_an_interval_is_in_the_unit_of_its_value() -> None:
    assert text.seconds_with_interval(1.42e-3, 0.98e-3, 1.47e-3) == "1.42 ms [0.980, 1.47]"
    assert text.seconds_with_interval(150.0, 90.0, 180.0) == "2.50 min [1.50, 3.00]"


def test_a_rough_figure_has_one_digit() -> None:
    assert [text.rough_seconds(value) for value in (4.2e-5, 0.0096, 0.0196, 3.0)] == [
        "≈ 40 µs", "≈ 10 ms", "≈ 20 ms", "≈ 3 s",
    ]  # fmt: skip


def test_a_factor_has_its_sign_where_it_stands_alone() -> None:
    assert [text.factor(value) for value in (1.034, 13.2, 2_500.0, math.inf)] == ["1.03 ×", "13 ×", "2 500 ×", "–"]
    assert text.times(13.2) == "13"
