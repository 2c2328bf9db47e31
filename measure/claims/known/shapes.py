"""Claims on batches that change in size, and on what is traced and compiled for them."""

from measure.claims.known.python_loops import IN_TURNS
from measure.claims.predicates import Figure, QuickerBy
from measure.claims.spec import Claim, Said, Script

# XLA writes a file for every program that it compiles.
_STREAM = Script(
    """import os, tempfile, time
from pathlib import Path

folder = tempfile.mkdtemp()
os.environ["XLA_FLAGS"] = f"--xla_dump_to={folder} --xla_dump_hlo_as_text"

import tensorflow as tf

SIZES = (3, 17, 5, 30, 9, 17, 24, 12, 5, 28, 21, 3, 14, 31, 7)

def f(x):
    return tf.reduce_sum(tf.sin(x) * tf.exp(x) + tf.sqrt(x), axis=1)

def padded(compiled, x, to):
    return compiled(tf.pad(x, [[0, to - len(x)], [0, 0]]))[: len(x)]

def bucket(size):
    return 1 << (size - 1).bit_length()

spec = [tf.TensorSpec([None, 64], tf.float32)]
ways = {
    "exact": (dict(jit_compile=True), lambda made, x: made(x)),
    "with_None": (dict(jit_compile=True, input_signature=spec), lambda made, x: made(x)),
    "buckets": (dict(jit_compile=True), lambda made, x: padded(made, x, bucket(len(x)))),
    "one_size": (dict(jit_compile=True), lambda made, x: padded(made, x, 32)),
    "graph": (dict(input_signature=spec), lambda made, x: made(x)),
}
batches = [tf.random.uniform([size, 64]) for size in SIZES]
seconds = {name: [] for name in ways}
padded(f, batches[0], 32)
for round in range(5):
    for name, (options, call) in ways.items():
        made, compiled = tf.function(f, **options), len(list(Path(folder).glob("*before_optimizations.txt")))
        began = time.perf_counter()
        for x in batches:
            call(made, x)
        seconds[name].append(time.perf_counter() - began)
        compiled = len(list(Path(folder).glob("*before_optimizations.txt"))) - compiled
        report(**{f"traces_{name}": made.experimental_get_tracing_count(), f"compiled_{name}": compiled})
report(**seconds, sizes=len(set(SIZES)))
""",
    seconds=30.0,
)

_SHAPES = Script(
    """import tensorflow as tf

def f(x):
    return x * 2

def traces(**options):
    made = tf.function(f, **options)
    for size in range(1, 11):
        made(tf.ones([size, 4]))
    return made.experimental_get_tracing_count()

@tf.function
def reshaped(x, shape):
    return tf.reshape(x, shape)

for rows in (1, 2, 3, 4, 6, 8, 12, 24):
    reshaped(tf.ones(24), (rows, 24 // rows))
of_tuples = reshaped.experimental_get_tracing_count()
for rows in (1, 2, 3, 4, 6, 8, 12, 24):
    reshaped(tf.ones(24), tf.constant([rows, 24 // rows]))
report(
    plain=traces(),
    reduced=traces(reduce_retracing=True),
    tuples=of_tuples,
    tensors=reshaped.experimental_get_tracing_count() - of_tuples,
)
""",
    seconds=8.0,
)

_TRACING = Script(
    IN_TURNS
    + """def f(x):
    return tf.sin(x) + tf.cos(x) * tf.exp(x)

def unrolled(x):
    return tf.stack([f(x[i]) for i in range(x.shape[0])])

def rolled(x):
    results = tf.TensorArray(tf.float32, x.shape[0])
    for i in tf.range(x.shape[0]):
        results = results.write(i, f(x[i]))
    return results.stack()

def mapped(x):
    return tf.map_fn(f, x)

def vectorized(x):
    return tf.vectorized_map(f, x)

spec = tf.TensorSpec([100], tf.float32)

def traced(form, **options):
    return tf.function(form, **options).get_concrete_function(spec)

report(
    ops=len(traced(unrolled).graph.get_operations()),
    **in_turns(
        7,
        Python_loop=lambda: traced(unrolled),
        tf_range=lambda: traced(rolled),
        map_fn=lambda: traced(mapped),
        vectorized_map=lambda: traced(vectorized),
        without_AutoGraph=lambda: traced(mapped, autograph=False),
    ),
)
""",
    seconds=16.0,
)

_UNROLLING = Said("thread", "https://github.com/tensorflow/tensorflow/issues/38628")
_NEW_SIZES = Said("thread", "https://github.com/tensorflow/tensorflow/issues/81896")
_RETRACING = Said("documentation", "https://www.tensorflow.org/guide/function#controlling_retracing")
_COMPILED = "{value} compilations for 12 batch sizes"
_TRACED = "its traces number {value}"

