"""Claims on what is traced and compiled."""

from measure.claims.predicates import Figure, QuickerBy
from measure.claims.spec import Claim, Said, Script

_NUMBERS = Script("""import tensorflow as tf

@tf.function
def scaled(x, factor):
    return x * factor

for factor in range(10):
    scaled(tf.ones(4), factor)
with_numbers = scaled.experimental_get_tracing_count()
for factor in range(10):
    scaled(tf.ones(4), tf.constant(float(factor)))
report(numbers=with_numbers, tensors=scaled.experimental_get_tracing_count() - with_numbers)
""")

_AUTOGRAPH = Script(
    """import time

import tensorflow as tf

SPEC = tf.TensorSpec([32])

def seconds(function, autograph):
    start = time.perf_counter()
    tf.function(function, autograph=autograph).get_concrete_function(SPEC)
    return time.perf_counter() - start

def made(number):
    # Of one source, but known to AutoGraph as functions of their own: it keeps what it has converted by their code.
    def branches(x):
        y = tf.sqrt(tf.abs(x))
        return tf.cond(tf.reduce_sum(y) > number, lambda: y * 2, lambda: y) + 1

    branches.__code__ = branches.__code__.replace(co_name=f"branches_{number}")
    return branches

without, first, again = [], [], []
for number in range(30):
    function = made(number)
    without.append(seconds(function, False))
    first.append(seconds(function, True))
    again.append(seconds(function, True))
report(without_autograph=without, first_trace=first, later_trace=again)
""",
    seconds=12.0,
)

_CONVERSION = Script(
    """import cProfile
import pstats

import tensorflow as tf

def f(x):
    return tf.reduce_sum(tf.sqrt(tf.abs(x)) * 2 + 1)

x = tf.random.uniform([50, 32])
tf.vectorized_map(f, x)
profile = cProfile.Profile()
profile.enable()
for _ in range(20):
    tf.vectorized_map(f, x)
profile.disable()
whole = pstats.Stats(profile)

def share(file, function):
    seconds = [entry[3] for (path, _, name), entry in whole.stats.items() if path.endswith(file) and name == function]
    return max(seconds) / whole.total_tt

tracing = share("polymorphic_function/tracing_compilation.py", "trace_function")
report(percent=100 * tracing, conversion_percent=100 * share("parallel_for/pfor.py", "convert"))
""",
    seconds=8.0,
)

CLAIMS = (
    Claim(
        id="autograph_slows_tracing",
        question="tracing",
        sentence="AutoGraph makes tracing a function take much longer.",
        said=(Said("thread", "https://github.com/jax-ml/jax/pull/13744"),),
        tests=(
            QuickerBy(_AUTOGRAPH, "without_autograph", "first_trace", by=1.5, when="at the first trace"),
            QuickerBy(_AUTOGRAPH, "without_autograph", "later_trace", by=1.5, when="at later traces"),
        ),
        note="What AutoGraph has converted is kept by the function's code.",
    ),
    Claim(
        id="eager_vectorized_map_is_tracing",
        question="tracing",
        sentence="Called eagerly, `tf.vectorized_map` spends most of its time on tracing, at every call.",
        said=(
            Said("thread", "https://github.com/tensorflow/tensorflow/issues/43710"),
            Said("thread", "https://github.com/tensorflow/tensorflow/pull/39711"),
        ),
        tests=(
            Figure(_CONVERSION, "percent", "tracing takes {value} % of the time", least=50),
            Figure(_CONVERSION, "conversion_percent", "of which converting ops takes {value} %", most=50),
        ),
    ),
    Claim(
        id="python_numbers_retrace",
        question="tracing",
        sentence="A `tf.function` is traced anew for every Python number that it is called with.",
        said=(Said("documentation", "https://www.tensorflow.org/guide/function#controlling_retracing"),),
        tests=(
            Figure(_NUMBERS, "numbers", "{value} traces for ten Python numbers", least=10),
            Figure(_NUMBERS, "tensors", "{value} for ten tensors", least=1, most=1),
        ),
    ),
)
