"""The workload's own rewrite for the whole batch: what a person who knows the mathematics would write."""

from strategies import estimates
from strategies.spec import Estimate, Mapper, Plan


def estimate(plan: Plan) -> Estimate:
    peak = plan.output_bytes + plan.batched_temporary_bytes
    work_s = estimates.work_s(plan, plan.output_bytes)
    fresh_s = estimates.fresh_pages_s(plan)
    if plan.mode == "eager":
        latency = estimates.EAGER_CALL_S + plan.element_ops * estimates.EAGER_BARE_OP_S + work_s
        first_call = 0.006 + 0.0035 * plan.element_ops + latency + fresh_s
        return Estimate(peak, first_call, latency, 1 + plan.element_ops)
    if plan.mode == "graph":
        latency = estimates.GRAPH_CALL_S + work_s
        return Estimate(peak, 0.07 + 0.0015 * plan.element_ops + latency + fresh_s, latency, 2 * plan.output_leaves)
    latency = estimates.XLA_CALL_S + work_s
    return Estimate(peak, 0.13 + 0.003 * plan.element_ops + latency + fresh_s, latency, 3 * plan.output_leaves)


MAPPER = Mapper(
    slug="batched",
    title="Hand-written batch",
    summary="no mapping at all: the workload's rewrite works on the whole batch at once",
    apply=None,
    estimate=estimate,
    rewrite="batched",
    order=90,
)
