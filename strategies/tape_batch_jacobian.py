"""GradientTape.batch_jacobian: a Jacobian for each example, of a function that works on the batch."""

from strategies import batched
from strategies.spec import Mapper

MAPPER = Mapper(
    slug="tape_batch_jacobian",
    title="GradientTape.batch_jacobian",
    summary="one forward pass over the batch, and batch_jacobian, which knows that examples do not mix",
    apply=None,
    estimate=batched.estimate,
    rewrite="tape_batch_jacobian",
    order=94,
)
