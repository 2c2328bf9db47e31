"""The size of a chunk that nobody has chosen: as many elements as a fast memory holds."""

from collections.abc import Mapping
from typing import Any

from strategies.spec import Option, Plan

KIB, MIB = 2**10, 2**20
# What a chunk may take on a CPU: each op is dispatched once a chunk, which takes as long as writing so many bytes; at
# least what fits a core's own cache and still leaves room in it, and at most what a last-level cache of today surely
# has. The same on every machine, so that scripts are the same.
OP_BYTES = 96 * KIB
LEAST_BYTES, MOST_BYTES = 512 * KIB, 16 * MIB
# A GPU wants chunks that occupy it, whatever its cache.
GPU_BYTES = 512 * MIB
# Of a memory limit, the rest is for inputs, the output and what stands beside the chunk.
_LIMIT_SHARE = 0.25

OPTION = Option(
    "chunk",
    default=0,
    help="elements that are vectorised together; 0 takes as many as a cache, or the memory limit, holds",
    least=0,
    most=1_000_000,
)


def room_bytes(plan: Plan) -> int:
    """Return the bytes that a chunk's inputs, outputs and temporaries may take."""
    room = min(MOST_BYTES, max(LEAST_BYTES, plan.element_ops * OP_BYTES))
    if plan.device.startswith("GPU"):
        room = GPU_BYTES
    if plan.memory_limit_mib is not None:
        room = min(room, int(_LIMIT_SHARE * plan.memory_limit_mib * MIB))
    return room


def element_bytes(plan: Plan) -> int:
    """Return the bytes that one element of a chunk takes."""
    return (plan.input_bytes + plan.output_bytes + plan.batched_temporary_bytes) // max(1, plan.batch)


def choose(plan: Plan) -> dict[str, Any]:
    """Choose the largest chunk whose tensors fit the room, at least 1 and at most the batch."""
    return {"chunk": max(1, min(plan.batch, room_bytes(plan) // max(1, element_bytes(plan))))}


def reason(plan: Plan, chosen: Mapping[str, Any]) -> str:
    chunk = chosen["chunk"]
    if chunk >= plan.batch:
        return f"chunk={chunk}, the whole batch, was chosen: its tensors fit into {room_bytes(plan) / MIB:.3g} MiB"
    taken = chunk * element_bytes(plan) / MIB
    return f"chunk={chunk} was chosen: its tensors take {taken:.3g} of {room_bytes(plan) / MIB:.3g} MiB"
