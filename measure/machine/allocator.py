"""The allocator of TensorFlow's buffers, as a process finds it for itself, without TensorFlow."""

from collections.abc import Mapping

BFC, POOL, C_LIBRARY = "BFC", "oneDNN's pool", "C library"


def of_processor(variables: Mapping[str, str], onednn: bool) -> str:
    """The allocator of tensors in the machine's memory. ``onednn``: True if oneDNN's kernels are in use.

    `BFC` keeps all that is freed; `POOL` keeps it too, for buffers from 256 KiB on; `C_LIBRARY` asks malloc each time.
    Source: ``ProcessState::GetCPUAllocator``, the priority of ``MklCPUAllocator`` in threadpool_device.cc, and
    ``UseSystemAlloc`` in mkl_cpu_allocator.cc, all in tensorflow/core/common_runtime.
    """
    if _is_set(variables, "TF_CPU_ALLOCATOR_USE_BFC"):
        return BFC
    return POOL if onednn and not _is_set(variables, "TF_ONEDNN_USE_SYSTEM_ALLOCATOR") else C_LIBRARY


def _is_set(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").lower() in ("1", "true")  # as ``ReadBoolFromEnvVar`` reads them
