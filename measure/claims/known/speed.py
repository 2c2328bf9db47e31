"""Claims on what is fast."""

from measure.claims.known.needs import (
    BYTES,
    DECORATED,
    GRADIENTS,
    IMAGES,
    INSIDE,
    LARGE_MATRICES,
    NUMBERS,
    POLYNOMIAL,
    REPEATS,
    ROTATED,
    SIZES,
    SMALL_MATRICES,
    SQUARES,
    SUMS,
)
from measure.claims.predicates import AsFast, Faster, Figure
from measure.claims.spec import Compare, Script, Swept, claim

_ISSUES = "https://github.com/tensorflow/tensorflow/issues"
_PIPELINES = "https://www.tensorflow.org/guide/data_performance"
_M, _V, _B = "map_fn.graph", "vectorized_map.graph", "batched.graph"
_ONE_PARALLEL = "?parallel_iterations=1"

_WORK = Script(
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
_PARALLEL = Compare("trig_exp", ("map_fn.eager", f"map_fn.eager{_ONE_PARALLEL}"), {"batch": 50})
_DATASETS = Compare("polynomial", ("dataset.graph", "dataset_batched.graph"), {"batch": 2000})
_LOOP_GRADIENTS = Swept("gradient_through_map", (_M, _V), "batch", (64, 512, 4096), {"width": 64, "steps": 2})

CLAIMS = (
    claim(
        "whole_batch_faster_than_map_fn", "speed", ("seed 1", "seed 2", "seed 3"),
        "Ops on the whole batch are faster than `tf.map_fn`.",
        Faster(IMAGES, _B, _M, when="images"),
        Faster(POLYNOMIAL, _B, _M, when="a polynomial, in a graph"),
        Faster(POLYNOMIAL, "batched.eager", "map_fn.eager", when="a polynomial, eager"),
        advice="Write the function for the whole batch where that can be done.",
    ),
    claim(
        "vectorized_map_faster_than_map_fn", "speed", ("seed 1", "seed 3", "seed 5"),
        "`tf.vectorized_map` is faster than `tf.map_fn`, by a fifth of the time at least.",
        Faster(IMAGES, _V, _M, 1.2, "images"),
        Faster(BYTES, _V, _M, 1.2, "8-bit images with casts"),
        Faster(SUMS, _V, _M, 1.2, "sums"),
        Faster(GRADIENTS, _V, _M, 1.2, "gradients of examples"),
        Faster(LARGE_MATRICES, _V, _M, 1.2, "8 large matrices"),
        Faster(ROTATED, _V, _M, 1.2, "a rotation, which falls back"),
        advice="It gains little where one element keeps the machine busy, or where an op falls back to a loop.",
    ),
    claim(
        "vectorized_map_like_hand_batched", "speed", ("seed 5",),
        "`tf.vectorized_map` is as fast as a version that is batched by hand, to a factor of two.",
        AsFast(IMAGES, _V, _B, when="one op on images"),
        AsFast(SMALL_MATRICES, _V, _B, when="Cholesky factors"),
        AsFast(REPEATS, _V, _B, when="sums of repeats, by hand a product"),
        advice="By hand, work can be left out that it has to do.",
    ),
    claim(
        "numpy_faster", "speed", ("seed 1",), "NumPy is faster than `tf.map_fn` of TensorFlow's ops.",
        Faster(IMAGES, "numpy_batched.eager", _M, when="on the whole batch"),
        Faster(IMAGES, "numpy_function.graph", _M, when="in the mapped function"),
        advice="Call NumPy once for the batch, never once for each element.",
    ),
    claim(
        "dear_functions_hide_the_loop", "speed", ("seed 1", "seed 2"),
        "The more the function does for an element, the less the overhead of `tf.map_fn` counts.",
        Faster(POLYNOMIAL, _B, _M, 4),
        AsFast(LARGE_MATRICES, _V, _M),
        advice="With matrices of some hundred rows the way of mapping hardly matters.",
    ),
    claim(
        "pixel_by_pixel_slow", "speed", ("seed 1",),
        "A map over all pixels is far slower than a map over images with one op on each: every element costs.",
        Faster(INSIDE, "a map over images", "a map over pixels", 4),
        advice="Map over few large elements. Pixels are mapped here, since a tensor cannot be changed in place.",
    ),
    claim(
        "work_outside_saves", "speed", ("seed 1",),
        "What is the same for all elements takes less time where it is computed before the map.",
        *(
            Faster(INSIDE, f"a sum before the map ({mode})", f"a sum in each element ({mode})", 1.2, mode)
            for mode in ("eager", "in a graph", "under XLA")
        ),
        advice="XLA computes what stays the same once, wherever it is written.",
    ),
    claim(
        "ops_inside_use_cores", "speed", ("seed 1",),
        "While `tf.map_fn` goes from element to element, a large op inside of it uses several cores.",
        Figure(_WORK, "busiest_percent", "of its processor time, the busiest thread has {value} %", most=85),
        needs_linux=True,
    ),
    claim(
        "one_element_at_a_time", "speed", ("seed 1", "seed 2", "seed 3", "seed 4"),
        "`tf.map_fn` computes one element at a time.",
        Figure(_WORK, "eager", "four elements that wait for 0.1 s take {value} s", 0.39, when="eager"),
        Figure(_WORK, "graph", "four elements that wait for 0.1 s take {value} s", 0.39, when="in a graph"),
        advice="In a graph ten elements are in work at once, or as many as `parallel_iterations` says.",
    ),
    claim(
        "parallel_iterations_ignored", "speed", (f"{_ISSUES}/54470", f"{_ISSUES}/34716"),
        "Eager `tf.map_fn` takes the same time whatever `parallel_iterations` is.",
        AsFast(_PARALLEL, "map_fn.eager", f"map_fn.eager{_ONE_PARALLEL}", 1.25),
        advice="Put it into a `tf.function`, where the option counts.",
    ),
    claim(
        "python_loop_over_numbers_faster", "speed", ("seed 2",),
        "A Python loop over plain numbers is faster than `tf.map_fn`.",
        *(
            Faster(NUMBERS, f"a Python loop over {count} numbers", mapped.format(count), 3)
            for count in (10, 1000)
            for mapped in ("eager tf.map_fn over {} numbers", "tf.map_fn over {} numbers in a graph")
        ),
        advice="TensorFlow does not pay for a few numbers that Python has.",
    ),
    claim(
        "python_loop_over_tensors_faster", "speed", ("seed 2",),
        "A Python loop over the slices of a tensor is faster than `tf.map_fn`.",
        Faster(SQUARES, "loop.eager", "map_fn.eager", when="eager"),
        Faster(SQUARES, "loop.eager", _M, when="in a graph"),
        advice="Call `tf.map_fn` in a `tf.function`, or loop.",
    ),
    claim(
        "eager_lessens_overhead", "speed", ("seed 2",), "Eager execution lessens the overhead of `tf.map_fn`.",
        Faster(SQUARES, "map_fn.eager", _M),
        advice="It is the other way round: a `tf.function` lessens it.",
    ),
    claim(
        "conversion_takes_longest", "speed", ("seed 2",),
        "Of mapping over numbers from Python, making a tensor of them takes longest.",
        *(
            Faster(NUMBERS, f"tf.map_fn over {count} numbers in a graph", f"a tensor of {count} numbers")
            for count in (10, 1000)
        ),
    ),
    claim(
        "many_small_tensors_dear", "speed", ("seed 2",),
        "A tensor for each of many numbers takes far longer to make than one tensor of all.",
        Faster(NUMBERS, "a tensor of 1000 numbers", "a tensor for each of 1000 numbers", 4),
    ),
    claim(
        "traced_element_function_helps", "speed", ("seed 2",),
        "`@tf.function` on the mapped function makes eager `tf.map_fn` faster.",
        *(
            Faster(DECORATED, f"a tf.function of {ops} ops", f"a Python function of {ops} ops", 1.1, f"{ops} ops")
            for ops in (4, 125)
        ),
        advice="A `tf.function` around the whole map helps more.",
    ),
    claim(
        "vectorized_map_gains_most_eager", "speed", ("seed 5",),
        "In eager code `tf.vectorized_map` is faster than `tf.map_fn`, from a few elements on.",
        Faster(SQUARES, "vectorized_map.eager", "map_fn.eager"),
        advice="Called eagerly, it traces and converts the function in each call.",
    ),
    claim(
        "gradient_through_map_fn_slow", "speed", (f"{_ISSUES}/9527",),
        "A gradient through `tf.map_fn` takes many times as long as one through `tf.vectorized_map`.",
        Faster(_LOOP_GRADIENTS, _V, _M, 4),
        advice="Map over gradients, or take them through `tf.vectorized_map`.",
    ),
    claim(
        "batch_before_map", "speed", (f"{_PIPELINES}#vectorizing_mapping",),
        "In a pipeline, batching before the map is many times as fast as mapping a cheap function first.",
        Faster(_DATASETS, "dataset_batched.graph", "dataset.graph", 3),
    ),
    claim(
        "graph_wins_on_changing_sizes", "speed", (f"{_ISSUES}/81896",),
        "Over 15 small batches of 12 sizes, a graph is at least five times as fast as XLA.",
        Faster(SIZES, "a graph", "XLA", 5),
        advice="XLA pays where sizes stay, or are padded.",
    ),
)  # fmt: skip
