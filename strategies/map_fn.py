"""tf.map_fn: one call of the function after the other, in a loop that TensorFlow runs."""

from typing import TYPE_CHECKING

from strategies import estimates
from strategies.spec import Estimate, Mapper, Option, Plan

if TYPE_CHECKING:
    import tensorflow as tf


def map_with_map_fn(fn, elems, signature, parallel_iterations=None):
    return tf.map_fn(fn, elems, fn_output_signature=signature, parallel_iterations=parallel_iterations)


# Writing and stacking one element's output through a TensorArray from Python.
_EAGER_WRITE_S = 230e-6
# One iteration of a while loop in a graph, beside its ops.
_ITERATION_S = 6e-6
_ITERATION_OP_S = 0.7e-6


def estimate(plan: Plan) -> Estimate:
    if plan.mode == "eager":
        latency = (
            estimates.eager_loop_s(plan)
            + plan.batch * plan.output_leaves * _EAGER_WRITE_S
            + estimates.work_s(plan, plan.input_bytes + 2 * plan.output_bytes)
        )
        first_call = 0.1 + 1.25 * latency + estimates.fresh_pages_s(plan)
        return Estimate(estimates.stacked_bytes(plan), first_call, latency, estimates.eager_loop_events(plan) + 5)
    if plan.mode == "graph":
        in_flight = min(plan.batch, plan.options["parallel_iterations"])
        latency = (
            estimates.GRAPH_CALL_S
            + plan.batch * (_ITERATION_S + plan.element_ops * _ITERATION_OP_S)
            + 2 * estimates.work_s(plan, plan.input_bytes + plan.output_bytes)
        )
        first_call = 0.13 + 0.0045 * plan.element_ops + latency + estimates.fresh_pages_s(plan)
        events = int(plan.batch * (9 + 0.55 * plan.element_ops)) + 11
        # TensorListStack copies every element's output into one tensor while the list still holds them.
        return Estimate(estimates.stacked_bytes(plan, in_flight), first_call, latency, events)
    # XLA writes every element's output into its place, one after the other, on one core.
    latency = estimates.XLA_CALL_S + estimates.work_s(plan, plan.output_bytes, estimates.SEQUENTIAL_BYTES_PER_S)
    first_call = 0.16 + 0.009 * plan.element_ops + latency + estimates.fresh_pages_s(plan)
    peak = plan.output_bytes + plan.element_temporary_bytes
    return Estimate(peak, first_call, latency, 3 * plan.output_leaves)


MAPPER = Mapper(
    slug="map_fn",
    title="tf.map_fn",
    summary="calls the function slice by slice: a Python loop when eager, one tf.while_loop in a graph and under XLA",
    apply=map_with_map_fn,
    apply_ragged=map_with_map_fn,
    one_shape={"xla": "XLA has no kernel for the variants that tf.map_fn makes of a tf.RaggedTensor"},
    estimate=estimate,
    options=(
        Option(
            "parallel_iterations",
            default=10,  # what tf.map_fn takes in a graph where none is given
            help="iterations that may be in flight at once in a graph; eager and XLA ignore it",
            least=1,
            most=1024,
        ),
    ),
    order=20,
)
