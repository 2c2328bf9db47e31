"""Claims on what is traced, built and compiled, and when."""

from measure.claims.known.needs import FEW, SIZES
from measure.claims.predicates import FIRST_CALL, Faster, Figure
from measure.claims.spec import Script, claim

_RETRACING = "https://www.tensorflow.org/guide/function#controlling_retracing"
_M, _V = "map_fn.graph", "vectorized_map.graph"
_COUNTS = Script(
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

CLAIMS = (
    claim(
        "graph_built_at_every_call", "tracing", ("seed 2",), "`tf.map_fn` builds a graph at every call.",
        Figure(_COUNTS, "eager", "two calls over 50 elements run it {value} times", most=2, when="eager"),
        Figure(_COUNTS, "traces", "two calls take {value} trace", 2, when="in a `tf.function`"),
        advice="Eager, none is built: Python calls the function for each element. In a `tf.function` it is built once.",
    ),
    claim(
        "map_fn_is_a_loop", "tracing", ("seed 1", "seed 3", "seed 4"),
        "In a graph, `tf.map_fn` is one loop around the function, which is traced for one element.",
        Figure(_COUNTS, "loops", "its graph has {value} while loop", 1, 1),
        Figure(_COUNTS, "graph", "for two calls over 50 elements the function is called {value} time", 1, 1),
    ),
    claim(
        "parallel_iterations_make_batches", "tracing", ("seed 4",),
        "With `parallel_iterations=5`, `tf.map_fn` gives its function small batches, not elements.",
        Figure(_COUNTS, "rank", "of a matrix the function gets tensors of {value} axis", 2),
        advice="It is the number of elements in work at once.",
    ),
    claim(
        "python_loop_stays_in_python", "tracing", ("seed 3",),
        "In a graph, a Python loop in the mapped function is still run by Python, for each element.",
        Figure(_COUNTS, "python", "its graph has {value} ops that call Python", 1),
        advice="It is unrolled while the function is traced, into ops that run wherever others do.",
    ),
    claim(
        "vectorized_map_fuses_calls", "tracing", ("seed 5",),
        "`tf.vectorized_map` makes one op for all elements of each op of the function, whatever the batch.",
        Figure(_COUNTS, "more_ops", "1,000 elements take {value} ops more than 10", most=0),
        Figure(_COUNTS, "vectorized_loops", "its graph has {value} while loops", most=0),
    ),
    claim(
        "vectorized_map_converts_once", "tracing", ("seed 5",),
        "`tf.vectorized_map` fuses statically: later calls do not call the function again.",
        Figure(_COUNTS, "vectorized_graph", "two calls call the function {value} time", most=1, when="in a graph"),
        Figure(_COUNTS, "vectorized_eager", "two calls call the function {value} times", most=1, when="eager"),
        advice="Eager, every call traces and converts the function anew: call it in a `tf.function`.",
    ),
    claim(
        "graph_takes_long_to_build", "tracing", ("seed 2",),
        "Building a graph with `tf.map_fn` takes many times as long as running it over a hundred elements.",
        Faster(FEW, _M, FIRST_CALL + _M, 5),
        advice="Build it once, and call it often.",
    ),
    claim(
        "loop_beats_a_graph_called_once", "tracing", ("seed 2",),
        "Called once, an eager Python loop over a hundred elements is faster than building and running a graph.",
        Faster(FEW, FIRST_CALL + "loop.eager", FIRST_CALL + _M),
    ),
    claim(
        "python_loop_traces_every_step", "tracing", ("https://github.com/tensorflow/tensorflow/issues/38628",),
        "The first call of a Python loop over 100 elements in a graph takes longer than that of `tf.map_fn`.",
        Faster(FEW, FIRST_CALL + _M, FIRST_CALL + "loop.graph"),
        advice="Each of its steps is traced into ops of its own.",
    ),
    claim(
        "new_batch_size_compiles", "tracing", ("https://github.com/tensorflow/tensorflow/issues/81896", _RETRACING),
        "Under XLA every new batch size is compiled anew.",
        Figure(SIZES, "programs of XLA", "{value} programs for 12 sizes", 12, when="as it is"),
        Figure(SIZES, "programs of XLA with None", "{value} programs for 12 sizes", 12, when="with `None` as size"),
        Figure(SIZES, "programs of XLA with padding", "{value} program for 12 sizes", 12, when="padded to one"),
        advice="`None` spares traces, and no compilation: pad to few sizes.",
    ),
    claim(
        "python_numbers_retrace", "tracing", (_RETRACING,),
        "A `tf.function` is traced anew for every Python number that it is called with.",
        Figure(_COUNTS, "numbers", "ten Python numbers take {value} traces", 10),
        Figure(_COUNTS, "tensors", "ten tensors {value}", 1, 1),
        advice="Give it tensors.",
    ),
)  # fmt: skip
