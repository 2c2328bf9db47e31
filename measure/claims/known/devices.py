"""Claims on mapping on a GPU, which need one."""

from measure.claims.known.python_loops import IN_TURNS
from measure.claims.predicates import Ends, Faster, Figure, QuickerBy
from measure.claims.spec import Claim, Compare, Said, Script

_POLYNOMIAL = Compare(
    "polynomial", ("map_fn.graph", "vectorized_map.graph", "batched.graph"), device="GPU:0", budget_s=3.0
)

_PLACES = Script(
    """import tensorflow as tf

tf.config.list_physical_devices("GPU") or exit("there is no GPU")
used = []

def note(x):
    used.append(x.device.endswith("GPU:0"))
    return x

def of_ops(x):
    return note(tf.square(x) + 2 * x + 1)

def of_a_loop(x):
    total = tf.zeros_like(x)
    for i in range(100):
        total = note(total + x * i)
    return total

def of_text(x):
    return tf.strings.to_number(note(tf.strings.as_string(x)))

with tf.device("GPU:0"):
    for f in (of_ops, of_a_loop, of_text):
        used.clear()
        tf.map_fn(f, tf.ones(5))
        report(**{f.__name__: 100 * sum(used) / len(used)})
""",
    seconds=6.0,
)

_BOTH = Script(
    IN_TURNS
    + """tf.config.list_physical_devices("GPU") or exit("there is no GPU")

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

report(
    **in_turns(
        9,
        CPU=mapped(f, "CPU:0"),
        GPU=mapped(f, "GPU:0"),
        GPU_with_copies=mapped(there_and_back, "GPU:0"),
    )
)
""",
    seconds=8.0,
)

CLAIMS = (
    Claim(
        id="gpu_runs_map_fn",
        question="limits",
        sentence="`tf.map_fn` of a function of TensorFlow ops runs on a GPU.",
        said=(
            Said("seed 3", "first paragraph"),
            Said("seed 3", "entirely composed of ops that have been optimized"),
            Said("seed 3", "summary"),
        ),
        tests=(
            Ends(_POLYNOMIAL, "map_fn.graph"),
            Figure(_PLACES, "of_ops", "{value} % of results are on the GPU", least=100),
        ),
        needs_gpu=True,
    ),
    Claim(
        id="gpu_python_loop_falls_back",
        question="limits",
        sentence="A Python loop in the mapped function makes it run on the CPU, though there is a GPU.",
        said=(Said("seed 3", "the bottleneck of Python"), Said("seed 3", "on example 1")),
        tests=(Figure(_PLACES, "of_a_loop", "{value} % of results are on the GPU", most=0),),
        needs_gpu=True,
    ),
    Claim(
        id="gpu_other_ops_fall_back",
        question="limits",
        sentence="An op that a GPU has no kernel for, such as one on text, runs on the CPU.",
        said=(Said("seed 3", "execution falls back"),),
        tests=(Figure(_PLACES, "of_text", "{value} % of its results are on the GPU", most=0),),
        needs_gpu=True,
    ),
    Claim(
        id="gpu_copies_cost",
        question="speed",
        sentence="A copy to the CPU and back for each element makes `tf.map_fn` on a GPU slower.",
        said=(Said("seed 2", "transfer between CPU and GPU"), Said("seed 3", "the overhead of data transfer")),
        tests=(QuickerBy(_BOTH, "GPU", "GPU_with_copies", 1.2),),
        needs_gpu=True,
    ),
    Claim(
        id="gpu_map_fn_faster_than_cpu",
        question="speed",
        sentence="`tf.map_fn` of a thousand numbers is faster on a GPU than on a CPU.",
        said=(Said("seed 3", "on example 2"), Said("seed 1", "parallelism when using GPUs")),
        tests=(QuickerBy(_BOTH, "GPU", "CPU"),),
        needs_gpu=True,
    ),
    Claim(
        id="gpu_whole_batch_faster",
        question="speed",
        sentence="On a GPU, ops on the whole batch are at least ten times as fast as `tf.map_fn`.",
        said=(
            Said("seed 1", "parallel processing capabilities of GPUs"),
            Said("seed 3", "kernels for large arrays"),
            Said("seed 3", "on example 3"),
        ),
        tests=(Faster(_POLYNOMIAL, "batched.graph", "map_fn.graph", 10.0),),
        needs_gpu=True,
    ),
    Claim(
        id="gpu_vectorized_map_faster",
        question="speed",
        sentence="On a GPU, `tf.vectorized_map` is at least ten times as fast as `tf.map_fn`.",
        said=(Said("seed 3", "alternative approaches"),),
        tests=(Faster(_POLYNOMIAL, "vectorized_map.graph", "map_fn.graph", 10.0),),
        needs_gpu=True,
    ),
)
