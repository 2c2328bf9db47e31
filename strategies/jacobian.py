"""GradientTape.jacobian of the per-example losses: one row of the Jacobian is one example's gradient."""

from strategies import batched
from strategies.spec import Mapper

MAPPER = Mapper(
    slug="jacobian",
    title="GradientTape.jacobian",
    summary="the losses of all examples, and one Jacobian of them by the parameters, which TensorFlow vectorises",
    apply=None,
    estimate=batched.estimate,
    rewrite="jacobian",
    order=92,
)
