"""What is derived of a function that comes as bare code, and what is said where it cannot be measured."""

import base64
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest
from msgspec import UnsetType

from measure.engine.deriving import facts_of
from measure.engine.host_launcher import HostLauncher
from measure.model.request import RequestError
from tests.engine import ROOT
from tests.functions import CODE, KERAS
from workloads.functions import Facts, Given
from workloads.own import leaves_from_wire
from workloads.spec import Leaf


def derived(host: HostLauncher, function: str, elems: str, code: str = CODE, **more: Any) -> Facts:
    size = more.pop("size", {})
    return facts_of(host, Given(code=code, function=function, elems=elems, **more), size, seed=0)


def refusal(host: HostLauncher, function: str, elems: str, code: str = CODE, **more: Any) -> str:
    with pytest.raises(RequestError) as raised:
        derived(host, function, elems, code, **more)
    return str(raised.value)


IMAGE = Leaf((8, 8, 3), "float32")
VECTOR = Leaf((8,), "float32")


@pytest.mark.parametrize(
    ("function", "elems", "element", "result", "reference"),
    [
        ("flip", "images", IMAGE, IMAGE, "shapes"),
        ("contrast", "images", IMAGE, IMAGE, "float64"),
        ("decode", "raw", Leaf((), "string"), Leaf((4,), "uint8"), "own"),
        ("to_number", "numbers_as_text", Leaf((), "string"), Leaf((), "float32"), "own"),
        (
            "solve",
            "systems",
            {"a": Leaf((6, 6), "float32"), "b": Leaf((6, 1), "float32")},
            Leaf((6, 1), "float32"),
            "float64",
        ),
        (
            "three",
            "vectors",
            VECTOR,
            {"f": Leaf((), "float32"), "i": Leaf((), "int64"), "b": Leaf((8,), "bool")},
            "float64",
        ),
        ("positives", "vectors", VECTOR, Leaf((8,), "float32", sparse=True), "float64"),
        ("gradient_of_rows", "ids", Leaf((2,), "int64"), Leaf((10, 3), "float32", sparse=True), "own"),
        # In float64 its digits would be others.
        ("as_text", "vectors", VECTOR, {"text": Leaf((8,), "string"), "digits": Leaf((8,), "int32")}, "own"),
        ("branchy", "vectors", VECTOR, VECTOR, "float64"),
        ("counting", "vectors", VECTOR, VECTOR, "float64"),
        ("in_python", "vectors", VECTOR, VECTOR, "own"),
        ("keeps_state", "vectors", VECTOR, VECTOR, "shapes"),
    ],
)
def test_shapes_dtypes_and_the_reference_are_derived(
    host: HostLauncher, function: str, elems: str, element: Any, result: Any, reference: str
):
    facts = derived(host, function, elems)
    assert leaves_from_wire(facts.element) == element
    assert leaves_from_wire(facts.result) == result
    assert facts.reference == reference


@pytest.mark.parametrize(
    ("function", "elems", "element", "result", "reference"),
    [
        # Of 1, 2, 3, 4, 1 and 2 numbers.
        ("mean", "sentences", Leaf((None,), "float32", length=13 / 6), Leaf((), "float32"), "float64"),
        (
            "marked_words",
            "marked",
            {"words": Leaf((None,), "float32", length=2.0), "mark": Leaf((2,), "float32")},
            {"words": Leaf((None,), "float32", length=2.0), "mark": Leaf((2,), "float32")},
            "float64",
        ),
        ("twice", "ids[0]", Leaf((), "int64"), Leaf((2, None), "int64", length=2.25), "own"),
    ],
)
def test_lengths_that_differ_are_derived(
    host: HostLauncher, function: str, elems: str, element: Any, result: Any, reference: str
):
    facts = derived(host, function, "chosen", f"{CODE}\nchosen = {elems}")
    assert leaves_from_wire(facts.element) == element
    assert leaves_from_wire(facts.result) == result
    assert facts.reference == reference


def test_sizes_are_the_whole_number_parameters_of_the_elements(host: HostLauncher):
    assert derived(host, "contrast", "images").size == {"batch": 16, "side": 8}
    other = derived(host, "contrast", "images", size={"side": 5, "batch": 3})
    assert other.size == {"batch": 3, "side": 5}
    assert leaves_from_wire(other.element) == Leaf((5, 5, 3), "float32")
    # An array has as many elements as it has, and any batch can be made of them.
    assert derived(host, "to_number", "numbers_as_text").size == {"batch": 3}
    assert derived(host, "to_number", "numbers_as_text", size={"batch": 50}).size == {"batch": 50}


