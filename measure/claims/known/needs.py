"""Comparisons, sweeps and timed scripts that several claims share."""

from measure.claims.spec import Compare, Script, Swept

IMAGES = Compare(
    "image_sqrt",
    ("map_fn.eager", "map_fn.graph", "vectorized_map.graph", "batched.graph", "numpy_batched.eager",
     "numpy_function.graph"),
    budget_s=30.0,
)  # fmt: skip
BYTES = Compare("image_sqrt_uint8", ("map_fn.graph", "vectorized_map.graph"))
SUMS = Compare("python_sum", ("map_fn.graph", "vectorized_map.graph"))
POLYNOMIAL = Compare("polynomial", ("map_fn.eager", "map_fn.graph", "batched.eager", "batched.graph"), budget_s=30.0)
GRADIENTS = Compare("per_example_gradients", ("map_fn.graph", "vectorized_map.graph"))
SMALL_MATRICES = Compare(
    "cholesky", ("vectorized_map.graph", "batched.graph"), {"batch": 1_000, "side": 8, "columns": 1}
)
LARGE_MATRICES = Compare("cholesky", ("map_fn.graph", "vectorized_map.graph"), {"batch": 8, "side": 256, "columns": 1})
ROTATED = Compare("augment", ("map_fn.graph", "vectorized_map.graph"), {"batch": 32, "height": 64, "width": 64})
TEXTS = Compare("decode", ("vectorized_map.graph",), {"batch": 200, "width": 16})
REPEATS = Compare(
    "repeat_sum",
    ("map_fn.graph", "map_fn.xla", "vectorized_map.graph", "vectorized_map.xla", "batched.graph", "dataset.graph"),
    {"batch": 1000, "repeats": 10_000},
    budget_s=30.0,
)
FEW = Compare(
    "trig_exp", ("loop.eager", "loop.graph", "map_fn.graph", "vectorized_map.graph"), {"batch": 100}, budget_s=30.0
)
SQUARES = Swept(
    "square",
    ("loop.eager", "map_fn.eager", "map_fn.graph", "vectorized_map.eager"),
    "batch",
    (10, 100, 1000),
    budget_s=60.0,
)

# Python that times functions, which take turns, and reports a figure of each.
_TIMES = """import time
import tensorflow as tf

def report_times(count, ways):
    samples = {name: [] for name in ways}
    for _ in range(count + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            samples[name].append(time.perf_counter() - began)
    # The lower quartile without the first call.
    report(**{name: sorted(values[1:])[count // 4] for name, values in samples.items()})

"""


def timed(source: str, seconds: float) -> Script:
    """A script that times functions by ``report_times(count, {name: function})``, in several processes."""
    return Script(_TIMES + source, processes=3, seconds=seconds)


NUMBERS = timed(
    """graph = tf.function(lambda x: tf.map_fn(lambda x: x**2, x))
for count in (10, 1000):
    numbers = [float(i) for i in range(count)]
    x = tf.constant(numbers)
    report_times(4, {
        f"a Python loop over {count} numbers": lambda: [x**2 for x in numbers],
        f"eager tf.map_fn over {count} numbers": lambda: tf.map_fn(lambda x: x**2, x),
        f"tf.map_fn over {count} numbers in a graph": lambda: graph(x).numpy(),
        f"a tensor of {count} numbers": lambda: tf.constant(numbers),
        f"a tensor for each of {count} numbers": lambda: [tf.constant(x) for x in numbers],
    })
""",
    30.0,
)
INSIDE = timed(
    """images = tf.random.uniform((10, 16, 16))
pixels = tf.function(lambda x: tf.map_fn(lambda x: tf.map_fn(lambda x: tf.map_fn(tf.sqrt, x), x), x))
whole = tf.function(lambda x: tf.map_fn(tf.sqrt, x))
report_times(9, {"a map over pixels": lambda: pixels(images), "a map over images": lambda: whole(images)})

table, x = tf.random.uniform([100_000]), tf.random.uniform([50])

def before(x):
    total = tf.reduce_sum(tf.sqrt(table))
    return tf.map_fn(lambda x: x * total, x)

def within(x):
    return tf.map_fn(lambda x: x * tf.reduce_sum(tf.sqrt(table)), x)

for mode, made in (
    ("eager", lambda f: f),
    ("in a graph", tf.function),
    ("under XLA", lambda f: tf.function(f, jit_compile=True)),
):
    ways = {"before the map": made(before), "in each element": made(within)}
    report_times(9, {f"a sum {place} ({mode})": lambda f=f: f(x) for place, f in ways.items()})
""",
    24.0,
)
DECORATED = timed(
    """def few(x):
    return tf.sin(x) + tf.cos(x) * tf.exp(x)

def many(x):
    for _ in range(25):
        x = few(x) / 4
    return x

x = tf.random.uniform([20])
for ops, f in ((4, few), (125, many)):
    traced = tf.function(f)
    report_times(4, {
        f"a Python function of {ops} ops": lambda: tf.map_fn(f, x),
        f"a tf.function of {ops} ops": lambda: tf.map_fn(traced, x),
    })
""",
    27.0,
)
# XLA writes a file for every program that it compiles.
SIZES = Script(
    """import os, tempfile, time
from pathlib import Path

folder = Path(tempfile.mkdtemp())
os.environ["XLA_FLAGS"] = f"--xla_dump_to={folder} --xla_dump_hlo_as_text"

import tensorflow as tf

def f(x):
    return tf.reduce_sum(tf.sin(x) * tf.exp(x) + tf.sqrt(x), axis=1)

def programs():
    return len(list(folder.glob("*before_optimizations.txt")))

spec = [tf.TensorSpec([None, 64])]
ways = {
    "XLA": (dict(jit_compile=True), None),
    "XLA with None": (dict(jit_compile=True, input_signature=spec), None),
    "XLA with padding": (dict(jit_compile=True), 32),
    "a graph": (dict(input_signature=spec), None),
}
batches = [tf.random.uniform([size, 64]) for size in (3, 17, 5, 30, 9, 17, 24, 12, 5, 28, 21, 3, 14, 31, 7)]
for warm in (True, False):
    for name, (options, to) in ways.items():
        made, before, began = tf.function(f, **options), programs(), time.perf_counter()
        for x in batches[:1] if warm else batches:
            made(x) if to is None else made(tf.pad(x, [[0, to - len(x)], [0, 0]]))[: len(x)]
        seconds = time.perf_counter() - began
        report(**{name: seconds, f"programs of {name}": programs() - before})
""",
    processes=3,
    seconds=30.0,
)
