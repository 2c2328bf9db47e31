"""Claims on what is traced and compiled."""

from measure.claims.predicates import Figure
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

CLAIMS = (
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
