"""Functions of a person's own, as they would be given: shared by the tests of what is derived and of what is run."""

CODE = """
import numpy as np
import tensorflow as tf


def images(batch=16, side=8, seed=0):
    return np.random.default_rng(seed).random((batch, side, side, 3), dtype=np.float32)


def vectors(batch=12, width=8, seed=0):
    return np.random.default_rng(seed).random((batch, width), dtype=np.float32)


def systems(batch=8, n=6, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((batch, n, n)).astype(np.float32)
    eye = n * np.eye(n, dtype=np.float32)
    return {"a": a @ a.transpose(0, 2, 1) + eye, "b": rng.standard_normal((batch, n, 1)).astype(np.float32)}


numbers_as_text = np.array([b"1.5", b"2.5", b"40"])
raw = np.array([b"abcd", b"efgh"])


def flip(x):
    return tf.image.random_flip_left_right(x)


def contrast(x):
    return tf.image.adjust_contrast(x, 2.0)


def decode(x):
    return tf.io.decode_raw(x, tf.uint8, fixed_length=4)


def to_number(x):
    return tf.strings.to_number(x)


def solve(x):
    return tf.linalg.cholesky_solve(tf.linalg.cholesky(x["a"]), x["b"])


def three(x):
    return {"f": tf.reduce_sum(x), "i": tf.argmax(x), "b": x > 0.5}


def branchy(x):
    if tf.reduce_sum(x) > 4.0:
        return x * 2
    return x + 1


calls = 0


def counting(x):
    global calls
    calls += 1
    print("called")
    return x * 2


def in_python(x):
    return tf.ensure_shape(tf.py_function(lambda value: value * 2, [x], tf.float32), [8])


def positive(x):
    tf.debugging.assert_greater_equal(x, 0.0)
    return tf.sqrt(x)


total = tf.Variable(0.0)


def keeps_state(x):
    total.assign_add(1.0)
    return x + total


def ragged(x):
    return tf.range(tf.cast(x[0] * 10, tf.int32))


def two(x, y):
    return x


def text(x):
    return "a"


def exits(x):
    raise SystemExit(3)


def square_of_vector(x):
    return tf.linalg.inv(x)
"""

KERAS = """
import numpy as np
import tensorflow as tf

block = tf.keras.Sequential([tf.keras.layers.Dense(16), tf.keras.layers.BatchNormalization()])
model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(4, activation="tanh")])


def vectors(batch=12, seed=0):
    return np.random.default_rng(seed).random((batch, 8), dtype=np.float32)


def dense(x):
    return block(x[None])[0]


def gradient(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x[None]) ** 2)
    return tape.gradient(loss, model.trainable_variables)
"""
