"""Two comparisons beside each other: what is planted is found, and the pace of a machine is no change."""

import pytest
from msgspec.structs import replace

from measure.judge import pair
from measure.output import pair_table
from measure.run.run import Code
from tests import synthetic
from tests.measure.judge.test_reproduction import CLOSE, a_run
from tests.samples import memory

FIRST = a_run(CLOSE, 3)


def changed(second, **of) -> dict[str, str]:
    """The words on each strategy."""
    made = pair.of(FIRST, second, **of)
    return {line[0]: line[-1] for line in pair_table.cells(made)[1:]}


def test_a_slower_machine_is_no_change_and_a_slower_strategy_is_one():
    assert set(changed(a_run({slug: 3 * each for slug, each in CLOSE.items()}, 4)).values()) == {""}
    second = a_run(CLOSE | {"b.graph": 2 * CLOSE["b.graph"]}, 4)
    assert changed(second) == dict.fromkeys(CLOSE, "") | {"b.graph": "slower"}
    # Relative to it, all others are faster.
    assert changed(second, baseline="b.graph") == dict.fromkeys(CLOSE, "faster") | {"b.graph": ""}
    text = pair_table.render(pair.of(FIRST, second))
    assert "relative to a.graph" in text and "Slower in the second run, relative to a.graph: b.graph." in text


def test_memory_values_and_scripts_are_compared_and_a_strategy_of_one_run_stands_alone():
    def with_item(run, slug, **more):
        items = [replace(item, **more) if item.strategy == slug else item for item in run.measurements]
        return replace(run, measurements=items)

    first = with_item(FIRST, "c.graph", memory=memory(1000), code=Code(source="", sha256="1"))
    second = with_item(a_run(CLOSE, 4), "c.graph", memory=memory(1100), code=Code(source="", sha256="1"))
    second = with_item(second, "d.graph", outcome="wrong")
    second = replace(second, measurements=[item for item in second.measurements if item.strategy != "b.graph"])
    made = pair.of(first, second)
    lines = {line[0]: line[-1] for line in pair_table.cells(made)[1:]}
    assert lines == {"a.graph": "", "b.graph": "", "c.graph": "more memory", "d.graph": "another outcome"}
    assert [change.strategy for change in made.changes if change.same_code] == ["c.graph"]


def test_only_what_differs_is_named_of_what_was_asked_and_of_the_machine():
    second = replace(
        FIRST, request=replace(FIRST.request, threads=1), environment={**FIRST.environment, "python": "3.99"}
    )
    facts = pair.of(FIRST, second).facts
    assert [fact[0] for fact in facts] == ["threads", "python"] and facts[1][2] == "3.99"
    assert pair.of(FIRST, FIRST).facts == []
    assert "another case, " in pair_table.sentences(pair.of(FIRST, second))[0]
    assert "reproduced" in pair_table.sentences(pair.of(FIRST, replace(second, request=FIRST.request)))[0]


def test_runs_that_cannot_be_compared_are_refused_with_a_sentence():
    for other, words in ((synthetic.sweep(), "is a sweep"), (synthetic.partial(3), "no strategy in common")):
        with pytest.raises(ValueError, match=words):
            pair.of(FIRST, other)
    with pytest.raises(ValueError, match=r"z\.graph is not timed and right in both runs: "):
        pair.of(FIRST, FIRST, baseline="z.graph")
    untimed = replace(FIRST, measurements=[replace(item, replicas=[], latency=None) for item in FIRST.measurements])
    made = pair.of(FIRST, replace(untimed, ranking=[]))
    assert made.baseline is None and "no strategy is timed and right in both" in " ".join(pair_table.sentences(made))
