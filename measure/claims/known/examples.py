"""Code examples in our names, with the calls of the document in its order: what they fail by is left in, at the line
where the document has it. Those that fail, or give NaN, name the claims in which the form that works is measured."""

from measure.claims.predicates import Faster, Figure, Runs
from measure.claims.spec import Claim, Compare, Predicate, Said, Script

_PIXELS = Script(
    """import tensorflow as tf
import numpy as np

def rooted(image):
    # A pixel at a time.
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            image[row, column] = tf.math.sqrt(image[row, column])
    return image

tf.map_fn(rooted, tf.random.normal((100, 64, 64, 3)))
""",
    seconds=8.0,
)

_ROOTS = Script(
    """import tensorflow as tf

roots = tf.map_fn(tf.math.sqrt, tf.random.normal((100, 64, 64, 3)))
report(nan_percent=100 * float(tf.reduce_mean(tf.cast(tf.math.is_nan(roots), tf.float32))))
""",
    seconds=8.0,
)

_BYTES = Script(
    """import tensorflow as tf

def rooted(image):
    return tf.cast(tf.math.sqrt(tf.cast(image, tf.float32)), tf.uint8)

images = tf.random.uniform((100, 64, 64, 3), minval=0, maxval=255, dtype=tf.uint8)
tf.vectorized_map(rooted, images)
""",
    seconds=7.0,
)

_BYTES_CAST = Script(
    """import tensorflow as tf

def rooted(image):
    return tf.cast(tf.math.sqrt(tf.cast(image, tf.float32)), tf.uint8)

images = tf.cast(tf.random.uniform((100, 64, 64, 3), minval=0, maxval=255, dtype=tf.int32), tf.uint8)
roots = tf.vectorized_map(rooted, images)
assert int(tf.reduce_max(roots)) == 15
""",
    seconds=7.0,
)

_BYTE_IMAGES = Compare("image_sqrt_uint8", ("map_fn.graph", "vectorized_map.graph"), budget_s=3.0)


def _timed(function: str, element: str, numbers: int) -> str:
    """The three timed examples of a document, which differ in the function and in how many numbers there are."""
    return f"""import time

import numpy as np
import tensorflow as tf

{function}
array = np.random.rand({numbers})
began = time.time()
of_loop = [{element} for x in array]
loop_s = time.time() - began

tensor = tf.constant(array)
began = time.time()
of_map_fn = tf.map_fn(f, tensor)
map_fn_s = time.time() - began
assert np.allclose(of_loop, of_map_fn.numpy())
report(ratio=map_fn_s / loop_s)
"""


_TRIG = "def f(x):\n    return tf.math.sin(x) + tf.math.cos(x) * tf.math.exp(x)\n"
_SQUARES = Script(_timed("def f(x):\n    return x**2\n", "f(x)", 1_000), seconds=7.0)
_TRIGS = Script(_timed(_TRIG, "f(x).numpy()", 1_000), seconds=8.0)
_TRACED_TRIGS = Script(_timed(f"@tf.function\n{_TRIG}", "f(x).numpy()", 10_000), seconds=24.0)


def _in_session(mapped: str) -> Script:
    return Script(
        f"""import tensorflow as tf

{mapped}
with tf.compat.v1.Session() as session:
    print(session.run(y))
""",
        seconds=7.0,
    )


_SUM_IN_SESSION = _in_session("""def f(x):
    # As many turns as terms.
    total = 0
    for i in range(100):
        total += x * i
    return total

x = tf.constant([1, 2, 3, 4, 5])
y = tf.map_fn(f, x)
""")
_POLYNOMIAL_IN_SESSION = _in_session("""def f(x):
    # TensorFlow's ops alone.
    return tf.math.square(x) + 2 * x + 1

x = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0])
y = tf.map_fn(f, x)
""")
_WHOLE_IN_SESSION = _in_session("""x = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0])
# No map.
y = tf.math.square(x) + 2 * x + 1
""")


def _pipeline(decorator: str, end: str) -> Script:
    return Script(
        f"""import tensorflow as tf

{decorator}def f(x):
    repeated = tf.repeat(x, repeats=10000)
    total = tf.reduce_sum(repeated)
{end}    return total

dataset = tf.data.Dataset.from_tensor_slices(tf.range(1000)).map(f)
for total in dataset:
    print(total)
""",
        seconds=6.0,
    )


_REPEATED = _pipeline("", "")
_DELETED = _pipeline("", "    del repeated\n")
_COMPILED = _pipeline("@tf.function(jit_compile=True)\n", "")

_OUTER = Script(
    """import tensorflow as tf

def outer(x):
    return tf.tensordot(x, x, 0)

products = tf.vectorized_map(outer, tf.ones((100, 32, 32)))
assert products.shape == (100, 32, 32, 32, 32)
""",
    seconds=6.0,
)


