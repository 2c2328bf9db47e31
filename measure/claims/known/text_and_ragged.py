"""Claims on text and on rows that differ in length."""

from measure.claims.predicates import Fails, Faster, Runs, Warned
from measure.claims.spec import Claim, Compare, Said, Script

_VECTORIZED = Script(
    """import tensorflow as tf

rows = tf.RaggedTensor.from_row_lengths(tf.random.uniform([9]), [2, 3, 4])
tf.vectorized_map(lambda row: tf.reverse(row, axis=[0]), rows)
""",
    seconds=7.0,
)

_LENGTHS = Script(
    """import tensorflow as tf

rows = tf.RaggedTensor.from_row_lengths(tf.random.uniform([9]), [2, 3, 4])
spec = tf.RaggedTensorSpec([None], tf.float32)
tf.map_fn(lambda row: tf.reverse(row, axis=[0]), rows, fn_output_signature=spec)
""",
    seconds=7.0,
)

_COMPILED = Script(
    """import tensorflow as tf

tf.function(tf.strings.to_number, jit_compile=True)(tf.constant(["1.5", "2.5"]))
""",
    seconds=7.0,
)

_TEXTS = Compare(
    "decode",
    ("map_fn.graph", "vectorized_map.graph", "batched.graph"),
    size={"batch": 200, "width": 16},
    budget_s=8.0,
)
_BYTES = Compare(
    "decode",
    ("map_fn.graph", "vectorized_map.graph", "batched.graph"),
    size={"batch": 200, "width": 16},
    options={"of": "bytes"},
    budget_s=6.0,
)
_MEANS = Compare(
    "ragged_in",
    ("map_fn.graph", "batched.eager", "batched.graph", "padded.graph"),
    size={"batch": 200, "width": 64},
    budget_s=8.0,
)

_STRINGS = Said("thread", "https://github.com/tensorflow/tensorflow/issues/24774")
_ROWS = Said("thread", "https://github.com/tensorflow/tensorflow/issues/51771")

CLAIMS = (
    Claim(
        id="vectorized_map_takes_no_ragged",
        question="limits",
        sentence="`tf.vectorized_map` fails on ragged tensors whose rows differ in length.",
        said=(_ROWS, Said("thread", "https://github.com/keras-team/keras-cv/issues/666")),
        tests=(Fails(_VECTORIZED, "incompatible shapes"),),
    ),
    Claim(
        id="map_fn_takes_ragged",
        question="limits",
        sentence="`tf.map_fn` maps over rows that differ in length, and gives such rows if its signature says so.",
        said=(Said("thread", "https://github.com/tensorflow/tensorflow/issues/36232"),),
        tests=(Runs(_LENGTHS),),
    ),
    Claim(
        id="text_falls_back",
        question="limits",
        sentence="Ops on strings make `tf.vectorized_map` fall back to a while loop.",
        said=(_STRINGS,),
        tests=(
            Warned(_TEXTS, "vectorized_map.graph", "falls_back", when="`tf.strings.to_number`"),
            Warned(_BYTES, "vectorized_map.graph", "falls_back", when="`tf.io.decode_raw`"),
        ),
    ),
    Claim(
        id="text_of_the_batch_faster",
        question="speed",
        sentence="Strings of a whole batch are decoded by one op at least twice as fast as by `tf.map_fn`.",
        said=(_STRINGS,),
        tests=(
            Faster(_TEXTS, "batched.graph", "map_fn.graph", by=2, when="`tf.strings.to_number`"),
            Faster(_BYTES, "batched.graph", "map_fn.graph", by=2, when="`tf.io.decode_raw`"),
        ),
    ),
    Claim(
        id="xla_takes_no_text",
        question="limits",
        sentence="XLA does not compile a function of strings.",
        said=(Said("thread", "https://github.com/tensorflow/tensorflow/issues/101188"),),
        tests=(Fails(_COMPILED, "unsupported operations"),),
    ),
    Claim(
        id="ragged_ops_faster",
        question="speed",
        sentence="The ops of a `tf.RaggedTensor` on all rows are faster than `tf.map_fn` over the rows.",
        said=(Said("documentation", "https://www.tensorflow.org/guide/ragged_tensor"), _ROWS),
        tests=(Faster(_MEANS, "batched.graph", "map_fn.graph"),),
    ),
    Claim(
        id="padding_faster_than_ragged",
        question="speed",
        sentence="Rows that are padded to one length are reduced faster than by ops of a ragged tensor.",
        said=(Said("thread", "https://github.com/tensorflow/tensorflow/issues/36232"),),
        tests=(Faster(_MEANS, "padded.graph", "batched.graph"),),
    ),
)
