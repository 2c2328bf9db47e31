"""The layout of a script's parts, as ``ruff format`` lays them out: literals, calls, and long statements."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from workloads.case import Case
from workloads.spec import Leaf, type_nest

WIDTH = 120

_OPENING = {")": "(", "]": "[", "}": "{"}


class ScriptError(ValueError):
    """A script cannot be put together: the message names the function that is at fault."""


def docstring(case: Case, title: str, device: str | None = None) -> str:
    facts = {**case.size, **case.options, "dtype": case.dtype}
    facts |= {"device": device, "seed": case.seed} if device else {"seed": case.seed}
    line = ", ".join(f"{name}={value}" for name, value in facts.items())
    return f'"""{case.workload.title}: {title}.\n\n{textwrap.fill(line, WIDTH)}\n"""'


def join(docstring: str, imports: str, settings: str, *blocks: str) -> str:
    head = "\n\n".join(filter(None, [docstring, imports, settings]))
    return "\n\n\n".join(part.strip("\n") for part in (head, *blocks)) + "\n"


def imports(standard: Sequence[str]) -> str:
    """The imports of a script: ``standard`` are modules of Python's own."""
    lines = [f"import {name}" for name in standard]
    return "\n".join([*lines, *([""] if lines else []), "import numpy as np", "import tensorflow as tf"])


def pool(device: str, *, arrays: bool) -> tuple[list[str], list[str]]:
    """The modules and the lines that have freed memory stay in the process, so that no call takes page faults for its
    outputs. ``arrays``: of NumPy too, where the C library is glibc. A GPU's memory is in a pool anyway."""
    if not device.startswith("CPU"):
        return [], []
    tensors = 'os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"  # before the first op: freed tensors stay in a pool'
    if not arrays:
        return ["os"], [tensors]
    return ["ctypes", "os", "sys"], [
        tensors,
        'if sys.platform == "linux":  # freed arrays too: M_MMAP_MAX and M_TRIM_THRESHOLD of malloc.h',
        "    ctypes.CDLL(None).mallopt(-4, 0)",
        "    ctypes.CDLL(None).mallopt(-1, -1)",
    ]


def settings(device: str, threads: int | None, pool: Sequence[str] = ()) -> str:
    """The lines that set TensorFlow up, before its first op; ``pool``: those of `pool`."""
    kind, _, index = device.partition(":")
    if kind == "CPU":
        lines = [*pool, 'tf.config.set_visible_devices([], "GPU")']
    elif kind == "GPU" and index.isdecimal():
        lines = [f'tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[{index}], "GPU")']
    else:
        raise ScriptError(f"device {device!r} is not valid: CPU:0, or GPU:0, GPU:1 … are")
    if threads is not None:
        lines.append(f"tf.config.threading.set_intra_op_parallelism_threads({threads})")
        lines.append(f"tf.config.threading.set_inter_op_parallelism_threads({threads})")
    return "\n".join(lines)


def literal(value: Any) -> str:
    # Double quotes, as a formatter writes them; a workload's options are plain words.
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else repr(value)


def keywords(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={literal(value)}" for name, value in values.items())


def tensor_spec(nest: type_nest) -> str:
    """A nest of `Leaf` as the literal of a nest of ``tf.TensorSpec`` and ``tf.RaggedTensorSpec``."""
    if isinstance(nest, Leaf) and nest.is_ragged:
        ragged_rank = max(axis for axis, side in enumerate(nest.shape) if side is None)
        return f"tf.RaggedTensorSpec({list(nest.shape)}, tf.{nest.dtype}, ragged_rank={ragged_rank})"
    if isinstance(nest, Leaf):
        return f"tf.TensorSpec({list(nest.shape)}, tf.{nest.dtype})"
    if isinstance(nest, Mapping):
        return "{" + ", ".join(f"{literal(key)}: {tensor_spec(part)}" for key, part in nest.items()) + "}"
    parts = [tensor_spec(part) for part in nest]
    if isinstance(nest, list):
        return f"[{', '.join(parts)}]"
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def layout(text: str, indent: int = 0, after: str = "") -> str:
    """One statement or argument, split at its last bracket where it is too long, as ``ruff format`` lays it out.

    ``after`` is what follows it on its last line.
    """
    pad = " " * indent
    if len(pad + text + after) <= WIDTH or text[-1] not in _OPENING:
        return pad + text + after
    start = _opening_of_last(text)
    inside, inner = text[start + 1 : -1], " " * (indent + 4)
    parts = _arguments(inside)
    if len(inner + inside) <= WIDTH:
        body = inner + inside
    else:
        body = "\n".join(layout(part, indent + 4, ",") for part in parts)
    return f"{pad}{text[: start + 1]}\n{body}\n{pad}{text[-1]}{after}"


def _opening_of_last(text: str) -> int:
    """The index at which the bracket opens that the last character closes."""
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        depth += (text[index] in _OPENING) - (text[index] in _OPENING.values())
        if depth == 0:
            return index
    raise ValueError(f"{text!r} has a bracket that is never opened")


def _arguments(text: str) -> list[str]:
    """The parts of ``text`` between commas outside of all brackets."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character in _OPENING.values()) - (character in _OPENING)
        if character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [part for part in (*parts, text[start:].strip()) if part]
