"""Assertions that a strategy leaves out are found, of conditions and of finite numbers."""

from typing import Any

from measure.subject import assertions
from measure.subject.roles import load

ELEMENTS = """
import tensorflow as tf

OUT = {"fn_output_signature": tf.float32}
elems = tf.reshape(tf.range(1.0, 13.0), [6, 2])

def computes(x):
    return x * 2

def positive(x):
    tf.debugging.assert_greater(x, 0.0)
    return x * 2

def finite(x):
    return tf.debugging.check_numerics(x * 2, "not finite")

def both(x):
    tf.debugging.assert_greater(x, 0.0)
    return tf.debugging.check_numerics(x * 2, "not finite")

def out_of_reach(x):
    return tf.raw_ops.CheckNumerics(tensor=x * 2, message="not finite")

"""
STRATEGIES = {
    "loop.eager": "def strategy(elems): return tf.stack([FN(x) for x in zip(*elems)])",
    "map_fn.graph": "@tf.function\ndef strategy(elems): return tf.map_fn(FN, elems, **OUT)",
    "map_fn.xla": "@tf.function(jit_compile=True)\ndef strategy(elems): return tf.map_fn(FN, elems, **OUT)",
    "vectorized_map.graph": "@tf.function\ndef strategy(elems): return tf.vectorized_map(FN, elems)",
    "dataset.graph": (
        "@tf.function\ndef strategy(elems):\n"
        "    return tf.data.Dataset.from_tensor_slices((elems,)).map(FN).batch(6, True).get_single_element()"
    ),
}


def test_a_strategy_makes_every_assertion_for_every_element_or_it_is_found(tf: Any) -> None:
    for function, leave_out in (
        ("computes", set()),
        ("positive", {"map_fn.xla", "vectorized_map.graph"}),
        # `tf.vectorized_map` makes one check of all elements, and leaves out the condition.
        ("finite", {"map_fn.xla"}),
        ("both", {"map_fn.xla", "vectorized_map.graph"}),
        # A check that cannot be made to fail tells nothing of a strategy.
        ("out_of_reach", set()),
    ):
        found = {
            strategy
            for strategy, text in STRATEGIES.items()
            if assertions.are_left_out(load(ELEMENTS + text.replace("FN", function), strategy), function)
        }
        assert found == leave_out, function
