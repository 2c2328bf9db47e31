"""A sweep as text."""

import re

from measure.output import sweep_table
from tests import synthetic


def test_a_cost_that_may_be_nothing_is_said_by_its_upper_end():
    assert sweep_table.cost(5e-6, 4e-6, 6e-6) == "5.0 µs [4.0, 6.0]"
    assert sweep_table.cost(5e-6, -1e-6, 6e-6) == "5.00 µs [under 6.00 µs]"
    assert sweep_table.cost(2.6e-14, -1e-7, 1.07e-7) == "under 107 ns"


def test_what_a_table_of_a_sweep_says():
    shown = sweep_table.render(synthetic.sweep())
    assert "121 µs*" in shown and "timed out" in shown and "skipped: This cannot fit" in shown
    assert "vectorized_map.graph overtakes loop.eager at batch" in shown
    assert re.search(r"loop\.eager: .* for an element; grows as batch\^\d\.\d\d ± \d\.\d\d", shown)
    shown = sweep_table.render(synthetic.winners())
    assert re.search(r"^10 +vectorized_map\.graph +left out ", shown, re.M), "who was inferred to win has not won"
