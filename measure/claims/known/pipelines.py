"""Claims on pipelines of `tf.data`."""

from measure.claims.predicates import AsFast, Faster
from measure.claims.spec import Claim, Compare, Said

_PIPELINES = Compare(
    "polynomial",
    (
        "dataset.graph",
        "dataset.graph?num_parallel_calls=-1",
        "dataset_batched.graph",
        "vectorized_map.graph",
    ),
    size={"batch": 2000},
    budget_s=5.0,
)
_GUIDE = "https://www.tensorflow.org/guide/data_performance"

CLAIMS = (
    Claim(
        id="batch_before_map",
        question="speed",
        sentence="In a pipeline, batching before the map is many times as fast as mapping a cheap function first.",
        said=(Said("documentation", f"{_GUIDE}#vectorizing_mapping"),),
        tests=(Faster(_PIPELINES, "dataset_batched.graph", "dataset.graph", by=3.0),),
    ),
    Claim(
        id="parallel_calls_instead_of_batches",
        question="speed",
        sentence="With `num_parallel_calls=tf.data.AUTOTUNE`, mapping a cheap function before batching is as fast.",
        said=(Said("documentation", f"{_GUIDE}#parallelizing_data_transformation"),),
        tests=(AsFast(_PIPELINES, "dataset_batched.graph", "dataset.graph?num_parallel_calls=-1", within=1.0),),
    ),
    Claim(
        id="pipeline_faster_than_one_call",
        question="speed",
        sentence="For a batch that is in memory, a pipeline is faster than `tf.vectorized_map` on all of it.",
        said=(Said("documentation", _GUIDE),),
        tests=(Faster(_PIPELINES, "dataset_batched.graph", "vectorized_map.graph"),),
    ),
)
