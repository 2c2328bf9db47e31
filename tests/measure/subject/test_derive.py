"""What is derived of a function that comes as bare code, and what is said where it cannot be measured."""

import base64
import contextlib
import os
import resource
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from msgspec import UNSET

import strategies
from measure.engine.deriving import derive as derive_in_process
from measure.model.request import RequestError
from measure.pool.host_launcher import HostLauncher
from measure.subject import derive, effects, limits
from measure.subject.limits import NAME, Refused
from measure.subject.messages import Spec
from tests.functions import CODE, KERAS
from workloads.functions import Facts, Given, Named, leaves_from_wire
from workloads.spec import Leaf

Derive = Callable[..., Facts]
IMAGE = Leaf((8, 8, 3), "float32")
VECTOR = Leaf((8,), "float32")


@pytest.fixture
def derived(tf: Any, monkeypatch: pytest.MonkeyPatch) -> Derive:
    """``derived(function, elems)``: its facts, found in this process, which takes none of the bounds that a process
    that derives keeps to its end."""
    monkeypatch.setattr(derive, "limits", contextlib.nullcontext)

    def of(function: str, elems: str, code: str = CODE, **size: int) -> Facts:
        given = Given(code=code, function=function, elems=elems)
        return derive.derive(Spec(role="derive", given=given, size=size, seed=0), lambda sentence: None)

    return of


def test_shapes_dtypes_and_the_reference_are_derived(derived: Derive):
    systems = {"a": Leaf((6, 6), "float32"), "b": Leaf((6, 1), "float32")}
    words = {"words": Leaf((None,), "float32", length=2.0), "mark": Leaf((2,), "float32")}
    three = {"f": Leaf((), "float32"), "i": Leaf((), "int64"), "b": Leaf((8,), "bool")}
    text = {"text": Leaf((8,), "string"), "digits": Leaf((8,), "int32")}
    cases = [
        ("flip", "images", IMAGE, IMAGE, "shapes"),
        ("contrast", "images", IMAGE, IMAGE, "float64"),
        ("decode", "raw", Leaf((), "string"), Leaf((4,), "uint8"), "own"),
        ("solve", "systems", systems, Leaf((6, 1), "float32"), "float64"),
        ("three", "vectors", VECTOR, three, "float64"),
        ("positives", "vectors", VECTOR, Leaf((8,), "float32", sparse=True), "float64"),
        ("gradient_of_rows", "ids", Leaf((2,), "int64"), Leaf((10, 3), "float32", sparse=True), "own"),
        # In float64 its digits would be others.
        ("as_text", "vectors", VECTOR, text, "own"),
        # Of 1, 2, 3, 4, 1 and 2 numbers.
        ("mean", "sentences", Leaf((None,), "float32", length=13 / 6), Leaf((), "float32"), "float64"),
        ("marked_words", "marked", words, words, "float64"),
        ("twice", "ids[0]", Leaf((), "int64"), Leaf((2, None), "int64", length=2.25), "own"),
        ("largest", "vectors", VECTOR, {"k": Named((Leaf((2,), "float32"), Leaf((2,), "int32")))}, "float64"),
    ]
    for function, elems, element, result, reference in cases:
        facts = derived(function, "chosen", f"{CODE}\nchosen = {elems}")
        found = (leaves_from_wire(facts.element), leaves_from_wire(facts.result), facts.reference)
        assert found == (element, result, reference), function


def test_what_a_function_does_beside_its_result_is_known(derived: Derive):
    every = {"loop.xla", "vectorized_map.eager"}
    cases: list[tuple[str, str, list[str], set[str]]] = [
        ("contrast", CODE, [], set()),
        ("reads_in_a_function", CODE, [], set()),
        ("flip", CODE, ["draws"], set()),
        ("drops", KERAS, ["draws", "effects"], {"vectorized_map.eager"}),  # the layer keeps the seed
        ("positive", CODE, ["asserts"], every),
        ("finite", CODE, ["asserts"], {"loop.xla"}),
        ("keeps_state", CODE, ["effects"], {"vectorized_map.eager"}),
        ("counting", CODE, ["effects"], set()),
        ("remembers", CODE, ["effects"], {"loop.graph", "map_fn.graph", *every}),
        ("printing", CODE, ["effects"], every),
        ("in_python", CODE, ["effects"], {"loop.xla"}),
        ("large", CODE, [], set()),
        ("large_columns", CODE, [], {"map_fn.graph"}),
    ]
    some = ("loop.graph", "loop.xla", "vectorized_map.eager", "map_fn.graph")
    for function, code, does, unsupported in cases:
        facts = derived(function, "images" if function in ("contrast", "flip") else "vectors", code)
        assert [name for name in ("draws", "asserts", "effects") if getattr(facts, name)] == does, function
        refused = {slug for slug in some if any(fnmatchcase(slug, pattern) for pattern in facts.unsupported)}
        assert refused == unsupported and bool(refused) == bool(facts.unsupported), function


