"""Claims on what stands inside of the mapped function, how much of it, and what of it happens at once."""

from measure.claims.known.python_loops import IN_TURNS
from measure.claims.predicates import AsQuick, Figure, QuickerBy
from measure.claims.spec import Claim, Said, Script

_PIXELWISE = Script(
    IN_TURNS
    + """images = tf.random.uniform((10, 16, 16))
pixels = tf.function(lambda x: tf.map_fn(lambda x: tf.map_fn(lambda x: tf.map_fn(tf.sqrt, x), x), x))
whole = tf.function(lambda x: tf.map_fn(tf.sqrt, x))
report(**in_turns(9, pixel_by_pixel=lambda: pixels(images), image_by_image=lambda: whole(images)))
""",
    seconds=7.0,
)

_SHAPES = Script(
    IN_TURNS
    + """roots = tf.function(lambda x: tf.map_fn(tf.sqrt, x))
few, many = tf.random.uniform((10, 10_000)), tf.random.uniform((1000, 100))
report(**in_turns(9, ten_elements=lambda: roots(few), thousand_elements=lambda: roots(many)))
""",
    seconds=8.0,
)

_DEAR = Script(
    IN_TURNS
    + """def ways(f):
    return tf.function(lambda x: tf.map_fn(f, x)), tf.function(f)

numbers, matrices = tf.random.uniform([500]), tf.random.uniform((6, 500, 500))
cheap, dear = ways(lambda x: x**2 + 1), ways(lambda x: x @ x @ x)
report(
    **in_turns(
        9,
        cheap_map_fn=lambda: cheap[0](numbers),
        cheap_whole=lambda: cheap[1](numbers),
        dear_map_fn=lambda: dear[0](matrices),
        dear_whole=lambda: dear[1](matrices),
    )
)
""",
    seconds=8.0,
)

_OUTSIDE = Script(
    IN_TURNS
    + """table, x = tf.random.uniform([100_000]), tf.random.uniform([100])

def outside(x):
    total = tf.reduce_sum(tf.sqrt(table))
    return tf.map_fn(lambda x: x * total, x)

def inside(x):
    return tf.map_fn(lambda x: x * tf.reduce_sum(tf.sqrt(table)), x)

graphs = tf.function(outside), tf.function(inside)
compiled = tf.function(outside, jit_compile=True), tf.function(inside, jit_compile=True)
report(
    **in_turns(
        9,
        outside_eager=lambda: outside(x),
        inside_eager=lambda: inside(x),
        outside_graph=lambda: graphs[0](x),
        inside_graph=lambda: graphs[1](x),
        outside_xla=lambda: compiled[0](x),
        inside_xla=lambda: compiled[1](x),
    )
)
""",
    seconds=10.0,
)

_CORES = Script(
    """import glob
import tensorflow as tf

def ticks_of_threads():
    ticks = {}
    for path in glob.glob("/proc/self/task/*/stat"):
        with open(path) as file:
            ticks[path] = int(file.read().rsplit(")", 1)[1].split()[11])
    return ticks

x = tf.random.uniform((8, 1200, 1200))
graph = tf.function(lambda x: tf.map_fn(lambda x: x @ x, x, parallel_iterations=1))
graph(x)
before = ticks_of_threads()
for _ in range(4):
    graph(x)
spent = [ticks - before.get(path, 0) for path, ticks in ticks_of_threads().items()]
report(others_percent=100 * (1 - max(spent) / sum(spent)))
""",
    seconds=8.0,
)

_AT_ONCE = Script(
    """import threading
import tensorflow as tf

met = []

def wait(x):
    try:
        barrier.wait(timeout=1)
        met.append(1)
    except threading.BrokenBarrierError:
        pass
    return x

def f(x):
    return tf.numpy_function(wait, [x], x.dtype, stateful=False)

x = tf.zeros([2])
for name, mapped in (
    ("map_fn_eager", tf.map_fn),
    ("map_fn_graph", tf.function(tf.map_fn)),
    ("dataset", lambda f, x: list(tf.data.Dataset.from_tensor_slices(x).map(f))),
):
    barrier = threading.Barrier(2)
    met.clear()
    mapped(f, x)
    report(**{name: len(met)})
""",
    seconds=9.0,
)

CLAIMS = (
    Claim(
        id="dear_functions_hide_the_loop",
        question="speed",
        sentence="The more the function does for an element, the less the overhead of `tf.map_fn` counts.",
        said=(
            Said("seed 1", "heavily dependent on the function"),
            Said("seed 2", "inexpensive operations"),
            Said("seed 2", "on example 2, less pronounced"),
        ),
        tests=(
            QuickerBy(_DEAR, "cheap_whole", "cheap_map_fn", 4),
            AsQuick(_DEAR, "dear_map_fn", "dear_whole", 1.0),
        ),
    ),
    Claim(
        id="pixel_by_pixel_slow",
        question="speed",
        sentence="A mapped function that goes through its image pixel by pixel is far slower than one op on the image.",
        said=(Said("seed 1", "avoiding iteration within the function"), Said("seed 1", "on examples 1 and 2")),
        tests=(QuickerBy(_PIXELWISE, "image_by_image", "pixel_by_pixel", 4),),
        note="Pixels are mapped here, since a tensor cannot be changed in place.",
    ),
    Claim(
        id="each_element_costs",
        question="speed",
        sentence="The same numbers in a few large elements take `tf.map_fn` less time than in many small ones.",
        said=(Said("seed 1", "the overhead of calls"), Said("seed 1", "reshaping before the map")),
        tests=(QuickerBy(_SHAPES, "ten_elements", "thousand_elements", 3),),
    ),
    Claim(
        id="work_outside_saves",
        question="speed",
        sentence="What is the same for all elements takes less time where it is computed before the map.",
        said=(Said("seed 1", "preprocessing, and computing outside the loop"),),
        tests=(
            QuickerBy(_OUTSIDE, "outside_eager", "inside_eager", 1.2, when="eager"),
            QuickerBy(_OUTSIDE, "outside_graph", "inside_graph", 1.2, when="in a graph"),
            QuickerBy(_OUTSIDE, "outside_xla", "inside_xla", 1.2, when="under XLA"),
        ),
        note="XLA computes what stays the same once, wherever it is written.",
    ),
    Claim(
        id="ops_inside_use_cores",
        question="speed",
        sentence="While `tf.map_fn` goes from element to element, a large op inside of it uses several cores.",
        said=(Said("seed 1", "parallelism of the operations inside"),),
        tests=(
            Figure(_CORES, "others_percent", "{value} % of the time of all threads is not the busiest one's", least=15),
        ),
        needs_cores=2,
        needs_linux=True,
    ),
    Claim(
        id="one_element_at_a_time",
        question="speed",
        sentence="`tf.map_fn` computes one element at a time.",
        said=(
            Said("seed 1", "inherently sequential"),
            Said("seed 2", "its parallelization"),
            Said("seed 3", "element by element"),
            Said("seed 4", "convenient parallel processing"),
        ),
        tests=(
            Figure(_AT_ONCE, "map_fn_eager", "{value} of two elements met", most=0, when="eager"),
            Figure(_AT_ONCE, "map_fn_graph", "{value} of two elements met", most=0, when="in a graph"),
        ),
        note="The function waits, in two elements, for the other one, which comes only where both are in work at once.",
    ),
)
