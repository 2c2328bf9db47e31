"""Mappers are found, and strategies are named, in one way only."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as draw

import strategies
import workloads
from strategies import chunks, planning, script
from strategies.spec import MODES, Mapper, Strategy
from workloads.case import Case

GRID = [f"{mapper}.{mode}" for mapper in ("loop", "map_fn", "vectorized_map", "batched") for mode in MODES]

EVERY_OTHER = """
from typing import TYPE_CHECKING

from strategies.spec import Estimate, Mapper

if TYPE_CHECKING:
    import tensorflow as tf


def map_through_dataset(fn, elems):
    dataset = tf.data.Dataset.from_tensor_slices(elems).map(fn)
    return dataset.batch(tf.nest.flatten(elems)[0].shape[0]).get_single_element()


def estimate(plan):
    return Estimate(peak_bytes=2 * plan.output_bytes, first_call_s=0.1, latency_s=0.01, events=10)


MAPPER = Mapper(
    slug="through_dataset", title="tf.data", summary="A mapper in one file.",
    apply=map_through_dataset, estimate=estimate, modes=("eager", "graph"), order=15,
)
"""


def test_the_first_mappers_are_there_in_order() -> None:
    slugs = [mapper.slug for mapper in strategies.mappers()]
    assert [slug for slug in slugs if f"{slug}.eager" in GRID] == ["loop", "map_fn", "vectorized_map", "batched"]
    assert all(strategies.mapper(slug).slug == slug for slug in slugs)


def test_every_first_workload_offers_the_whole_grid() -> None:
    for slug in ("image_sqrt", "outer_product", "per_example_gradients"):
        assert set(GRID) <= {strategy.slug for strategy in strategies.all_strategies(workloads.get(slug))}


def test_a_mapper_whose_rewrite_is_missing_is_not_offered() -> None:
    workload = dataclasses.replace(workloads.get("image_sqrt"), rewrites={})
    assert not strategies.offered(strategies.mapper("batched"), workload)
    assert strategies.offered(strategies.mapper("loop"), workload)
    assert {strategy.mapper for strategy in strategies.all_strategies(workload)}.isdisjoint({"batched"})


def test_unrolled_loops_under_xla_are_not_in_the_default() -> None:
    assert strategies.mapper("loop").default_modes == ("eager", "graph")
    assert strategies.mapper("map_fn").default_modes == MODES


@pytest.mark.parametrize("slug", GRID)
def test_a_slug_is_its_own_canonical_form(slug: str) -> None:
    assert strategies.parse(slug).slug == slug


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("map_fn.graph?parallel_iterations=32", "map_fn.graph?parallel_iterations=32"),
        ("map_fn.graph?parallel_iterations=10", "map_fn.graph"),
        ("map_fn.graph?parallel_iterations=0032", "map_fn.graph?parallel_iterations=32"),
        ("vectorized_map.xla?fallback_to_while_loop=False", "vectorized_map.xla?fallback_to_while_loop=false"),
        ("vectorized_map.xla?fallback_to_while_loop=TRUE", "vectorized_map.xla"),
        ("  loop.eager ", "loop.eager"),
    ],
)
def test_defaults_are_left_out_and_values_are_written_in_one_way(written: str, canonical: str) -> None:
    assert strategies.parse(written).slug == canonical


@given(draw.integers(1, 1024), draw.sampled_from(MODES))
def test_parsing_undoes_writing(parallel_iterations: int, mode: str) -> None:
    strategy = strategies.parse(f"map_fn.{mode}?parallel_iterations={parallel_iterations}")
    assert strategies.parse(strategy.slug) == strategy
    assert dict(strategy.options) == ({} if parallel_iterations == 10 else {"parallel_iterations": parallel_iterations})


def test_options_are_sorted() -> None:
    assert Strategy("m", "xla", {"b": True, "a": 2}).slug == "m.xla?a=2&b=true"


@pytest.mark.parametrize(
    ("slug", "message"),
    [
        ("pmap.xla", "mapper 'pmap' is not known: choose one of "),
        ("loop.fast", "loop has no mode 'fast': choose one of eager, graph, xla"),
        ("loop.eager?chunk=8", "loop has no option 'chunk': it has none"),
        ("map_fn.xla?chunk=8", "map_fn has no option 'chunk': its options are parallel_iterations"),
        (
            "map_fn.xla?parallel_iterations=0",
            "map_fn: parallel_iterations=0 is not valid: a whole number from 1 to 1024 is needed",
        ),
        (
            "map_fn.xla?parallel_iterations=many",
            "map_fn: parallel_iterations=many is not valid: a whole number from 1 to 1024 is needed",
        ),
        (
            "vectorized_map.xla?fallback_to_while_loop=maybe",
            "vectorized_map: fallback_to_while_loop=maybe is not valid: choose one of true, false",
        ),
        (
            "map_fn.xla?parallel_iterations=3&parallel_iterations=4",
            "strategy 'map_fn.xla?parallel_iterations=3&parallel_iterations=4' gives parallel_iterations twice",
        ),
        (
            "map_fn.xla?parallel_iterations",
            "strategy 'map_fn.xla?parallel_iterations' is malformed: 'parallel_iterations' should read option=value",
        ),
        ("", "strategy '' is malformed: write mapper.mode or mapper.mode?option=value&option=value"),
        ("loop", "strategy 'loop' is malformed"),
        ("loop.", "strategy 'loop.' is malformed"),
        (".eager", "strategy '.eager' is malformed"),
        ("map_fn.xla?", "strategy 'map_fn.xla?' is malformed"),
        ("map_fn.xla?&", "strategy 'map_fn.xla?&' is malformed: '' should read option=value"),
    ],
)
def test_errors_name_what_is_valid(slug: str, message: str) -> None:
    with pytest.raises(strategies.StrategyError) as caught:
        strategies.parse(slug)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).startswith(message)


# --- mappers outside of the package --------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MAPBENCH_MAPPERS", str(tmp_path))
    return tmp_path


def test_one_file_in_a_named_folder_is_enough(folder: Path) -> None:
    (folder / "through_dataset.py").write_text(EVERY_OTHER)
    slugs = [mapper.slug for mapper in strategies.mappers()]
    assert slugs.index("loop") < slugs.index("through_dataset") < slugs.index("map_fn")  # by its order
    assert strategies.parse("through_dataset.graph") == Strategy("through_dataset", "graph")
    with pytest.raises(strategies.StrategyError, match="has no mode 'xla': choose one of eager, graph"):
        strategies.parse("through_dataset.xla")


def test_a_broken_file_costs_only_itself(folder: Path) -> None:
    (folder / "broken.py").write_text("def MAPPER(:\n")
    (folder / "through_dataset.py").write_text(EVERY_OTHER)
    assert strategies.parse("through_dataset.eager").mapper == "through_dataset"
    assert list(strategies.broken()) == [str(folder / "broken.py")]
    assert "SyntaxError" in strategies.broken()[str(folder / "broken.py")]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('modes=("eager", "graph")', 'modes=("fast",)', "has the modes fast: eager, graph, xla are known"),
        ("apply=map_through_dataset", "apply=None", "a mapper has either apply or the name of a rewrite"),
        ("order=15", 'rewrite="batched"', "a mapper has either apply or the name of a rewrite"),
        ("apply=map_through_dataset", "apply=map", "cannot be put into a script: a top-level 'def' can"),
    ],
)
def test_load_file_says_what_is_wrong(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "through_dataset.py"
    path.write_text(EVERY_OTHER.replace(old, new))
    with pytest.raises(ValueError) as caught:
        strategies.load_file(path)
    assert str(path) in str(caught.value) and message in str(caught.value)


def test_load_file_returns_the_mapper(tmp_path: Path) -> None:
    path = tmp_path / "through_dataset.py"
    path.write_text(EVERY_OTHER)
    assert isinstance(strategies.load_file(path), Mapper)


# --- what a mapper is told, and what it chooses -----------------------------------------------------------------------


def chunk_of(slug: str, size: dict[str, int], memory_limit_mib: int | None = None, device: str = "CPU:0") -> int:
    case = Case(workloads.get("outer_reduce"), size, "float32", device=device)
    plan = planning.plan(case, slug, memory_limit_mib)
    return int(plan.options["chunk"])


def test_the_default_chunk_is_what_fits_the_room() -> None:
    size = {"batch": 100_000, "side": 8}
    # One element has 16 KiB of products, and two matrices of 256 bytes beside them.
    element = 4 * 8**4 + 2 * 4 * 8**2
    assert chunk_of("chunked.graph", size) == chunks.CPU_BYTES // element == 620
    assert chunk_of("chunked.graph", size, memory_limit_mib=1) == 2**18 // element == 15
    assert chunk_of("chunked.graph", size, device="GPU:0") == chunks.GPU_BYTES // element == 31_775
    assert chunk_of("chunked.graph", {"batch": 256, "side": 2}) == 256
    assert chunk_of("chunked.graph", {"batch": 256, "side": 64}) == 1
    assert chunk_of("chunked.graph", {"batch": 0, "side": 32}) == 1


def test_where_chunks_save_little_memory_the_whole_batch_is_chosen_unless_memory_is_short() -> None:
    """Per-example gradients need twice their output beside it, at once; in chunks, their output twice."""
    case = Case(workloads.get("dp_sgd"), {"batch": 4_096, "features": 64, "hidden": 64}, "float32")
    whole = planning.plan(case, "chunked.graph")
    assert whole.options["chunk"] == 4_096
    assert "chunks would save little memory" in chunks.reason(whole, whole.options)
    limited = planning.plan(case, "chunked.graph", memory_limit_mib=64)
    assert limited.options["chunk"] == chunks.CPU_BYTES // chunks.element_bytes(limited)
    # Their sum needs next to nothing in chunks.
    assert planning.plan(case, "accumulate.graph").options["chunk"] < 4_096


def test_a_chunk_that_is_asked_for_is_kept() -> None:
    assert chunk_of("chunked.graph?chunk=7", {"batch": 256, "side": 32}) == 7


def test_the_chosen_chunk_stands_in_the_script_and_not_in_the_slug() -> None:
    case = Case(workloads.get("outer_reduce"), {"batch": 2_560, "side": 8}, "float32")
    assert strategies.parse("chunked.graph?chunk=0").slug == "chunked.graph"
    text = script.build(case, "chunked.graph")
    assert "    return map_in_chunks(element, elems, signature, chunk=620)\n" in text
    text = script.build(case, "chunked.graph", memory_limit_mib=1)
    assert "chunk=15)" in text


def test_the_reason_of_a_chunk_has_its_figures() -> None:
    workload = workloads.get("outer_reduce")
    plan = planning.plan(Case(workload, {"batch": 2_560, "side": 8}, "float32"), "chunked.graph")
    assert chunks.reason(plan, {"chunk": 620}) == "chunk=620 was chosen: its tensors take 9.99 of 10 MiB"
    plan = planning.plan(Case(workload, {"batch": 4, "side": 2}, "float32"), "chunked.graph", memory_limit_mib=64)
    assert chunks.reason(plan, {"chunk": 4}) == "chunk=4, the whole batch, was chosen: its tensors fit into 10 MiB"


def test_limits_that_are_known_are_said() -> None:
    square = workloads.get("square")
    assert strategies.unsupported(strategies.parse("dataset.graph"), square) is None
    why = strategies.unsupported(strategies.parse("dataset.xla"), square)
    assert why == "XLA compiles no tf.data pipelines: use dataset.graph, or another mapper"
    limited = dataclasses.replace(square, unsupported={"map_fn.*": "It is too slow."})
    assert strategies.unsupported(strategies.parse("map_fn.xla?parallel_iterations=2"), limited) == "It is too slow."


def test_mappers_of_numpy_need_an_element_in_numpy() -> None:
    counter = workloads.get("counter")
    assert strategies.missing(strategies.mapper("numpy"), counter) == "an element function in NumPy"
    assert not strategies.offered(strategies.mapper("numpy_function"), counter)
    assert strategies.offered(strategies.mapper("numpy"), workloads.get("square"))


def test_rewrites_depend_on_the_variant() -> None:
    gradients = workloads.get("per_example_gradients")
    assert strategies.offered(strategies.mapper("batched"), gradients.variant({"model": "mlp"}))
    assert not strategies.offered(strategies.mapper("batched"), gradients.variant({"model": "cnn"}))


def lines_of(slug: str, strategy: str) -> str:
    workload = workloads.get(slug)
    return script.build(Case(workload, workload.default_size(), "float32"), strategy)


def test_scripts_of_the_further_kinds_of_mappers() -> None:
    compiled = lines_of("square", "loop_compiled.eager")
    assert "@tf.function\ndef fn(x):\n    return element(x)\n" in compiled
    assert "\n\ndef strategy(elems):\n    return map_with_loop(fn, elems, signature)\n" in compiled
    with_xla = lines_of("square", "dataset.graph?jit_compile=true")
    assert (
        "@tf.function(jit_compile=True)\ndef fn(x):" in with_xla and "jit_compile=True)\ndef strategy" not in with_xla
    )
    plain = lines_of("attention", "numpy.eager")
    assert "\nelems = inputs(" in plain and "\nvariables = initial_values(" in plain
    called_back = lines_of("attention", "numpy_function.graph")
    assert "\nelems = tf.nest" in called_back and "\nvariables = initial_values(" in called_back
    gradient = lines_of("gradient_through_map", "map_fn.graph")
    assert (
        "    def mapped(elems):\n        return map_with_map_fn(fn, elems, signature)\n\n"
        "    return gradient_of_sum(mapped, elems)\n" in gradient
    )
    assert "    return waves(x, steps=8)\n" in gradient
    accumulated = lines_of("dp_sgd", "accumulate.graph?chunk=16")
    assert "    return accumulate(elems, *variables, chunk=16)\n" in accumulated
