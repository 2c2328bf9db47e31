"""Variables that change what is measured, and what of their values may stand in a run's file: nothing private."""

import re
from collections.abc import Mapping

# Variables that change what TensorFlow, XLA, oneDNN, OpenMP, CUDA, NumPy, Python or the C library do. Without
# TF_FORCE_GPU_ALLOW_GROWTH, which Mapbench sets itself in whatever it runs on a GPU.
_FLAGS = (
    *("CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES"),
    *("GLIBC_TUNABLES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "KMP_BLOCKTIME", "MKL_NUM_THREADS", "OMP_NUM_THREADS"),
    *("OMP_PROC_BIND", "OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "DNNL_DEFAULT_FPMATH_MODE", "DNNL_MAX_CPU_ISA"),
    *("ONEDNN_DEFAULT_FPMATH_MODE", "ONEDNN_MAX_CPU_ISA", "NPY_DISABLE_CPU_FEATURES", "NVIDIA_TF32_OVERRIDE"),
    *("TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB", "TF_CUDNN_DETERMINISTIC", "TF_CUDNN_USE_AUTOTUNE"),
    *("TF_DETERMINISTIC_OPS", "TF_ENABLE_ONEDNN_OPTS", "TF_GPU_ALLOCATOR"),
    *("TF_GPU_THREAD_COUNT", "TF_GPU_THREAD_MODE", "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"),
    *("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "TF_USE_LEGACY_KERAS", "TF_XLA_FLAGS", "XLA_FLAGS"),
    *("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_TRIM_THRESHOLD_"),
    *("CUDA_MODULE_LOADING", "DNNL_VERBOSE", "OMP_THREAD_LIMIT", "ONEDNN_VERBOSE", "TF_FORCE_UNIFIED_MEMORY"),
    # Of the variables whose names are in TensorFlow's libraries, the others that choose a kernel, an allocator, a
    # precision or a pool of threads.
    *("TF_AUTOTUNE_THRESHOLD", "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL", "TF_CUBLAS_WORKSPACE_LIMIT_IN_MB"),
    *("TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC", "TF_CUDA_PLATFORM_GPU_DEVICE_SCHEDULE", "TF_DETERMINISTIC_ALLOCATOR"),
    *("TF_CUDNN_USE_RUNTIME_FUSION", "TF_CUDNN_WORKSPACE_LIMIT_IN_MB", "TF_DEVICE_MIN_SYS_MEMORY_IN_MB"),
    *("TF_DISABLE_JIT_KERNELS", "TF_EAGER_ENABLE_SMALL_TENSOR_CPU_PINNING", "TF_ENABLE_ONEDNN_SPMM"),
    *("TF_ENABLE_WINOGRAD_NONFUSED", "TF_ENABLE_ZENDNN_OPTS", "TF_FP16_CONV_USE_FP32_COMPUTE", "TF_SYNC_ON_FINISH"),
    *("TF_FP16_MATMUL_USE_FP32_COMPUTE", "TF_GPU_HOST_MEM_LIMIT_IN_MB", "TF_MATMUL_AUTOTUNE_ENABLE"),
    *("TF_MKL_ALLOC_MAX_BYTES", "TF_MKL_OPTIMIZE_PRIMITIVE_MEMUSE", "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"),
    *("TF_ONEDNN_THREADPOOL_USE_CALLER_THREAD", "TF_OVERRIDE_GLOBAL_THREADPOOL", "TF_PER_DEVICE_MEMORY_LIMIT_MB"),
    *("TF_SET_ONEDNN_FPMATH_MODE", "TF_USE_CUBLASLT", "TF_USE_DEFAULT_CONV_ALGO"),
    *("TF_USE_EIGEN_PARALLEL_FOR_IN_WORK_SHARDER", "OMP_PLACES", "OMP_WAIT_POLICY", "PYTHONMALLOC", "PYTHONOPTIMIZE"),
)
# Flags of XLA's whose value is a name of a file or a folder, with or without a slash in it.
_NAMES_A_PATH = re.compile(r"(?:dir|directory|path|file|filename|prefix|autotuner|_to|_from)$")
# What is a path whatever it is set for: it has a slash, or starts at a home, or ends like a file.
_IS_PATH = re.compile(r"""[/\\]|^["']?~|\.[A-Za-z]\w*["']?$""")
# A flag with its value, whose quotes may hold blanks and commas, or what stands between two of them.
_WORD = re.compile(r"""(\s+|,(?=--))|((?:"[^"]*"?|'[^']*'?|(?!,--)[^\s"'])+)""")


def read(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that change what is measured, with their values without paths, as a run may tell them."""
    return {name: without_paths(variables[name]) for name in _FLAGS if name in variables}


def without_paths(value: str) -> str:
    """The value of a variable without what tells of a person or a machine: paths and identifiers of GPUs."""
    kept = []
    in_path = False  # whether what follows without dashes is a path, or the rest of one that has blanks
    for between, word in _WORD.findall(value):
        if between:
            kept.append(between)
            continue
        if not word.lstrip("\"'").startswith("-"):
            in_path = in_path or bool(_IS_PATH.search(word))
            kept.append("<path>" if in_path else word)
            continue
        name, sign, setting = word.partition("=")
        names_path = bool(_NAMES_A_PATH.search(name))
        is_path = bool(setting) and (names_path or bool(_IS_PATH.search(setting)))
        in_path = is_path or (names_path and not sign)
        kept.append(("<path>" if _IS_PATH.search(name) else name) + sign + ("<path>" if is_path else setting))
    return re.sub(r"(GPU|MIG)-[0-9A-Za-z-]+", r"\1-<id>", "".join(kept))
