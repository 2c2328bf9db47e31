"""Claims on eager code and graphs: what is called, traced and built, and how often."""

from measure.claims.known.order import SUMS
from measure.claims.predicates import Fails, Figure, Runs, Warned
from measure.claims.spec import Claim, Said, Script

_CALLS = Script(
    """import tensorflow as tf

seen = []

def f(x):
    seen.append(x.shape)
    return x * 2 + 1

def calls(mapped, x):
    seen.clear()
    mapped(x)
    mapped(x)
    return len(seen)

x = tf.ones((50, 3))
graph = tf.function(lambda x: tf.map_fn(f, x))
report(
    map_fn_eager=calls(lambda x: tf.map_fn(f, x), x),
    map_fn_graph=calls(graph, x),
    vectorized_eager=calls(lambda x: tf.vectorized_map(f, x), x),
    vectorized_graph=calls(tf.function(lambda x: tf.vectorized_map(f, x)), x),
    traces=graph.experimental_get_tracing_count(),
)
tf.function(lambda x: tf.map_fn(f, x, parallel_iterations=5))(x)
report(rank=max(shape.rank for shape in seen))
ops = [op.type for op in graph.get_concrete_function(x).graph.get_operations()]
report(loops=sum(op.endswith("While") for op in ops))

def ops_of(count):
    whole = tf.function(lambda x: tf.vectorized_map(f, x)).get_concrete_function(tf.ones((count, 3)))
    return [op.type for op in whole.graph.get_operations()]

report(more_ops=len(ops_of(1000)) - len(ops_of(10)), loops_vectorized=sum("While" in op for op in ops_of(10)))
""",
    seconds=8.0,
)

_UNROLLED = Script(
    """import tensorflow as tf

def f(x):
    total = tf.zeros_like(x)
    for i in range(100):
        total += x * i
    return total

graph = tf.function(lambda x: tf.map_fn(f, x)).get_concrete_function(tf.ones(5)).graph
body = next(function for name, function in graph._functions.items() if "while_body" in str(name))
ops = [node.op for node in body.cached_definition.node_def]
report(multiplications=ops.count("Mul"), python=ops.count("PyFunc") + ops.count("EagerPyFunc"))
""",
    seconds=8.0,
)

_SESSION = Script(
    """import tensorflow as tf

def f(x):
    return tf.math.square(x) + 2 * x + 1

with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    x = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0])
    mapped, whole = session.run([tf.map_fn(f, x), f(x)])
assert list(mapped) == list(whole) == [4, 9, 16, 25, 36]
""",
    seconds=7.0,
)

_TYPES = Script(
    """import tensorflow as tf

tf.map_fn(tf.sqrt, tf.constant([[1, 4]], tf.uint8))
""",
    seconds=7.0,
)

CLAIMS = (
    Claim(
        id="eager_map_fn_is_a_graph",
        question="tracing",
        sentence="Called eagerly, `tf.map_fn` runs as a graph and not in Python.",
        said=(Said("seed 2", "the first factor"),),
        tests=(Figure(_CALLS, "map_fn_eager", "calls from Python for twice 50 elements: {value}", most=2),),
    ),
    Claim(
        id="graph_built_at_every_call",
        question="tracing",
        sentence="`tf.map_fn` in a `tf.function` pays at every call for a graph that is built.",
        said=(Said("seed 2", "the first factor"),),
        tests=(Figure(_CALLS, "traces", "traces in two calls: {value}", least=2),),
    ),
    Claim(
        id="map_fn_is_a_loop",
        question="tracing",
        sentence="In a graph, `tf.map_fn` is one loop around the function, which is traced for one element.",
        said=(Said("seed 1", "the looping mechanism"), Said("seed 3", "iterating"), Said("seed 4", "involves a loop")),
        tests=(
            Figure(_CALLS, "loops", "while loops in the graph: {value}", least=1, most=1),
            Figure(_CALLS, "map_fn_graph", "calls from Python for twice 50 elements: {value}", least=1, most=1),
        ),
    ),
    Claim(
        id="parallel_iterations_make_batches",
        question="tracing",
        sentence="With `parallel_iterations=5`, `tf.map_fn` gives its function small batches, not elements.",
        said=(Said("seed 4", "small batches, depending on `parallel_iterations`"),),
        tests=(Figure(_CALLS, "rank", "of a matrix the function saw tensors of rank {value}", least=2),),
    ),
    Claim(
        id="python_loop_stays_in_python",
        question="tracing",
        sentence="In a graph, a Python loop in the mapped function is still run by Python, for each element.",
        said=(Said("seed 3", "the bottleneck of Python"), Said("seed 3", "on example 1")),
        tests=(
            Figure(_UNROLLED, "python", "ops that call Python: {value}", least=1),
            Figure(_UNROLLED, "multiplications", "multiplications for 100 turns: {value}", most=99),
        ),
        note="It is unrolled while the function is traced, into ops that run wherever others do.",
    ),
    Claim(
        id="python_loop_cannot_be_vectorized",
        question="limits",
        sentence="A Python loop in the mapped function keeps `tf.vectorized_map` from vectorising it.",
        said=(Said("seed 3", "the lack of vectorization"), Said("seed 3", "on example 1")),
        tests=(Warned(SUMS, "vectorized_map.graph", "falls_back"),),
    ),
    Claim(
        id="vectorized_map_fuses_calls",
        question="tracing",
        sentence="`tf.vectorized_map` makes one op for all elements of each op of the function, whatever the batch.",
        said=(Said("seed 5", "the idea behind vectorization"),),
        tests=(
            Figure(_CALLS, "more_ops", "ops that 1,000 elements take beyond those of 10: {value}", most=0),
            Figure(_CALLS, "loops_vectorized", "while loops: {value}", most=0),
        ),
    ),
    Claim(
        id="vectorized_map_converts_once",
        question="tracing",
        sentence="`tf.vectorized_map` fuses statically: later calls do not call the function again.",
        said=(Said("seed 5", "fusion at graph generation time"),),
        tests=(
            Figure(_CALLS, "vectorized_graph", "calls from Python in two calls: {value}", most=1, when="in a graph"),
            Figure(_CALLS, "vectorized_eager", "calls from Python in two calls: {value}", most=1, when="eager"),
        ),
    ),
    Claim(
        id="session_needs_its_graph",
        question="limits",
        sentence="In a `tf.compat.v1.Session`, `tf.map_fn` runs where a `tf.Graph` is made first.",
        said=(Said("seed 3", "examples 1 to 3, the working form"),),
        tests=(Runs(_SESSION),),
    ),
    Claim(
        id="bytes_need_a_cast",
        question="correctness",
        sentence="`tf.sqrt` of 8-bit images needs a cast to floats.",
        said=(Said("seed 1", "on example 3, explicit casts"),),
        tests=(Fails(_TYPES, "uint8"),),
    ),
)
