"""Claims on mapping on a GPU, which need one."""

from measure.claims.known.needs import timed
from measure.claims.predicates import Ends, Faster, Figure
from measure.claims.spec import Compare, Script, claim

_M, _V, _B = "map_fn.graph", "vectorized_map.graph", "batched.graph"
_POLYNOMIAL = Compare("polynomial", (_M, _V, _B), device="GPU:0")
_PLACES = Script(
    """import tensorflow as tf

tf.config.list_physical_devices("GPU") or exit("there is no GPU")
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
_TIMES = timed(
    """tf.config.list_physical_devices("GPU") or exit("there is no GPU")

def f(x):
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
_ON_GPU = "{value} % of its results are on the GPU"

CLAIMS = (
    claim(
        "gpu_runs_map_fn", "limits", ("seed 3",), "`tf.map_fn` of a function of TensorFlow ops runs on a GPU.",
        Ends(_POLYNOMIAL, _M),
        Figure(_PLACES, "ops", _ON_GPU, 100),
        needs_gpu=True,
    ),
    claim(
        "gpu_falls_back", "limits", ("seed 3",),
        "Python code in the function, and ops that a GPU has no kernel for, make it run on the CPU.",
        Figure(_PLACES, "loop", _ON_GPU, most=0, when="a Python loop"),
        Figure(_PLACES, "text", _ON_GPU, most=0, when="an op on text"),
        advice="A Python loop is unrolled into ops, which run on the GPU.", needs_gpu=True,
    ),
    claim(
        "gpu_copies_cost", "speed", ("seed 2", "seed 3"),
        "A copy to the CPU and back for each element makes `tf.map_fn` on a GPU slower.",
        Faster(_TIMES, "a map on the GPU", "a map on the GPU with copies", 1.2),
        needs_gpu=True,
    ),
    claim(
        "gpu_map_fn_faster_than_cpu", "speed", ("seed 1", "seed 3"),
        "`tf.map_fn` of a thousand numbers is faster on a GPU than on a CPU.",
        Faster(_TIMES, "a map on the GPU", "a map on the CPU"),
        needs_gpu=True,
    ),
    claim(
        "gpu_whole_batch_faster", "speed", ("seed 1", "seed 3"),
        "On a GPU, what works on the whole batch is at least ten times as fast as `tf.map_fn`.",
        Faster(_POLYNOMIAL, _B, _M, 10, "ops on the batch"),
        Faster(_POLYNOMIAL, _V, _M, 10, "`tf.vectorized_map`"),
        needs_gpu=True,
    ),
)  # fmt: skip
