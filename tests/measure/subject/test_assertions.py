"""Assertions that a strategy leaves out are found, of conditions and of finite numbers."""

import json

import pytest

from tests import warm
from tests.engine import ROOT

_CODE = """
import json
import tensorflow as tf
from measure.subject import assertions
from measure.subject.roles import load

ELEMENTS = '''
import tensorflow as tf

elems = tf.reshape(tf.range(1.0, 13.0), [6, 2])

def computes(x):
    return x * 2

def positive(x):
    tf.debugging.assert_greater(x, 0.0)
    return x * 2

def asserted(x):
    tf.debugging.Assert(tf.reduce_all(x > 0), [x])
    return x * 2

def finite(x):
    return tf.debugging.check_numerics(x * 2, "not finite")

def all_finite(x):
    tf.debugging.assert_all_finite(x, "not finite")
    return x * 2

def both(x):
    tf.debugging.assert_greater(x, 0.0)
    return tf.debugging.check_numerics(x * 2, "not finite")

def out_of_reach(x):
    return tf.raw_ops.CheckNumerics(tensor=x * 2, message="not finite")
'''
MAPPERS = {
    "loop.eager": "def strategy(elems): return tf.stack([FN(x) for x in zip(*elems)])",
    "map_fn.graph": "tf.function()",
    "map_fn.xla": "tf.function(jit_compile=True)",
    "vectorized_map.graph": "tf.function()",
    "dataset.graph": "tf.function()",
}
BODIES = {
    "map_fn": "tf.map_fn(FN, elems, fn_output_signature=tf.float32)",
    "vectorized_map": "tf.vectorized_map(FN, elems)",
    "dataset": "tf.data.Dataset.from_tensor_slices((elems,)).map(FN).batch(6, True).get_single_element()",
}
found = {}
for function in ("computes", "positive", "asserted", "finite", "all_finite", "both", "out_of_reach"):
    for strategy, decorator in MAPPERS.items():
        body = BODIES.get(strategy.partition(".")[0])
        text = f"@{decorator}\\ndef strategy(elems): return {body}" if body else decorator
        script = ELEMENTS + text.replace("FN", function)
        found[f"{function} {strategy}"] = assertions.are_left_out(load(script, strategy), function)
print("RESULT", json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, bool]:
    done = warm.run(_CODE, folder=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rpartition("RESULT")[2])


@pytest.mark.parametrize(
    ("function", "leave_out"),
    [
        ("computes", set()),
        ("positive", {"map_fn.xla", "vectorized_map.graph"}),
        ("asserted", {"map_fn.xla", "vectorized_map.graph"}),
        # `tf.vectorized_map` makes one check of all elements, and none where what it returns is not used.
        ("finite", {"map_fn.xla"}),
        ("all_finite", {"map_fn.xla", "vectorized_map.graph"}),
        # It makes the check and leaves out the condition.
        ("both", {"map_fn.xla", "vectorized_map.graph"}),
        # A check that cannot be made to fail tells nothing of a strategy.
        ("out_of_reach", set()),
    ],
)
def test_a_strategy_makes_every_assertion_for_every_element_or_it_is_found(
    found: dict[str, bool], function: str, leave_out: set[str]
) -> None:
    left_out = {tuple(name.split()) for name, is_left_out in found.items() if is_left_out}
    assert {strategy for whose, strategy in left_out if whose == function} == leave_out
