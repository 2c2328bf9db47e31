"""tf.recompute_grad around the batched rewrite: what the gradient needs is computed a second time."""

from strategies import batched
from strategies.spec import Mapper

MAPPER = Mapper(
    slug="recompute",
    title="tf.recompute_grad",
    summary="the batched rewrite under tf.recompute_grad: intermediates are computed again instead of kept",
    apply=None,
    estimate=batched.estimate,
    rewrite="recompute",
    order=96,
)
