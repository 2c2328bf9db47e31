"""The data of a workload: plain metadata, NumPy functions and source text. Nothing here needs TensorFlow.

A workload's ``element``, rewrites and ``variables`` are TensorFlow code, but this process never calls them: their
*source text* goes into the script of a strategy (see ``strategies/script.py``), and that script is what a subject runs.
"""

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf
else:
    tf = None  # a name in sources that are text here: TensorFlow is imported where their scripts run

# The dtypes of tensors and the bytes of one value. A string of up to 22 bytes lies in the 24 of TensorFlow's tstring;
# of a longer one they point to the rest, which is not counted.
ITEM_BYTES = {
    **{"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8},
    **{"bfloat16": 2, "float16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16, "string": 24},
}
# A ragged tensor has a number for each row that says where it ends.
_SPLIT_BYTES = 8
# A tensor, or tuples, lists and dicts of tensors, as TensorFlow's `tf.nest` sees them.
type_nest = Any


@dataclass(frozen=True)
class SizeParameter:
    """One size of a workload, a whole number from ``least`` to ``most``. ``batch`` is always the mapped axis."""

    name: str
    default: int
    least: int
    most: int
    help: str


@dataclass(frozen=True)
class Option:
    """A named choice of a workload or a mapper: one of ``values``, or where these are None a whole number from
    ``least`` to ``most``."""

    name: str
    default: str | int | bool
    help: str
    values: tuple[str | int | bool, ...] | None = None
    least: int | None = None
    most: int | None = None

    def parse(self, text: str) -> str | int | bool:
        """Return the value written as ``text``; ValueError with a sentence naming what is valid."""
        if self.values is not None:
            valid = {str(value).lower(): value for value in self.values}
            if text.lower() not in valid:
                raise ValueError(f"{self.name}={text} is not valid: choose one of {', '.join(valid)}")
            return valid[text.lower()]
        least, most = self.least or 0, self.most if self.most is not None else 2**31 - 1
        with contextlib.suppress(ValueError):
            if least <= int(text) <= most:
                return int(text)
        raise ValueError(f"{self.name}={text} is not valid: a whole number from {least} to {most} is needed")


@dataclass(frozen=True)
class Leaf:
    """Shape and dtype of one tensor, for one element of the batch (no batch axis).

    ``sparse``, of a result: the function gives a ``tf.SparseTensor`` or ``tf.IndexedSlices``, which strategies make
    dense. An axis whose length differs from element to element is None, and ``length`` is how long such axes are on
    average: a batch of these is a ``tf.RaggedTensor``.
    """

    shape: tuple[int | None, ...]
    dtype: str
    sparse: bool = False
    length: float | None = None

    def __post_init__(self) -> None:
        if self.is_ragged != (self.length is not None):
            raise ValueError(f"a Leaf has the shape {self.shape!r} and length={self.length}: None goes with a length")
        if self.dtype not in ITEM_BYTES:
            raise ValueError(f"a Leaf has the dtype {self.dtype!r}: choose one of {', '.join(ITEM_BYTES)}")

    @property
    def is_ragged(self) -> bool:
        return None in self.shape

    @property
    def sides(self) -> tuple[int | str, ...]:
        """The lengths of the axes, those that differ as text with their average."""
        return tuple(f"~{self.length:.3g}" if side is None else side for side in self.shape)

    @property
    def values(self) -> float:
        """The number of values, on average where lengths differ."""
        return math.prod(self._lengths())

    @property
    def bytes(self) -> int:
        lengths = self._lengths()
        splits = (math.prod(lengths[:axis]) for axis, side in enumerate(self.shape) if side is None)
        return round(self.values * ITEM_BYTES[self.dtype] + _SPLIT_BYTES * sum(splits))

    def _lengths(self) -> list[float]:
        return [self.length or 0 if side is None else side for side in self.shape]


@dataclass(frozen=True)
class Cost:
    """The cost of ONE element, for forecasts and tolerances; the work of a run is counted at its size.

    ``ops``: TensorFlow ops that the element function issues. ``flops``: floating-point operations, where they take
    longer than reading and writing. ``temporary_bytes``: most bytes alive at once beyond inputs and outputs, where the
    whole batch is computed at once. ``depth``: the longest chain of roundings between an input and an output.
    """

    ops: int = 1
    flops: int = 0
    temporary_bytes: int = 0
    depth: int = 1


@dataclass(frozen=True)
class Workload:
    """An element function with its inputs, sizes and rewrites, and what of it cannot be seen without TensorFlow.

    Functions get the sizes, ``dtype`` (str), ``seed`` (int) and the workload's options as keyword arguments, as far as
    they name them; those that are handed tensors name them after a ``*``. Those whose source goes into a script use
    ``np``, ``tf``, their arguments, builtins and further functions of their file:

    - ``inputs(...)``: NumPy arrays (or a nest of them), axis 0 of each has length ``batch``.
    - ``variables(...)``: tuple of NumPy arrays that become ``tf.Variable``s, passed to ``element`` and rewrites.
    - ``element(x, *variables)``: TensorFlow code for one slice. ``rewrites[name](batch, *variables)``: for all at once,
      and for what ``use`` does too. A name that is no mapper's `strategies.spec.Mapper.rewrite` is a mapper itself.
    - ``elements[name](x, *variables)``: other ways to write ``element``, which strategies take as ``?element=name``.
    - ``numpy(x, *variables)``: ``element`` in NumPy, for one slice as well as for a batch. Where no function is both,
      ``numpy_element`` is that for a slice, and a rewrite ``numpy`` that for a batch.
    - ``use(mapped, batch, *variables)``: what is done with the mapped function, where it is not just called.
    - ``reference(inputs, *variables)``: float64 NumPy arrays, structured as the output. Without it, the rewrite
      ``numpy`` of float64 is the reference, or else ``element`` of float64, slice by slice.

    Others are asked for metadata, and may be lambdas:

    - ``element_input(...)``, ``element_output(...)``: nests of `Leaf`; results are like elements where nothing is said.
      ``output(...)``: nest of `Leaf` of the whole output, where it is not a batch of ``element_output``.
    - ``variable_leaves(...)``: tuple of `Leaf`, one for each of ``variables``, so that their bytes are known unmade.
    - ``cost(...)``: a `Cost`.

    ``slug`` and ``summary`` are the name and the docstring of the file of ``element``, where nothing else is said.
    ``presets`` name sizes: by parameter, or as a tuple of all in the order of ``sizes``. ``variants[option][value]``
    are fields that another value of an option replaces. ``unsupported`` says in a sentence why strategies cannot work:
    the first pattern that fits ``mapper.mode`` counts. ``own`` is the `workloads.functions.Given` of a workload that
    was derived from a person's code, in whose scripts that code stands.
    """

    title: str
    group: str
    formula: str
    sizes: tuple[SizeParameter, ...]
    presets: Mapping[str, Any]
    inputs: Callable[..., type_nest]
    element: Callable[..., type_nest]
    element_input: Callable[..., type_nest]
    slug: str = None  # type: ignore[assignment]
    summary: str = None  # type: ignore[assignment]
    rewrites: Mapping[str, Callable[..., type_nest]] = field(default_factory=dict)
    numpy: Callable[..., type_nest] | None = None
    dtypes: tuple[str, ...] = ("float32", "float64")
    cost: Callable[..., Cost] = lambda: Cost()
    element_output: Callable[..., type_nest] = None  # type: ignore[assignment]
    reference: Callable[..., type_nest] | None = None
    variables: Callable[..., tuple[np.ndarray, ...]] | None = None
    variable_leaves: Callable[..., tuple[Leaf, ...]] | None = None
    options: tuple[Option, ...] = ()
    elements: Mapping[str, Callable[..., type_nest]] = field(default_factory=dict)
    numpy_element: Callable[..., type_nest] | None = None
    use: Callable[..., type_nest] | None = None
    output: Callable[..., type_nest] | None = None
    variants: Mapping[str, Mapping[Any, Mapping[str, Any]]] = field(default_factory=dict)
    unsupported: Mapping[str, str] = field(default_factory=dict)
    own: Any = None

    def __post_init__(self) -> None:
        names = [parameter.name for parameter in self.sizes]
        presets = {
            name: size if isinstance(size, Mapping) else dict(zip(names, size, strict=True))
            for name, size in self.presets.items()
        }
        object.__setattr__(self, "presets", presets)
        file = getattr(self.element, "__globals__", {})  # of what is no function there is none, see `workloads.check`
        if self.slug is None:
            object.__setattr__(self, "slug", Path(file.get("__file__", "")).stem)
        if self.summary is None:
            object.__setattr__(self, "summary", file.get("__doc__") or "")
        if self.numpy is not None:
            object.__setattr__(self, "numpy_element", self.numpy)
            object.__setattr__(self, "rewrites", {**self.rewrites, "numpy": self.numpy})
        if self.element_output is None:
            object.__setattr__(self, "element_output", self.element_input)

    def default_size(self) -> dict[str, int]:
        return {parameter.name: parameter.default for parameter in self.sizes}

    def default_options(self) -> dict[str, str | int | bool]:
        return {option.name: option.default for option in self.options}

    def choices(self) -> list[dict[str, Any]]:
        """Return the options of each case that a table of everything shows: none, then each further value by itself."""
        return [{}, *({one.name: value} for one in self.options for value in one.values or () if value != one.default)]

    def variant(self, options: Mapping[str, Any]) -> "Workload":
        """Return the workload with the fields that its options replace; see `workloads.case.Case`."""
        chosen, changes = {**self.default_options(), **options}, dict[str, Any]()
        for name, by_value in self.variants.items():
            changes |= {str(value): fields for value, fields in by_value.items()}.get(str(chosen[name]), {})
        return replace(self, **changes, variants={}) if changes else self


def leaves(nest: type_nest) -> list[Leaf]:
    """Return the leaves of a nest of `Leaf`, in the order of ``tf.nest.flatten``: dicts by sorted key."""
    if isinstance(nest, Leaf):
        return [nest]
    if not isinstance(nest, Mapping | list | tuple):
        raise ValueError(f"{nest!r} is neither a Leaf nor a tuple, list or dict of them")
    parts = [nest[key] for key in sorted(nest)] if isinstance(nest, Mapping) else nest
    return [leaf for part in parts for leaf in leaves(part)]


def map_leaves(function: Callable[[Leaf], Any], nest: type_nest) -> type_nest:
    if isinstance(nest, Leaf):
        return function(nest)
    if isinstance(nest, Mapping):
        return {key: map_leaves(function, part) for key, part in nest.items()}
    return type(nest)(map_leaves(function, part) for part in nest)
