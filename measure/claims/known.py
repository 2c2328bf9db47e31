"""Claims about mapping in TensorFlow, by question: an entry is a claim."""

from measure.claims import needs
from measure.claims.spec import FIRST_CALL, Claim, Ends, Fails, FallsBack, Faster, Figure, MoreMemory, as_fast, claim

_ISSUES = "https://github.com/tensorflow/tensorflow/issues"
_GUIDE = "https://www.tensorflow.org/guide"
_RETRACING = f"{_GUIDE}/function#controlling_retracing"
_M, _V, _B = "map_fn.graph", "vectorized_map.graph", "batched.graph"
_WAITS = "four elements that wait for 0.1 s take {value} s"
_ON_GPU = "{value}% of its results are on the GPU"
_LEFT = "{value} of 50 tensors are left"
_DISTINCT = "distinct numbers of eight images: {value}"
_PROGRAMS = "programs for 12 sizes: {value}"

_SPEED = (
    claim(
        "whole_batch_faster_than_map_fn", "speed", ("seed 1", "seed 2", "seed 3"),
        "Ops on the whole batch are faster than `tf.map_fn`.",
        Faster(needs.IMAGES, _B, _M, when="images"),
        Faster(needs.POLYNOMIAL, _B, _M, when="a polynomial, in a graph"),
        Faster(needs.POLYNOMIAL, "batched.eager", "map_fn.eager", when="a polynomial, eager"),
        advice="Write the function for the whole batch where that can be done.",
    ),
    claim(
        "vectorized_map_faster_than_map_fn", "speed", ("seed 1", "seed 3", "seed 5"),
        "`tf.vectorized_map` is at least 1.2× faster than `tf.map_fn`.",
        Faster(needs.IMAGES, _V, _M, 1.2, when="images"),
        Faster(needs.BYTES, _V, _M, 1.2, when="8-bit images with casts"),
        Faster(needs.SUMS, _V, _M, 1.2, when="sums"),
        Faster(needs.GRADIENTS, _V, _M, 1.2, when="gradients of examples"),
        Faster(needs.LARGE_MATRICES, _V, _M, 1.2, when="8 large matrices"),
        Faster(needs.ROTATED, _V, _M, 1.2, when="a rotation, which falls back"),
        advice="It gains little where one element keeps the machine busy, or where an op falls back to a loop.",
    ),
    claim(
        "vectorized_map_gains_most_eager", "speed", ("seed 5",),
        "In eager code `tf.vectorized_map` is faster than `tf.map_fn`, from a few elements on.",
        Faster(needs.FEW_SQUARES, "vectorized_map.eager", "map_fn.eager", when="10 elements"),
        Faster(needs.SQUARES, "vectorized_map.eager", "map_fn.eager", when="1,000 elements"),
        advice="Called eagerly, it traces and converts the function in each call.",
    ),
    claim(
        "vectorized_map_like_hand_batched", "speed", ("seed 5",),
        "`tf.vectorized_map` is as fast as a version that is batched by hand, within 2×.",
        as_fast(needs.IMAGES, _V, _B, when="one op on images"),
        as_fast(needs.SMALL_MATRICES, _V, _B, when="Cholesky factors"),
        as_fast(needs.REPEATS, _V, _B, when="sums of repeats, by hand a product"),
        advice="By hand, work can be left out that it has to do.",
    ),
    claim(
        "numpy_faster", "speed", ("seed 1",), "NumPy is faster than `tf.map_fn` of TensorFlow's ops.",
        Faster(needs.IMAGES, "numpy_batched.eager", _M, when="on the whole batch"),
        Faster(needs.IMAGES, "numpy_function.graph", _M, when="in the mapped function"),
        advice="Call NumPy once for the batch, never once for each element.",
    ),
    claim(
        "dear_functions_hide_the_loop", "speed", ("seed 1", "seed 2"),
        "`tf.map_fn` takes at least 4× as long as the batch for a cheap function, and at most 2× for large matrices, "
        "which use several cores.",
        Faster(needs.POLYNOMIAL, _B, _M, 4),
        as_fast(needs.LARGE_MATRICES, _V, _M),
        Figure(
            needs.WORK, "busiest_percent", "of large ops, the busiest thread has {value}%", most=85, when="cores"
        ),
        advice="With matrices of some hundred rows, whose ops use all cores, the way of mapping hardly matters.",
    ),
    claim(
        "pixel_by_pixel_slow", "speed", ("seed 1",),
        "A map over pixels takes at least 4× as long as a map over images with one op on each: every element costs.",
        Faster(needs.INSIDE, "a map over images", "a map over pixels", 4),
        advice="Map over few large elements. Pixels are mapped here, since a tensor cannot be changed in place.",
    ),
    claim(
        "work_outside_saves", "speed", ("seed 1",),
        "A map is at least 1.2× faster if what is the same for all elements is computed before it.",
        *(
            Faster(needs.INSIDE, f"a sum before the map ({mode})", f"a sum in each element ({mode})", 1.2, when=mode)
            for mode in ("eager", "in a graph", "under XLA")
        ),
        advice="XLA computes what stays the same once, wherever it is written.",
    ),
    claim(
        "one_element_at_a_time", "speed",
        ("seed 1", "seed 2", "seed 3", "seed 4", f"{_ISSUES}/54470", f"{_ISSUES}/34716"),
        "`tf.map_fn` computes one element at a time: `parallel_iterations` changes its time by less than 1.25×.",
        Figure(needs.WORK, "eager", _WAITS, 0.4, when="eager"),
        as_fast(needs.IN_WORK_EAGER, "map_fn.eager", needs.EAGER_ONE, 1.25, when="eager"),
        Figure(needs.WORK, "graph", _WAITS, 0.4, when="in a graph"),
        advice="In a graph ten elements are in work at once, or as many as `parallel_iterations` says.",
    ),
    claim(
        "python_loop_over_numbers_faster", "speed", ("seed 2",),
        "A Python loop over plain numbers is faster than `tf.map_fn`.",
        *(
            Faster(needs.NUMBERS, f"a Python loop over {count} numbers", mapped.format(count))
            for count in (10, 1000)
            for mapped in ("eager tf.map_fn over {} numbers", "tf.map_fn over {} numbers in a graph")
        ),
        advice="TensorFlow does not pay for a few numbers that Python has.",
    ),
    claim(
        "python_loop_over_tensors_faster", "speed", ("seed 2",),
        "A Python loop over the slices of a tensor is faster than `tf.map_fn`.",
        Faster(needs.FEW_SQUARES, "loop.eager", "map_fn.eager", when="10 elements, eager"),
        Faster(needs.SQUARES, "loop.eager", "map_fn.eager", when="1,000 elements, eager"),
        Faster(needs.FEW_SQUARES, "loop.eager", _M, when="10 elements, in a graph"),
        Faster(needs.SQUARES, "loop.eager", _M, when="1,000 elements, in a graph"),
        advice="Call `tf.map_fn` in a `tf.function`, which lessens its overhead, or loop.",
    ),
    claim(
        "conversion_takes_longest", "speed", ("seed 2",),
        "Of mapping over numbers from Python, making tensors of them takes longest.",
        Faster(needs.NUMBERS, "tf.map_fn over 10 numbers in a graph", "a tensor of 10 numbers"),
        Faster(needs.NUMBERS, "tf.map_fn over 1000 numbers in a graph", "a tensor of 1000 numbers"),
        Faster(needs.NUMBERS, "tf.map_fn over 1000 numbers in a graph", "a tensor for each of 1000 numbers"),
        advice="Make one tensor of all: one for each takes many times as long.",
    ),
    claim(
        "traced_element_function_helps", "speed", ("seed 2",),
        "`@tf.function` on the mapped function makes eager `tf.map_fn` faster.",
        Faster(needs.DECORATED, "a tf.function of 4 ops", "a Python function of 4 ops", when="4 ops"),
        Faster(needs.DECORATED, "a tf.function of 125 ops", "a Python function of 125 ops", when="125 ops"),
        advice="A `tf.function` around the whole map helps more.",
    ),
    claim(
        "gradient_through_map_fn_slow", "speed", (f"{_ISSUES}/9527",),
        "A gradient through `tf.map_fn` takes at least 4× as long as one through `tf.vectorized_map`.",
        Faster(needs.GRADIENTS_OF_FEW, _V, _M, 4, when="64 elements"),
        Faster(needs.GRADIENTS_OF_MANY, _V, _M, 4, when="4,096 elements"),
        advice="Map over gradients, or take them through `tf.vectorized_map`.",
    ),
    claim(
        "batch_before_map", "speed", (f"{_GUIDE}/data_performance#vectorizing_mapping",),
        "In a pipeline, batching before the map is at least 3× faster than mapping a cheap function first.",
        Faster(needs.DATASETS, "dataset_batched.graph", "dataset.graph", 3),
    ),
    claim(
        "gpu_map_fn_faster_than_cpu", "speed", ("seed 1", "seed 2", "seed 3"),
        "`tf.map_fn` of a thousand numbers is faster on a GPU than on a CPU, and slower if each is copied to the CPU.",
        Faster(needs.GPU_TIMES, "a map on the GPU", "a map on the CPU", when="all on the GPU"),
        Faster(needs.GPU_TIMES, "a map on the CPU", "a map on the GPU with copies", when="with copies"),
        needs_gpu=True,
    ),
    claim(
        "gpu_whole_batch_faster", "speed", ("seed 1", "seed 3"),
        "On a GPU, what works on the whole batch is at least 10× faster than `tf.map_fn`.",
        Faster(needs.POLYNOMIAL_ON_GPU, _B, _M, 10, when="ops on the batch"),
        Faster(needs.POLYNOMIAL_ON_GPU, _V, _M, 10, when="`tf.vectorized_map`"),
        needs_gpu=True,
    ),
)  # fmt: skip

