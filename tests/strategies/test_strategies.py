"""Mappers are found, and strategies are named, in one way only."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

import strategies
import workloads
from strategies import chunks
from strategies.spec import MODES, Strategy
from workloads.case import Case

GRID = [f"{mapper}.{mode}" for mapper in ("loop", "map_fn", "vectorized_map", "batched") for mode in MODES]

EVERY_OTHER = """
from strategies.spec import Mapper
from workloads.spec import tf


def map_through_dataset(fn, elems):
    dataset = tf.data.Dataset.from_tensor_slices(elems).map(fn)
    return dataset.batch(tf.nest.flatten(elems)[0].shape[0]).get_single_element()


MAPPER = Mapper(
    slug="through_dataset", title="tf.data", summary="A mapper in one file.",
    apply=map_through_dataset, steps="pipeline", modes=("eager", "graph"), order=15,
)
"""


def test_a_slug_has_one_canonical_form() -> None:
    for written, canonical in (
        *((slug, slug) for slug in GRID),
        ("map_fn.graph?parallel_iterations=10", "map_fn.graph"),
        ("map_fn.graph?parallel_iterations=0032", "map_fn.graph?parallel_iterations=32"),
        ("vectorized_map.xla?fallback_to_while_loop=False", "vectorized_map.xla?fallback_to_while_loop=false"),
        ("vectorized_map.xla?fallback_to_while_loop=TRUE", "vectorized_map.xla"),
        ("chunked.graph?chunk=0", "chunked.graph"),
        ("chunked.graph?element=by_hand&chunk=8", "chunked.graph?chunk=8&element=by_hand"),
        ("  loop.eager ", "loop.eager"),
    ):
        strategy = strategies.parse(written)
        assert strategy.slug == canonical and strategies.parse(canonical) == strategy
    assert Strategy("m", "xla", {"b": True, "a": 2}).slug == "m.xla?a=2&b=true"


def test_errors_name_what_is_valid() -> None:
    number, truth = "map_fn.xla?parallel_iterations", "vectorized_map.xla?fallback_to_while_loop"
    for slug, message in (
        ("pmap.xla", "mapper 'pmap' is not known: choose one of "),
        ("loop.fast", "loop has no mode 'fast': choose one of eager, graph, xla"),
        ("loop.eager?chunk=8", "loop has no option 'chunk': it has none"),
        (f"{number}=0", "parallel_iterations=0 is not valid: a whole number from 1 to 1024"),
        (f"{truth}=maybe", "fallback_to_while_loop=maybe is not valid: choose one of true, false"),
        (f"{number}=3&parallel_iterations=4", f"strategy '{number}=3&parallel_iterations=4' gives parallel_itera"),
        ("map_fn.graph?element=By hand", "element 'By hand' is not valid"),
        ("", "strategy '' is malformed: write mapper.mode or mapper.mode?option=value&option=value"),
        ("map_fn.xla?&", "strategy 'map_fn.xla?&' is malformed: write "),
    ):
        with pytest.raises(ValueError) as caught:
            strategies.parse(slug)
        assert str(caught.value).startswith(message)


def test_a_mapper_in_a_named_folder_stands_where_its_order_says_or_it_is_said_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAPBENCH_MAPPERS", str(tmp_path))
    path = tmp_path / "through_dataset.py"
    for old, new, message in (
        ('modes=("eager", "graph")', 'modes=("fast",)', "has the modes fast: eager, graph, xla are known"),
        ("apply=map_through_dataset", "apply=None", "a mapper has either apply or the name of a rewrite"),
        ("order=15", 'rewrite="batched"', "a mapper has either apply or the name of a rewrite"),
        ("apply=map_through_dataset", "apply=map", "cannot be put into a script: a top-level 'def' can"),
    ):
        path.write_text(EVERY_OTHER.replace(old, new))
        sentence = strategies.broken()[str(path)]
        assert str(path) in sentence and message in sentence
    path.rename(tmp_path / "broken.py")  # which costs only itself
    path.write_text(EVERY_OTHER)
    slugs = [mapper.slug for mapper in strategies.mappers()]
    assert slugs.index("loop") < slugs.index("through_dataset") < slugs.index("map_fn")
    assert [*strategies.broken()] == [str(tmp_path / "broken.py")]


def chosen(workload: str, size: dict[str, int], slug: str = "chunked.graph", device: str = "CPU:0", **more: int) -> Any:
    """The chunk that is chosen, and the sentence that says why."""
    return chunks.chosen(Case(workloads.get(workload), size, "float32", device=device), strategies.parse(slug), **more)


def test_the_default_chunk_is_what_fits_the_room() -> None:
    size = {"batch": 100_000, "side": 8}
    # One element has 16 KiB of products, and two matrices of 256 bytes beside them.
    element = 4 * 8**4 + 2 * 4 * 8**2
    assert chosen("outer_reduce", size) == (620, "chunk=620 was chosen: its tensors take 9.99 of 10 MiB")
    assert chunks.CPU_BYTES // element == 620 and chosen("outer_reduce", size, "chunked.graph?chunk=7") is None
    assert chosen("outer_reduce", size, memory_limit_mib=1)[0] == 2**18 // element == 15
    assert chosen("outer_reduce", size, device="GPU:0")[0] == chunks.GPU_BYTES // element == 31_775
    for batch, side, chunk in ((256, 2, 256), (256, 64, 1), (0, 32, 1)):
        assert chosen("outer_reduce", {"batch": batch, "side": side})[0] == chunk


def test_where_chunks_save_little_memory_the_whole_batch_is_chosen_unless_memory_is_short() -> None:
    """Per-example gradients need twice their output beside it, at once; in chunks, their output twice. Their sum needs
    next to nothing in chunks."""
    size = {"batch": 4_096, "features": 64, "hidden": 64}
    chunk, why = chosen("dp_sgd", size)
    assert chunk == 4_096 and "chunks would save little memory" in why
    case = Case(workloads.get("dp_sgd"), size, "float32")
    room = chunks.CPU_BYTES // chunks.element_bytes(case, strategies.mapper("chunked"))
    assert chosen("dp_sgd", size, memory_limit_mib=64)[0] == room
    assert chosen("dp_sgd", size, "accumulate.graph")[0] < 4_096


def test_limits_that_are_known_are_said() -> None:
    square = workloads.get("square")
    assert strategies.unsupported(strategies.parse("dataset.graph"), square) is None
    assert "text" in (strategies.unsupported(strategies.parse("map_fn.xla"), workloads.get("decode")) or "")
    limited = dataclasses.replace(square, unsupported={"map_fn.*": "It is too slow."})
    assert strategies.unsupported(strategies.parse("map_fn.xla?parallel_iterations=2"), limited) == "It is too slow."
