"""What is derived of a function that comes as bare code, and what is said where it cannot be measured."""

from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import UNSET

import strategies
import workloads
from measure.engine.deriving import derive as derive_in_process
from measure.pool.launcher import Launcher
from measure.run.request import RequestError
from measure.subject import derive, effects
from measure.subject.derive import NAME, Refused, condition
from measure.subject.messages import Spec
from strategies.spec import MODES, Strategy
from tests.engine import write_mapper
from tests.functions import CODE, KERAS
from workloads import augment
from workloads.functions import Facts, Given, Named, leaves_from_wire
from workloads.spec import Leaf

Derive = Callable[..., Facts]
IMAGE = Leaf((8, 8, 3), "float32")
VECTOR = Leaf((8,), "float32")


@pytest.fixture
def derived(tf: Any, monkeypatch: pytest.MonkeyPatch) -> Derive:
    """``derived(function, elems)``: its facts, found in this process, which takes none of the bounds that a process
    that derives keeps to its end."""
    monkeypatch.setattr(derive, "limit_memory", lambda: None)

    def of(function: str, elems: str, code: str = CODE, **size: int) -> Facts:
        given = Given(code=code, function=function, elems=elems)
        return derive.derive(Spec(role="derive", given=given, size=size, seed=0))

    return of


def test_shapes_dtypes_and_the_reference_are_derived(derived: Derive):
    systems = {"a": Leaf((6, 6), "float32"), "b": Leaf((6, 1), "float32")}
    text = {"text": Leaf((8,), "string"), "digits": Leaf((8,), "int32")}
    evenly = "tf.ragged.constant([[0.5] * 2] * 50 + [[0.5] * 3] + [[0.5] * 2] * 9)"
    cases = [
        ("flip", "images", IMAGE, IMAGE, "shapes"),
        ("contrast", "images", IMAGE, IMAGE, "float64"),
        ("solve", "systems", systems, Leaf((6, 1), "float32"), "float64"),
        ("gradient_of_rows", "ids", Leaf((2,), "int64"), Leaf((10, 3), "float32", sparse=True), "own"),
        # In float64 its digits would be others.
        ("as_text", "vectors", VECTOR, text, "own"),
        # Of 1, 2, 3, 4, 1 and 2 numbers.
        ("mean", "sentences", Leaf((None,), "float32", length=13 / 6), Leaf((), "float32"), "float64"),
        # One of sixty is longer, and none of those that are evenly spread.
        ("smoothed", evenly, *(Leaf((None,), "float32", length=mean) for mean in (121 / 60, 19 / 9)), "float64"),
        ("twice", "ids[0]", Leaf((), "int64"), Leaf((2, None), "int64", length=2.25), "own"),
        ("largest", "vectors", VECTOR, {"k": Named((Leaf((2,), "float32"), Leaf((2,), "int32")))}, "float64"),
    ]
    for function, elems, element, result, reference in cases:
        facts = derived(function, "chosen", f"{CODE}\nchosen = {elems}")
        found = (leaves_from_wire(facts.element), leaves_from_wire(facts.result), facts.reference)
        assert found == (element, result, reference), function


def test_strategies_that_would_leave_out_what_a_function_does_beside_its_result_are_named(derived: Derive):
    every = {"loop.xla", "vectorized_map.eager"}
    cases: list[tuple[str, str, bool, set[str]]] = [
        ("contrast", CODE, False, set()),
        ("flip", CODE, True, set()),
        ("drops", KERAS, True, {"vectorized_map.eager"}),  # the layer keeps the seed
        ("positive", CODE, False, every),
        ("keeps_state", CODE, True, {"vectorized_map.eager"}),
        ("remembers", CODE, True, {"loop.graph", "map_fn.graph", *every}),
        ("printing", CODE, False, every),
        ("in_python", CODE, False, {"loop.xla"}),
        ("large", CODE, False, set()),
    ]
    some = ("loop.graph", "loop.xla", "vectorized_map.eager", "map_fn.graph")
    for function, code, changes, unsupported in cases:
        facts = derived(function, "images" if function in ("contrast", "flip") else "vectors", code)
        assert (facts.reference == "shapes") == changes, function
        refused = {slug for slug in some if any(fnmatchcase(slug, pattern) for pattern in facts.unsupported)}
        assert refused == unsupported and bool(refused) == bool(facts.unsupported), function
    assert "It prints in Python" in derived("counting", "vectors").notes[-1]


