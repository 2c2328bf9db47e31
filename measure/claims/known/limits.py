"""Claims on what is right, and on what `tf.vectorized_map` takes."""

from measure.claims.known.needs import ROTATED, SUMS, TEXTS
from measure.claims.predicates import Ends, Fails, FallsBack, Figure, Runs
from measure.claims.spec import Compare, Script, claim

_V = "vectorized_map.graph"
_ISSUES = "https://github.com/tensorflow/tensorflow/issues"
_TAKES = Script(
    """import numpy as np
import tensorflow as tf

x = tf.random.uniform((20, 3))

def right(rows, factor):
    return sum(np.array_equal(rows[i], x[i] * factor) for i in range(20))

def nest(part):
    return {"sum": (part["a"] + part["b"][0],)}

def operation():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.vectorized_map(lambda x: tf.group(tf.identity(x)), tf.ones((20, 3))))

def running(mapper):
    total = tf.Variable(0.0)
    return tf.function(lambda x: mapper(lambda x: x * total.assign_add(1.0), x))(tf.ones(5)).numpy().tolist()

def assigned():
    assert running(tf.vectorized_map) == [1, 2, 3, 4, 5], "running totals are wrong"

def shape_inside():
    masked = tf.constant([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0], [1.0, 2.0, 3.0]])
    tf.vectorized_map(lambda x: tf.reduce_sum(tf.boolean_mask(x, x > 0)), masked)

ragged = tf.RaggedTensor.from_row_lengths(tf.random.uniform([9]), [2, 3, 4])
rows_of = tf.RaggedTensorSpec([None], tf.float32)
weight, images = tf.Variable(3.0), tf.ones([8, 4, 4, 3])
brightness = tf.keras.layers.RandomBrightness(0.5, value_range=(0, 10))

def different(f):
    return len(set(tf.function(lambda x: tf.vectorized_map(f, x))(images).numpy().tolist()))

report(
    order=right(tf.vectorized_map(lambda x: x * 2, x), 2),
    nested=right(tf.vectorized_map(nest, {"a": x, "b": [x]})["sum"][0], 2),
    operation=tried(operation),
    totals=sum(a == b for a, b in zip(running(tf.map_fn), range(1, 6))),
    assigned=tried(assigned),
    variable=right(tf.vectorized_map(lambda x: x * weight, x), 3),
    draws=different(lambda image: tf.random.uniform([])),
    stateless=different(lambda image: tf.random.stateless_uniform([], seed=(1, 2))),
    layer=different(lambda image: brightness(image, training=True)[0, 0, 0]),
    shape=tried(shape_inside),
    ragged=tried(lambda: tf.vectorized_map(lambda row: row[::-1], ragged)),
    ragged_mapped=tried(lambda: tf.map_fn(lambda row: row[::-1], ragged, fn_output_signature=rows_of)),
    uint8=tried(lambda: tf.map_fn(tf.sqrt, tf.constant([[1, 4]], tf.uint8))),
)

def loops(f, elems):
    made = tf.function(lambda x: tf.vectorized_map(f, x)).get_concrete_function(elems)
    return sum(op.type.endswith("While") for op in made.graph.get_operations())

matrices, keys = tf.eye(4, batch_shape=[8]) * 2, tf.constant([[0, 0, 1, 2], [0, 1, 1, 3]])
for name in ("cholesky", "eigvalsh", "det"):
    report(**{name: loops(getattr(tf.linalg, name), matrices)})
report(
    svd=loops(lambda matrix: tf.linalg.svd(matrix, compute_uv=False), matrices),
    unique=loops(lambda row: tf.unique(row).idx, keys),
    segment_sum=loops(lambda row: tf.math.segment_sum(tf.ones(4), row), keys),
    unsorted_segment_sum=loops(lambda row: tf.math.unsorted_segment_sum(tf.ones(4), row, 4), keys),
)
""",
    seconds=12.0,
)
_CONDITION, _WHILE, _SHAPES = (Compare(workload, (_V,)) for workload in ("branch", "inner_while", "variable_shape"))
_CONTRAST, _FLIP = (Compare("augment", (_V,), ROTATED.size, {"op": name}) for name in ("contrast", "flip"))

