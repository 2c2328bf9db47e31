"""The memory of NVIDIA's GPUs and the version of their driver, which TensorFlow does not tell.

For a process of its own: asking initialises the driver, after which a fork would not be safe.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

_CUDA = ("libcuda.so.1", "nvcuda.dll")
_MANAGEMENT = ("libnvidia-ml.so.1", "nvml.dll")
_LONGEST_VERSION = 80  # NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
_DONE = 0  # CUDA_SUCCESS, and NVML_SUCCESS


def memory_bytes(index: int) -> int | None:
    """All memory of a GPU, or of the part of one that is handed out as such; None where the driver does not say.

    ``index``: as CUDA numbers those that this process may see, and as TensorFlow lists them.
    """
    cuda = _library(_CUDA)
    if cuda is None or cuda.cuInit(0) != _DONE:
        return None
    device, total = ctypes.c_int(), ctypes.c_size_t()
    if cuda.cuDeviceGet(ctypes.byref(device), index) != _DONE:
        return None
    if cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device) != _DONE:
        return None
    return total.value


def driver() -> str | None:
    """The version of the driver, such as ``550.54.15``; None where there is none."""
    management = _library(_MANAGEMENT)
    if management is None or management.nvmlInit_v2() != _DONE:
        return None
    said = ctypes.create_string_buffer(_LONGEST_VERSION)
    try:
        if management.nvmlSystemGetDriverVersion(said, _LONGEST_VERSION) != _DONE:
            return None
        return said.value.decode("ascii", "replace")
    finally:
        management.nvmlShutdown()


def _library(names: Sequence[str]) -> Any:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None
