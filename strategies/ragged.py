"""tf.map_fn with a RaggedTensorSpec: the form that takes outputs of different lengths."""

from strategies import batched
from strategies.spec import Mapper

MAPPER = Mapper(
    slug="ragged",
    title="Ragged tf.map_fn",
    summary="tf.map_fn with a RaggedTensorSpec, for outputs whose shape depends on the values, then padded",
    apply=None,
    estimate=batched.estimate,
    rewrite="ragged",
    order=98,
)
