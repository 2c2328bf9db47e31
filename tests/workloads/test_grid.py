"""Every workload × mapper × mode has the outcome that the committed table says, and the document shows that table."""

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import strategies
import workloads
from measure.engine import stages
from measure.engine.host_launcher import HostLauncher
from measure.machine import processor
from tests import grid
from tests.engine import Lent, running_host
from tests.grid import Row, Variant
from tests.in_turn import InTurn

# oneDNN's kernels for AVX-512 compute some broadcast products wrongly; with ONEDNN_MAX_CPU_ISA=AVX2 they are right.
ONEDNN_IS_HIT = "avx512f" in processor.features(Path("/"))


def test_the_table_has_every_cell_of_what_is_in_it_once() -> None:
    """A workload, a variant or a mapper that is new has no rows until somebody writes the table anew."""
    rows = [(each.workload, each.options, each.strategy) for each in grid.read()]
    known = {Variant(workload, options) for workload, options, _ in rows}
    mappers = {strategies.parse(slug).mapper for _, _, slug in rows}
    cells = [
        (variant.workload, variant.options, slug)
        for variant in grid.variants()
        for slug in grid.slugs(workloads.get(variant.workload).variant(variant.chosen))
        if variant in known and strategies.parse(slug).mapper in mappers
    ]
    assert sorted(rows) == sorted(cells)
    assert len(cells) > 1_000 and len(known) >= 24 and len(mappers) >= 18


def test_the_document_shows_the_table() -> None:
    assert grid.DOCUMENT.read_text(encoding="utf-8") == grid.document(grid.read())


def test_what_is_not_right_says_why() -> None:
    for each in grid.read():
        assert each.outcome in ("ok", "wrong", "failed", "unsupported"), each
        assert bool(each.reason) == (each.outcome != "ok"), each


@pytest.fixture(scope="module")
def host_without_onednn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostLauncher]:
    """A host that has imported TensorFlow with oneDNN off, where a comparison would start an interpreter each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
        with running_host(tmp_path_factory.mktemp("without"), warm=True) as launcher:
            patch.undo()
            yield launcher


@pytest.fixture(scope="module")
def in_turn(host: HostLauncher) -> Iterator[InTurn]:
    with contextlib.closing(InTurn(host)) as launcher:
        yield launcher


IN_TABLE = list(dict.fromkeys(Variant(each.workload, each.options) for each in grid.read()))


@pytest.mark.parametrize("variant", IN_TABLE, ids=str)
def test_the_table_was_measured_of_these_scripts(variant: Variant) -> None:
    """Scripts that are as they were, with the same TensorFlow, are not measured each time, which takes minutes."""
    command = f"python -m tests.grid --write {variant.workload}"
    now = grid.digest(variant, grid.of_variant(variant, grid.read()))
    assert grid.digests()[str(variant)] == now, f"its scripts have changed: {command}"


# Of each kind of outcome, warning and reason some: a change of how strategies are run and checked shows in these.
ALWAYS = ("attention", "batch_jacobian", "counter", "decode", "ragged_in", "random", "variable_shape")


# These, and what is new.
MEASURED = [each for each in grid.variants() if each.workload in ALWAYS or each not in IN_TABLE]


def test_what_is_always_measured_has_every_outcome_and_warning_of_the_table() -> None:
    def kinds(rows: list[Row]) -> set[str]:
        return {kind for each in rows for kind in (each.outcome, *each.warnings.split())}

    assert kinds([each for each in grid.read() if each.workload in ALWAYS]) == kinds(grid.read())


@pytest.mark.parametrize("variant", MEASURED, ids=str)
def test_outcomes_are_those_of_the_table(
    variant: Variant, in_turn: InTurn, host_without_onednn: HostLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "FreshLauncher", lambda *_, **__: Lent(host_without_onednn))
    expected = {each.strategy: each for each in grid.read() if Variant(each.workload, each.options) == variant}
    in_turn.names = {each.strategy for each in expected.values() if is_calm(each)}
    for each in grid.measured(in_turn, variant):
        if each.strategy in expected:
            row = expected.pop(each.strategy)
            shared = is_calm(row)
            assert settled(each, shared) == settled(row if ONEDNN_IS_HIT else right(row), shared)
        else:
            assert each.outcome == "ok" or (each.outcome != "wrong" and each.reason), f"not in the table: {each}"
    assert not expected


def is_calm(each: Row) -> bool:
    """Whether it may share a process: it ends with values, or as an error of Python's whose message has no number that
    depends on what ran before; and without a word beside the outcome that depends on that."""
    if each.workload == "ragged_in" and each.strategy.startswith("loop_compiled"):
        return False  # it traces every length, of which TensorFlow says a word after so many traces of a process
    is_error = each.outcome == "failed" and not each.reason.startswith("SIG") and not re.search(r"\d", each.reason)
    return (each.outcome in ("ok", "wrong") or is_error) and {*each.warnings.split()} <= {"retrace", "falls_back"}


def right(each: Row) -> Row:
    """The cell where oneDNN's products are right."""
    words = each.warnings.split()
    if "onednn" not in words:
        return each
    return dataclasses.replace(
        each, outcome="ok", reason="", warnings=" ".join(word for word in words if word != "onednn")
    )