def test_ops_that_are_left_out_are_named_by_their_type():
    ops = {"PrintV2", "Mul", "LookupTableFindV2", "StatefulPartitionedCall"}
    draws, notes, unsupported = effects.of(ops, changes=False, prints=False)
    assert not draws
    assert unsupported["chunked.*"] == "the function prints (PrintV2), here for the first element alone"
    assert notes[0].endswith("dataset_batched do that for the first element alone, and XLA cannot compile that.")


def test_a_mapper_is_left_out_unless_it_declares_side_effects_per_element(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Whether its file was there when the function was derived or came later."""
    _, _, before = effects.of({"Assert"}, changes=False, prints=False)
    monkeypatch.setenv("MAPBENCH_MAPPERS", str(tmp_path))
    write_mapper(tmp_path, "silent", "return map_rightly(fn, elems)", MODES)
    text = (tmp_path / "silent.py").read_text()
    loops = text.replace("silent", "loops").replace('"whole"', '"while", side_effects="per element"')
    (tmp_path / "loops.py").write_text(loops)
    _, _, after = effects.of({"Assert"}, changes=False, prints=False)
    assert set(after) - set(before) == {"loops.xla"}
    for facts in (before, after):
        own = replace(workloads.get("square"), unsupported=facts, own=Given(code="", function="f", elems="e"))
        silent, loops, map_fn = (
            [strategies.unsupported(Strategy(slug, mode), own) for mode in MODES]
            for slug in ("silent", "loops", "map_fn")
        )
        assert loops == map_fn and [*map(bool, loops)] == [False, False, True]
        assert all(str(why).endswith("silent does not set side_effects") for why in silent)


def test_sizes_are_the_whole_number_parameters_of_the_elements(derived: Derive):
    assert derived("contrast", "images").size == {"batch": 16, "side": 8}
    other = derived("contrast", "images", side=5, batch=3)
    assert other.size == {"batch": 3, "side": 5} and leaves_from_wire(other.element) == Leaf((5, 5, 3), "float32")
    # An array has as many elements as it has, and any batch can be made of them.
    assert derived("to_number", "numbers_as_text", batch=50).size == {"batch": 50}
    # What is drawn at random is the same in each process.
    for drawn in ("import random\ne = [random.random()]", "import tensorflow as tf\ne = tf.random.uniform([3])"):
        assert derived("f", "e", f"{drawn}\ndef f(x): return x").size == {"batch": 3 if "tf" in drawn else 1}


def test_work_variables_and_texts_are_those_of_the_code(derived: Derive):
    contrast, smoothed = derived("contrast", "images"), derived("smoothed", "vectors")
    assert (contrast.flops, smoothed.flops, smoothed.unknown_work) == (8 * 8 * 3, 3 * 8, UNSET)
    # n³/3 of the factor, and two triangular systems.
    assert derived("solve", "systems").flops == 6**3 // 3 + 2 * 6 * 6
    # 8 × 16 weights with 16 biases, and four vectors of 16 of the normalisation.
    assert derived("dense", "vectors", KERAS).variable_bytes == 4 * (8 * 16 + 16 + 4 * 16)
    titled = derived("contrast", "images", CODE + 'TITLE = "Halves"\nPRESETS = {"Small": {"batch": 2, "side": 4}}\n')
    assert (titled.title, titled.presets) == ("Halves", {"Small": {"batch": 2, "side": 4}})


def _line(text: str) -> str:
    return f"line {CODE.splitlines().index(text) + 1}: "


BAD = {
    "import no_such_package\ndef f(x): return x\ne = 1": "line 1: ModuleNotFoundError: No module named",
    "def f(x): return x\ne = []": "e has no first axis to map over",
    "import os\ndef f(x): return x\ndef e(): return list(os.urandom(5))": "e gives other elements in each process",
    "def f(x): return x\ne = ([1, 2], [1, 2, 3])": "the shapes are (2,), (3,)",
    "def f(x): return x\ndef e(n): return [n]": "TypeError: e() missing 1 required positional argument: 'n'",
    "TITLE = 3\ndef f(x): return x\ne = [1]": "Expected `str`, got `int` - at `$.TITLE`",
    'PRESETS = {"s": {"n": 0}}\ndef f(x): return x\ne = [1]': "Expected `int` >= 1 - at `$.PRESETS[...][...]`",
    "def f(x): x + 1\ne = [1.0]": "f returns None: is a `return` missing?",
    "def f(x): raise ValueError('x' * 2**20)\ne = [1.0]": "line 1: ValueError: xxx",
}


def test_what_is_wrong_is_a_sentence_with_the_line(derived: Derive):
    wrong = [("f", "e", code, sentence) for code, sentence in BAD.items()]
    wrong += [
        ("two", "vectors", CODE, "TypeError: two() missing 1 required positional argument: 'y'"),
        ("other_axes", "vectors", CODE, "(float32 (), then float32 (8)): a batch needs one dtype"),
        ("exits", "vectors", CODE, f"{_line('    raise SystemExit(3)')}it exits (3)"),
        ("square_of_vector", "vectors", CODE, f"{_line('    return tf.linalg.inv(x)')}InvalidArgumentError"),
        ("cube", "vectors", CODE, "has no attribute 'cube'"),
        ("calls", "vectors", CODE, "TypeError: 'int' object is not callable"),
    ]
    for function, elems, code, sentence in wrong:
        with pytest.raises(Refused) as refused:
            derived(function, elems, code)
        assert sentence in str(refused.value) and len(str(refused.value)) <= 500, sentence


def test_code_that_takes_its_process_along_costs_a_sentence_and_nothing_else(host: Launcher):
    huge = "import numpy as np\ndef f(x): return x\ndef e():\n    return np.zeros((10, 1024, 1024, 1024), np.uint8)"
    for code, sentence in (
        ("import os\nos.abort()\ndef f(x): return x\ne = [1]", "the code ended its process: it aborted in native code"),
        (huge, r"line 4: more than 4 GiB are needed"),
    ):
        with pytest.raises(RequestError, match=sentence):
            derive_in_process(Given(code=code, function="f", elems="e"), {}, 0, host)
    own = derive_in_process(Given(code=CODE, function="contrast", elems="images"), {}, 0, host)
    assert own.facts.size["batch"] == 16


def test_code_that_never_ends_is_given_up_at_its_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(derive, "LIMIT_S", 0.3)
    code = compile("\nwhile True:\n    pass", NAME, "exec")
    with pytest.raises(Refused, match=r"^line [23]: TimeoutError: still running after 0 s"):
        with derive.time_limit(), derive.refusing("the code"):
            exec(code)


def test_results_that_move_further_than_elements_are_allowed_as_much(tf: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(augment, "tf", tf, raising=False)
    rng = np.random.default_rng(1)
    numbers = tf.constant(rng.uniform(0.5, 1.5, 1_000).astype("float32"))
    image = tf.constant(rng.random((64, 64, 3), dtype="float32")), tf.constant(0.4)
    for function, element, least, most in (
        (tf.sqrt, numbers, 1, 1),
        (tf.round, numbers * 10, 1, 1),
        (lambda x: x * 2, tf.range(3), 1, 1),
        (tf.strings.as_string, numbers, 1, 1),
        (lambda x: x / 0.0, numbers, 1, 1),
        (lambda x: x**3, numbers, 2, 8),
        (augment.rotate, image, 10, 100),
        (lambda x: tf.sin(1e6 * x), numbers, 1_000, 1_000),
    ):
        assert least <= condition(function, element, function(element)) <= most, function
