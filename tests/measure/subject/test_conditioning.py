"""The condition of a function, which its tolerances grow with."""

import json

import pytest

from measure.subject.tolerances import tolerance_for
from tests import warm
from tests.engine import ROOT

_CODE = """
import json
import numpy as np
import tensorflow as tf
from measure.subject.conditioning import condition
from workloads import augment

augment.tf = tf
rng = np.random.default_rng(1)
numbers = tf.constant(rng.uniform(0.5, 1.5, 1_000).astype("float32"))
image = tf.constant(rng.random((64, 64, 3), dtype="float32")), tf.constant(0.4)

def of(function, element):
    return condition(function, element, function(element))

print("RESULT", json.dumps({
    "sqrt": of(tf.sqrt, numbers),
    "cube": of(lambda x: x**3, numbers),
    "round": of(tf.round, numbers * 10),
    "sum": of(tf.reduce_sum, numbers),
    "rotate": of(augment.rotate, image),
    "large sine": of(lambda x: tf.sin(1e6 * x), numbers),
    "whole numbers": of(lambda x: x * 2, tf.range(3)),
    "nothing": of(lambda x: x, tf.ones([0])),
    "text": of(tf.strings.as_string, numbers),
    "infinite": of(lambda x: x / 0.0, numbers),
    "half": of(tf.sqrt, tf.cast(numbers, tf.bfloat16)),
}))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, float]:
    done = warm.run(_CODE, folder=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rpartition("RESULT")[2])


@pytest.mark.parametrize("name", ["sqrt", "round", "sum", "whole numbers", "nothing", "text", "infinite", "half"])
def test_results_that_move_no_further_than_elements_need_no_more(found: dict[str, float], name: str):
    assert found[name] == 1


def test_results_that_move_further_are_allowed_as_much(found: dict[str, float]):
    assert 2 < found["cube"] < 4
    assert 10 < found["rotate"] < 100
    assert found["large sine"] == 1_000
    # What a depth is multiplied by comes out of its root.
    once, more = (tolerance_for("float32", depth, 1.0)["relative"] for depth in (12, 12 * 30**2))
    assert more == pytest.approx(30 * once)
