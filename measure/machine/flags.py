"""Variables that change what is measured, and what of their values may stand in a run's file: nothing private."""

import re
from collections.abc import Mapping

# What TensorFlow, XLA, oneDNN, OpenMP, CUDA, NumPy, Python and the C library read. TF_FORCE_GPU_ALLOW_GROWTH is set by
# Mapbench itself in whatever it runs on a GPU; the others that are left out change what is printed, or name places.
_CHANGES = re.compile(
    r"(TF|XLA|CUDA|NVIDIA_TF32|OMP|GOMP|KMP|MKL|DNNL|ONEDNN|OPENBLAS|NPY|MALLOC)_\w+|GLIBC_TUNABLES|XLA_FLAGS|"
    r"PYTHON(MALLOC|OPTIMIZE)"
)
_LEFT_OUT = re.compile(r"TF_FORCE_GPU_ALLOW_GROWTH|TF_CONFIG|TF_CPP_\w+|\w+_(HOME|PATH|DIR|ROOT|FILE|VERSION)")
# Numbers and words: no name of a file with its ending, and no identifier of a GPU.
_WORDS = re.compile(r"(?!--|.*(\.[A-Za-z]|GPU-|MIG-))[\w.,:=+-]*")
_FLAG = re.compile(r"--\w+(=(-?[\d.]+|true|false))?", re.IGNORECASE)
_HIDDEN = "<path>"


def read(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that change what is measured, with what may be shown of their values."""
    names = sorted(name for name in variables if _CHANGES.fullmatch(name) and not _LEFT_OUT.fullmatch(name))
    return {name: shown(variables[name]) for name in names}


def shown(value: str) -> str:
    """The value of a variable without what may tell of a person or a machine. Of a list of flags those are shown whose
    setting is a number, or yes or no: any other one may be the name of a file."""
    if _WORDS.fullmatch(value):
        return value
    return " ".join(word if _FLAG.fullmatch(word) else _HIDDEN for word in value.split())