CLAIMS = (
    claim(
        "results_stand_in_order", "correctness", ("seed 5",),
        "`tf.vectorized_map` maps along the first axis, and result number i is that of element number i.",
        Figure(_TAKES, "order", "{value} of 20 results are right", 20),
    ),
    claim(
        "elements_must_not_depend", "correctness", ("seed 5",),
        "Where an element needs what those before it left, `tf.map_fn` is right, and `tf.vectorized_map` is not.",
        Figure(_TAKES, "totals", "`tf.map_fn` gets {value} of 5 running totals right", 5),
        Fails(_TAKES, "assigned"),
        advice="Use `tf.scan`, or an op such as `tf.cumsum`.",
    ),
    claim(
        "same_random_numbers_for_all", "correctness", ("https://github.com/keras-team/keras-cv/issues/1382",),
        "In `tf.vectorized_map`, every image gets the same random number.",
        *(
            Figure(_TAKES, name, "distinct numbers of eight images: {value}", most=1, when=when)
            for name, when in (
                ("draws", "`tf.random.uniform`"), ("stateless", "`tf.random.stateless_uniform` with one seed"),
                ("layer", "Keras' `RandomBrightness`"),
            )
        ),
        advice="Give a layer the whole batch, or each element a seed of its own.",
    ),
    claim(
        "bytes_need_a_cast", "correctness", ("seed 1",), "`tf.sqrt` of 8-bit images needs a cast to floats.",
        Fails(_TAKES, "uint8", words="uint8"),
    ),
    claim(
        "nests_in_and_out", "limits", ("seed 5",),
        "`tf.vectorized_map` takes nested elements, and gives nested results of another structure, or operations.",
        Figure(_TAKES, "nested", "{value} of 20 nested results are right", 20, when="nested tensors"),
        Runs(_TAKES, "operation", when="a `tf.Operation`, in a graph"),
    ),
    claim(
        "stateful_ops_do_not_work", "limits", ("seed 5",), "Ops with state do not work in `tf.vectorized_map`.",
        Fails(_TAKES, "assigned", "assigning to a variable"),
        Figure(_TAKES, "variable", "{value} of 20 results are right", most=19, when="reading a variable"),
        Figure(_TAKES, "draws", "distinct numbers of eight images: {value}", most=1, when="random numbers"),
    ),
    claim(
        "control_flow_does_not_work", "limits", ("seed 5",), "Control flow does not work in `tf.vectorized_map`.",
        Ends(_CONDITION, _V, "failed", when="`tf.cond`"),
        Ends(_WHILE, _V, "failed", when="`tf.while_loop`"),
        advice="Both sides of a `tf.cond` are computed for all, and a loop runs as long as its longest element.",
    ),
    claim(
        "shapes_must_not_depend_on_values", "limits", ("seed 5",),
        "`tf.vectorized_map` fails where the shape of a tensor in the function depends on the values.",
        Fails(_TAKES, "shape", "in between", "shape"),
        Ends(_SHAPES, _V, "failed", when="as a result"),
        advice="Pad to one shape, or use `tf.map_fn` with a ragged signature.",
    ),
    claim(
        "python_loop_cannot_be_vectorized", "limits", ("seed 3",),
        "A Python loop in the mapped function keeps `tf.vectorized_map` from vectorising it.",
        FallsBack(SUMS, _V),
        advice="It is unrolled into ops first, which are vectorised like others.",
    ),
    claim(
        "ops_fall_back", "limits", ("https://github.com/keras-team/keras-cv/issues/291", f"{_ISSUES}/24774"),
        "Augmenting images, and decoding strings, makes `tf.vectorized_map` fall back to a loop.",
        *(
            FallsBack(need, _V, when)
            for need, when in (
                (ROTATED, "a rotation"), (_CONTRAST, "a contrast"), (_FLIP, "a flip"), (TEXTS, "numbers in strings")
            )
        ),
        advice="Such ops take a whole batch: give it to them without a map.",
    ),
    claim(
        "linear_algebra_vectorized", "limits", (f"{_ISSUES}/55639", f"{_ISSUES}/42419"),
        "`tf.vectorized_map` vectorises linear algebra, and sums by key.",
        *(
            Figure(_TAKES, name, "while loops: {value}", most=0, when=f"`{name}`")
            for name in ("cholesky", "eigvalsh", "det", "svd", "unique", "segment_sum", "unsorted_segment_sum")
        ),
    ),
    claim(
        "vectorized_map_takes_no_ragged", "limits", (f"{_ISSUES}/51771", f"{_ISSUES}/36232"),
        "`tf.vectorized_map` fails on ragged tensors whose rows differ in length, and `tf.map_fn` maps over them.",
        Fails(_TAKES, "ragged", words="shape"),
        Runs(_TAKES, "ragged_mapped"),
        advice="Give `tf.map_fn` a `fn_output_signature`, or use the ops of the ragged tensor.",
    ),
)  # fmt: skip
