"""The size of a chunk that nobody has chosen: as many elements as a fast memory holds."""

import strategies
from strategies.spec import CHUNK, Mapper, Strategy
from workloads.case import Case

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


def room_bytes(case: Case, memory_limit_mib: int | None = None) -> int:
    """Return the bytes that a chunk's inputs, outputs and temporaries may take."""
    room = GPU_BYTES if case.device.startswith("GPU") else CPU_BYTES
    return room if memory_limit_mib is None else min(room, int(_LIMIT_SHARE * memory_limit_mib * MIB))


def output_bytes(case: Case, mapper: Mapper) -> int:
    """Return the bytes of what the mapped function gives for the whole batch, or of a rewrite's output."""
    if mapper.rewrite is not None:
        return case.output_bytes
    return case.batch * sum(leaf.bytes for leaf in case.leaves(case.workload.element_output))


def element_bytes(case: Case, mapper: Mapper) -> int:
    """Return the bytes that one element of a chunk takes."""
    of_batch = case.input_bytes + output_bytes(case, mapper) + case.batch * case.cost.temporary_bytes
    return of_batch // max(1, case.batch)


def chosen(case: Case, strategy: Strategy, memory_limit_mib: int | None = None) -> dict[str, int]:
    """Return the ``chunk`` of a strategy whose mapper takes one, where it is left at its default: the largest whose
    tensors fit the room, at least 1 and at most the batch; or the whole batch, where chunks would save little memory
    and none is short."""
    mapper = strategies.mapper(strategy.mapper)
    if CHUNK not in mapper.options or CHUNK.name in strategy.options:
        return {}
    if _whole_is_small(case, mapper, memory_limit_mib):
        return {CHUNK.name: max(1, case.batch)}
    fits = room_bytes(case, memory_limit_mib) // max(1, element_bytes(case, mapper))
    return {CHUNK.name: max(1, min(case.batch, fits))}


def length(case: Case, strategy: Strategy) -> int:
    """Return the elements of a chunk of a strategy, chosen or asked for; 0 where its mapper takes none."""
    return int({**chosen(case, strategy), **strategy.options}.get(CHUNK.name, 0))


def _whole_is_small(case: Case, mapper: Mapper, memory_limit_mib: int | None) -> bool:
    """True if no memory limit is set, and the whole batch needs hardly more than chunks of it."""
    output = output_bytes(case, mapper)
    whole = output + case.batch * case.cost.temporary_bytes
    return memory_limit_mib is None and whole <= _WHOLE * (2 * output + room_bytes(case))


def reason(case: Case, strategy: Strategy, memory_limit_mib: int | None = None) -> str:
    """Return the sentence that says why the chunk was chosen."""
    mapper, chunk = strategies.mapper(strategy.mapper), chosen(case, strategy, memory_limit_mib)[CHUNK.name]
    if _whole_is_small(case, mapper, memory_limit_mib):
        return f"chunk={chunk}, the whole batch, was chosen: chunks would save little memory"
    room, needed = (
        number / MIB for number in (room_bytes(case, memory_limit_mib), chunk * element_bytes(case, mapper))
    )
    return f"chunk={chunk} was chosen: its tensors take {needed:.3g} of {room:.3g} MiB"