_MEMORY = (
    claim(
        "vectorized_map_needs_more_memory", "memory", ("seed 5",),
        "`tf.vectorized_map` needs more memory than `tf.map_fn`.",
        MoreMemory(needs.MAXIMA, _V, _M, when="large intermediate tensors"),
        MoreMemory(needs.IMAGES, _V, _M, when="no intermediate tensors"),
        advice="It holds intermediate tensors of all elements, and `tf.map_fn` all results twice while it stacks them.",
    ),
    claim(
        "intermediates_pile_up", "memory", ("seed 4", "seed 5"),
        "Intermediate tensors pile up: to at least 0.5× those of all elements, or 100× the memory without any.",
        MoreMemory(needs.REPEATS, _M, _V, 0.5, when="`tf.map_fn`, against all of them at once"),
        MoreMemory(needs.REPEATS, "dataset.graph", _V, 0.5, when="`Dataset.map`"),
        MoreMemory(needs.REPEATS, _V, _B, 100, when="`tf.vectorized_map`, against a function that makes none"),
        advice="A map in a graph holds those of as many elements as are in work: ten by default.",
    ),
    claim(
        "graphs_need_less_memory", "memory", ("seed 4",),
        "`tf.map_fn` in a `tf.function` needs less memory than eager.",
        MoreMemory(needs.MAXIMA, "map_fn.eager", _M, when="large intermediate tensors"),
        MoreMemory(needs.IMAGES, "map_fn.eager", _M, when="no intermediate tensors"),
        advice="Eager, one element is in work at a time, and in a graph ten.",
    ),
    claim(
        "xla_needs_less_memory", "memory", ("seed 4",), "`jit_compile=True` lowers the peak of memory.",
        MoreMemory(needs.REPEATS, _M, "map_fn.xla", when="`tf.map_fn` of repeated numbers"),
        MoreMemory(needs.REPEATS, _V, "vectorized_map.xla", when="`tf.vectorized_map` of the same"),
        MoreMemory(needs.MAXIMA, _V, "vectorized_map.xla", when="`tf.vectorized_map` of maxima of products"),
        advice="It fuses what is made with what uses it, so that large tensors in between are never made.",
    ),
    claim(
        "parallel_iterations_take_memory", "memory", ("https://www.tensorflow.org/api_docs/python/tf/while_loop",),
        "In a graph, large intermediate tensors need more memory the more `parallel_iterations` there are.",
        MoreMemory(needs.IN_WORK, needs.MANY, needs.ONE),
        advice="Lower it where memory is short.",
    ),
    claim(
        "del_frees_at_once", "memory", ("seed 4",),
        "Intermediate tensors outlive the mapped function unless they are freed by hand, which `del` does at once.",
        Figure(needs.LIVES, "plain_after", _LEFT, 50, when="after it"),
        Figure(needs.LIVES, "storing_after", _LEFT, 50, when="while a list refers to them"),
        Figure(needs.LIVES, "plain", "at its return, {value} is left without it", 1, 1, when="`del`, eager"),
        Figure(needs.LIVES, "deleting", "{value} with it", 0, 0, when="`del`, eager"),
        Figure(needs.LIVES, "ops_deleting", "it takes {value} ops away", 1, when="`del`, in a graph"),
        Figure(needs.LIVES, "checking", "at its return, {value} is left", most=0, when="`tf.debugging.check_numerics`"),
        advice="Keep no references to them. In a graph, and in `Dataset.map` too, `del` takes a Python name away, and "
        "nothing from memory. `check_numerics` fails on NaN and on infinities, and does nothing else.",
    ),
    claim(
        "cache_takes_memory", "memory", ("seed 4",),
        "`Dataset.cache` keeps all results in memory and calls the function once for each element.",
        Figure(needs.LIVES, "calls_cached", "50 elements, gone through twice, take {value} calls with it", most=50),
        Figure(needs.LIVES, "calls_plain", "{value} without it", 100),
        # Memory that was freed before may take the rest.
        Figure(needs.LIVES, "mib_cached", "95 MiB of results take {value} MiB", 75),
        advice="Cache what is small and dear, and before what makes it large.",
    ),
)  # fmt: skip

