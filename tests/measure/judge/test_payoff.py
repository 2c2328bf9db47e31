"""Break-even points in words: for the page's table, the terminal and the summary."""

from measure.judge import payoff
from measure.run.run import BreakEven
from tests import synthetic


def test_a_break_even_point_in_words() -> None:
    for pair, said in (
        (BreakEven(against="e", pays_off="calls", calls=109.2, low=65.1, high=355.5), "110 [66, 356]"),
        (BreakEven(against="e", pays_off="calls", calls=2e6, low=1e6, high=None), "2.00 million [1.00 million, ∞]"),
        (BreakEven(against="e", pays_off="from_first"), "from the first call"),
        (BreakEven(against="e", pays_off="until", calls=11.5, low=5.0, high=39.5), "only for the first 12 [5, 40]"),
        (BreakEven(against="e", pays_off="never"), "never"),
        (BreakEven(against="e", pays_off="undecided", low=1.0), "cannot be told"),
        (BreakEven(against="e", pays_off="undecided", low=65.1), "cannot be told (≥ 66)"),
    ):
        assert payoff.words(pair) == said
    lines = payoff.sentences(synthetic.run())
    assert [line.split(",")[0] for line in lines] == ["Break even of batched.xla", "Break even of batched.graph"]
