"""Work that is counted while a function runs."""

import json

import pytest

from tests import warm
from tests.engine import ROOT

_CODE = """
import json
import tensorflow as tf
from measure.subject.counting import count

found = {}

def loop(x):
    return tf.while_loop(lambda i, y: i < 7, lambda i, y: (i + 1, y * x), (0, x))[1]

@tf.function
def branch(x):
    return tf.cond(
        x[0] > 0, lambda: tf.exp(x), lambda: x + x + x)

found["loop"] = count(loop, tf.ones(5))[1].flops
found["branches"] = [count(branch, sign * tf.ones(3))[1].flops for sign in (1.0, -1.0)]
found["text"] = count(tf.strings.to_number, tf.constant("1.5"))[1].flops
unknown = lambda x: tf.ensure_shape(tf.py_function(lambda v: v, [x], tf.float32), [5])
found["unknown"] = list(count(unknown, tf.ones(5))[1].unknown)
product = count(lambda x: tf.einsum("ij,jk->ik", x, x), tf.ones([3, 3]))[1]
found["product"] = [product.flops, product.depth]

def fails(x):
    raise KeyError

try:
    count(fails, 1)
except KeyError:
    pass
from tensorflow.python.eager import context
found["left"] = [len(context.context().op_callbacks), tf.config.functions_run_eagerly()]
print("RESULT", json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict:
    done = warm.run(_CODE, folder=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rpartition("RESULT")[2])


def test_a_loop_is_counted_as_often_as_it_turns_and_a_branch_where_it_is_taken(found: dict):
    assert found["loop"] == 7 * 5
    assert found["branches"] == [3 * 10, 2 * 3]


def test_text_is_free_and_what_is_not_known_is_named(found: dict):
    assert found["text"] == 0
    assert found["unknown"] == ["EagerPyFunc"]


def test_a_product_has_two_operations_a_multiplication(found: dict):
    assert found["product"] == [2 * 3**3, 3]


def test_nothing_is_left_behind_where_a_function_fails(found: dict):
    assert found["left"] == [0, False]
