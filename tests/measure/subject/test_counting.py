"""Work that is counted while a function runs: against what the workloads that come along declare."""

import json

import pytest

import workloads
from tests import warm
from tests.engine import ROOT

_CODE = """
import json
import tensorflow as tf
import workloads
from measure.subject.counting import count
from measure.subject.roles import load
from strategies import script
from workloads.case import Case

found = {}
for workload in workloads.all():
    size = {**workload.default_size(), "batch": 4}
    case = Case(workload, size, workload.dtypes[0])
    module = load(script.build(case, "loop.eager"), workload.slug)
    element = case.workload.element
    keywords, variables = case.keywords(element), getattr(module, "variables", ())
    slice_ = tf.nest.map_structure(lambda leaf: leaf[0], module.elems)
    _, counted = count(lambda x: getattr(module, element.__name__)(x, *variables, **keywords), slice_)
    found[workload.slug] = [counted.flops, case.cost.flops, counted.ops, case.cost.ops]
    found.setdefault("unknown", {})[workload.slug] = list(counted.unknown)

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
found["unknown"][""] = list(count(unknown, tf.ones(5))[1].unknown)
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

# Where what is counted is more than twice, or less than half of what the file says.
_OTHERS = {
    "batch_jacobian": "TensorFlow vectorises a Jacobian in a function that it always traces: its work is not known",
    "image_sqrt_uint8": "casts and scaling to bytes are counted by the file, and move data here",
    "gradient_through_map": "the file counts the gradient through the mapped function, which its `use` computes",
    "random": "the file counts the arithmetic that draws a random number",
    "top_k": "the file counts comparisons of a selection",
    "variable_shape": "the file counts comparisons of a selection",
}


@pytest.fixture(scope="module")
def found() -> dict:
    done = warm.run(_CODE, folder=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rpartition("RESULT")[2])


@pytest.mark.parametrize("slug", [workload.slug for workload in workloads.all()])
def test_counted_work_is_what_the_file_declares(found: dict, slug: str):
    flops, declared, ops, declared_ops = found[slug]
    assert (0.5 * declared <= flops <= 2 * declared) == (slug not in _OTHERS)
    assert declared_ops / 4 <= ops <= 4 * declared_ops


def test_a_loop_is_counted_as_often_as_it_turns_and_a_branch_where_it_is_taken(found: dict):
    assert found["loop"] == 7 * 5
    assert found["branches"] == [3 * 10, 2 * 3]


def test_text_is_free_and_what_is_not_known_is_named(found: dict):
    assert found["text"] == 0
    assert {slug: ops for slug, ops in found["unknown"].items() if ops} == {
        "": ["EagerPyFunc"],
        "batch_jacobian": ["PartitionedCall"],
    }


def test_a_product_has_two_operations_a_multiplication(found: dict):
    assert found["product"] == [2 * 3**3, 3]


def test_nothing_is_left_behind_where_a_function_fails(found: dict):
    assert found["left"] == [0, False]
