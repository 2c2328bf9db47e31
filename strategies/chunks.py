"""The size of a chunk that nobody has chosen: as many elements as a fast memory holds."""

import strategies
from strategies.spec import CHUNK, Mapper, Strategy
from workloads.case import Case

MIB = 2**20
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


def output_bytes(case: Case, mapper: Mapper) -> int:
    """Return the bytes of what the mapped function gives for the whole batch, or of a rewrite's output."""
    if mapper.rewrite is not None:
        return case.output_bytes
    return case.batch * sum(leaf.bytes for leaf in case.leaves(case.workload.element_output))


def element_bytes(case: Case, mapper: Mapper) -> int:
    of_batch = case.input_bytes + output_bytes(case, mapper) + case.batch * case.cost.temporary_bytes
    return of_batch // max(1, case.batch)


def chosen(case: Case, strategy: Strategy, memory_limit_mib: int | None = None) -> tuple[int, str] | None:
    """Return the elements of a chunk, and why there are so many, where a strategy's mapper takes chunks and leaves that
    at its default: the most whose tensors fit the room, at least 1 and at most the batch; or the whole batch, where
    chunks would save little memory and none is short."""
    mapper = strategies.mapper(strategy.mapper)
    if CHUNK not in mapper.options or CHUNK.name in strategy.options:
        return None
    room, output = GPU_BYTES if case.device.startswith("GPU") else CPU_BYTES, output_bytes(case, mapper)
    if memory_limit_mib is not None:
        room = min(room, int(_LIMIT_SHARE * memory_limit_mib * MIB))
    elif output + case.batch * case.cost.temporary_bytes <= _WHOLE * (2 * output + room):
        length = max(1, case.batch)
        return length, f"chunk={length}, the whole batch, was chosen: chunks would save little memory"
    element = element_bytes(case, mapper)
    length = max(1, min(case.batch, room // max(1, element)))
    takes = f"its tensors take {length * element / MIB:.3g} of {room / MIB:.3g} MiB"
    return length, f"chunk={length} was chosen: {takes}"
