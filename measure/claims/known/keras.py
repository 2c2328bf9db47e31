"""Claims on layers of Keras: on every time step, and their gradients for each example."""

from measure.claims.predicates import Faster
from measure.claims.spec import Claim, Compare, Said

_STEPS = Compare(
    "time_distributed",
    ("map_fn.graph", "reshape.graph", "time_distributed.graph", "reshape.eager", "time_distributed.eager"),
    {"batch": 32, "steps": 16, "features": 32, "units": 32},
    budget_s=3.0,
)
_GRADIENTS = {
    name: Compare(
        "keras_gradients",
        ("map_fn.graph", "vectorized_map.graph", "jacobian.graph"),
        {"batch": 128, "length": 16, "width": 16, "units": 16},
        {"layer": layer},
        budget_s=5.0 if layer == "convolution" else 2.0,
    )
    for layer, name in (
        ("dense", "Dense"),
        ("embedding", "Embedding"),
        ("normalisation", "LayerNormalization"),
        ("convolution", "Conv1D"),
    )
}

_SLOW_STEPS = Said("thread", "https://github.com/keras-team/keras/issues/21179")
_ONE_PRODUCT = Said("thread", "https://github.com/keras-team/keras/pull/1799")
_EACH_STEP = Said("documentation", "https://keras.io/api/layers/recurrent_layers/time_distributed/")
_VECTORIZED = Said("documentation", "https://www.tensorflow.org/api_docs/python/tf/vectorized_map")
_PER_EXAMPLE = Said("thread", "https://github.com/tensorflow/tensorflow/issues/29694")
_SLOW_JACOBIANS = (
    Said("thread", "https://github.com/tensorflow/tensorflow/issues/48314"),
    Said("thread", "https://github.com/tensorflow/tensorflow/issues/52001"),
)

CLAIMS = (
    Claim(
        id="time_distributed_slower_than_reshape",
        question="speed",
        sentence="Keras' `TimeDistributed` of a dense layer is slower than the layer on steps folded into the batch.",
        said=(_SLOW_STEPS, _ONE_PRODUCT),
        tests=tuple(
            Faster(_STEPS, f"reshape.{mode}", f"time_distributed.{mode}", when=when)
            for mode, when in (("graph", "in a graph"), ("eager", "eager"))
        ),
    ),
    Claim(
        id="time_distributed_faster_than_map_fn",
        question="speed",
        sentence="Keras' `TimeDistributed` is faster than `tf.map_fn` over sequences and, inside, over their steps.",
        said=(_EACH_STEP,),
        tests=(Faster(_STEPS, "time_distributed.graph", "map_fn.graph"),),
    ),
    Claim(
        id="time_distributed_needs_a_graph",
        question="speed",
        sentence="In a graph, Keras' `TimeDistributed` is at least five times as fast as eager.",
        said=(_SLOW_STEPS,),
        tests=(Faster(_STEPS, "time_distributed.graph", "time_distributed.eager", by=5.0),),
        note="Where the number of steps is known, it calls its layer once for each of them: eager, in Python.",
    ),
    Claim(
        id="layer_gradients_vectorized_faster",
        question="speed",
        sentence="By `tf.vectorized_map`, gradients of single examples through a Keras layer are faster than by "
        "`tf.map_fn`.",
        said=(_VECTORIZED, _PER_EXAMPLE),
        tests=tuple(
            Faster(need, "vectorized_map.graph", "map_fn.graph", when=f"`{name}`") for name, need in _GRADIENTS.items()
        ),
    ),
    Claim(
        id="layer_gradients_by_jacobian_slower",
        question="speed",
        sentence="`GradientTape.jacobian` of the losses of all examples is slower than `tf.vectorized_map` of their "
        "gradients.",
        said=_SLOW_JACOBIANS,
        tests=tuple(
            Faster(need, "vectorized_map.graph", "jacobian.graph", when=f"`{name}`")
            for name, need in _GRADIENTS.items()
        ),
        note="For each loss, the Jacobian goes back through the whole batch.",
    ),
)