_TRACING = (
    claim(
        "graph_built_at_every_call", "tracing", ("seed 2",), "`tf.map_fn` builds a graph at every call.",
        Figure(needs.COUNTS, "eager", "two calls over 50 elements run it {value} times", most=2, when="eager"),
        Figure(needs.COUNTS, "traces", "two calls take {value} trace", 2, when="in a `tf.function`"),
        advice="Eager, none is built: Python calls the function for each element. In a `tf.function` it is built once.",
    ),
    claim(
        "map_fn_is_a_loop", "tracing", ("seed 1", "seed 3", "seed 4"),
        "In a graph, `tf.map_fn` is one loop around the function, which is traced for one element.",
        Figure(needs.COUNTS, "loops", "its graph has {value} while loop", 1, 1),
        Figure(needs.COUNTS, "graph", "for two calls over 50 elements the function is called {value} time", 1, 1),
        Figure(needs.COUNTS, "rank", "with `parallel_iterations=5`, of a matrix it gets {value} axis", 1, 1),
        advice="`parallel_iterations` is the number of elements in work at once: the function gets one of them.",
    ),
    claim(
        "python_loop_stays_in_python", "tracing", ("seed 3",),
        "A Python loop in the mapped function is run by Python for each element, and cannot be vectorised.",
        Figure(needs.COUNTS, "python", "its graph has {value} ops that call Python", 1, when="in a graph"),
        FallsBack(needs.SUMS, _V, when="vectorised"),
        advice="It is unrolled while the function is traced, into ops that run, and are vectorised, like others.",
    ),
    claim(
        "vectorized_map_fuses_calls", "tracing", ("seed 5",),
        "`tf.vectorized_map` fuses statically: one op for all elements of each op, made in the first call alone.",
        Figure(needs.COUNTS, "more_ops", "1,000 elements take {value} ops more than 10", most=0, when="its graph"),
        Figure(needs.COUNTS, "vectorized_loops", "it has {value} while loops", most=0, when="its graph"),
        Figure(needs.COUNTS, "vectorized_graph", "two calls call the function {value} time", 1, 1, when="in a graph"),
        Figure(needs.COUNTS, "vectorized_eager", "two calls call it {value} times", 1, 1, when="eager"),
        advice="Eager, every call traces and converts the function anew: call it in a `tf.function`.",
    ),
    claim(
        "graph_takes_long_to_build", "tracing", ("seed 2", f"{_ISSUES}/38628"),
        "Over a hundred elements, building the graph of `tf.map_fn` takes at least 5× as long as running it, and that "
        "of a Python loop longer: called once, an eager loop is faster.",
        Faster(needs.FEW, _M, FIRST_CALL + _M, 5),
        Faster(needs.FEW, FIRST_CALL + _M, FIRST_CALL + "loop.graph"),
        Faster(needs.FEW, FIRST_CALL + "loop.eager", FIRST_CALL + _M),
        advice="Build it once, and call it often. In a graph, each step of a Python loop is traced by itself.",
    ),
    claim(
        "new_batch_size_compiles", "tracing", (f"{_ISSUES}/81896", _RETRACING),
        "XLA compiles every new batch size from scratch: over changing sizes a graph is at least 5× faster.",
        Figure(needs.SIZES, "programs of XLA", _PROGRAMS, 12, when="as it is"),
        Faster(needs.SIZES, "a graph", "XLA", 5, when="as it is"),
        Figure(needs.SIZES, "programs of XLA with None", _PROGRAMS, 12, when="with `None` as size"),
        Figure(needs.SIZES, "programs of XLA with padding", "programs for one size: {value}", 1, 1, when="padded"),
        advice="`None` spares traces, and no compilation. XLA pays where sizes stay: pad to few.",
    ),
    claim(
        "python_numbers_retrace", "tracing", (_RETRACING,),
        "A `tf.function` is traced anew for every Python number that it is called with.",
        Figure(needs.COUNTS, "numbers", "ten Python numbers take {value} traces", 10),
        Figure(needs.COUNTS, "tensors", "ten tensors {value}", 1, 1),
        advice="Give it tensors.",
    ),
)  # fmt: skip

