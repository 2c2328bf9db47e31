"""How many elements a chunk has where nobody says: as many as a fast memory holds."""

from collections.abc import Mapping
from typing import Any

from strategies.spec import Option, Plan

# What a chunk may take, by kind of device. A CPU's last-level cache: most of today's have this much to give, and the
# same figure on every machine keeps scripts the same. A GPU wants chunks that occupy it, whatever its cache.
ROOM_BYTES = {"CPU": 16 * 2**20, "GPU": 512 * 2**20}
# Of a memory limit, the rest is for inputs, the output and what stands beside the chunk.
_LIMIT_SHARE = 0.25

OPTION = Option(
    "chunk",
    default=0,
    help="elements that are vectorised together; 0 takes as many as the last-level cache or the memory limit holds",
    least=0,
    most=1_000_000,
)


def room_bytes(plan: Plan) -> int:
    """What a chunk's inputs, outputs and temporaries may take."""
    room = ROOM_BYTES[plan.device.partition(":")[0]]
    if plan.memory_limit_mib is not None:
        room = min(room, int(_LIMIT_SHARE * plan.memory_limit_mib * 2**20))
    return room


def element_bytes(plan: Plan) -> int:
    """What one element of a chunk takes."""
    return (plan.input_bytes + plan.output_bytes + plan.batched_temporary_bytes) // max(1, plan.batch)


def choose(plan: Plan) -> dict[str, Any]:
    """The largest chunk whose tensors fit the room, at least 1 and at most the batch."""
    return {"chunk": max(1, min(plan.batch, room_bytes(plan) // max(1, element_bytes(plan))))}


def reason(plan: Plan, chosen: Mapping[str, Any]) -> str:
    chunk = chosen["chunk"]
    if chunk >= plan.batch:
        return f"chunk={chunk}, the whole batch, was chosen: its tensors fit into {room_bytes(plan) / 2**20:.3g} MiB"
    taken = chunk * element_bytes(plan) / 2**20
    return f"chunk={chunk} was chosen: its tensors take {taken:.3g} of {room_bytes(plan) / 2**20:.3g} MiB"
