"""Claims on the order in which ways of mapping are fast."""

from measure.claims.predicates import AsFast, Faster
from measure.claims.spec import Claim, Compare, Said

IMAGES = Compare(
    "image_sqrt",
    (
        "map_fn.eager",
        "map_fn.graph",
        "vectorized_map.graph",
        "batched.graph",
        "numpy_batched.eager",
        "numpy_function.graph",
    ),
    budget_s=8.0,
)
SUMS = Compare("python_sum", ("map_fn.graph", "vectorized_map.graph", "batched.graph"), budget_s=3.0)
_POLYNOMIAL = Compare("polynomial", ("map_fn.eager", "map_fn.graph", "batched.eager", "batched.graph"), budget_s=3.0)
REPEATS = Compare(
    "repeat_sum",
    ("map_fn.graph", "map_fn.xla", "vectorized_map.graph", "vectorized_map.xla", "batched.graph"),
    size={"batch": 1000, "repeats": 10_000},
    budget_s=4.0,
)
_GRADIENTS = Compare("per_example_gradients", ("map_fn.graph", "vectorized_map.graph"), budget_s=3.0)

CLAIMS = (
    Claim(
        id="vectorized_map_faster_than_map_fn",
        question="speed",
        sentence="`tf.vectorized_map` is faster than `tf.map_fn`.",
        said=(
            Said("seed 1", "a substantial speed increase"),
            Said("seed 3", "alternative approaches"),
            Said("seed 5", "optimized to run much faster"),
        ),
        tests=(
            Faster(IMAGES, "vectorized_map.graph", "map_fn.graph", when="on images, in a graph"),
            Faster(IMAGES, "vectorized_map.graph", "map_fn.eager", when="on images, against eager code"),
            Faster(SUMS, "vectorized_map.graph", "map_fn.graph", when="sums"),
        ),
    ),
    Claim(
        id="whole_batch_faster_than_map_fn",
        question="speed",
        sentence="Ops on the whole batch are faster than `tf.map_fn`.",
        said=(
            Said("seed 1", "vectorization"),
            Said("seed 2", "benefits of graphs and parallelization"),
            Said("seed 3", "example 3"),
        ),
        tests=(
            Faster(IMAGES, "batched.graph", "map_fn.graph", when="images"),
            Faster(_POLYNOMIAL, "batched.graph", "map_fn.graph", when="a polynomial, in a graph"),
            Faster(_POLYNOMIAL, "batched.eager", "map_fn.eager", when="a polynomial, eager"),
        ),
    ),
    Claim(
        id="vectorized_map_like_hand_batched",
        question="speed",
        sentence="`tf.vectorized_map` is as fast as a version that is batched by hand, to a factor of two.",
        said=(Said("seed 5", "similar to a manually fused version"),),
        tests=(
            AsFast(IMAGES, "vectorized_map.graph", "batched.graph", 1.0, when="one op on images"),
            AsFast(REPEATS, "vectorized_map.graph", "batched.graph", 1.0, when="sums of repeats, by hand a product"),
        ),
    ),
    Claim(
        id="numpy_on_the_batch_faster",
        question="speed",
        sentence="NumPy on the whole batch is faster than `tf.map_fn`.",
        said=(Said("seed 1", "NumPy's vectorized functions"),),
        tests=(
            Faster(IMAGES, "numpy_batched.eager", "map_fn.eager", when="eager"),
            Faster(IMAGES, "numpy_batched.eager", "map_fn.graph", when="in a graph"),
        ),
    ),
    Claim(
        id="numpy_inside_faster",
        question="speed",
        sentence="NumPy in the mapped function makes `tf.map_fn` in a graph faster.",
        said=(Said("seed 1", "NumPy's vectorized functions"),),
        tests=(Faster(IMAGES, "numpy_function.graph", "map_fn.graph"),),
    ),
    Claim(
        id="gradients_of_examples_faster",
        question="speed",
        sentence="Gradients of single examples are faster by `tf.vectorized_map` than by `tf.map_fn`.",
        said=(Said("seed 5", "example 2, the working form"),),
        tests=(Faster(_GRADIENTS, "vectorized_map.graph", "map_fn.graph"),),
    ),
)
