"""The allocator of TensorFlow's buffers and the threads of NumPy's matrix products, as a process finds them for itself.

Nothing here needs TensorFlow.
"""

import ctypes
from collections.abc import Mapping
from pathlib import Path

import numpy as np

BFC, POOL, C_LIBRARY = "BFC", "oneDNN's pool", "C library"
_OF_GPUS = ("cuda_malloc", "cuda_malloc_async", "memory_guard")
_TRUE = ("1", "true")  # as ``ReadBoolFromEnvVar`` reads them, in any case
# As OpenBLAS is named in NumPy's wheels, and elsewhere.
_OPENBLAS = ("scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads", "openblas_get_num_threads")


def of_processor(variables: Mapping[str, str], onednn: bool) -> str:
    """The allocator of tensors in the machine's memory. ``onednn``: True if oneDNN's kernels are in use.

    `BFC` keeps all that is freed; `POOL` keeps it too, for buffers from 256 KiB on; `C_LIBRARY` asks malloc each time.
    Source: ``ProcessState::GetCPUAllocator``, the priority of ``MklCPUAllocator`` in threadpool_device.cc, and
    ``UseSystemAlloc`` in mkl_cpu_allocator.cc, all in tensorflow/core/common_runtime.
    """
    if _is_set(variables, "TF_CPU_ALLOCATOR_USE_BFC"):
        return BFC
    return POOL if onednn and not _is_set(variables, "TF_ONEDNN_USE_SYSTEM_ALLOCATOR") else C_LIBRARY


def of_gpus(variables: Mapping[str, str]) -> str:
    """The allocator of tensors on GPUs. Source: gpu_process_state.cc in tensorflow/core/common_runtime/gpu, which takes
    no other value of the variable for anything."""
    asked = variables.get("TF_GPU_ALLOCATOR", "")
    return asked if asked in _OF_GPUS else BFC


def openblas_threads() -> int | None:
    """Threads of a matrix product in NumPy, as its OpenBLAS says; None where it comes with another library."""
    package = Path(np.__file__).parent
    for path in (*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")):
        try:
            library = ctypes.CDLL(str(path))  # the one that NumPy has loaded
        except OSError:
            continue
        for name in _OPENBLAS:
            if hasattr(library, name):
                return int(getattr(library, name)())
    return None


def _is_set(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").lower() in _TRUE
