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
# Flags whose value is the name of a file or a folder, with or without a slash in it.
_NAMES_A_PATH = re.compile(r"(dir|directory|path|file|filename|prefix|autotuner|_to|_from)$")
# Numbers and words, but no name of a file with its ending.
_HARMLESS = re.compile(r"(?!.*\.[A-Za-z])[\w.,:+-]*")
_HIDDEN = "<path>"


def read(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that change what is measured, with their values `without_paths`, as a run may tell them."""
    names = sorted(name for name in variables if _CHANGES.fullmatch(name) and not _LEFT_OUT.fullmatch(name))
    return {name: without_paths(variables[name]) for name in names}


def without_paths(value: str) -> str:
    """The value of a variable without what tells of a person or a machine: paths and identifiers of GPUs. Of what is
    quoted nothing is shown, since a path in it may have blanks."""
    if re.search("[\"']", value):
        return _HIDDEN
    words = value.split()
    shown = " ".join(_shown(word, among_flags=words[0].startswith("-")) for word in words)
    return re.sub(r"(GPU|MIG)-[0-9A-Za-z-]+", r"\1-<id>", shown)


def _shown(word: str, *, among_flags: bool) -> str:
    if not word.startswith("-"):
        return word if not among_flags and _HARMLESS.fullmatch(word.replace("=", ":")) else _HIDDEN
    name, sign, setting = word.partition("=")
    is_path = _NAMES_A_PATH.search(name) or not _HARMLESS.fullmatch(setting)
    return f"{name if _HARMLESS.fullmatch(name) else _HIDDEN}{sign}{_HIDDEN if sign and is_path else setting}"
