"""A loop over vectorised chunks that adds up as it goes: what a sum needs is never there for the whole batch."""

import dataclasses

from strategies import chunked, chunks
from strategies.spec import Estimate, Mapper, Plan


def estimate(plan: Plan) -> Estimate:
    mapped = chunked.estimate(plan)
    chunk = min(max(1, plan.options["chunk"]), plan.batch)
    return dataclasses.replace(mapped, peak_bytes=2 * plan.output_bytes + chunk * chunks.element_bytes(plan))


MAPPER = Mapper(
    slug="accumulate",
    title="Accumulated chunks",
    summary="vectorised chunks one after another, each added to the result: memory follows the chunk, not the batch",
    apply=None,
    estimate=estimate,
    default_modes=("graph", "xla"),
    rewrite="accumulate",
    options=(chunks.OPTION,),
    choose=chunks.choose,
    reason=chunks.reason,
    order=91,
)