CLAIMS = (
    Claim(
        id="new_batch_size_compiles",
        question="tracing",
        sentence="Under XLA every new batch size is compiled anew, and a size that was there before is not.",
        said=(_NEW_SIZES,),
        tests=(Figure(_STREAM, "compiled_exact", _COMPILED + ", in 15 batches", least=12, most=12),),
    ),
    Claim(
        id="none_spares_traces",
        question="tracing",
        sentence="With `None` for the batch in `input_signature`, a function is traced once for all batch sizes.",
        said=(_RETRACING,),
        tests=(
            Figure(_STREAM, "traces_graph", _TRACED, least=1, most=1, when="in a graph"),
            Figure(_STREAM, "traces_with_None", _TRACED, least=1, most=1, when="under XLA"),
        ),
    ),
    Claim(
        id="none_spares_compilations",
        question="tracing",
        sentence="With `None` for the batch in `input_signature`, XLA compiles once for all batch sizes.",
        said=(_NEW_SIZES,),
        tests=(Figure(_STREAM, "compiled_with_None", _COMPILED, most=1),),
    ),
    Claim(
        id="padding_to_buckets_compiles_less",
        question="tracing",
        sentence="Batches that are padded to the next power of two are compiled for as many sizes as there are powers.",
        said=(Said("thread", "https://github.com/OpenNMT/OpenNMT-tf/pull/977"),),
        tests=(Figure(_STREAM, "compiled_buckets", _COMPILED + ", of four powers of two", least=4, most=4),),
    ),
    Claim(
        id="padding_pays_under_xla",
        question="speed",
        sentence="Over 15 batches of changing sizes, padding takes less time under XLA than compiling for every size.",
        said=(Said("thread", "https://github.com/OpenNMT/OpenNMT-tf/pull/977"),),
        tests=(
            QuickerBy(_STREAM, "buckets", "exact", when="to powers of two"),
            QuickerBy(_STREAM, "one_size", "exact", by=3.0, when="to one size"),
        ),
    ),
    Claim(
        id="graph_wins_on_changing_sizes",
        question="speed",
        sentence="Over 15 small batches of changing sizes, a graph is far faster than XLA, as nothing is compiled.",
        said=(_NEW_SIZES,),
        tests=(
            QuickerBy(_STREAM, "graph", "exact", by=5.0, when="against XLA"),
            QuickerBy(_STREAM, "graph", "one_size", when="against XLA with padding to one size"),
        ),
    ),
    Claim(
        id="new_shapes_retrace",
        question="tracing",
        sentence="Without a signature, a `tf.function` is traced anew for every new shape of its tensors.",
        said=(_RETRACING,),
        tests=(Figure(_SHAPES, "plain", "{value} traces for ten shapes", least=10),),
    ),
    Claim(
        id="reduce_retracing_generalises",
        question="tracing",
        sentence="`reduce_retracing=True` ends the retracing for new shapes after a few.",
        said=(Said("documentation", "https://www.tensorflow.org/api_docs/python/tf/function"),),
        tests=(Figure(_SHAPES, "reduced", "{value} traces for ten shapes", most=3),),
    ),
    Claim(
        id="shapes_from_python_retrace",
        question="tracing",
        sentence="A shape that is given as a tuple is traced anew for each of its values, and one in a tensor is not.",
        said=(_RETRACING,),
        tests=(
            Figure(_SHAPES, "tuples", "{value} traces for eight tuples", least=8),
            Figure(_SHAPES, "tensors", "{value} for eight tensors", least=1, most=1),
        ),
    ),
    Claim(
        id="python_loop_traces_every_step",
        question="tracing",
        sentence="Tracing a Python loop over 100 elements takes many times as long as tracing a loop over `tf.range`.",
        said=(_UNROLLING,),
        tests=(
            QuickerBy(_TRACING, "tf_range", "Python_loop", by=3.0, when="against tf.range"),
            QuickerBy(_TRACING, "map_fn", "Python_loop", by=3.0, when="against tf.map_fn"),
            Figure(_TRACING, "ops", "its graph has {value} ops", least=500, when="in ops"),
        ),
        note="Five ops for an element.",
    ),
    Claim(
        id="vectorized_map_traces_longer",
        question="tracing",
        sentence="Tracing `tf.vectorized_map`, which converts every op, takes longer than tracing `tf.map_fn`.",
        said=(Said("seed 5", "fusion at graph generation time"),),
        tests=(QuickerBy(_TRACING, "map_fn", "vectorized_map"),),
    ),
    Claim(
        id="autograph_takes_most_of_tracing",
        question="tracing",
        sentence="AutoGraph takes more than half of the time of tracing `tf.map_fn` again.",
        said=(Said("documentation", "https://www.tensorflow.org/guide/function"),),
        tests=(QuickerBy(_TRACING, "without_AutoGraph", "map_fn", by=2.0),),
        note="What AutoGraph makes of a function is kept: the first trace takes longer.",
    ),
)