def test_ops_that_are_left_out_are_named_by_their_type():
    does = effects.of({"PrintV2", "Mul", "LookupTableFindV2", "StatefulPartitionedCall"}, changes=False, prints=False)
    assert (does.draws, does.asserts, does.others) == (False, False, True)
    assert does.unsupported["chunked.*"] == "the function prints (PrintV2), here for the first element alone"
    assert does.notes == [
        "It prints (PrintV2): vectorized_map, chunked and dataset_batched do that for the first element alone, "
        "and XLA cannot compile that."
    ]
    mapping = [one.slug for one in strategies.mappers() if one.apply is not None and one.element == "element"]
    assert sorted(mapping) == sorted((*effects.ONE_BY_ONE, *effects.VECTORISED)), "every mapper is one or the other"


def test_sizes_are_the_whole_number_parameters_of_the_elements(derived: Derive):
    assert derived("contrast", "images").size == {"batch": 16, "side": 8}
    other = derived("contrast", "images", side=5, batch=3)
    assert other.size == {"batch": 3, "side": 5} and leaves_from_wire(other.element) == Leaf((5, 5, 3), "float32")
    # An array has as many elements as it has, and any batch can be made of them.
    assert derived("to_number", "numbers_as_text", batch=50).size == {"batch": 50}


def test_work_variables_and_texts_are_those_of_the_code(derived: Derive):
    contrast, smoothed = derived("contrast", "images"), derived("smoothed", "vectors")
    # The mean of each channel, and what is subtracted, multiplied and added.
    assert (contrast.flops, contrast.unknown_work) == (4 * 8 * 8 * 3, UNSET)
    assert (smoothed.flops, smoothed.unknown_work) == (2 * 8, ["Betainc"])
    # n³/3 of the factor, and two triangular systems.
    assert derived("solve", "systems").flops == 6**3 // 3 + 2 * 6 * 6
    # 8 × 16 weights with 16 biases, and four vectors of 16 of the normalisation.
    assert derived("dense", "vectors", KERAS).variable_bytes == 4 * (8 * 16 + 16 + 4 * 16)
    titled = derived("contrast", "images", CODE + 'TITLE = "Halves"\nPRESETS = {"Small": {"batch": 2, "side": 4}}\n')
    assert (titled.title, titled.presets) == ("Halves", {"Small": {"batch": 2, "side": 4}})


