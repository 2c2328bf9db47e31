"""Code examples of the documents that do not run as they stand, or that do, in our names: their calls in order."""

from measure.claims.predicates import Runs
from measure.claims.spec import Claim, Script

_EXAMPLES = Script(
    """import tensorflow as tf

def pixels():
    def f(image):
        for row in range(image.shape[0]):
            for column in range(image.shape[1]):
                image[row, column] = tf.math.sqrt(image[row, column])
        return image

    tf.map_fn(f, tf.random.normal((100, 64, 64, 3)))

def roots():
    values = tf.map_fn(tf.math.sqrt, tf.random.normal((100, 64, 64, 3)))
    assert not tf.reduce_any(tf.math.is_nan(values)), "half of the results are NaN"

def bytes():
    images = tf.random.uniform((100, 64, 64, 3), minval=0, maxval=255, dtype=tf.uint8)
    tf.vectorized_map(lambda image: tf.cast(tf.math.sqrt(tf.cast(image, tf.float32)), tf.uint8), images)

def in_session(made):
    with tf.compat.v1.Session() as session:
        session.run(made)

def f(x):
    return tf.math.square(x) + 2 * x + 1

numbers = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0])

def session():
    in_session(tf.map_fn(f, numbers))

def session_of_whole():
    in_session(f(numbers))

def repeated(x):
    repeated = tf.repeat(x, repeats=10000)
    total = tf.reduce_sum(repeated)
    del repeated
    return total

def pipeline():
    list(tf.data.Dataset.from_tensor_slices(tf.range(1000)).map(tf.function(repeated, jit_compile=True)))

def outer():
    products = tf.vectorized_map(lambda x: tf.tensordot(x, x, 0), tf.ones((100, 32, 32)))
    assert products.shape == (100, 32, 32, 32, 32)

def gradients():
    layer = tf.keras.layers.Dense(1)

    def f(example):
        with tf.GradientTape() as tape:
            x, label = example
            loss = tf.nn.l2_loss(tf.expand_dims(label, 0) - layer(tf.expand_dims(x, 0)))
        return tape.gradient(loss, (layer.kernel, layer.bias))

    kernel, bias = tf.vectorized_map(f, (tf.random_uniform([10, 32]), tf.random_uniform([10, 1])))
    assert kernel.shape == (10, 32, 1) and bias.shape == (10, 1)

for part in (pixels, roots, bytes, session, session_of_whole, pipeline, outer, gradients):
    report(**{part.__name__: tried(part)})
""",
    seconds=12.0,
)

CLAIMS = (
    Claim(
        "examples_run", "limits", "The documents' examples run as they stand, and give what they say.",
        ("seed 1", "seed 3", "seed 4", "seed 5"),
        tuple(
            Runs(_EXAMPLES, name, when)
            for name, when in (
                ("pixels", "1 of seed 1, pixels"), ("roots", "2 of seed 1, roots"), ("bytes", "3 of seed 1, bytes"),
                ("session", "1 and 2 of seed 3, a map in a Session"), ("session_of_whole", "3 of seed 3, no map"),
                ("pipeline", "those of seed 4"), ("outer", "1 of seed 5"), ("gradients", "2 of seed 5"),
            )
        ),
        "A tensor cannot be changed in place, roots of negative numbers are NaN, 8-bit numbers are drawn as int32 and "
        "cast, a Session needs its graph, and TensorFlow 2 has `tf.random.uniform`.",
    ),
)  # fmt: skip
