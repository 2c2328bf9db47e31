"""Every workload × mapper × mode has the outcome that the committed table says, the document shows that table, and some
take just the memory that they should."""

import dataclasses
from collections import Counter

import strategies
import workloads
from measure.pool.launcher import Launcher
from measure.run.request import parse
from measure.run.run import Run
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


def test_the_table_has_every_cell_of_what_is_in_it_once_or_with_onednn_and_without() -> None:
    """A workload, a variant or a mapper that is new has no rows until somebody writes the table anew."""
    table = grid.read()
    known = {each.variant for each in table}
    mappers = {strategies.parse(each.strategy).mapper for each in table}
    cells = [
        (variant, slug)
        for variant in grid.variants()
        for slug in grid.slugs(workloads.get(variant.workload).variant(variant.chosen))
        if variant in known and strategies.parse(slug).mapper in mappers
    ]
    assert Counter(each.cell for each in table if each.onednn != "off") == Counter(cells)
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
        for variant in dict.fromkeys(each.variant for each in table)
        if known[str(variant)] != grid.digest(variant, grid.of_variant(variant, table))
    ]
    assert not changed, f"scripts have changed: python -m tests.grid --write {' '.join(dict.fromkeys(changed))}"


def settled(each: Row) -> Row:
    """The cell as far as it can be promised: where oneDNN reads memory that is not its own, other values may come out,
    or an abort; and calls that a busy machine makes long are not looked at with new values."""
    if each.outcome in ("wrong", "failed"):
        each = dataclasses.replace(each, outcome="wrong or failed", reason="")
    words = " ".join(word for word in each.warnings.split() if word not in ("onednn", "compiled_values"))
    return dataclasses.replace(each, warnings=words, onednn="")


def test_outcomes_of_the_sample_are_those_of_the_table(host: Launcher) -> None:
    """With oneDNN or without, and on any processor: a cell has the outcome of one of the two."""
    for variant, slugs in SAMPLE.items():
        measured = grid.measured(host, variant, slugs)
        assert [each.strategy for each in measured] == list(slugs)
        for each in measured:
            assert settled(each) in [settled(row) for row in grid.read() if row.cell == each.cell]


def reduced(host: Launcher, batch: int, *slugs: str) -> Run:
    asked = {"workload": "outer_reduce", "size": {"batch": batch, "side": 16}, "strategies": list(slugs)}
    return grid.untimed(parse(asked), host)


def test_chunks_take_little_memory_and_say_why(host: Launcher) -> None:
    """256 elements with 16⁴ products of 4 bytes each: 64 MiB for all, 0.25 MiB for each, of which 39 fit a chunk."""
    run = reduced(host, 256, "vectorized_map.graph", "chunked.graph", "chunked.graph?chunk=2")
    peaks = {item.strategy: item.memory.peak_bytes for item in run.measurements if item.memory}
    products = 4 * 16**4
    assert 256 * products <= peaks["vectorized_map.graph"] < 256 * products + 2**20
    # What is left over is vectorised beside the last whole chunk.
    assert 39 * products <= peaks["chunked.graph"] < (39 + 22 + 2) * products
    assert 2 * products <= peaks["chunked.graph?chunk=2"] < 2 * products + 2**19
    by_slug = {item.strategy: item for item in run.measurements}
    (choice,) = by_slug["chunked.graph"].warnings
    assert (choice.code, choice.values) == ("chosen", {"chunk": 39})
    assert by_slug["chunked.graph?chunk=2"].warnings == []


def test_memory_of_numpy_is_seen_by_python(host: Launcher) -> None:
    run = reduced(host, 64, "numpy_batched.eager", "numpy_function.graph")
    batched, called = (item.memory for item in run.measurements)
    products, output = 4 * 16**4, 64 * 4 * 16**2
    assert batched and called
    assert (batched.method, called.method) == ("tracemalloc", "events")
    assert 64 * products + output <= batched.peak_bytes < 64 * products + output + 2**19
    # Up to ten iterations are in flight, where there are cores for them.
    assert products <= called.peak_bytes < 10 * products + 3 * output + 2**20
    assert any(row.op == "NumPy and Python" for row in called.at_peak)
