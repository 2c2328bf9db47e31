"""Claims on linear algebra for each matrix of a batch, and on sums by key."""

from measure.claims.predicates import AsFast, Fails, Faster, Figure, Warned
from measure.claims.spec import Claim, Compare, Said, Script

_SMALL, _LARGE = (
    Compare("cholesky", strategies, {"batch": batch, "side": side, "columns": 1}, budget_s=3.0)
    for strategies, batch, side in (
        (("map_fn.graph", "vectorized_map.graph", "batched.graph"), 1_000, 8),
        (("map_fn.graph", "vectorized_map.graph"), 8, 256),
    )
)
_UNIQUE = Compare("segments", ("map_fn.graph", "vectorized_map.graph"), options={"ids": "unique"}, budget_s=1.0)

_CONVERTED = Script(
    """import tensorflow as tf

matrices = tf.eye(4, batch_shape=[8]) * 2

def loops(f, elems=matrices):
    made = tf.function(lambda x: tf.vectorized_map(f, x)).get_concrete_function(elems)
    return sum(op.type.endswith("While") for op in made.graph.get_operations())

report(
    cholesky=loops(tf.linalg.cholesky),
    solve=loops(lambda matrix: tf.linalg.solve(matrix, tf.ones([4, 1]))),
    eigenvalues=loops(tf.linalg.eigvalsh),
    svd=loops(lambda matrix: tf.linalg.svd(matrix, compute_uv=False)),
    qr=loops(lambda matrix: tf.linalg.qr(matrix).r),
    det=loops(tf.linalg.det),
)
keys = tf.constant([[0, 0, 1, 2], [0, 1, 1, 3]])
report(
    unsorted=loops(lambda row: tf.math.unsorted_segment_sum(tf.ones(4), row, 4), keys),
    sorted=loops(lambda row: tf.math.segment_sum(tf.ones(4), row), keys),
    unique=loops(lambda row: tf.unique(row).idx, keys),
    bincount=loops(lambda row: tf.math.bincount(row, minlength=4, maxlength=4), keys),
)
""",
    seconds=8.0,
)

_LENGTHS = Script(
    """import tensorflow as tf

keys = tf.constant([[0, 0, 1, 1], [0, 1, 2, 3]])
tf.vectorized_map(lambda row: tf.unique(row).y, keys)
""",
    seconds=8.0,
)

_LOOPS = "while loops in the graph: {value}"
_NO_CONVERTER = Said("thread", "https://github.com/tensorflow/tensorflow/issues/42419")

_FASTER = Said("documentation", "https://www.tensorflow.org/api_docs/python/tf/vectorized_map")
_TAKES_BATCHES = Said("documentation", "https://www.tensorflow.org/api_docs/python/tf/linalg/cholesky")

CLAIMS = (
    Claim(
        id="cholesky_vectorized_faster",
        question="speed",
        sentence="`tf.vectorized_map` solves equations by Cholesky factors far faster than `tf.map_fn`.",
        said=(_FASTER,),
        tests=(
            Faster(_SMALL, "vectorized_map.graph", "map_fn.graph", by=1.5, when="1,000 matrices of 8 rows"),
            Faster(_LARGE, "vectorized_map.graph", "map_fn.graph", by=1.5, when="8 matrices of 256 rows"),
        ),
    ),
    Claim(
        id="cholesky_vectorized_like_batched",
        question="speed",
        sentence="`tf.vectorized_map` of `tf.linalg.cholesky` takes about as long as the op on the whole batch.",
        said=(_TAKES_BATCHES,),
        tests=(AsFast(_SMALL, "vectorized_map.graph", "batched.graph", within=0.33),),
    ),
    Claim(
        id="unique_falls_back",
        question="limits",
        sentence="`tf.vectorized_map` of `tf.unique` falls back to a loop, even where all results have one shape.",
        said=(_NO_CONVERTER,),
        tests=(Warned(_UNIQUE, "vectorized_map.graph", "falls_back"),),
    ),
    Claim(
        id="linear_algebra_vectorized",
        question="speed",
        sentence="`tf.vectorized_map` vectorises the linear algebra of each matrix.",
        said=(Said("thread", "https://github.com/tensorflow/tensorflow/issues/55639"),),
        tests=tuple(
            Figure(_CONVERTED, figure, _LOOPS, most=0, when=f"`{name}`")
            for figure, name in (
                ("cholesky", "cholesky"),
                ("solve", "solve"),
                ("eigenvalues", "eigvalsh"),
                ("svd", "svd"),
                ("qr", "qr"),
                ("det", "det"),
            )
        ),
    ),
    Claim(
        id="segments_have_converters",
        question="limits",
        sentence="`tf.vectorized_map` has no converter for sums by segment and for unique keys: they fall back.",
        said=(_NO_CONVERTER,),
        tests=(
            Figure(_CONVERTED, "unique", _LOOPS, least=1, when="`tf.unique`"),
            Figure(_CONVERTED, "sorted", _LOOPS, least=1, when="`tf.math.segment_sum`"),
            Figure(_CONVERTED, "bincount", _LOOPS, least=1, when="`tf.math.bincount`"),
            Figure(_CONVERTED, "unsorted", _LOOPS, least=1, when="`tf.math.unsorted_segment_sum`"),
        ),
    ),
    Claim(
        id="unique_keys_differ_in_number",
        question="limits",
        sentence="`tf.vectorized_map` cannot return the unique keys of rows that have more or fewer of them.",
        said=(_NO_CONVERTER,),
        tests=(Fails(_LENGTHS, "shape"),),
    ),
)
