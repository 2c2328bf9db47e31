"""What is measured for claims: comparisons and scripts, which several claims share."""

from measure.claims.spec import Compare, Script

_M, _V, _B = "map_fn.graph", "vectorized_map.graph", "batched.graph"

IMAGES = Compare(
    "image_sqrt", ("map_fn.eager", _M, _V, _B, "numpy_batched.eager", "numpy_function.graph"), seconds=15.0
)
BYTES = Compare("image_sqrt_uint8", (_M, _V))
SUMS = Compare("python_sum", (_M, _V))
POLYNOMIAL = Compare("polynomial", ("map_fn.eager", _M, "batched.eager", _B), seconds=15.0)
POLYNOMIAL_ON_GPU = Compare("polynomial", (_M, _V, _B), device="GPU:0")
GRADIENTS = Compare("per_example_gradients", (_M, _V))
GRADIENTS_OF_FEW, GRADIENTS_OF_MANY = (
    Compare("gradient_through_map", (_M, _V), {"batch": batch, "width": 64, "steps": 2}) for batch in (64, 4096)
)
SMALL_MATRICES = Compare("cholesky", (_V, _B), {"batch": 1_000, "side": 8, "columns": 1})
LARGE_MATRICES = Compare("cholesky", (_M, _V), {"batch": 8, "side": 256, "columns": 1})
ROTATED = Compare("augment", (_M, _V), {"batch": 32, "height": 64, "width": 64})
CONTRAST, FLIP = (Compare("augment", (_V,), ROTATED.size, {"op": name}) for name in ("contrast", "flip"))
TEXTS = Compare("decode", (_V,), {"batch": 200, "width": 16})
CONDITION, WHILE, SHAPES = (Compare(workload, (_V,)) for workload in ("branch", "inner_while", "variable_shape"))
REPEATS = Compare(
    "repeat_sum", (_M, "map_fn.xla", _V, "vectorized_map.xla", _B, "dataset.graph"),
    {"batch": 1000, "repeats": 10_000}, seconds=15.0,
)  # fmt: skip
MAXIMA = Compare("outer_reduce", ("map_fn.eager", _M, _V, "vectorized_map.xla"), seconds=15.0)
ONE, MANY = f"{_M}?parallel_iterations=1", f"{_M}?parallel_iterations=32"
IN_WORK = Compare("outer_reduce", (ONE, MANY), {"batch": 32, "side": 32})
EAGER_ONE = "map_fn.eager?parallel_iterations=1"
IN_WORK_EAGER = Compare("trig_exp", ("map_fn.eager", EAGER_ONE), {"batch": 50})
FEW = Compare("trig_exp", ("loop.eager", "loop.graph", _M, _V), {"batch": 100}, seconds=15.0)
DATASETS = Compare("polynomial", ("dataset.graph", "dataset_batched.graph"), {"batch": 2000})
FEW_SQUARES, SQUARES = (
    Compare("square", ("loop.eager", "map_fn.eager", _M, "vectorized_map.eager"), {"batch": batch})
    for batch in (10, 1000)
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
GPU_TIMES = timed(
    """def f(x):
    return tf.square(x) + 2 * x + 1

def there_and_back(x):
    with tf.device("CPU:0"):
        x = tf.identity(x) + 1
    return f(x)

def mapped(f, device):
    with tf.device(device):
        x, graph = tf.random.uniform([1000]), tf.function(lambda x: tf.map_fn(f, x))
    return lambda: graph(x).numpy()

report_times(9, {
    "a map on the CPU": mapped(f, "CPU:0"),
    "a map on the GPU": mapped(f, "GPU:0"),
    "a map on the GPU with copies": mapped(there_and_back, "GPU:0"),
})
""",
    30.0,
)

# Python that counts: calls, ops, traces, tensors that live.

WORK = Script(
    """import glob
import time
import tensorflow as tf

def wait(x):
    time.sleep(0.1)
    return x

def f(x):
    return tf.numpy_function(wait, [x], x.dtype, stateful=False)

for mode, mapped in (("eager", tf.map_fn), ("graph", tf.function(tf.map_fn))):
    mapped(f, tf.zeros([4]))
    began = time.perf_counter()
    mapped(f, tf.zeros([4]))
    report(**{mode: time.perf_counter() - began})

def ticks_of_threads():
    stats = {path: open(path).read() for path in glob.glob("/proc/self/task/*/stat")}
    return {path: int(stat.rsplit(")", 1)[1].split()[11]) for path, stat in stats.items()}

x = tf.random.uniform((8, 1200, 1200))
graph = tf.function(lambda x: tf.map_fn(lambda x: x @ x, x, parallel_iterations=1))
graph(x)
before = ticks_of_threads()
for _ in range(4):
    graph(x)
spent = [ticks - before.get(path, 0) for path, ticks in ticks_of_threads().items()]
report(busiest_percent=round(100 * max(spent, default=0) / max(1, sum(spent))))
""",
    seconds=9.0,
)
COUNTS = Script(
    """import tensorflow as tf

shapes = []

def f(x):
    shapes.append(x.shape)
    return x * 2 + 1

def calls(mapped, x):
    shapes.clear()
    mapped(x)
    mapped(x)
    return len(shapes)

def ops(mapped, x):
    return [op.type for op in tf.function(mapped).get_concrete_function(x).graph.get_operations()]

def by_map_fn(x):
    return tf.map_fn(f, x)

def vectorized(x):
    return tf.vectorized_map(f, x)

x, graph = tf.ones((50, 3)), tf.function(by_map_fn)
report(
    eager=calls(by_map_fn, x),
    graph=calls(graph, x),
    traces=graph.experimental_get_tracing_count(),
    loops=sum(op.endswith("While") for op in ops(by_map_fn, x)),
    vectorized_eager=calls(vectorized, x),
    vectorized_graph=calls(tf.function(vectorized), x),
    vectorized_loops=sum("While" in op for op in ops(vectorized, x)),
    more_ops=len(ops(vectorized, tf.ones((1000, 3)))) - len(ops(vectorized, tf.ones((10, 3)))),
)
ops(lambda x: tf.map_fn(f, x, parallel_iterations=5), x)
report(rank=shapes[-1].rank)

def total(x):
    result = tf.zeros_like(x)
    for i in range(100):
        result += x * i
    return result

whole = tf.function(lambda x: tf.map_fn(total, x)).get_concrete_function(tf.ones(5)).graph
nodes = [node.op for function in whole.as_graph_def().library.function for node in function.node_def]
report(multiplications=nodes.count("Mul"), python=sum("PyFunc" in op for op in nodes))

def traces(values):
    made = tf.function(lambda x, by: x * by)
    for x, by in values:
        made(x, by)
    return made.experimental_get_tracing_count()

report(
    numbers=traces([(x, by) for by in range(10)]),
    tensors=traces([(x, tf.constant(float(by))) for by in range(10)]),
)
""",
    seconds=9.0,
)
LIVES = Script(
    """import weakref
import tensorflow as tf

made, at_return, stored, calls = [], [], [], []

def alive():
    return sum(one() is not None for one in made)

def repeated(x):
    large = tf.repeat(x, 10_000)
    made.append(weakref.ref(large))
    return large

def plain(x):
    total = tf.reduce_sum(large := repeated(x))
    at_return.append(alive())
    return total

def deleting(x):
    large = repeated(x)
    total = tf.reduce_sum(large)
    del large
    at_return.append(alive())
    return total

def checking(x):
    large = repeated(x)
    total = tf.reduce_sum(tf.debugging.check_numerics(large, "no number"))
    at_return.append(alive())
    return total

def storing(x):
    stored.append(large := repeated(x))
    return tf.reduce_sum(large)

def ops(f):
    graph = tf.function(lambda x: tf.map_fn(f, x)).get_concrete_function(x).graph
    return sum(len(function.node_def) for function in graph.as_graph_def().library.function)

x = tf.range(50.0)
for f in (plain, deleting, checking, storing):
    made.clear()
    at_return.clear()
    tf.map_fn(f, x)
    report(**{f.__name__: max(at_return, default=0), f"{f.__name__}_after": alive()})
report(ops_deleting=ops(plain) - ops(deleting), ops_checking=ops(checking) - ops(plain))

def count(x):
    calls.append(1)
    return x

def f(x):
    return tf.repeat(tf.numpy_function(count, [x], x.dtype), 250_000)

def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

for name, end in (("plain", lambda dataset: dataset), ("cached", lambda dataset: dataset.cache())):
    calls.clear()
    dataset, before = end(tf.data.Dataset.range(50).map(f)), resident_bytes()
    for _ in range(2):
        for row in dataset:
            pass
    report(**{f"calls_{name}": len(calls), f"mib_{name}": round((resident_bytes() - before) / 2**20)})
""",
    seconds=12.0,
)
TAKES = Script(
    """import numpy as np
import tensorflow as tf

x = tf.random.uniform((20, 3))

def right(rows, factor):
    return sum(np.array_equal(rows[i], x[i] * factor) for i in range(20))

def nest(part):
    return {"sum": (part["a"] + part["b"][0],)}

def operation():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.vectorized_map(lambda x: tf.group(tf.identity(x)), tf.ones((20, 3))))

def running(mapper):
    total = tf.Variable(0.0)
    return tf.function(lambda x: mapper(lambda x: x * total.assign_add(1.0), x))(tf.ones(5)).numpy().tolist()

def assigned():
    assert running(tf.vectorized_map) == [1, 2, 3, 4, 5], "running totals are wrong"

def shape_inside():
    masked = tf.constant([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0], [1.0, 2.0, 3.0]])
    tf.vectorized_map(lambda x: tf.reduce_sum(tf.boolean_mask(x, x > 0)), masked)

ragged = tf.RaggedTensor.from_row_lengths(tf.random.uniform([9]), [2, 3, 4])
rows_of = tf.RaggedTensorSpec([None], tf.float32)
weight, images = tf.Variable(3.0), tf.ones([8, 4, 4, 3])
brightness = tf.keras.layers.RandomBrightness(0.5, value_range=(0, 10))

def different(f):
    return len(set(tf.function(lambda x: tf.vectorized_map(f, x))(images).numpy().tolist()))

report(
    order=right(tf.vectorized_map(lambda x: x * 2, x), 2),
    nested=right(tf.vectorized_map(nest, {"a": x, "b": [x]})["sum"][0], 2),
    operation=tried(operation),
    totals=sum(a == b for a, b in zip(running(tf.map_fn), range(1, 6))),
    assigned=tried(assigned),
    variable=right(tf.vectorized_map(lambda x: x * weight, x), 3),
    draws=different(lambda image: tf.random.uniform([])),
    stateless=different(lambda image: tf.random.stateless_uniform([], seed=(1, 2))),
    layer=different(lambda image: brightness(image, training=True)[0, 0, 0]),
    shape=tried(shape_inside),
    ragged=tried(lambda: tf.vectorized_map(lambda row: row[::-1], ragged)),
    ragged_mapped=tried(lambda: tf.map_fn(lambda row: row[::-1], ragged, fn_output_signature=rows_of)),
    uint8=tried(lambda: tf.map_fn(tf.sqrt, tf.constant([[1, 4]], tf.uint8))),
)

def loops(f, elems):
    made = tf.function(lambda x: tf.vectorized_map(f, x)).get_concrete_function(elems)
    return sum(op.type.endswith("While") for op in made.graph.get_operations())

matrices, keys = tf.eye(4, batch_shape=[8]) * 2, tf.constant([[0, 0, 1, 2], [0, 1, 1, 3]])
for name in ("cholesky", "eigvalsh", "det"):
    report(**{name: loops(getattr(tf.linalg, name), matrices)})
report(
    svd=loops(lambda matrix: tf.linalg.svd(matrix, compute_uv=False), matrices),
    unique=loops(lambda row: tf.unique(row).idx, keys),
    segment_sum=loops(lambda row: tf.math.segment_sum(tf.ones(4), row), keys),
    unsorted_segment_sum=loops(lambda row: tf.math.unsorted_segment_sum(tf.ones(4), row, 4), keys),
)
""",
    seconds=12.0,
)
# A side that fails on negative numbers tells whether it was computed for any.
SIDES = Script(
    """import tensorflow as tf

flag = tf.Variable(False)

def log(x):
    return tf.debugging.check_numerics(tf.math.log(x), "log of a negative number")

for name, of in (("by_element", lambda x: x > 0), ("by_flag", lambda x: flag), ("always", lambda x: x < 2)):
    f = lambda x: tf.cond(of(x), lambda: log(x), lambda: x)
    report(**{name: tried(lambda: tf.vectorized_map(f, tf.constant([1.0, -1.0])))})
"""
)
PLACES = Script(
    """import tensorflow as tf

on_gpu = []

def note(x):
    on_gpu.append(x.device.endswith("GPU:0"))
    return x

def ops(x):
    return note(tf.square(x) + 2 * x + 1)

def loop(x):
    total = tf.zeros_like(x)
    for i in range(100):
        total = note(total + x * i)
    return total

def text(x):
    return tf.strings.to_number(note(tf.strings.as_string(x)))

with tf.device("GPU:0"):
    for f in (ops, loop, text):
        on_gpu.clear()
        tf.map_fn(f, tf.ones(5))
        report(**{f.__name__: 100 * sum(on_gpu) // len(on_gpu)})
""",
    seconds=8.0,
)
