"""tf.vectorized_map: traces the function once and turns each op into one on the whole batch."""

from strategies.spec import MODES, Mapper, Option
from workloads.spec import tf


def map_with_vectorized_map(fn, elems, fallback_to_while_loop=True):
    return tf.vectorized_map(fn, elems, fallback_to_while_loop=fallback_to_while_loop)


ONE_SHAPE = dict.fromkeys(
    MODES, "tf.vectorized_map makes ops on the whole batch, which need elements and results of one shape"
)

MAPPER = Mapper(
    slug="vectorized_map",
    title="tf.vectorized_map",
    summary="rewrites the function's ops into ops on the whole batch; eager, it traces anew on every call",
    apply=map_with_vectorized_map,
    steps="vectorised",
    one_shape=ONE_SHAPE,
    options=(
        Option("fallback_to_while_loop", True, "run ops that cannot be vectorised in a loop, or fail", (True, False)),
    ),
    order=30,
)
