"""Sentences of why a strategy is as fast as it is, with and without their subject."""

from measure.judge import reasons
from tests import synthetic


def test_a_sentence_is_the_name_of_its_strategy_and_what_the_page_writes_after_that_name() -> None:
    run = synthetic.run()
    predicates = reasons.predicates(run)
    assert set(predicates) == {item.strategy for item in run.measurements if not item.twin_of}
    assert reasons.sentences(run) == {slug: f"`{slug}` {words}" for slug, words in predicates.items()}
    assert predicates["batched.xla"] == "has not been explained yet."
