"""Claims on what `tf.vectorized_map` takes, and what it does not."""

from measure.claims.predicates import Ends, Fails, Figure
from measure.claims.spec import Claim, Compare, Said, Script

_BRANCH = Compare("branch", ("map_fn.graph", "vectorized_map.graph"), budget_s=2.0)
_WHILE = Compare("inner_while", ("map_fn.graph", "vectorized_map.graph"), budget_s=2.0)
_SHAPES = Compare("variable_shape", ("map_fn.graph", "vectorized_map.graph"), budget_s=2.0)

_TAKES = Script(
    """import numpy as np
import tensorflow as tf

x = tf.random.uniform((20, 3))

def order():
    rows = tf.vectorized_map(lambda x: x * 2, x)
    return sum(np.array_equal(rows[i], x[i] * 2) for i in range(20))

def nested():
    out = tf.vectorized_map(lambda part: {"sum": (part["a"] + part["b"][0],)}, {"a": x, "b": [x]})
    return sum(np.array_equal(out["sum"][0][i], x[i] * 2) for i in range(20))

def operation():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        part = tf.compat.v1.placeholder(tf.float32, (20, 3))
        done = tf.vectorized_map(lambda x: tf.group(tf.identity(x)), part)
        session.run(done, {part: np.ones((20, 3))})
    return isinstance(done, tf.Operation)

def variable():
    weight = tf.Variable(3.0)
    rows = tf.vectorized_map(lambda x: x * weight, x)
    return sum(np.array_equal(rows[i], x[i] * 3) for i in range(20))

def draws():
    return len(np.unique(tf.vectorized_map(lambda x: tf.random.uniform([4]), x)))

def tried(part):
    try:
        return int(part())
    except Exception as error:
        print(error)
        return 0

report(**{part.__name__: tried(part) for part in (order, nested, operation, variable, draws)})
""",
    seconds=8.0,
)

_INTERMEDIATE = Script(
    """import tensorflow as tf

x = tf.constant([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0], [-1.0, 0.0, 1.0]])

def f(x):
    return tf.reduce_sum(tf.boolean_mask(x, x > 0))

assert tf.map_fn(f, x).numpy().tolist() == [4, 9, 1]
assert tf.vectorized_map(f, x).numpy().tolist() == [4, 9, 1]
""",
    seconds=8.0,
)

_RUNNING = Script(
    """import tensorflow as tf

def mapped(mapper):
    seen = tf.Variable(0.0)
    return tf.function(lambda x: mapper(lambda x: x * seen.assign_add(1.0), x))(tf.ones(5))

right = [1, 2, 3, 4, 5]
report(map_fn=int(sum(mapped(tf.map_fn).numpy() == right)))
try:
    report(vectorized_map=int(sum(mapped(tf.vectorized_map).numpy() == right)))
except Exception as error:
    report(vectorized_map=0, why=str(error)[:200])
""",
    seconds=8.0,
)

CLAIMS = (
    Claim(
        id="results_stand_in_order",
        question="correctness",
        sentence="`tf.vectorized_map` maps along the first axis, and result number i is that of element number i.",
        said=(Said("seed 5", "first sentence"), Said("seed 5", "what it returns")),
        tests=(Figure(_TAKES, "order", "{value} of 20 results are right", least=20),),
    ),
    Claim(
        id="nests_in_and_out",
        question="limits",
        sentence="`tf.vectorized_map` takes nested elements and gives nested results of another structure.",
        said=(Said("seed 5", "the fourth limitation"), Said("seed 5", "what it takes")),
        tests=(Figure(_TAKES, "nested", "{value} of 20 results are right", least=20),),
    ),
    Claim(
        id="operations_are_results",
        question="limits",
        sentence="A function that returns a `tf.Operation` can be given to `tf.vectorized_map` in a graph.",
        said=(Said("seed 5", "the fourth limitation"),),
        tests=(Figure(_TAKES, "operation", "operations returned and run: {value}", least=1),),
    ),
    Claim(
        id="stateful_ops_do_not_work",
        question="limits",
        sentence="Ops with state do not work in `tf.vectorized_map`.",
        said=(Said("seed 5", "the second limitation"),),
        tests=(
            Figure(
                _RUNNING, "vectorized_map", "{value} of 5 results are right", most=4, when="assigning to a variable"
            ),
            Figure(_TAKES, "variable", "{value} of 20 results are right", most=19, when="reading a variable"),
            Figure(_TAKES, "draws", "{value} of 80 draws differ", most=40, when="random numbers"),
        ),
    ),
    Claim(
        id="elements_must_not_depend",
        question="correctness",
        sentence="Where an element needs what those before it left, `tf.map_fn` is right, `tf.vectorized_map` not.",
        said=(Said("seed 5", "the first limitation"),),
        tests=(
            Figure(_RUNNING, "map_fn", "of 5 results of `tf.map_fn` {value} are right", least=5),
            Figure(_RUNNING, "vectorized_map", "of `tf.vectorized_map` {value}", most=4),
        ),
    ),
    Claim(
        id="cond_does_not_work",
        question="limits",
        sentence="`tf.cond` does not work in `tf.vectorized_map`.",
        said=(Said("seed 5", "the third limitation"),),
        tests=(Ends(_BRANCH, "vectorized_map.graph", "failed"),),
    ),
    Claim(
        id="while_loops_do_not_work",
        question="limits",
        sentence="A `tf.while_loop` that ends elsewhere for each element does not work in `tf.vectorized_map`.",
        said=(Said("seed 5", "the third limitation"),),
        tests=(Ends(_WHILE, "vectorized_map.graph", "failed"),),
    ),
    Claim(
        id="shapes_must_not_depend_on_values",
        question="limits",
        sentence="`tf.vectorized_map` fails where the shape of a tensor in the function depends on the values.",
        said=(Said("seed 5", "the fifth limitation"),),
        tests=(
            Fails(_INTERMEDIATE, "shape", when="in between"),
            Ends(_SHAPES, "vectorized_map.graph", "failed", when="as a result"),
        ),
    ),
)
