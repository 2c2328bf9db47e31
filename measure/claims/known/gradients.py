"""Claims on gradients of single examples, through layers of Keras and by Jacobians."""

from measure.claims.known.python_loops import IN_TURNS
from measure.claims.predicates import Fails, Figure, QuickerBy
from measure.claims.spec import Claim, Said, Script

_LAYERS = Script(
    """import tensorflow as tf

layers = tf.keras.layers

def seen(name, layer, x, **options):
    layer(x, **options)

    def gradients(example):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(example[None], **options) ** 2)
        return [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, layer.trainable_variables)]

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x, **options) ** 2)
    whole = tape.gradient(loss, layer.trainable_variables)
    made = tf.function(lambda x: tf.vectorized_map(gradients, x)).get_concrete_function(x)
    loops = sum(op.type.endswith("While") for op in made.graph.get_operations())
    shares = [
        tf.norm(tf.reduce_sum(one, axis=0) - tf.convert_to_tensor(all)) / tf.norm(tf.convert_to_tensor(all))
        for one, all in zip(made(x), whole)
    ]
    report(**{f"{name}_loops": loops, f"{name}_off": float(max(shares))})

rows, images = tf.random.uniform([8, 10]), tf.random.uniform([8, 8, 8, 2])
words = tf.random.uniform([8, 10], maxval=50, dtype=tf.int32)
seen("dense", layers.Dense(4), rows)
seen("convolution", layers.Conv2D(4, 3), images)
seen("embedding", layers.Embedding(50, 4), words)
seen("layer_norm", layers.LayerNormalization(gamma_initializer="random_uniform"), rows)
seen("batch_norm", layers.BatchNormalization(beta_initializer="ones"), rows, training=True)
""",
    seconds=7.0,
)

_LSTM = Script(
    """import tensorflow as tf

layer = tf.keras.layers.LSTM(2)
x = tf.random.uniform([4, 5, 2])
layer(x)

@tf.function
def gradients(example):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(example[None]))
    return tape.gradient(loss, layer.trainable_variables)

tf.function(lambda x: tf.vectorized_map(gradients, x))(x)
""",
    seconds=14.0,
)

_JACOBIANS = Script(
    IN_TURNS
    + """model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="tanh"), tf.keras.layers.Dense(8)])
x = tf.random.uniform([256, 16])
model(x)

@tf.function
def whole(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model(x)
    # Examples do not mix: of all pairs only those of an example with itself are not zero.
    return tf.einsum("bibj->bij", tape.jacobian(y, x))

@tf.function
def of_batch(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model(x)
    return tape.batch_jacobian(y, x)

report(off=float(tf.reduce_max(tf.abs(whole(x) - of_batch(x)))))
report(**in_turns(7, jacobian=lambda: whole(x), batch_jacobian=lambda: of_batch(x)))
""",
    seconds=9.0,
)

_BY_WEIGHTS = Script(
    """import tensorflow as tf

layer = tf.keras.layers.Dense(4)
x = tf.random.uniform([8, 10])
with tf.GradientTape() as tape:
    losses = tf.reduce_sum(layer(x) ** 2, axis=1, keepdims=True)
tape.batch_jacobian(losses, layer.kernel)
""",
    seconds=7.0,
)

_PER_EXAMPLE = Said("thread", "https://github.com/tensorflow/tensorflow/issues/29694")
_LOOPS = "{value} while loops in the graph"
_OFF = "their sum is off by {value} of the gradient of the batch"

CLAIMS = (
    Claim(
        id="layers_gradients_vectorized",
        question="speed",
        sentence="`tf.vectorized_map` vectorises gradients of single examples through layers of Keras.",
        said=(_PER_EXAMPLE, Said("thread", "https://github.com/tensorflow/tensorflow/issues/34496")),
        tests=(
            Figure(_LAYERS, "dense_loops", _LOOPS, most=0, when="Dense"),
            Figure(_LAYERS, "embedding_loops", _LOOPS, most=0, when="Embedding"),
            Figure(_LAYERS, "layer_norm_loops", _LOOPS, most=0, when="LayerNormalization"),
            Figure(_LAYERS, "convolution_loops", _LOOPS, most=0, when="Conv2D"),
        ),
    ),
    Claim(
        id="gradients_of_examples_add_up",
        question="correctness",
        sentence="Gradients of single examples add up to the gradient of the batch.",
        said=(_PER_EXAMPLE,),
        tests=(
            Figure(_LAYERS, "dense_off", _OFF, most=1e-3, when="Dense"),
            Figure(_LAYERS, "convolution_off", _OFF, most=1e-3, when="Conv2D"),
            Figure(_LAYERS, "batch_norm_off", _OFF, most=1e-3, when="BatchNormalization in training"),
        ),
        note="In training, batch normalisation mixes the examples of a batch, and one example by itself has no spread.",
    ),
    Claim(
        id="lstm_gradients_fail",
        question="limits",
        sentence="Gradients of single examples through a Keras `LSTM` cannot be mapped by `tf.vectorized_map`.",
        said=(Said("thread", "https://github.com/tensorflow/tensorflow/issues/43904"),),
        tests=(Fails(_LSTM, "vectoriz"),),
    ),
    Claim(
        id="batch_jacobian_faster",
        question="speed",
        sentence="For Jacobians of single examples, `batch_jacobian` is at least twice as fast as `jacobian`.",
        said=(Said("thread", "https://github.com/tensorflow/tensorflow/issues/36227"),),
        tests=(
            QuickerBy(_JACOBIANS, "batch_jacobian", "jacobian", by=2.0),
            Figure(_JACOBIANS, "off", "results differ by {value}", most=1e-5),
        ),
    ),
    Claim(
        id="batch_jacobian_not_by_weights",
        question="limits",
        sentence="`batch_jacobian` gives no gradients of single examples by the weights of a layer.",
        said=(Said("documentation", "https://www.tensorflow.org/api_docs/python/tf/GradientTape#batch_jacobian"),),
        tests=(Fails(_BY_WEIGHTS, "first dimension"),),
    ),
)