def pickled(code: str, *names: str) -> str:
    """Code in which these functions of other code are pickled, as those of a notebook are."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(code, space)
    data = [base64.b64encode(cloudpickle.dumps(space[name])).decode() for name in names]
    lines = [f'{name} = cloudpickle.loads(base64.b64decode("{each}"))' for name, each in zip(names, data, strict=True)]
    return "\n".join(["import base64, cloudpickle", *lines])


def test_elements_are_the_same_in_each_process_or_refused(derived: Derive):
    drawn = "import random\nimport numpy as np\ndef f(x): return x\ne = lambda: "
    for code in (
        "import random\ne = [random.random()]\ndef f(x): return x",
        "import tensorflow as tf\ne = tf.random.uniform([3])\ndef f(x): return x",
        pickled(drawn + "np.random.rand(5)", "f", "e"),
    ):
        assert derived("f", "e", code).reference in ("own", "float64")
    with pytest.raises(Refused, match="e gives other elements in each process"):
        derived("f", "e", pickled(drawn + "np.random.default_rng().random(5)", "f", "e"))


def _line(text: str) -> str:
    return f"line {CODE.splitlines().index(text) + 1}: "


BAD = {
    "x = (": "line 1: '(' was never closed",
    f"x = {'-' * 20_000}1": "the code is nested too deeply",
    "import no_such_package\ndef f(x): return x\ne = 1": "line 1: ModuleNotFoundError: No module named",
    "def f(x): return x\ne = []": "e is empty",
    "def f(x): return x\ne = ([1, 2], [1, 2, 3])": "the parts of e have 2 and 3 elements",
    "def f(x): return x\ndef e(n): return [n]": "e asks for n: give it a default",
    "TITLE = 3\ndef f(x): return x\ne = [1]": "TITLE is not valid",
    'PRESETS = {"s": {"n": 1}}\ndef f(x): return x\ne = [1]': "PRESETS['s'] is not valid",
    "def strategy(x): return x\ndef f(x): return x\ne = [1]": "the code defines 'strategy'",
    "def f(x): raise ValueError('x' * 2**20)\ne = [1.0]": "line 1: ValueError: xxx",
}


def test_what_is_wrong_is_a_sentence_with_the_line(derived: Derive):
    wrong = [("f", "e", code, sentence) for code, sentence in BAD.items()]
    wrong += [
        ("two", "vectors", CODE, "missing a required argument: 'y'"),
        ("other_axes", "vectors", CODE, "(float32 (), then float32 (8)): a batch needs one dtype"),
        ("exits", "vectors", CODE, f"{_line('    raise SystemExit(3)')}it exits (3)"),
        ("square_of_vector", "vectors", CODE, f"{_line('    return tf.linalg.inv(x)')}InvalidArgumentError"),
        ("cube", "vectors", CODE, "the code has no 'cube', which was named as the function"),
        ("calls", "vectors", CODE, "calls is of type int: a function of one element is needed"),
    ]
    for function, elems, code, sentence in wrong:
        with pytest.raises(Refused) as refused:
            derived(function, elems, code)
        assert sentence in str(refused.value) and len(str(refused.value)) <= 500, sentence
    with pytest.raises(Refused, match="images has no size 'depth': its sizes are batch, side"):
        derived("contrast", "images", depth=3)


def test_code_that_takes_its_process_along_costs_a_sentence_and_nothing_else(host: HostLauncher):
    huge = "import numpy as np\ndef f(x): return x\ndef e():\n    return np.zeros((10, 1024, 1024, 1024), np.uint8)"
    for code, sentence in (
        ("import os\nos._exit(3)\ndef f(x): return x\ne = [1]", "the code ended its process: .* exit status 3"),
        ("import os\nos.abort()\ndef f(x): return x\ne = [1]", "the code ended its process: it aborted in native code"),
        ("import os\nfor _ in range(99):\n    os.fork()\ndef f(x): return x\ne = [1]", "starts more than 16 processes"),
        (huge, r"line 4: e\(\) needs more than 4 GiB"),
    ):
        with pytest.raises(RequestError, match=sentence):
            derive_in_process(Given(code=code, function="f", elems="e"), {}, 0, host)
    own = derive_in_process(Given(code=CODE, function="contrast", elems="images"), {}, 0, host)
    assert own.facts.size["batch"] == 16
    # What AutoGraph writes into the folder for temporary files is gone with the process.
    where = "import tempfile\nraise ValueError(tempfile.gettempdir().replace('/', ' '))\ndef f(x): return x\ne = [1]"
    with pytest.raises(RequestError) as told:
        derive_in_process(Given(code=where, function="f", elems="e"), {}, 0, host)
    folder = Path(str(told.value).partition("ValueError: ")[2].replace(" ", "/"))
    assert folder.name.startswith("mapbench-") and not folder.exists()


def test_the_code_has_bounds_for_memory_and_processes(monkeypatch: pytest.MonkeyPatch):
    bounds: dict[int, tuple[int, int]] = {}
    hooks: list[Callable[[str, tuple[()]], None]] = []
    monkeypatch.setattr(resource, "setrlimit", bounds.__setitem__)
    monkeypatch.setattr(sys, "addaudithook", hooks.append)
    with limits.limits():
        assert limits.MOST_BYTES < bounds[resource.RLIMIT_AS][0] < sys.maxsize
    for _ in range(limits.MOST_PROCESSES):
        hooks[0]("os.fork", ())
    with pytest.raises(Refused, match="starts more than 16 processes"):
        hooks[0]("subprocess.Popen", ())
    monkeypatch.setattr(os, "getpid", lambda: -1)
    monkeypatch.setattr(os, "_exit", lambda status: pytest.fail("a process that the code has made made another"))
    with pytest.raises(pytest.fail.Exception):
        hooks[0]("os.fork", ())


def test_code_that_never_ends_is_given_up_at_its_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "LIMIT_S", 0.3)
    said: list[str] = []
    code = compile("\nwhile not said:\n    pass", NAME, "exec")
    with limits.time_limit(said.append):
        exec(code, {"said": said})
    assert len(said) == 1 and said[0].startswith(("line 2: the code was still running", "line 3: the code was still"))
