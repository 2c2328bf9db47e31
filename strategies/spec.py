"""The data of a mapper and of a strategy: metadata and source text. Nothing here needs TensorFlow."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workloads.spec import Option

MODES = ("eager", "graph", "xla")
# The option of a strategy that names another of the workload's element functions.
ELEMENT = "element"
# The elements of a chunk, which `strategies.chunks` chooses where nobody does.
CHUNK = Option("chunk", 0, "elements vectorised together; 0 takes as many as a cache holds", least=0, most=1_000_000)
PARALLEL_ITERATIONS = Option(
    "parallel_iterations", 10, "iterations in flight at once in a graph; eager and XLA ignore it", least=1, most=1024
)
# The element function as a `tf.function` of its own, wherever a mapper has this option.
JIT_COMPILE = Option("jit_compile", False, "compile the element function with XLA", values=(False, True))
# How a mapper goes through the batch: element by element, from Python, in a loop of TensorFlow's, through tf.data or by
# calls back into Python; with each op on the whole batch or on chunks; or by a rewrite.
Steps = Literal["python", "while", "pipeline", "called_back", "vectorised", "chunks", "whole"]


@dataclass(frozen=True)
class Mapper:
    """A way to apply ``fn`` to every slice along axis 0.

    ``apply(fn, elems[, signature], **options)`` is TensorFlow code whose source, with the functions of its file that it
    calls, goes into a strategy's script; this process never calls it. It gets ``signature`` (a nest of
    ``tf.TensorSpec`` of one element's output) where it names it, and the options that differ from their defaults; one
    that has the option `CHUNK` gets a chunk that depends on the case. ``apply_ragged`` takes its place where the
    lengths of results differ from element to element; without it the mapper takes no such results. ``rewrite`` names
    the workload's rewrite that is called on the whole batch, in place of ``apply``.

    Of its ``modes``, those in ``default_modes`` are what "default" stands for. ``unsupported`` says of modes in a
    sentence why they cannot work, ``one_shape`` why elements and results need one shape. ``steps``, of which forecasts
    are made, is how it goes through the batch. ``side_effects`` is how often an op that
    asserts, prints or assigns runs; a mapper that does not say is not measured where there is one.

    ``element`` is which of the workload's element functions is mapped; a ``numpy_element`` gets variables as arrays.
    ``arrays``: the batch is handed over as NumPy arrays, not tensors. ``compiled``: the element function is a
    ``tf.function`` of its own, made once; an option ``jit_compile`` makes it one under XLA, for any mapper.
    """

    slug: str
    title: str
    summary: str
    apply: Callable[..., Any] | None = None
    modes: tuple[str, ...] = MODES
    default_modes: tuple[str, ...] = MODES
    options: tuple[Option, ...] = ()
    rewrite: str | None = None
    order: int = 100  # place in lists and grids; ties go by slug
    steps: Steps = "while"
    element: Literal["element", "numpy_element"] = "element"
    arrays: bool = False
    compiled: bool = False
    unsupported: Mapping[str, str] = field(default_factory=dict)
    apply_ragged: Callable[..., Any] | None = None
    one_shape: Mapping[str, str] = field(default_factory=dict)
    side_effects: Literal["per element", "once"] | None = None

    @property
    def memory(self) -> Literal["events", "events_with_numpy", "tracemalloc"]:
        if self.arrays:
            return "tracemalloc"
        return "events" if self.element == "element" else "events_with_numpy"

    @property
    def takes_elements(self) -> bool:
        """True if it can map a further element function of a workload in place of ``element``."""
        return self.apply is not None and self.element == "element"


@dataclass(frozen=True)
class Strategy:
    """A mapper in a mode, with its options (defaults left out)."""

    mapper: str
    mode: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def element(self) -> str | None:
        """The name of the workload's further element function that is mapped; None for ``element`` itself."""
        return self.options.get(ELEMENT)

    @property
    def slug(self) -> str:
        """``mapper.mode``, then ``?option=value&…`` with keys sorted and defaults left out."""
        values = {key: str(value).lower() if isinstance(value, bool) else value for key, value in self.options.items()}
        pairs = "&".join(f"{key}={value}" for key, value in sorted(values.items()))
        return f"{self.mapper}.{self.mode}{'?' if pairs else ''}{pairs}"
