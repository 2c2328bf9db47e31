"""Figures as texts: in the unit that a reader expects, with the digits that are sure."""

from measure.run import text


def test_a_figure_has_the_unit_of_what_is_written_and_the_digits_that_its_interval_carries() -> None:
    for value_s, written in ((999.4e-6, "999 µs"), (999.6e-6, "1.00 ms"), (0.99951, "1.00 s"), (119.6, "1.99 min")):
        assert text.seconds(value_s) == written
    assert text.seconds_with_interval(0.7271e-3, 0.72e-3, 0.735e-3) == "727 µs [720, 735]"
    assert text.seconds_with_interval(1.42e-3, 1.0e-3, 2.0e-3) == "1.4 ms [1.0, 2.0]"
