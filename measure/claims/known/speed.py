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
from measure.claims.predicates import AsFast, Faster, Figure, Grows
from measure.claims.spec import Claim, Compare, Script, Swept

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
_STEPS = Compare(
    "time_distributed",
    ("reshape.graph", "time_distributed.graph", "reshape.eager", "time_distributed.eager"),
    {"batch": 32, "steps": 16, "features": 32, "units": 32},
)
_LOOP_GRADIENTS = Swept("gradient_through_map", (_M, _V), "batch", (64, 512, 4096), {"width": 64, "steps": 2})

CLAIMS = (
    Claim(
        "whole_batch_faster_than_map_fn", "speed", "Ops on the whole batch are faster than `tf.map_fn`.",
        ("seed 1", "seed 2", "seed 3"),
        (
            Faster(IMAGES, _B, _M, when="images"),
            Faster(POLYNOMIAL, _B, _M, when="a polynomial, in a graph"),
            Faster(POLYNOMIAL, "batched.eager", "map_fn.eager", when="a polynomial, eager"),
        ),
        "Write the function for the whole batch where that can be done.",
    ),
    Claim(
        "vectorized_map_faster_than_map_fn", "speed",
        "`tf.vectorized_map` is faster than `tf.map_fn`, by a fifth of the time at least.",
        ("seed 1", "seed 3", "seed 5"),
        (
            Faster(IMAGES, _V, _M, 1.2, "images"),
            Faster(BYTES, _V, _M, 1.2, "8-bit images with casts"),
            Faster(SUMS, _V, _M, 1.2, "sums"),
            Faster(GRADIENTS, _V, _M, 1.2, "gradients of examples"),
            Faster(LARGE_MATRICES, _V, _M, 1.2, "8 large matrices"),
            Faster(ROTATED, _V, _M, 1.2, "a rotation, which falls back"),
        ),
        "Try it where ops are cheap; it gains little where one element keeps the machine busy, or where it falls back.",
    ),
    Claim(
        "vectorized_map_like_hand_batched", "speed",
        "`tf.vectorized_map` is as fast as a version that is batched by hand, to a factor of two.", ("seed 5",),
        (
            AsFast(IMAGES, _V, _B, when="one op on images"),
            AsFast(SMALL_MATRICES, _V, _B, when="Cholesky factors"),
            AsFast(REPEATS, _V, _B, when="sums of repeats, by hand a product"),
        ),
        "By hand, work can be left out that it has to do.",
    ),
    Claim(
        "numpy_faster", "speed", "NumPy is faster than `tf.map_fn` of TensorFlow's ops.", ("seed 1",),
        (
            Faster(IMAGES, "numpy_batched.eager", _M, when="on the whole batch"),
            Faster(IMAGES, "numpy_function.graph", _M, when="in the mapped function"),
        ),
        "Call NumPy once for the batch, never once for each element.",
    ),
    Claim(
        "dear_functions_hide_the_loop", "speed",
        "The more the function does for an element, the less the overhead of `tf.map_fn` counts.", ("seed 1", "seed 2"),
        (Faster(POLYNOMIAL, _B, _M, 4), AsFast(LARGE_MATRICES, _V, _M)),
        "With matrices of some hundred rows the way of mapping hardly matters.",
    ),
    Claim(
        "pixel_by_pixel_slow", "speed",
        "A map over all pixels is far slower than a map over images with one op on each: every element costs.",
        ("seed 1",), (Faster(INSIDE, "a map over images", "a map over pixels", 4),),
        "Map over few large elements. Pixels are mapped here, since a tensor cannot be changed in place.",
    ),
    Claim(
        "work_outside_saves", "speed",
        "What is the same for all elements takes less time where it is computed before the map.", ("seed 1",),
        tuple(
            Faster(INSIDE, f"a sum before the map ({mode})", f"a sum in each element ({mode})", 1.2, mode)
            for mode in ("eager", "in a graph", "under XLA")
        ),
        "XLA computes what stays the same once, wherever it is written.",
    ),
    Claim(
        "ops_inside_use_cores", "speed",
        "While `tf.map_fn` goes from element to element, a large op inside of it uses several cores.", ("seed 1",),
        (Figure(_WORK, "busiest_percent", "of its processor time, the busiest thread has {value} %", most=85),),
        needs_cores=2, needs_linux=True,
    ),
    Claim(
        "one_element_at_a_time", "speed", "`tf.map_fn` computes one element at a time.",
        ("seed 1", "seed 2", "seed 3", "seed 4"),
        (
            Figure(_WORK, "eager", "four elements that wait for 0.1 s take {value} s", 0.39, when="eager"),
            Figure(_WORK, "graph", "four elements that wait for 0.1 s take {value} s", 0.39, when="in a graph"),
        ),
        "In a graph ten elements are in work at once, or as many as `parallel_iterations` says.",
    ),
    Claim(
        "parallel_iterations_ignored", "speed",
        "Eager `tf.map_fn` takes the same time whatever `parallel_iterations` is.",
        (f"{_ISSUES}/54470", f"{_ISSUES}/34716"),
        (AsFast(_PARALLEL, "map_fn.eager", f"map_fn.eager{_ONE_PARALLEL}", 1.25),),
        "Put it into a `tf.function`, where the option counts.",
    ),
    Claim(
        "python_loop_over_numbers_faster", "speed", "A Python loop over plain numbers is faster than `tf.map_fn`.",
        ("seed 2",),
        tuple(
            Faster(NUMBERS, f"a Python loop over {count} numbers", mapped.format(count), 3)
            for count in (10, 1000)
            for mapped in ("eager tf.map_fn over {} numbers", "tf.map_fn over {} numbers in a graph")
        ),
        "TensorFlow does not pay for a few numbers that Python has.",
    ),
    Claim(
        "map_fn_overtakes_python_on_large_data", "speed",
        "With a thousand numbers `tf.map_fn` has made up for its overhead and overtakes a plain Python loop.",
        ("seed 2",),
        (Faster(NUMBERS, "tf.map_fn over 1000 numbers in a graph", "a Python loop over 1000 numbers"),),
        "More elements do not help a map: each of them costs more than Python's own arithmetic.",
    ),
    Claim(
        "python_loop_over_tensors_faster", "speed",
        "A Python loop over the slices of a tensor is faster than `tf.map_fn`.", ("seed 2",),
        (
            Faster(SQUARES, "loop.eager", "map_fn.eager", when="eager"),
            Faster(SQUARES, "loop.eager", _M, when="in a graph"),
        ),
        "Call `tf.map_fn` in a `tf.function`, or loop.",
    ),
    Claim(
        "gap_to_loop_widens", "speed",
        "The more elements there are, the further eager `tf.map_fn` falls behind a Python loop over tensors.",
        ("seed 2",), (Grows(SQUARES, "map_fn.eager", over="loop.eager", least=0.2),),
        "Both take a time for each element: the gap between them is a factor, which stays.",
    ),
    Claim(
        "eager_lessens_overhead", "speed", "Eager execution lessens the overhead of `tf.map_fn`.", ("seed 2",),
        (Faster(SQUARES, "map_fn.eager", _M),),
        "It is the other way round: a `tf.function` lessens it.",
    ),
    Claim(
        "conversion_takes_longest", "speed",
        "Of mapping over numbers from Python, making a tensor of them takes longest.", ("seed 2",),
        tuple(
            Faster(NUMBERS, f"tf.map_fn over {count} numbers in a graph", f"a tensor of {count} numbers")
            for count in (10, 1000)
        ),
    ),
    Claim(
        "many_small_tensors_dear", "speed",
        "A tensor for each of many numbers takes far longer to make than one tensor of all.", ("seed 2",),
        (Faster(NUMBERS, "a tensor of 1000 numbers", "a tensor for each of 1000 numbers", 4),),
    ),
    Claim(
        "traced_element_function_helps", "speed",
        "`@tf.function` on the mapped function makes eager `tf.map_fn` faster.", ("seed 2",),
        tuple(
            Faster(DECORATED, f"a tf.function of {ops} ops", f"a Python function of {ops} ops", 1.1, f"{ops} ops")
            for ops in (4, 125)
        ),
        "A `tf.function` around the whole map helps more.",
    ),
    Claim(
        "vectorized_map_gains_most_eager", "speed",
        "In eager code `tf.vectorized_map` is faster than `tf.map_fn`, from a few elements on.", ("seed 5",),
        (Faster(SQUARES, "vectorized_map.eager", "map_fn.eager"),),
        "Called eagerly, it traces and converts the function in each call.",
    ),
    Claim(
        "loops_grow_in_proportion", "speed", "The time of `tf.map_fn` grows in proportion to the batch.", ("seed 4",),
        (Grows(SQUARES, _M, least=0.5, most=1.5), Grows(SQUARES, "map_fn.eager", least=0.5, most=1.5)),
    ),
    Claim(
        "gradient_of_loop_grows_with_square", "speed",
        "The time of a gradient through `tf.map_fn` grows faster than the batch, nearly with its square.",
        (f"{_ISSUES}/9527",), (Grows(_LOOP_GRADIENTS, _M, least=1.1),),
        "Take gradients through `tf.vectorized_map`, or map over gradients.",
    ),
    Claim(
        "batch_before_map", "speed",
        "In a pipeline, batching before the map is many times as fast as mapping a cheap function first.",
        (f"{_PIPELINES}#vectorizing_mapping",), (Faster(_DATASETS, "dataset_batched.graph", "dataset.graph", 3),),
    ),
    Claim(
        "time_distributed_slower_than_reshape", "speed",
        "Keras' `TimeDistributed` of a dense layer is slower than the layer on steps folded into the batch.",
        ("https://github.com/keras-team/keras/issues/21179", "https://github.com/keras-team/keras/pull/1799"),
        tuple(
            Faster(_STEPS, f"reshape.{mode}", f"time_distributed.{mode}", when=when)
            for mode, when in (("graph", "in a graph"), ("eager", "eager"))
        ),
        "Where the number of steps is known, it calls its layer once for each of them.",
    ),
    Claim(
        "padding_pays_under_xla", "speed",
        "Over 15 batches of 12 sizes, padding takes less time under XLA than compiling for every size.",
        ("https://github.com/OpenNMT/OpenNMT-tf/pull/977",), (Faster(SIZES, "XLA with padding", "XLA"),),
    ),
    Claim(
        "graph_wins_on_changing_sizes", "speed",
        "Over 15 small batches of 12 sizes, a graph is at least five times as fast as XLA.", (f"{_ISSUES}/81896",),
        (Faster(SIZES, "a graph", "XLA", 5),),
        "XLA pays where sizes stay, or are padded.",
    ),
)  # fmt: skip
