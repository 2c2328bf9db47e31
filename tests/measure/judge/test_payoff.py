"""Break-even points in words: for the page's table, the terminal and the summary."""

import pytest
from msgspec.structs import replace

from measure.judge import payoff
from measure.model.run import BreakEven
from measure.output import export, table
from tests import synthetic


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (BreakEven(against="e", pays_off="calls", calls=109.2, low=65.1, high=355.5), "110 [66, 356]"),
        (BreakEven(against="e", pays_off="calls", calls=100.0, low=1.0, high=12_345.0), "100 [1, 12 300]"),
        (BreakEven(against="e", pays_off="calls", calls=2e6, low=1e6, high=None), "2.00 million [1.00 million, ∞]"),
        (BreakEven(against="e", pays_off="from_first"), "from the first call"),
        (BreakEven(against="e", pays_off="until", calls=11.5, low=5.0, high=39.5), "only for the first 12 [5, 40]"),
        (BreakEven(against="e", pays_off="never"), "never"),
        (BreakEven(against="e", pays_off="undecided"), "cannot be told"),
        (BreakEven(against="e", pays_off="undecided", low=1.0), "cannot be told"),
        (BreakEven(against="e", pays_off="undecided", low=65.1), "cannot be told (≥ 66)"),
    ],
)
def test_a_break_even_point_in_words(pair: BreakEven, said: str) -> None:
    assert payoff.words(pair) == said


def test_the_terminal_and_the_summary_have_a_line_for_each_compiled_leader() -> None:
    run = synthetic.run()
    lines = payoff.sentences(run)
    assert [line.split(",")[0] for line in lines] == ["Break even of batched.xla", "Break even of batched.graph"]
    assert "calls against batched.eager; after 3 [" in lines[0] and lines[1].endswith("call against map_fn.eager.")
    shown, written = table.render(run), export.markdown(run)
    assert all(line in shown for line in lines) and written.count("Break even of") == 2
    behind = replace(run, ranking=[["batched.eager"], ["map_fn.xla"], ["loop.graph"]])
    assert [line.split(",")[0] for line in payoff.sentences(behind)] == ["Break even of map_fn.xla"]
