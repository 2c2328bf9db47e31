"""Numbers as people read them."""

import math

from measure.model import text


def test_numbers_have_three_digits_and_a_unit() -> None:
    assert text.span_of_seconds(1.0e-3, 1.02e-3) == "1.00 to 1.02 ms", "its unit once where both ends have it"
    assert text.span_of_seconds(980e-6, 1.02e-3) == "980 µs to 1.02 ms"
    assert text.span_of_seconds(1.001e-3, 1.002e-3) == "1.00 ms"
    assert text.seconds_with_interval(1.42e-3, 0.98e-3, 1.47e-3) == "1.42 ms [0.980, 1.47]"
    assert [text.rough_seconds(value) for value in (4.2e-5, 0.0096, 3.0)] == ["≈ 40 µs", "≈ 10 ms", "≈ 3 s"]
    assert [text.factor(value) for value in (1.034, 13.2, 2_500.0, math.inf)] == ["1.03 ×", "13 ×", "2 500 ×", "–"]
