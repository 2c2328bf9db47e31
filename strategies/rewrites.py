"""Mappers that call a workload's own rewrite on the whole batch, of a name that is known or of any other."""

from collections.abc import Collection, Iterable
from typing import Any

from strategies.spec import CHUNK, Mapper
from workloads.spec import Workload


def _of_rewrite(name: str, order: int, title: str, summary: str, **fields: Any) -> Mapper:
    return Mapper(name, title, summary, rewrite=name, order=order, **{"steps": "whole", **fields})


MAPPER = (
    _of_rewrite("batched", 90, "Hand-written batch",
        "no mapping at all: the workload's rewrite works on the whole batch at once"),
    _of_rewrite("accumulate", 91, "Accumulated chunks",
        "vectorised chunks one after another, each added to the result: memory follows the chunk, not the batch",
        steps="chunks", default_modes=("graph", "xla"), options=(CHUNK,)),
    _of_rewrite("jacobian", 92, "GradientTape.jacobian",
        "the losses of all examples, and one Jacobian of them by the parameters, which TensorFlow vectorises"),
    _of_rewrite("tape_batch_jacobian", 94, "GradientTape.batch_jacobian",
        "one forward pass over the batch, and batch_jacobian, which knows that examples do not mix"),
    _of_rewrite("recompute", 96, "tf.recompute_grad",
        "the batched rewrite under tf.recompute_grad: intermediates are computed again instead of kept"),
    _of_rewrite("ragged", 98, "Ragged tf.map_fn",
        "tf.map_fn with a RaggedTensorSpec, for outputs whose shape depends on the values, then padded",
        steps="while"),
)  # fmt: skip


def mappers_of(workloads: Iterable[Workload], mappers: Collection[Mapper]) -> dict[str, Mapper]:
    """Return a mapper by name for each rewrite that none of these mappers calls."""
    called = {mapper.rewrite for mapper in mappers}
    names = [name for workload in workloads for name in workload.rewrites if name not in called]
    summary = "a rewrite for the whole batch that a workload brings along"
    return {name: _of_rewrite(name, 96, f"Rewrite {name}", summary) for name in names}
