"""The size of a chunk that nobody has chosen: as many elements as a fast memory holds."""

from collections.abc import Mapping
from typing import Any

from strategies.spec import Option, Plan

KIB, MIB = 2**10, 2**20
# What a chunk may take on a CPU: of a last-level cache of today as much as leaves room for what stands beside it. The
# same on every machine, so that scripts are the same. Chunks of 8 to 10 MiB were the fastest of ten sizes, or within a
# tenth of it, for outer products that are reduced (256 KiB and 4 MiB an element), repeated sums and gradients that are
# added up; chunks of 0.5 MiB took 1.5 to 3 times as long, since each op is dispatched once a chunk.
CPU_BYTES = 10 * MIB
# A GPU wants chunks that occupy it, whatever its cache.
GPU_BYTES = 512 * MIB
# The whole batch at once takes neither loop nor copies. It is chosen where it needs no more than this many times the
# memory of chunks, whose output is there twice while it is put together.
_WHOLE = 1.5
# Of a memory limit, the rest is for inputs, the output and what stands beside the chunk.
_LIMIT_SHARE = 0.25

OPTION = Option(
    "chunk",
    default=0,
    help="elements vectorised together; 0 takes what a cache or the memory limit holds, or all where that saves little",
    least=0,
    most=1_000_000,
)


def room_bytes(plan: Plan) -> int:
    """Return the bytes that a chunk's inputs, outputs and temporaries may take."""
    room = GPU_BYTES if plan.device.startswith("GPU") else CPU_BYTES
    if plan.memory_limit_mib is not None:
        room = min(room, int(_LIMIT_SHARE * plan.memory_limit_mib * MIB))
    return room


def element_bytes(plan: Plan) -> int:
    """Return the bytes that one element of a chunk takes."""
    return (plan.input_bytes + plan.output_bytes + plan.batched_temporary_bytes) // max(1, plan.batch)


def choose(plan: Plan) -> dict[str, Any]:
    """Choose the largest chunk whose tensors fit the room, at least 1 and at most the batch; or the whole batch, where
    chunks would save little memory and none is short."""
    if _whole_is_small(plan):
        return {"chunk": max(1, plan.batch)}
    return {"chunk": max(1, min(plan.batch, room_bytes(plan) // max(1, element_bytes(plan))))}


def _whole_is_small(plan: Plan) -> bool:
    """True if no memory limit is set, and the whole batch needs hardly more than chunks of it."""
    whole_bytes = plan.output_bytes + plan.batched_temporary_bytes
    return plan.memory_limit_mib is None and whole_bytes <= _WHOLE * (2 * plan.output_bytes + room_bytes(plan))


def reason(plan: Plan, chosen: Mapping[str, Any]) -> str:
    chunk = chosen["chunk"]
    if chunk >= plan.batch and _whole_is_small(plan):
        return f"chunk={chunk}, the whole batch, was chosen: chunks would save little memory"
    if chunk >= plan.batch:
        return f"chunk={chunk}, the whole batch, was chosen: its tensors fit into {room_bytes(plan) / MIB:.3g} MiB"
    taken = chunk * element_bytes(plan) / MIB
    return f"chunk={chunk} was chosen: its tensors take {taken:.3g} of {room_bytes(plan) / MIB:.3g} MiB"
