"""Plain NumPy on the whole array: what a person without TensorFlow would write."""

from strategies import estimates
from strategies.spec import Estimate, Mapper, Plan


def estimate(plan: Plan) -> Estimate:
    peak = plan.output_bytes + plan.batched_temporary_bytes
    latency = 5e-6 * (1 + plan.element_ops) + estimates.work_s(
        plan, plan.output_bytes, estimates.SEQUENTIAL_BYTES_PER_S
    )
    return Estimate(peak, 0.001 + latency + estimates.fresh_pages_s(plan), latency, 1)


MAPPER = Mapper(
    slug="numpy_batched",
    title="NumPy on the whole array",
    summary="the workload written in NumPy for the whole array at once: no mapping and no TensorFlow",
    apply=None,
    estimate=estimate,
    modes=("eager",),
    default_modes=(),
    rewrite="numpy",
    arrays=True,
    memory="tracemalloc",
    order=72,
)
