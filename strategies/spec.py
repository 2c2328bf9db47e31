"""The data of a mapper and of a strategy: metadata, source text and a forecast. Nothing here needs TensorFlow."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workloads.spec import Option

MODES = ("eager", "graph", "xla")
# The option of a strategy that names another of the workload's element functions.
ELEMENT = "element"
# The elements of a chunk, which `strategies.chunks` chooses where nobody does.
CHUNK = Option(
    "chunk",
    default=0,
    help="elements vectorised together; 0 takes what a cache or the memory limit holds, or all where that saves little",
    least=0,
    most=1_000_000,
)
PARALLEL_ITERATIONS = Option(
    "parallel_iterations",
    default=10,  # what tf.map_fn takes in a graph where none is given
    help="iterations that may be in flight at once in a graph; eager and XLA ignore it",
    least=1,
    most=1024,
)
# The element function as a `tf.function` of its own, wherever a mapper has this option.
JIT_COMPILE = Option("jit_compile", default=False, help="compile the element function with XLA", values=(False, True))
# How a mapper goes through the batch: element by element, from Python, in a loop of TensorFlow's, through tf.data or by
# calls back into Python; with each op on the whole batch or on chunks; or by a rewrite.
Steps = Literal["python", "while", "pipeline", "called_back", "vectorised", "chunks", "whole"]


@dataclass(frozen=True)
class Estimate:
    """A forecast for one strategy on a CPU.

    ``peak_bytes``: peak of requested bytes during one steady call, inputs not counted, outputs counted. ``events``:
    allocations and deallocations of one steady call.
    """

    peak_bytes: int
    first_call_s: float
    latency_s: float
    events: int


@dataclass(frozen=True)
class Mapper:
    """A way to apply ``fn`` to every slice along axis 0.

    ``apply(fn, elems[, signature], **options)`` is TensorFlow code whose source goes into a strategy's script; this
    process never calls it. It gets ``signature`` (a nest of ``tf.TensorSpec`` of one element's output) where it names
    it, and the options that differ from their defaults; one that has the option `CHUNK` gets a chunk that depends on
    the case. Functions of its file that it calls go into the script with it. ``rewrite`` names the workload's rewrite
    that is called on the whole batch in place of ``apply(element, …)``; such a mapper has no ``apply``. Of its
    ``modes``, those in ``default_modes`` are what "default" stands for; ``unsupported`` says of modes in a sentence why
    they cannot work. ``steps``, of which forecasts are made, is how it goes through the batch.

    ``apply_ragged`` takes the place of ``apply`` where the lengths of results differ from element to element; without
    it the mapper takes no such results. ``one_shape`` says of modes in a sentence why elements and results need one
    shape.

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
    helpers: Any = ()  # of files from before helpers were found by their names

    @property
    def memory(self) -> Literal["events", "events_with_numpy", "tracemalloc"]:
        """How the memory of a call is seen."""
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
        if not self.options:
            return f"{self.mapper}.{self.mode}"
        pairs = (
            f"{key}={str(value).lower() if isinstance(value, bool) else value}"
            for key, value in sorted(self.options.items())
        )
        return f"{self.mapper}.{self.mode}?{'&'.join(pairs)}"
