"""Claims on Python loops against `tf.map_fn`: over plain numbers, and over tensors; and what tracing costs."""

from measure.claims.along import FasterAlong
from measure.claims.predicates import Figure, QuickerBy
from measure.claims.spec import Claim, Said, Script, Swept

# Python that calls several functions in turns, and takes the time of each.
IN_TURNS = """import time
import tensorflow as tf

def in_turns(count, **ways):
    samples = {name: [] for name in ways}
    for number in range(count + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            if number:
                samples[name].append(time.perf_counter() - began)
    return samples

"""

_PLAIN = Script(
    IN_TURNS
    + """for word, count in {"ten": 10, "thousand": 1000}.items():
    numbers = [float(i) for i in range(count)]
    x = tf.constant(numbers)
    graph = tf.function(lambda x: tf.map_fn(lambda x: x**2, x))
    samples = in_turns(
        6,
        in_Python=lambda: [x**2 for x in numbers],
        by_eager_map_fn=lambda: tf.map_fn(lambda x: x**2, x),
        by_map_fn=lambda: graph(x).numpy(),
        as_a_tensor=lambda: tf.constant(numbers),
        as_tensors=lambda: [tf.constant(x) for x in numbers],
    )
    report(**{f"{word}_{name}": values for name, values in samples.items()})
""",
    seconds=13.0,
)

_GAP = Script(
    IN_TURNS
    + """from statistics import median

def f(x):
    return tf.sin(x) + tf.cos(x) * tf.exp(x)

ratios = {}
for count in (100, 1600):
    x = tf.random.uniform([count])
    samples = in_turns(5, loop=lambda: tf.stack([f(x[i]) for i in range(count)]), map_fn=lambda: tf.map_fn(f, x))
    ratios[count] = median(samples["map_fn"]) / median(samples["loop"])
report(few=ratios[100], many=ratios[1600], growth=ratios[1600] / ratios[100])
""",
    seconds=25.0,
)

_FIRST = Script(
    IN_TURNS
    + """def f(x):
    return tf.sin(x) + tf.cos(x) * tf.exp(x)

x = tf.random.uniform([10])
graph = tf.function(lambda x: tf.map_fn(f, x))
report(
    **in_turns(
        7,
        first_call=lambda: tf.function(lambda x: tf.map_fn(f, x))(x),
        later_call=lambda: graph(x),
        eager_loop=lambda: [f(x[i]) for i in range(10)],
    )
)
""",
    seconds=9.0,
)

_DECORATED = Script(
    IN_TURNS
    + """def few(x):
    return tf.sin(x) + tf.cos(x) * tf.exp(x)

def many(x):
    for _ in range(25):
        x = few(x) / 4
    return x

x = tf.random.uniform([100])
for f in (few, many):
    traced = tf.function(f)
    samples = in_turns(7, plain=lambda: tf.map_fn(f, x), traced=lambda: tf.map_fn(traced, x))
    report(**{f"{name}_{f.__name__}": values for name, values in samples.items()})
""",
    seconds=30.0,
)

SQUARES = Swept(
    "square",
    ("loop.eager", "map_fn.eager", "map_fn.graph", "vectorized_map.eager", "vectorized_map.graph"),
    "batch",
    (10, 100, 1000),
    budget_s=15.0,
)

