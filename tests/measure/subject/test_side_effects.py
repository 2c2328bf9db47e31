"""Side effects that a strategy does not have for every element are found, whatever kind they are of."""

import json

import pytest

import strategies
from measure.subject import effects
from tests import warm
from tests.deadlines import RUN_S
from tests.engine import ROOT

_CODE = """
import json, types
import numpy as np
import tensorflow as tf
from measure.subject import side_effects
from measure.subject.roles import load

ELEMENTS = '''
import time
import cloudpickle
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
elems = tf.reshape(tf.range(20.0), [10, 2])
total = tf.Variable(0.0)
table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)
drop = tf.keras.layers.Dropout(0.5)
rng, drawn = np.random.default_rng(0), tf.Variable(np.random.default_rng().random())
calls, hours = 0, []

def computes(x):
    return x + total

def prints(x):
    tf.print("x", x)
    return x * 2

def assigns(x):
    total.assign_add(x[0])
    return x * 2

def counts(x):
    global calls
    calls += 1
    return x * 2

def inserts(x):
    table.insert(tf.cast(x[:1], tf.int64), x[:1])
    return x * 2

def drops(x):
    return drop(x, training=True)

def shakes(x):
    return x * rng.random()

def tells_time(x):
    hours.append(time.perf_counter())
    return x * 2

def unpickled():
    space = {"__name__": "__main__", "rows": 0}
    exec("def counted(x):\\\\n global rows\\\\n rows += 1\\\\n return x * 2\\\\ncalls = lambda x: counted(x)", space)
    return cloudpickle.loads(cloudpickle.dumps(space["calls"]))

counts_in_pickled = unpickled()
'''
STRATEGIES = {
    "loop.eager": "def strategy(elems): return tf.stack([FN(x) for x in elems])",
    "map_fn.graph": "@tf.function\\ndef strategy(elems): return tf.map_fn(FN, elems)",
    "vectorized_map.graph": "@tf.function\\ndef strategy(elems): return tf.vectorized_map(FN, elems)",
}
found = {}
for function in ("computes", "prints", "assigns", "counts", "inserts",
                 "drops", "shakes", "tells_time", "counts_in_pickled"):
    for strategy, text in STRATEGIES.items():
        script = ELEMENTS + text.replace("FN", function)
        found[f"{function} {strategy}"] = side_effects.left_out(
            lambda: load(script, strategy), function, draws=function == "drops", keeps_state=function == "shakes",
        )
RAGGED = ELEMENTS + '''
elems = tf.ragged.constant([[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]])
def strategy(elems): return tf.map_fn(lengthens, elems, fn_output_signature=tf.RaggedTensorSpec([None], tf.float32))
def lengthens(x):
    print(x.shape)
    return tf.concat([x, [rng.random()]], 0)
'''
found["lengthens"] = side_effects.left_out(lambda: load(RAGGED, "ragged"), "lengthens", draws=False, keeps_state=True)
print("RESULT", json.dumps(found))
"""


# What of a loop's effects a graph with `tf.map_fn`, and one with `tf.vectorized_map`, does not have.
LEFT_OUT = {
    "computes": ("", ""),
    "prints": ("", "for 8 elements it prints 1 line instead of 8"),
    # 2 × (0 + 2 + … + 14); the first element is 0.
    "assigns": ("", "two calls with 8 elements leave 0.0 in total instead of 112.0"),
    "counts": ("leave 1 in calls instead of 16", "leave 1 in calls instead of 16"),
    # Its globals are those that were pickled with it.
    "counts_in_pickled": ("leave 1 in rows instead of 16", "leave 1 in rows instead of 16"),
    "inserts": ("", "leave [0] in the keys of table"),
    # A layer of Keras counts its draws: all elements of a batch are given the same ones.
    "drops": ("", "2] in seed_generator"),
    "shakes": ("the function keeps state, and 87.5 % of the values", "the function keeps state, and 87.5 %"),
    # Nobody can tell what is right where two loops differ.
    "tells_time": ("", ""),
}


@pytest.mark.usefixtures("live")
def test_effects_are_those_of_a_loop_or_it_is_said() -> None:
    done = warm.run(_CODE, folder=ROOT, timeout_s=4 * RUN_S)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.rpartition("RESULT")[2])
    assert found.pop("lengthens") is None, "elements and results may differ in length"
    for function, (in_graph, vectorised) in LEFT_OUT.items():
        assert found.pop(f"{function} loop.eager") is None, function
        for strategy, sentence in (("map_fn.graph", in_graph), ("vectorized_map.graph", vectorised)):
            said = found.pop(f"{function} {strategy}") or ""
            assert sentence in said and bool(sentence) == bool(said), (function, strategy, said)
    assert not found


def test_every_mapper_of_a_function_is_known_to_do_effects_or_not() -> None:
    mapping = [one.slug for one in strategies.mappers() if one.apply is not None and one.element == "element"]
    assert sorted(mapping) == sorted((*effects.ONE_BY_ONE, *effects.VECTORISED))