@pytest.mark.parametrize(
    "code", ["import random\ne = [random.random()]", "import numpy as np\ne = np.random.rand(3)",
             "import tensorflow as tf\ne = tf.random.uniform([3])"])  # fmt: skip
def test_elements_that_draw_from_a_global_state_are_the_same_in_each_process(host: HostLauncher, code: str):
    assert derived(host, "f", "e", f"{code}\ndef f(x): return x").reference in ("own", "float64")


def pickled(code: str, *names: str) -> str:
    """Code in which these functions of other code are pickled, as those of a notebook are."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(code, space)
    data = [base64.b64encode(cloudpickle.dumps(space[name])).decode() for name in names]
    lines = [f'{name} = cloudpickle.loads(base64.b64decode("{each}"))' for name, each in zip(names, data, strict=True)]
    return "\n".join(["import base64, cloudpickle", *lines])


_DRAWN = "import random\nimport numpy as np\ndef f(x): return x\ne = lambda: "


@pytest.mark.parametrize("drawn", ["np.random.rand(5)", "[random.random()]"])
def test_pickled_elements_that_draw_are_the_same_in_each_process(host: HostLauncher, drawn: str):
    code = pickled(_DRAWN + drawn, "f", "e")
    assert "random" not in code
    assert derived(host, "f", "e", code).reference in ("own", "float64")


def test_pickled_elements_that_cannot_be_seeded_are_refused(host: HostLauncher):
    code = pickled(_DRAWN + "np.random.default_rng().random(5)", "f", "e")
    assert "e gives other elements in each process" in refusal(host, "f", "e", code)


def test_what_a_pickled_function_changes_is_seen(host: HostLauncher):
    code = pickled("seen = []\ndef kept(x): seen.append(1)\ndef f(x):\n    kept(x)\n    return x", "f")
    facts = derived(host, "f", "e", f"{code}\ne = [1.0, 2.0]")
    assert facts.effects
    assert "It changes seen in Python" in " ".join(facts.notes)


def test_work_is_counted(host: HostLauncher):
    contrast, solve = derived(host, "contrast", "images"), derived(host, "solve", "systems")
    # The mean of each channel, and what is subtracted, multiplied and added.
    assert contrast.flops == 4 * 8 * 8 * 3
    # n³/3 of the factor, and two triangular systems.
    assert solve.flops == 6**3 // 3 + 2 * 6 * 6


def test_variables_are_those_of_the_code(host: HostLauncher):
    block = derived(host, "dense", "vectors", KERAS)
    # 8 × 16 weights with 16 biases, and four vectors of 16 of the normalisation.
    assert "assigns" not in " ".join(block.notes)  # as it does only when it makes them
    assert block.variable_bytes == 4 * (8 * 16 + 16 + 4 * 16)
    gradient = derived(host, "gradient", "vectors", KERAS)
    assert leaves_from_wire(gradient.result) == [Leaf((8, 4), "float32"), Leaf((4,), "float32")]


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("flip", "draws random numbers"),
        ("keeps_state", "keeps state"),
        ("flip", "in a graph vectorized_map, chunked and dataset_batched can too."),
        ("positive", "has assertions"),
        ("finite", "It checks that numbers are finite: strategies under XLA leave that out and are wrong"),
        ("in_python", "calls into Python"),
        ("counting", "It prints and changes calls in Python"),
        ("counting", "only loop.eager, map_fn.eager and while_loop.eager can work"),
        ("printing", "It prints with tf.print: loop, loop_compiled, map_fn, while_loop, autograph and dataset do so"),
        ("keeps_state", "loop, loop_compiled, map_fn, while_loop, autograph and dataset can work, with one call"),
        ("keeps_state", "assigns to a variable"),
        ("positives", "each strategy makes those of an element dense"),
        ("large", "Its results have no fixed shape"),
        ("large", "cannot work, and loop, loop_compiled, map_fn and dataset can, eager or in a graph"),
        ("in_numpy", "will fail, and only loop.eager, map_fn.eager and while_loop.eager can work"),
        ("mean", "The lengths of its elements differ"),
    ],
)
def test_what_a_function_does_beside_its_result_is_said(host: HostLauncher, function: str, sentence: str):
    elems = {"flip": "images", "mean": "sentences"}.get(function, "vectors")
    notes = " ".join(derived(host, function, elems).notes)
    assert sentence in notes
    plain = " ".join(derived(host, "contrast", "images").notes)
    assert sentence not in plain


def test_strategies_that_cannot_work_are_known(host: HostLauncher):
    assert "Python" in derived(host, "in_python", "vectors").unsupported["*.xla"]
    assert "tf.print" in derived(host, "printing", "vectors").unsupported["*.xla"]
    assert derived(host, "contrast", "images").unsupported == {}
    assert "first axis alone" in derived(host, "large_columns", "vectors").unsupported["map_fn.*"]
    assert derived(host, "large", "vectors").unsupported == {}


def test_assertions_are_known_of_either_kind(host: HostLauncher):
    functions = ("positive", "finite", "branchy")
    assert [derived(host, name, "vectors").asserts for name in functions] == [True, True, False]


def test_ops_of_unknown_work_are_named(host: HostLauncher):
    facts = derived(host, "smoothed", "vectors")
    assert (facts.unknown_work, facts.flops) == (["Betainc"], 2 * 8)
    assert "The work of Betainc is not known: the limit is of bytes alone." in facts.notes
    assert isinstance(derived(host, "contrast", "images").unknown_work, UnsetType)


@pytest.mark.parametrize(
    ("function", "draws", "effects"),
    [("contrast", False, False), ("flip", True, False), ("keeps_state", False, True), ("counting", False, True),
     ("printing", False, True), ("in_python", False, True), ("reads_in_a_function", False, False)],
)  # fmt: skip
def test_effects_are_checked_of_functions_that_have_some(host: HostLauncher, function: str, draws: bool, effects: bool):
    facts = derived(host, function, "images" if function in ("contrast", "flip") else "vectors")
    assert (facts.draws, facts.effects) == (draws, effects)


def test_a_seed_that_a_layer_keeps_makes_its_draws_random(host: HostLauncher):
    facts = derived(host, "drops", "vectors", KERAS)
    assert (facts.draws, facts.effects, facts.reference) == (True, True, "shapes")


def _line(text: str) -> int:
    return CODE.splitlines().index(text) + 1


@pytest.mark.parametrize(
    ("function", "elems", "sentence"),
    [
        ("two", "vectors", "missing a required argument: 'y'; an element of several parts is one tuple"),
        ("text", "vectors", "text returns a value of type str: a tensor, or a tuple, list or dict"),
        ("other_axes", "vectors", "(float32 (), then float32 (8)): a batch needs one dtype and one number of axes"),
        ("exits", "vectors", f"line {_line('    raise SystemExit(3)')}: it exits (3)"),
        ("square_of_vector", "vectors", f"line {_line('    return tf.linalg.inv(x)')}: InvalidArgumentError"),
        ("cube", "vectors", "the code has no 'cube', which was named as the function"),
        ("flip", "cubes", "the code has no 'cubes', which was named as the elems"),
        ("calls", "vectors", "calls is of type int: a function of one element is needed"),
        ("flip", "calls", "calls has no first axis to map over"),
    ],
)
def test_what_is_wrong_with_a_function_is_a_sentence_with_the_line(
    host: HostLauncher, function: str, elems: str, sentence: str
):
    assert sentence in refusal(host, function, elems)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("x = (", "line 1: '(' was never closed"),
        (f"x = {'-' * 20_000}1", "the code is nested too deeply for Python: split its longest expression"),
        (f"x = {'1 + ' * 20_000}1", "the code is nested too deeply for Python: split its longest expression"),
        (
            "import os\nos._exit(3)\ndef f(x): return x\ne = [1]",
            "the code ended its process: it ended by itself with exit status 3",
        ),
        ("import os\nos.abort()\ndef f(x): return x\ne = [1]", "the code ended its process: it aborted in native code"),
        ("import no_such_package\ndef f(x): return x\ne = 1", "line 1: ModuleNotFoundError: No module named"),
        ("def f(x): return x\ne = []", "e is empty: at least one element is needed"),
        ("def f(x): return x\ne = object()", "e gives no tensors"),
        ("def f(x): return x\ne = ([1, 2], [1, 2, 3])", "the parts of e have 2 and 3 elements"),
        ("def f(x): return x\ndef e(n): return [n]", "e asks for n: give it a default, as in n=100"),
        (
            "import numpy as np\ndef f(x): return x\ndef e():\n    return np.zeros((10, 1024, 1024, 1024), np.uint8)",
            "line 4: e() needs more than 4 GiB",
        ),
        ("def f(x): return x\ne = [[[1.0], [2.0, 3.0]], [[4.0]]]", "e gives no tensors: setting an array element"),
        (
            "import tensorflow as tf\ndef f(x): return tf.IndexedSlices(x[None], tf.constant([1]))\ne = [[1.0]]",
            "ValueError: Tensor conversion requested",
        ),
        ("import os\nfor _ in range(99):\n    os.fork()\ndef f(x): return x\ne = [1]", "starts more than 16 processes"),
        (
            "import numpy as np\ndef f(x): return x\ne = np.random.default_rng().random(5)",
            "e gives other elements in each process: seed its random numbers, as in np.random.default_rng(0)",
        ),
        ("TITLE = 3\ndef f(x): return x\ne = [1]", "TITLE is not valid: a text of at most 80 signs"),
        ("PRESETS = [1]\ndef f(x): return x\ne = [1]", "PRESETS is not valid: at most 20 names with sizes"),
        ('PRESETS = {"s": {"n": 1}}\ndef f(x): return x\ne = [1]', "PRESETS['s'] is not valid: whole numbers from 1"),
        ("def strategy(x): return x\ndef f(x): return x\ne = [1]", "the code defines 'strategy'"),
    ],
)
def test_bad_code_costs_a_sentence_and_nothing_else(host: HostLauncher, code: str, sentence: str):
    assert sentence in refusal(host, "f", "e", code)
    assert derived(host, "contrast", "images").size["batch"] == 16


def test_a_title_and_presets_are_used_where_the_code_has_them(host: HostLauncher):
    code = CODE + 'TITLE = "Halves"\nPRESETS = {"Small": {"batch": 2, "side": 4}}\n'
    facts = facts_of(host, Given(code=code, function="contrast", elems="images"), {}, 0)
    assert (facts.title, facts.presets) == ("Halves", {"Small": {"batch": 2, "side": 4}})


def test_a_size_that_is_not_there_is_refused(host: HostLauncher):
    assert refusal(host, "contrast", "images", size={"depth": 3}) == (
        "images has no size 'depth': its sizes are batch, side"
    )


LOUD = (
    "for _ in range(300): print('x' * 2**20)\ndef f(x): return x\ne = [1 / 0]",
    "def f(x): return x\nraise ValueError('x' * 2**28)",
    "import numpy as np\ndef f(x): return x\ndef e(): return np.ones((10, 1024, 1024, 1024), np.uint8)",
    "import numpy as np\ndef f(x): raise ValueError('so')\ndef e(): return np.ones((4, 256, 1024, 1024), np.uint8)",
)


def test_what_bad_code_prints_says_and_holds_is_not_held_by_who_asks(host: HostLauncher):
    refusal(host, "f", "e", LOUD[0])
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
    before = psutil.Process().memory_info().rss
    for code in LOUD:
        refusal(host, "f", "e", code)
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert int(peak) * 2**10 - before < 64 * 2**20


MANY = """
import os, resource, signal, subprocess
from measure.subject import limits
if os.getuid() == 0:  # who has no bounds
    os.setgid(65534)
    os.setuid(65534)
before = resource.getrlimit(resource.RLIMIT_NPROC)
with limits.limits():
    assert resource.getrlimit(resource.RLIMIT_NPROC) != before
    script = f"i=0; while [ $i -lt {2 * limits._BESIDE} ]; do sleep 60 & i=$((i+1)); done"
    shell = subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True, stderr=subprocess.PIPE, text=True)
    status = shell.wait()
    os.killpg(shell.pid, signal.SIGKILL)
print("bounded" if status and "fork" in shell.stderr.read() else f"status {status}")
"""


def test_what_the_code_starts_cannot_start_others_without_end():
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "bounded\n"


def test_code_that_never_ends_is_ended_and_its_line_said(host: HostLauncher):
    sentence = refusal(host, "f", "e", "def f(x):\n    while True: print(x)\ne = [1.0]")
    assert sentence == "line 2: the code was still running after 15 s: give fewer or smaller elements"
