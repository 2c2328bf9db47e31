"""Claims on how time grows with the batch."""

from measure.claims.along import FasterAlong, Grows
from measure.claims.known.python_loops import IN_TURNS
from measure.claims.predicates import Figure
from measure.claims.spec import Claim, Said, Script, Swept

_GRADIENT = Swept(
    "gradient_through_map",
    ("map_fn.graph", "map_fn.xla", "vectorized_map.graph"),
    axis="batch",
    values=(256, 1024, 4096),
    size={"width": 64, "steps": 2},
    budget_s=20.0,
)

_FORWARD = Swept(
    "trig_exp",
    ("map_fn.graph", "while_loop.graph"),
    axis="batch",
    values=(100, 800, 6400),
    budget_s=16.0,
)

_CONCAT = Script(
    IN_TURNS
    + """import math
from statistics import median

def concatenated(x):
    results = tf.zeros([0, 64])
    for i in tf.range(tf.shape(x)[0]):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(results, tf.TensorShape([None, 64]))])
        results = tf.concat([results, tf.sqrt(x[i])[None]], axis=0)
    return results

def collected(x):
    results = tf.TensorArray(tf.float32, tf.shape(x)[0])
    for i in tf.range(tf.shape(x)[0]):
        results = results.write(i, tf.sqrt(x[i]))
    return results.stack()

few, many = tf.random.uniform([512, 64]), tf.random.uniform([4096, 64])
ways = {"concat": tf.function(concatenated), "array": tf.function(collected)}
for name, way in ways.items():
    samples = in_turns(5, few=lambda: way(few), many=lambda: way(many))
    ratio = median(samples["many"]) / median(samples["few"])
    report(**{f"{name}_exponent": math.log(ratio, 8)})
""",
    seconds=12.0,
)

CLAIMS = (
    Claim(
        id="gradient_of_loop_grows_with_square",
        question="speed",
        sentence="The time of a gradient through `tf.map_fn` grows nearly with the square of the batch.",
        said=(Said("thread", "https://github.com/tensorflow/tensorflow/issues/9527"),),
        tests=(
            Grows(_GRADIENT, "map_fn.xla", least=1.25, when="under XLA"),
            Grows(_GRADIENT, "map_fn.graph", least=1.25, when="in a graph"),
        ),
    ),
    Claim(
        id="gradient_of_vectorized_map_in_proportion",
        question="speed",
        sentence="The time of a gradient through `tf.vectorized_map` grows no faster than the batch.",
        said=(Said("seed 5", "the idea behind vectorization"),),
        tests=(Grows(_GRADIENT, "vectorized_map.graph", most=1.25),),
    ),
    Claim(
        id="vectorized_gradient_lead_grows",
        question="speed",
        sentence="For gradients, `tf.vectorized_map` is at least five times as fast as `tf.map_fn` at any batch size.",
        said=(Said("seed 5", "optimized to run much faster"),),
        tests=(FasterAlong(_GRADIENT, "vectorized_map.graph", "map_fn.graph", by=5.0),),
    ),
    Claim(
        id="loops_grow_in_proportion",
        question="speed",
        sentence="Without a gradient, the time of loops over elements grows in proportion to the batch.",
        said=(Said("seed 4", "involves a loop"),),
        tests=(
            Grows(_FORWARD, "map_fn.graph", least=0.5, most=1.5),
            Grows(_FORWARD, "while_loop.graph", least=0.5, most=1.5),
        ),
    ),
    Claim(
        id="concat_in_a_loop_grows_with_square",
        question="speed",
        sentence="The time of a loop that appends results with `tf.concat` grows nearly with the square of the batch.",
        said=(Said("thread", "https://github.com/tensorflow/tensorflow/issues/46518"),),
        tests=(
            Figure(_CONCAT, "concat_exponent", "from batch 512 to 4,096 its time grows as batch^{value}", least=1.4),
        ),
    ),
    Claim(
        id="tensor_array_grows_in_proportion",
        question="speed",
        sentence="A loop that writes its results into a `tf.TensorArray` takes time in proportion to the batch.",
        said=(Said("thread", "https://github.com/tensorflow/tensorflow/issues/46518"),),
        tests=(
            Figure(_CONCAT, "array_exponent", "from batch 512 to 4,096 its time grows as batch^{value}", most=1.35),
        ),
    ),
)
