"""The ops that `tf.vectorized_map` runs element by element are named, whether and however TensorFlow tells of them."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from measure.subject.traced import told_fallback
from tests import warm
from tests.engine import ROOT

_CODE = """
import json, logging
import tensorflow as tf
from measure.subject.traced import traced

said = []
handler = logging.Handler(logging.WARNING)
handler.emit = lambda record: said.append(record.getMessage())
logging.getLogger("tensorflow").addHandler(handler)

def filtered(image):  # has a converter, which warns in words of its own and loops
    kernel = tf.ones([3, 3, 1, 2])
    with tf.GradientTape() as tape:
        tape.watch(kernel)
        loss = tf.reduce_sum(tf.nn.conv2d(image[None], kernel, 1, "SAME") ** 2)
    return tape.gradient(loss, kernel)

def unique(x):  # has no converter
    return tf.reduce_sum(tf.unique(x)[0])

def diagonal(x):  # has a converter that falls back and says nothing
    return tf.linalg.tensor_diag(x)

def random(x):
    return tf.raw_ops.StatelessRandomUniform(shape=[2], seed=tf.cast(tf.stack([x[0], x[0]]), tf.int32))

inner = tf.function(unique)

def nested(x):  # in a function that is called, nothing is said of any op
    return inner(x)

def branch(x):
    return tf.cond(x[0] > 1, lambda: unique(x), lambda: x[0])

def in_loop(x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + unique(x)), (0, 0.0))[1]

def python(x):
    return tf.ensure_shape(tf.py_function(lambda value: value * 2, [x], tf.float32), [2])

def loop(x):  # loops of its own are converted, and so are its arrays
    def body(i, array):
        return i + 1, array.write(i, x)

    return tf.while_loop(lambda i, array: i < 3, body, (0, tf.TensorArray(tf.float32, 3)))[1].stack()

def picked(x):  # of each element's array another item
    values = tf.cast(x, tf.int32)
    return tf.TensorArray(tf.int32, 2).unstack(values).read(values[0] % 2)

def joined(x):  # the items of all arrays are joined by a loop over them
    return tf.TensorArray(tf.float32, 2, infer_shape=False).unstack(tf.reshape(x, [2, 1])).concat()

def through_loop(x):  # a loop that turns more often for one element than for another, and the way back
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.while_loop(lambda y: y < 10.0, lambda y: [y * 2.0], [x[0] + 1.0], maximum_iterations=8)[0]
    return tape.gradient(y, x)

def derived(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.linalg.tensor_diag(x)
    return tape.jacobian(y, x)

def vectorised(x):
    return tf.sin(x) + tf.reduce_sum(tf.where(x > 0, x, -x))

found = {}
x, matrices, images = tf.reshape(tf.range(10.0), [5, 2]), tf.ones([5, 2, 2]), tf.ones([5, 4, 4, 1])
loops = (in_loop, loop, picked, joined, through_loop)
for fn in (filtered, unique, diagonal, random, nested, branch, python, vectorised, *loops):
    elems = {filtered: images, diagonal: matrices}.get(fn, x)
    mapped = lambda elems: tf.vectorized_map(fn, elems)
    compiled = tf.function(mapped, jit_compile=True)
    for mode, call in (("eager", mapped), ("graph", tf.function(mapped)), ("xla", compiled.get_concrete_function)):
        said.clear()
        with traced() as collected:
            call(elems)
        told = [sentence for sentence in said if "while_loop" in sentence]
        found[f"{fn.__name__}.{mode}"] = [collected.fallbacks, told]
with traced() as collected:
    derived(tf.ones([2, 2]))
found["jacobian"] = [collected.fallbacks, []]

@tf.custom_gradient
def with_loop_back(x):
    return tf.identity(x), lambda dy: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, dy))[1]

@tf.function
def gradient(x):
    return tf.gradients(with_loop_back(x), x)[0]

with traced() as collected:
    gradient(x)
found["loop_back"] = [collected.fallbacks, []]
print("RESULT", json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, tuple[list[str], list[str]]]:
    done = warm.run(_CODE, folder=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rpartition("RESULT")[2])


@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
@pytest.mark.parametrize(
    ("function", "ops", "is_told"),
    [
        ("filtered", ["Conv2DBackpropFilter"], True),
        ("unique", ["Unique"], True),
        ("python", ["EagerPyFunc"], True),
        ("diagonal", ["Diag"], False),
        ("random", ["StatelessRandomUniform"], False),
        ("nested", ["Unique"], False),
        ("branch", ["Unique"], False),
        ("in_loop", ["Unique"], False),
        ("picked", ["TensorListGetItem"], False),
        ("loop", [], False),
        ("joined", [], False),
        ("through_loop", [], False),
        ("vectorised", [], False),
    ],
)
def test_ops_that_fall_back_are_named_whatever_tensorflow_says(
    found: dict[str, tuple[list[str], list[str]]], mode: str, function: str, ops: list[str], is_told: bool
) -> None:
    named, told = found[f"{function}.{mode}"]
    assert named == ops
    assert bool(told) == is_told
    # What is named need not be said a second time, in TensorFlow's words.
    assert all(told_fallback(sentence) in named for sentence in told)


def test_a_jacobian_is_vectorised_by_the_same_code(found: dict[str, tuple[list[str], list[str]]]) -> None:
    assert found["jacobian"][0] == ["DiagPart"]


def test_a_loop_of_a_gradient_is_none_of_vectorisation(found: dict[str, tuple[list[str], list[str]]]) -> None:
    assert found["loop_back"][0] == []


@pytest.mark.parametrize(
    ("sentence", "op"),
    [
        ("Using a while_loop for converting Unique cause there is no registered converter for this op.", "Unique"),
        ("Using a while_loop for converting Svd cause Unexpected or unsupported.", "Svd"),
        ("Using a while_loop for converting QueueDequeue", "QueueDequeue"),
        ("Conv2DBackpropFilter uses a while_loop. Fix that!", "Conv2DBackpropFilter"),
        ("The name Unique is not unique: tf.while_loop was called twice.", ""),
    ],
)
def test_whatever_words_tensorflow_uses_for_a_fall_back_name_its_op(sentence: str, op: str) -> None:
    assert told_fallback(sentence) == op


def test_tensorflow_has_no_other_words_for_a_fall_back() -> None:
    package = importlib.util.find_spec("tensorflow")
    assert package is not None and package.origin is not None
    source = (Path(package.origin).parent / "python/ops/parallel_for/pfor.py").read_text(encoding="utf-8")
    said = re.findall(r"""(?:logging\.(?:warning|warn|error|info)|msg =)\s*\(\s*f?"([^"]*)""", source)
    loops = [sentence for sentence in said if re.search("loop|sequential|fall", sentence, re.IGNORECASE)]
    assert loops == ["Using a while_loop for converting ", "Conv2DBackpropFilter uses a while_loop. Fix that!"]
