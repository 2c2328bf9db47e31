"""The parts of a script that stand in every one: its docstring, imports, settings, literals and signature."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from workloads.case import Case
from workloads.spec import Leaf, type_nest

WIDTH = 120


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
    else:
        lines = [f'tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[{index}], "GPU")']
    if threads is not None:
        lines.append(f"tf.config.threading.set_intra_op_parallelism_threads({threads})")
        lines.append(f"tf.config.threading.set_inter_op_parallelism_threads({threads})")
    return "\n".join(lines)


def some_of(batch: int, number: int) -> list[str]:
    """The lines that leave so many elements of the batch, from the first to the last; none where these are all."""
    if number >= batch:
        return []
    return [
        f"compared = np.linspace(0, {batch - 1}, {number}).round().astype(int)",
        "elems = tf.nest.map_structure(lambda leaf: tf.gather(leaf, compared), elems)",
    ]


def literal(value: Any) -> str:
    # Double quotes, as a formatter writes them; a workload's options are plain words.
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else repr(value)


def keywords(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={literal(value)}" for name, value in values.items())


def signature(output: type_nest) -> str:
    """The statement that assigns what a strategy is told of an element's output; a long tuple has a part a line."""
    text = f"signature = {tensor_spec(output)}"
    if len(text) <= WIDTH or not isinstance(output, tuple):
        return text
    return "\n".join(["signature = (", *(f"    {tensor_spec(part)}," for part in output), ")"])


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