def settled(each: Row, shared: bool) -> Row:
    """The cell as far as it can be promised: where oneDNN reads memory that is not its own, other values may come out,
    or an abort. ``shared``: its process runs others too."""
    if "onednn" in each.warnings.split() and each.outcome in ("wrong", "failed"):
        return dataclasses.replace(each, outcome="wrong or failed", reason="")
    words = each.warnings.split()
    if shared or "retrace" in words:
        # TensorFlow's own word on retracing depends on how often its process has traced before.
        return dataclasses.replace(each, warnings=" ".join(word for word in words if word != "tensorflow"))
    return each


# --- what the table is there to show ----------------------------------------------------------------------------------


def rows(workload: str, mapper: str, mode: str = "*") -> list[Row]:
    found = [
        each
        for each in grid.read()
        if each.workload == workload
        and not each.options
        and each.strategy.partition(".")[0] == mapper
        and mode in ("*", strategies.parse(each.strategy).mode)
    ]
    assert found
    return found


def test_attention_is_wrong_where_its_products_broadcast_and_says_what_helps() -> None:
    for mode in ("eager", "graph"):
        for each in rows("attention", "vectorized_map", mode):
            assert each.outcome in ("wrong", "failed") and "onednn" in each.warnings
    for mapper in ("loop", "map_fn", "while_loop"):
        assert {each.outcome for each in rows("attention", mapper)} == {"ok"}
    assert {each.outcome for each in rows("attention", "vectorized_map", "xla")} == {"ok"}


def test_random_numbers_fall_back_and_are_right_outside_of_xla() -> None:
    for each in rows("random", "vectorized_map"):
        if "fallback" in each.strategy:
            assert each.outcome == "failed"
            assert each.reason == "ValueError: No pfor vectorization defined for StatelessRandomUniformFullIntV2"
        else:
            assert "falls_back" in each.warnings
            # XLA makes other floats of the same random bits.
            assert each.outcome == ("wrong" if each.strategy.endswith(".xla") else "ok")


def test_unique_keys_fall_back_and_sums_by_key_do_not() -> None:
    vectorized = [each for each in grid.read() if each.workload == "segments" and "vectorized_map" in each.strategy]
    loops = {each.strategy: "falls_back" in each.warnings.split() for each in vectorized if each.options}
    assert loops.pop("vectorized_map.graph?fallback_to_while_loop=false") is False and all(loops.values())
    assert not any("falls_back" in each.warnings for each in vectorized if not each.options)


def test_a_variable_shape_works_ragged_alone() -> None:
    for mode in ("eager", "graph"):
        assert {each.outcome for each in rows("variable_shape", "ragged", mode)} == {"ok"}
        for mapper in ("map_fn", "vectorized_map", "loop"):
            assert {each.outcome for each in rows("variable_shape", mapper, mode)} == {"failed"}
    # XLA goes on with what the longest could be, and without an error.
    assert {each.outcome for each in rows("variable_shape", "map_fn", "xla")} == {"wrong"}


def test_items_of_a_tensor_cannot_be_assigned() -> None:
    failed = [each for each in grid.read() if each.workload == "pixel_loop" and each.options == "form=assign"]
    by_mapper = {each.strategy: each for each in failed}
    assert "does not support item assignment" in by_mapper["loop.eager"].reason
    assert by_mapper["batched.graph"].outcome == "ok"
