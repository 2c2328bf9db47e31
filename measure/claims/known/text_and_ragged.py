"""Claims on text and on rows that differ in length."""

from measure.claims.predicates import Fails, Runs
from measure.claims.spec import Claim, Said, Script

_VECTORIZED = Script(
    """import tensorflow as tf

rows = tf.RaggedTensor.from_row_lengths(tf.random.uniform([9]), [2, 3, 4])
tf.vectorized_map(lambda row: tf.reverse(row, axis=[0]), rows)
""",
    seconds=4.0,
)

_LENGTHS = Script(
    """import tensorflow as tf

rows = tf.RaggedTensor.from_row_lengths(tf.random.uniform([9]), [2, 3, 4])
spec = tf.RaggedTensorSpec([None], tf.float32)
tf.map_fn(lambda row: tf.reverse(row, axis=[0]), rows, fn_output_signature=spec)
""",
    seconds=4.0,
)

_STRINGS = Said("thread", "https://github.com/tensorflow/tensorflow/issues/24774")
_ROWS = Said("thread", "https://github.com/tensorflow/tensorflow/issues/51771")

CLAIMS = (
    Claim(
        id="vectorized_map_takes_no_ragged",
        question="limits",
        sentence="`tf.vectorized_map` fails on ragged tensors whose rows differ in length.",
        said=(_ROWS, Said("thread", "https://github.com/keras-team/keras-cv/issues/666")),
        tests=(Fails(_VECTORIZED),),
    ),
    Claim(
        id="map_fn_takes_ragged",
        question="limits",
        sentence="`tf.map_fn` maps over rows that differ in length, and gives such rows if its signature says so.",
        said=(Said("thread", "https://github.com/tensorflow/tensorflow/issues/36232"),),
        tests=(Runs(_LENGTHS),),
    ),
)