_LIMITS = (
    claim(
        "nests_in_and_out", "limits", ("seed 5",),
        "`tf.vectorized_map` goes along the first axis, in order, and takes and gives nests of tensors, or operations.",
        Figure(needs.TAKES, "order", "{value} of 20 results are right", 20, when="a tensor"),
        Figure(needs.TAKES, "nested", "{value} of 20 results are right", 20, when="nested tensors"),
        Fails(needs.TAKES, "operation", when="a `tf.Operation`, in a graph", fails=False),
    ),
    claim(
        "stateful_ops_do_not_work", "limits", ("seed 5",),
        "Ops with state do not work in `tf.vectorized_map`, nor does what needs the elements before it.",
        Figure(needs.TAKES, "totals", "`tf.map_fn` gets {value} of 5 right", 5, when="running totals in a variable"),
        Fails(needs.TAKES, "assigned", when="running totals in a variable"),
        Figure(needs.TAKES, "variable", "{value} of 20 results are right", most=19, when="reading a variable"),
        Figure(needs.TAKES, "draws", _DISTINCT, most=1, when="random numbers"),
        advice="For what depends on other elements use `tf.scan`, or an op such as `tf.cumsum`.",
    ),
    claim(
        "same_random_numbers_for_all", "limits", ("https://github.com/keras-team/keras-cv/issues/1382",),
        "In `tf.vectorized_map`, every image gets the same random number.",
        Figure(needs.TAKES, "draws", _DISTINCT, most=1, when="`tf.random.uniform`"),
        Figure(needs.TAKES, "stateless", _DISTINCT, most=1, when="`tf.random.stateless_uniform` with one seed"),
        Figure(needs.TAKES, "layer", _DISTINCT, most=1, when="Keras' `RandomBrightness`"),
        advice="Give a layer the whole batch, or each element a seed of its own.",
    ),
    claim(
        "control_flow_does_not_work", "limits", ("seed 5",),
        "In `tf.vectorized_map`, control flow does not work, or computes both sides of a `tf.cond` for all elements.",
        Ends(needs.CONDITION, _V, "failed", when="`tf.cond`"),
        Ends(needs.WHILE, _V, "failed", when="`tf.while_loop`"),
        Fails(needs.SIDES, "by_element", "a negative", when="a side that fails on other elements"),
        Fails(needs.SIDES, "by_flag", "a negative", when="a side that no element takes"),
        advice="Each side of a `tf.cond` computes its own elements, and a loop runs as long as its longest element.",
    ),
    claim(
        "shapes_must_not_depend_on_values", "limits", ("seed 5", f"{_ISSUES}/51771", f"{_ISSUES}/36232"),
        "`tf.vectorized_map` fails where the shape of a tensor in the function depends on the values, or differs from "
        "row to row of a ragged tensor; `tf.map_fn` maps over such rows.",
        Fails(needs.TAKES, "shape", "shape", when="in between"),
        Ends(needs.SHAPES, _V, "failed", when="as a result"),
        Fails(needs.TAKES, "ragged", "shape", when="ragged rows"),
        Fails(needs.TAKES, "ragged_mapped", when="`tf.map_fn` over ragged rows", fails=False),
        advice="Pad to one shape, or use `tf.map_fn` with a ragged `fn_output_signature`.",
    ),
    claim(
        "ops_fall_back", "limits", ("https://github.com/keras-team/keras-cv/issues/291", f"{_ISSUES}/24774"),
        "Augmenting images, and decoding strings, makes `tf.vectorized_map` fall back to a loop.",
        FallsBack(needs.ROTATED, _V, when="a rotation"),
        FallsBack(needs.CONTRAST, _V, when="a contrast"),
        FallsBack(needs.FLIP, _V, when="a flip"),
        FallsBack(needs.TEXTS, _V, when="numbers in strings"),
        advice="Such ops take a whole batch: give it to them without a map.",
    ),
    claim(
        "linear_algebra_vectorized", "limits", (f"{_ISSUES}/55639", f"{_ISSUES}/42419"),
        "`tf.vectorized_map` vectorises linear algebra, and sums by key.",
        *(
            Figure(needs.TAKES, name, "while loops: {value}", most=0, when=f"`{name}`")
            for name in ("cholesky", "eigvalsh", "det", "svd", "unique", "segment_sum", "unsorted_segment_sum")
        ),
    ),
    claim(
        "gpu_runs_map_fn", "limits", ("seed 3",),
        "`tf.map_fn` runs on a GPU, but for Python code in the function, and ops that a GPU has no kernel for.",
        Ends(needs.POLYNOMIAL_ON_GPU, _M, when="TensorFlow ops"),
        Figure(needs.PLACES, "ops", _ON_GPU, 100, when="TensorFlow ops"),
        Figure(needs.PLACES, "loop", _ON_GPU, most=0, when="a Python loop"),
        Figure(needs.PLACES, "text", _ON_GPU, most=0, when="an op on text"),
        advice="A Python loop is unrolled into ops, which run on the GPU.", needs_gpu=True,
    ),
)  # fmt: skip


def all_claims() -> tuple[Claim, ...]:
    """The claims by question, those that need a GPU last."""
    return (*_SPEED, *_MEMORY, *_TRACING, *_LIMITS)
