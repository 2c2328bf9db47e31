"""Functions of a person's own, as they would be given: shared by the tests of what is derived and of what is run."""

CODE = """
import itertools

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

def flip(x):
    return tf.image.random_flip_left_right(x)

def contrast(x):
    return tf.image.adjust_contrast(x, 2.0)

def to_number(x):
    return tf.strings.to_number(x)

def solve(x):
    return tf.linalg.cholesky_solve(tf.linalg.cholesky(x["a"]), x["b"])

table = tf.Variable(np.arange(30, dtype=np.float32).reshape(10, 3))
ids = np.array([[1, 2], [3, 3], [0, 9]])

def gradient_of_rows(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, x) ** 2)
    return tape.gradient(loss, table)

def as_text(x):
    return {"text": tf.strings.as_string(x), "digits": tf.strings.length(tf.strings.as_string(x))}

calls = 0
numbers_so_far = itertools.count()

def counting(x):
    global calls
    calls += 1
    print("called")
    return x * 2

def largest(x):
    return {"k": tf.math.top_k(x, 2)}

def in_python(x):
    return tf.ensure_shape(tf.py_function(lambda value: value * 2, [x], tf.float32), [8])

def positive(x):
    tf.debugging.assert_greater_equal(x, 0.0)
    return tf.sqrt(x)

def smoothed(x):
    return tf.math.betainc(x + 1.0, x + 1.0, x)

total = tf.Variable(0.0)

def remembers(x):
    return x + float(next(numbers_so_far))

def keeps_state(x):
    total.assign_add(1.0)
    return x + total

def printing(x):
    tf.print("row", x)
    return x * 2

def sentences(batch=6, longest=4, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.random(1 + index % longest, dtype=np.float32) for index in range(batch)]

def mean(x):
    return tf.reduce_mean(x)

def large(x):
    return tf.boolean_mask(x, x > 0.5)

def twice(n):
    return tf.RaggedTensor.from_row_lengths(tf.range(3 * n), [n, 2 * n], validate=False)

def other_axes(x):
    return x[0] if x[0] > 0.7 else x

def two(x, y):
    return x

def exits(x):
    raise SystemExit(3)

def square_of_vector(x):
    return tf.linalg.inv(x)
"""

KERAS = """
import numpy as np
import tensorflow as tf

block = tf.keras.Sequential([tf.keras.layers.Dense(16), tf.keras.layers.BatchNormalization()])

def vectors(batch=12, seed=0):
    return np.random.default_rng(seed).random((batch, 8), dtype=np.float32)

drop = tf.keras.layers.Dropout(0.5)

def drops(x):
    return drop(x, training=True)

def dense(x):
    return block(x[None])[0]
"""
