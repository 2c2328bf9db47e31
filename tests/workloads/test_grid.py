"""Every workload × mapper × mode has the outcome that the committed table says, and the document shows that table."""

import dataclasses

import strategies
import workloads
from measure.pool.launcher import Launcher
from tests import grid
from tests.grid import Row, Variant

# Of each kind of outcome and warning some: a change of how strategies are run and checked shows in these.
SAMPLE = {
    Variant("random"): (
        *("loop.eager", "vectorized_map.eager", "vectorized_map.xla", "dataset.xla"),
        "vectorized_map.graph?fallback_to_while_loop=false",
    ),
    Variant("attention"): ("map_fn.graph", "vectorized_map.graph"),
    Variant("batch_jacobian"): ("loop.eager",),
    # AutoGraph finds the source of its script.
    Variant("branch"): ("map_fn.graph", "vectorized_map.xla"),
}


def rows(variant: Variant, *slugs: str) -> list[Row]:
    cells = [(variant.workload, variant.options, slug) for slug in slugs]
    return [each for each in grid.read() if each.cell in cells]


def test_the_table_has_every_cell_of_what_is_in_it_once_or_with_onednn_and_without() -> None:
    """A workload, a variant or a mapper that is new has no rows until somebody writes the table anew."""
    table = grid.read()
    known = {Variant(each.workload, each.options) for each in table}
    mappers = {strategies.parse(each.strategy).mapper for each in table}
    cells = [
        (variant.workload, variant.options, slug)
        for variant in grid.variants()
        for slug in grid.slugs(workloads.get(variant.workload).variant(variant.chosen))
        if variant in known and strategies.parse(slug).mapper in mappers
    ]
    assert sorted(each.cell for each in table if each.onednn != "off") == sorted(cells)
    assert {each.cell for each in table if each.onednn == "on"} == {each.cell for each in table if each.onednn == "off"}
    assert len(cells) > 1_000 and len(known) >= 24 and len(mappers) >= 18


def test_the_document_shows_the_table_in_which_all_that_is_not_right_says_why() -> None:
    assert grid.DOCUMENT.read_text(encoding="utf-8") == grid.document(grid.read())
    for each in grid.read():
        assert each.outcome in ("ok", "wrong", "failed", "unsupported"), each
        assert bool(each.reason) == (each.outcome != "ok"), each


def test_the_table_was_measured_of_these_scripts() -> None:
    """Scripts that are as they were, with the same TensorFlow, are not measured each time, which takes minutes."""
    table, known = grid.read(), grid.digests()
    changed = [
        variant.workload
        for variant in dict.fromkeys(Variant(each.workload, each.options) for each in table)
        if known[str(variant)] != grid.digest(variant, grid.of_variant(variant, table))
    ]
    assert not changed, f"scripts have changed: python -m tests.grid --write {' '.join(dict.fromkeys(changed))}"


def settled(each: Row) -> Row:
    """The cell as far as it can be promised: where oneDNN reads memory that is not its own, other values may come out,
    or an abort."""
    if each.outcome in ("wrong", "failed"):
        each = dataclasses.replace(each, outcome="wrong or failed", reason="")
    words = " ".join(word for word in each.warnings.split() if word != "onednn")
    return dataclasses.replace(each, warnings=words, onednn="")


def test_outcomes_of_the_sample_are_those_of_the_table(host: Launcher) -> None:
    """With oneDNN or without, and on any processor: a cell has the outcome of one of the two."""
    for variant, slugs in SAMPLE.items():
        measured = grid.measured(host, variant, slugs)
        assert [each.strategy for each in measured] == list(slugs)
        for each in measured:
            assert settled(each) in list(map(settled, rows(variant, each.strategy)))