def _gradients(uniform: str) -> Script:
    return Script(
        f"""import tensorflow as tf

examples = 10
features = 32
layer = tf.keras.layers.Dense(1)

def gradients(example):
    with tf.GradientTape() as tape:
        x, label = example
        x = tf.expand_dims(x, 0)
        label = tf.expand_dims(label, 0)
        prediction = layer(x)
        loss = tf.nn.l2_loss(label - prediction)
    return tape.gradient(loss, (layer.kernel, layer.bias))

x = {uniform}([examples, features])
labels = {uniform}([examples, 1])
kernel, bias = tf.vectorized_map(gradients, (x, labels))
assert kernel.shape == (examples, features, 1)
assert bias.shape == (examples, 1)
""",
        seconds=6.0,
    )


_GRADIENTS = _gradients("tf.random_uniform")
_GRADIENTS_NOW = _gradients("tf.random.uniform")


def _example(
    seed: int,
    number: int,
    name: str,
    sentence: str,
    *tests: Predicate,
    words: str = "",
    note: str = "",
    works_as: tuple[str, ...] = (),
) -> Claim:
    where = Said(f"seed {seed}", words or f"example {number}")
    return Claim(f"example_{seed}_{number}_{name}", "limits", sentence, (where,), tests, note=note, works_as=works_as)


_SLOWER = "`tf.map_fn` takes {value} times as long as the loop"

CLAIMS = (
    _example(
        1,
        1,
        "pixels",
        "An image whose pixels are assigned in two loops can be mapped.",
        Runs(_PIXELS),
        works_as=("pixel_by_pixel_slow",),
    ),
    _example(
        1,
        2,
        "roots",
        "`tf.map_fn` of square roots of normal random numbers gives numbers.",
        Figure(_ROOTS, "nan_percent", "{value} % of the results are NaN", most=0),
        note="Half of these numbers are negative; the form that works has positive ones.",
        works_as=("whole_batch_faster_than_map_fn",),
    ),
    _example(
        1,
        3,
        "bytes",
        "`tf.random.uniform` draws 8-bit images, whose roots are then mapped.",
        Runs(_BYTES),
        works_as=("bytes_vectorized_faster",),
    ),
    _example(
        1,
        3,
        "bytes_cast",
        "Roots of 8-bit images can be mapped by `tf.vectorized_map` where int32 is drawn, and cast.",
        Runs(_BYTES_CAST),
        words="example 3, the working form",
    ),
    Claim(
        id="bytes_vectorized_faster",
        question="speed",
        sentence="Roots of 8-bit images, with their casts, are faster by `tf.vectorized_map` than by `tf.map_fn`.",
        said=(Said("seed 1", "on example 3, a substantial speed increase"),),
        tests=(Faster(_BYTE_IMAGES, "vectorized_map.graph", "map_fn.graph"),),
    ),
    _example(
        2,
        1,
        "squares",
        "Timed once, `tf.map_fn` of 1,000 squares takes longer than a loop over a NumPy array.",
        Figure(_SQUARES, "ratio", _SLOWER, least=1),
    ),
    _example(
        2,
        2,
        "trigonometry",
        "Timed once, `tf.map_fn` of 1,000 sines and exponentials takes longer than a loop of the same ops.",
        Figure(_TRIGS, "ratio", _SLOWER, least=1),
        note="The first calls of all ops are in the loop's time.",
    ),
    _example(
        2,
        3,
        "traced",
        "Timed once, eager `tf.map_fn` of a `tf.function` over 10,000 numbers takes longer than a loop of it.",
        Figure(_TRACED_TRIGS, "ratio", _SLOWER, least=1),
    ),
    _example(
        3,
        1,
        "sum",
        "`tf.map_fn` of a sum in a Python loop runs in a Session as it stands.",
        Runs(_SUM_IN_SESSION),
        works_as=("vectorized_map_faster_than_map_fn",),
    ),
    _example(
        3,
        2,
        "polynomial",
        "`tf.map_fn` of a polynomial runs in a Session as it stands.",
        Runs(_POLYNOMIAL_IN_SESSION),
        works_as=("whole_batch_faster_than_map_fn", "gpu_map_fn_faster_than_cpu"),
    ),
    _example(
        3,
        3,
        "whole",
        "A polynomial of a whole tensor runs in a Session as it stands.",
        Runs(_WHOLE_IN_SESSION),
        works_as=("whole_batch_faster_than_map_fn", "gpu_whole_batch_faster"),
    ),
    _example(4, 1, "pipeline", "`Dataset.map` of a sum over 10,000 repeats of a number runs.", Runs(_REPEATED)),
    _example(4, 2, "del", "`Dataset.map` of such a sum runs with `del` of the repeats.", Runs(_DELETED)),
    _example(
        4, 3, "compiled", "`Dataset.map` of such a sum runs with a function under `jit_compile=True`.", Runs(_COMPILED)
    ),
    _example(5, 1, "outer", "`tf.vectorized_map` of outer products gives the shape that is documented.", Runs(_OUTER)),
    _example(
        5,
        2,
        "gradients",
        "Gradients of single examples, of inputs of `tf.random_uniform`, run.",
        Runs(_GRADIENTS),
        works_as=("gradients_of_examples_faster",),
    ),
    _example(
        5,
        2,
        "gradients_now",
        "Gradients of single examples, of inputs of `tf.random.uniform`, run and have the documented shapes.",
        Runs(_GRADIENTS_NOW),
        words="example 2, the working form",
    ),
)