CLAIMS = (
    Claim(
        id="python_loop_over_numbers_faster",
        question="speed",
        sentence="A Python loop over plain numbers is faster than `tf.map_fn`.",
        said=(Said("seed 2", "title and first paragraph"), Said("seed 2", "on example 1")),
        tests=(
            QuickerBy(_PLAIN, "ten_in_Python", "ten_by_eager_map_fn", 3),
            QuickerBy(_PLAIN, "ten_in_Python", "ten_by_map_fn", 3),
            QuickerBy(_PLAIN, "thousand_in_Python", "thousand_by_eager_map_fn", 3),
            QuickerBy(_PLAIN, "thousand_in_Python", "thousand_by_map_fn", 3),
        ),
    ),
    Claim(
        id="map_fn_overtakes_python_on_large_data",
        question="speed",
        sentence="With a thousand numbers `tf.map_fn` has made up for its overhead and overtakes a plain Python loop.",
        said=(Said("seed 2", "first paragraph, and the third factor"),),
        tests=(
            QuickerBy(_PLAIN, "thousand_by_eager_map_fn", "thousand_in_Python"),
            QuickerBy(_PLAIN, "thousand_by_map_fn", "thousand_in_Python"),
        ),
    ),
    Claim(
        id="python_loop_over_tensors_faster",
        question="speed",
        sentence="A Python loop over the slices of a tensor is faster than `tf.map_fn`.",
        said=(Said("seed 2", "title and first paragraph"), Said("seed 2", "the first factor")),
        tests=(
            FasterAlong(SQUARES, "loop.eager", "map_fn.eager", when="eager"),
            FasterAlong(SQUARES, "loop.eager", "map_fn.graph", when="in a graph"),
        ),
    ),
    Claim(
        id="gap_to_loop_widens",
        question="speed",
        sentence="The more elements there are, the further eager `tf.map_fn` falls behind a Python loop over tensors.",
        said=(Said("seed 2", "on example 2"),),
        tests=(Figure(_GAP, "growth", "with 16 times the elements the gap is {value} times as wide", least=1.5),),
        note="Both take a time for each element: the gap between them is a factor, which stays.",
    ),
    Claim(
        id="eager_lessens_overhead",
        question="speed",
        sentence="Eager execution lessens the overhead of `tf.map_fn`.",
        said=(Said("seed 2", "the fourth factor"),),
        tests=(FasterAlong(SQUARES, "map_fn.eager", "map_fn.graph"),),
    ),
    Claim(
        id="conversion_takes_longest",
        question="speed",
        sentence="Of mapping over numbers from Python, making a tensor of them takes longest.",
        said=(Said("seed 2", "the second factor"), Said("seed 2", "on example 2")),
        tests=(
            QuickerBy(_PLAIN, "ten_by_map_fn", "ten_as_a_tensor"),
            QuickerBy(_PLAIN, "thousand_by_map_fn", "thousand_as_a_tensor"),
        ),
    ),
    Claim(
        id="many_small_tensors_dear",
        question="speed",
        sentence="A tensor for each of many numbers takes far longer to make than one tensor of all.",
        said=(Said("seed 2", "the second factor"),),
        tests=(QuickerBy(_PLAIN, "thousand_as_a_tensor", "thousand_as_tensors", 4),),
    ),
    Claim(
        id="graph_takes_long_to_build",
        question="tracing",
        sentence="Building a graph with `tf.map_fn` takes many times as long as running it over a few elements.",
        said=(Said("seed 2", "the first factor"), Said("seed 2", "on example 3, the cost of `tf.function`")),
        tests=(QuickerBy(_FIRST, "later_call", "first_call", 10),),
    ),
    Claim(
        id="loop_beats_a_graph_called_once",
        question="tracing",
        sentence="For ten elements, once, an eager Python loop is faster than tracing and running a `tf.function`.",
        said=(Said("seed 2", "on example 3, small datasets"),),
        tests=(QuickerBy(_FIRST, "eager_loop", "first_call", 2),),
    ),
    Claim(
        id="traced_element_function_helps",
        question="speed",
        sentence="`@tf.function` on the mapped function makes eager `tf.map_fn` faster.",
        said=(Said("seed 2", "example 3"),),
        tests=(
            QuickerBy(_DECORATED, "traced_few", "plain_few", 1.1, when="a function of four ops"),
            QuickerBy(_DECORATED, "traced_many", "plain_many", 1.1, when="a function of 125 ops"),
        ),
    ),
    Claim(
        id="vectorized_map_gains_most_eager",
        question="speed",
        sentence="In eager code `tf.vectorized_map` is faster than `tf.map_fn`, from a few elements on.",
        said=(Said("seed 5", "significantly faster, especially eager"),),
        tests=(FasterAlong(SQUARES, "vectorized_map.eager", "map_fn.eager"),),
        note="Called eagerly, `tf.vectorized_map` traces and converts the function in each call.",
    ),
)
