"""Derives what is known of a function that comes as bare code, by executing it in a process for that alone.

In the order in which it happens: the code is executed, the elements are made, the function is called on a few of them
and traced, and it is tried in float64. Whatever the code does wrong becomes a `Refused` with one sentence and the line.
"""

import contextlib
import inspect
import io
import linecache
import resource
import signal
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec.structs import replace

from measure.subject import counting, effects
from measure.subject.correctness import precision
from measure.subject.errors import shorten
from measure.subject.messages import Spec
from strategies import conversions, own_script
from workloads.discovery import without_addresses
from workloads.functions import Facts, Given, leaves_to_wire
from workloads.spec import Leaf, leaves

# The file name under which the code is executed: tracebacks name it, and AutoGraph finds the text by it.
NAME = "<your code>"
# The code may take so long, the elements and the function together.
LIMIT_S = 15.0
# What the process may take beside what it has: elements that need more are made smaller.
MOST_BYTES = 4 * 2**30
_MOST_SENTENCE = 500
# So many elements, evenly spread, and the shortest and the longest show whether the shapes of results differ.
_SPREAD = 8
# Of the values of a result, those that move most do not count: one that is rounded to a whole number may jump. Beyond
# the most, a function tells more of its roundings than of its elements.
_QUANTILE, _MOST_CONDITION = 0.9, 1_000.0
_REFERENCES = {
    "float64": "Results are compared with the function itself, run slice by slice in float64.",
    "own": "Results are compared with the function itself, run slice by slice in its own dtypes.",
    "given": "Results are compared with the reference that was given.",
}


class Refused(Exception):
    """The function cannot be measured: the text says in one sentence why, and names the line where there is one."""


class _Names(msgspec.Struct):
    TITLE: Annotated[str, msgspec.Meta(max_length=80, pattern=r"\A.*\Z")] = ""
    PRESETS: Annotated[dict[str, dict[str, Annotated[int, msgspec.Meta(ge=1)]]], msgspec.Meta(max_length=20)] = {}


def derive(spec: Spec) -> Facts:
    """Return what is known of a function at a size, both in ``spec``; sizes that are left out have their defaults.
    Raises `Refused`."""
    import tensorflow as tf

    given = spec.given
    assert given is not None
    # The functions whose source scripts hold find TensorFlow there.
    vars(conversions)["tf"] = vars(own_script)["tf"] = tf
    limit_memory()
    with time_limit():
        module = _executed(given, spec.seed)
        try:
            names = msgspec.convert(vars(module), _Names)
        except msgspec.ValidationError as error:
            raise Refused(f'TITLE is a text, and PRESETS are sizes, as {{"Small": {{"batch": 10}}}}: {error}') from None
        with refusing("the code"):
            function = getattr(module, given.function)
        elems, sizes, parameters = _elements(module, given, spec)
        if own_script.may_draw(given):
            again, _, _ = _elements(_executed(given, spec.seed), given, spec)
            if not _equal(elems, again):
                raise Refused(
                    f"{given.elems} gives other elements in each process: seed its random numbers, as in "
                    "np.random.default_rng(0)"
                )
        facts = _facts(given, function, elems)
    is_called = callable(getattr(module, given.elems))
    about = {"title": names.TITLE, "presets": names.PRESETS}
    return replace(facts, size=sizes, is_called=is_called, parameters=parameters, **about)


# --- bounds for the code, all of this process, which ends afterwards --------------------------------------------------


@contextlib.contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn what the code raises into `Refused`, with the last of its lines, or ``what`` was done where none is."""
    try:
        yield
    except Refused:
        raise
    except BaseException as error:
        sentence = f"{type(error).__name__}: {shorten(str(error))}"
        if isinstance(error, MemoryError):
            sentence = f"more than {MOST_BYTES >> 30} GiB are needed: make it smaller"
        elif isinstance(error, SystemExit):
            sentence = f"it exits ({error.code!r})"
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == NAME]
        where = f"line {lines[-1]}" if lines else what
        raise Refused(without_addresses(f"{where}: {sentence}")[:_MOST_SENTENCE]) from None


def limit_memory() -> None:
    """Bound what is mapped beside what is there; where the system does not tell that, nothing is bounded."""
    with contextlib.suppress(OSError), open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + MOST_BYTES, resource.RLIM_INFINITY))


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Have what takes too long raise TimeoutError where it is. Code that never comes back to Python is ended with its
    process, by who waits for it."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"still running after {LIMIT_S:.0f} s: give fewer or smaller elements")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


# --- the code and its elements ---------------------------------------------------------------------------------------


def execute(code: str, filename: str, name: str) -> types.ModuleType:
    """The module that results from the code. AutoGraph and pickle find it by its name, and `inspect` finds the text. It
    has no ``__file__``: AutoGraph would look that file up again, and forget the text where there is none."""
    module = sys.modules[name] = types.ModuleType(name)
    linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)
    exec(compile(code, filename, "exec"), module.__dict__)
    return module


def _executed(given: Given, seed: int) -> types.ModuleType:
    import tensorflow as tf

    exec(own_script.seeds(given, seed), {"tf": tf, "np": np})
    with refusing("the code"):
        return execute(given.code, NAME, "mapbench_own")


def _elements(module: types.ModuleType, given: Given, spec: Spec) -> tuple[Any, dict[str, int], list[str]]:
    """The elements as tensors, the sizes, and the parameters that the function of the elements is called with: the
    whole numbers among them are sizes."""
    import tensorflow as tf

    with refusing(given.elems):
        made = getattr(module, given.elems)
        parameters = inspect.signature(made).parameters.values() if callable(made) else ()
        defaults = {one.name: one.default for one in parameters if type(one.default) is int or one.name == "seed"}
        sizes = {name: spec.size.get(name, default) for name, default in defaults.items() if name != "seed"}
        if callable(made):
            made = made(**{name: sizes.get(name, spec.seed) for name in defaults})
        elems = conversions.tensors(made)
    parts = tf.nest.flatten(elems)
    lengths = {leaf.shape[0] if leaf.shape.rank else 0 for leaf in parts}
    if len(lengths) != 1 or 0 in lengths:
        shapes = ", ".join(str(leaf.shape) for leaf in parts) or "none"
        raise Refused(
            f"{given.elems} has no first axis to map over, with one length from 1 on in all its parts: the shapes are "
            f"{shapes}"
        )
    batch = spec.size.get("batch", sizes.get("batch", lengths.pop()))
    return elems, {**sizes, "batch": batch}, list(defaults)


# --- what the function is and does -----------------------------------------------------------------------------------


def _facts(given: Given, function: Callable[..., Any], elems: Any) -> Facts:
    import tensorflow as tf

    def element(place: int) -> Any:
        return tf.nest.map_structure(lambda leaf: leaf[place], elems)

    def mapped(x: Any) -> Any:
        """The function as strategies map it: with dense results."""
        if (result := function(x)) is None:
            raise Refused(f"{given.function} returns None: is a `return` missing?")
        return conversions.made_dense(result)

    parts = tf.nest.flatten(elems)
    ragged = [leaf.row_lengths().numpy() for leaf in parts if isinstance(leaf, tf.RaggedTensor)]
    lengths = np.sum(ragged, axis=0) if ragged else np.zeros(parts[0].shape[0])
    first = element(int(np.abs(lengths - lengths.mean()).argmin()))  # one of typical length
    with contextlib.redirect_stdout(io.StringIO()) as printed, refusing(f"{given.function} of one element"):
        output, counted = counting.count(mapped, first)
        changes = not _equal(output, mapped(first))
        moves = condition(mapped, first, output)
        places = np.linspace(0, len(lengths) - 1, _SPREAD).round().astype(int)
        some = sorted({int(lengths.argmin()), int(lengths.argmax()), *map(int, places)})
        result = _of_results(given.function, [function(element(place)) for place in some])
    ops, captured_bytes, untraced = _graph(mapped, first)
    draws, of_effects, unsupported = effects.of(
        ops or counted.op_types, changes=changes, prints=bool(printed.getvalue())
    )
    reference = "shapes" if changes or draws else _reference(given, mapped, first, output)
    one_of_elems = tf.nest.map_structure(_of_batch, elems)

    notes = [_REFERENCES[reference]] if reference in _REFERENCES else []
    if any(leaf.sparse for leaf in leaves(result)):
        notes.append(
            "Its result is a tf.SparseTensor or tf.IndexedSlices: each strategy makes those of an element dense, and "
            "dense values are compared."
        )
    for nest, what in (
        (one_of_elems, "The lengths of its elements differ"),
        (result, "Its results have no fixed shape"),
    ):
        if conversions.is_ragged(nest):
            notes.append(
                f"{what}: a batch of them is a tf.RaggedTensor, and strategies that need one shape, as "
                "tf.vectorized_map and XLA do, cannot work."
            )
    notes += of_effects
    if untraced:
        notes.append(f"It cannot be traced ({untraced}): only eager strategies that call it one by one can work.")
    if counted.unknown:
        notes.append(f"The work of {', '.join(counted.unknown)} is not known: the limit is of bytes alone.")
    return Facts(
        size={},
        element=leaves_to_wire(one_of_elems),
        result=leaves_to_wire(result),
        dtype=next((leaf.dtype for leaf in parts if leaf.dtype.is_floating), parts[0].dtype).name,
        reference=reference,
        flops=counted.flops,
        ops=max(1, counted.ops),
        batched_temporary_bytes=counted.batched_temporary_bytes,
        depth=round(max(1, counted.depth) * moves**2),  # tolerances grow with its root
        variable_bytes=captured_bytes,
        notes=notes,
        unsupported=unsupported,
        unknown_work=counted.unknown or msgspec.UNSET,
    )


def condition(function: Callable[[Any], Any], element: Any, output: Any) -> float:
    """Return how many times as far results move as elements, where these move in their last bit; at least 1.
    ``output``: the function's result for ``element``, a nest of tensors. Only floating-point numbers count.

    The error of a computation is at most its condition times what its roundings amount to (Higham, "Accuracy and
    Stability of Numerical Algorithms", 2002, section 1.6): where neighbouring pixels are interpolated at places that
    are computed, or a system of equations is solved, right results differ by far more than the roundings on their way.
    """
    import tensorflow as tf

    rng = np.random.default_rng(0)

    def moved(leaf: Any) -> Any:
        if not leaf.dtype.is_floating or isinstance(leaf, tf.RaggedTensor):
            return leaf
        signs = rng.choice([-1.0, 1.0], size=leaf.shape)
        return leaf * tf.cast(1.0 + signs * precision(leaf.dtype.name)[0], leaf.dtype)

    def distance(first: Any, second: Any) -> float:
        """In epsilons of the dtype, relative to what the values amount to."""
        if not first.dtype.is_floating or first.shape != second.shape or not np.size(first):
            return 0.0
        epsilon, tiny, _ = precision(first.dtype.name)
        values, others = np.asarray(first, np.float64), np.asarray(second, np.float64)
        with np.errstate(invalid="ignore"):
            moves = np.quantile(np.abs(others - values), _QUANTILE) / max(np.sqrt(np.mean(values**2)), tiny) / epsilon
        return float(np.nan_to_num(moves, posinf=0.0))

    other = function(tf.nest.map_structure(moved, element))
    distances = map(distance, tf.nest.flatten(output), tf.nest.flatten(other))
    return min(_MOST_CONDITION, max(1.0, *distances))


def _graph(function: Callable[..., Any], element: Any) -> tuple[set[str], int, str]:
    """The types of all ops that a trace of the function has, the bytes of what it captures, and why it cannot be
    traced, empty where it can."""
    import tensorflow as tf

    try:
        concrete = tf.function(function).get_concrete_function(element)
    except Exception as error:
        return set(), 0, shorten(without_addresses(str(error)))
    graph = concrete.graph.as_graph_def()
    nodes = [*graph.node, *(node for one in graph.library.function for node in one.node_def)]
    held = [outer for outer, _ in concrete.graph.captures if outer.dtype != tf.resource]
    bytes_ = [leaf.dtype.size * leaf.shape.num_elements() for leaf in (*held, *concrete.graph.variables)]
    return {node.op for node in nodes}, sum(bytes_), ""


def _reference(given: Given, function: Callable[..., Any], element: Any, output: Any) -> str:
    """How right results come about, for a function whose results do not change from call to call."""
    import tensorflow as tf

    if given.reference:
        return "given"
    can_be_wider = any(leaf.dtype.is_floating and leaf.dtype != tf.float64 for leaf in tf.nest.flatten(element))
    shows_digits = any(leaf.dtype == tf.string for leaf in tf.nest.flatten(output))  # more of wider numbers
    if shows_digits or not can_be_wider:
        return "own"
    try:
        wider = function(own_script.in_float64(element))
    except Exception:  # ops that take one dtype only, or variables of another
        return "own"
    pairs = [
        (tf.convert_to_tensor(a), tf.convert_to_tensor(b)) for a, b in zip(_flat(output), _flat(wider), strict=True)
    ]
    is_wider = all(b.dtype == tf.float64 for a, b in pairs if a.dtype.is_floating)
    return "float64" if is_wider and all(a.shape == b.shape for a, b in pairs) else "own"


def _equal(one: Any, other: Any) -> bool:
    def same(a: Any, b: Any) -> bool:
        a, b = np.asarray(a), np.asarray(b)
        # Text is compared as such, numbers by their bits: NaN is NaN.
        return a.shape == b.shape and (a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes())

    return all(same(*pair) for pair in zip(_flat(one), _flat(other), strict=True))


def _flat(nest: Any) -> list[Any]:
    """The tensors of a nest, of ragged ones their values and row splits."""
    import tensorflow as tf

    return tf.nest.flatten(nest, expand_composites=True)


# --- its shapes ------------------------------------------------------------------------------------------------------


def _of_batch(leaf: Any) -> Leaf:
    import tensorflow as tf

    values = leaf.flat_values if isinstance(leaf, tf.RaggedTensor) else leaf
    return _leaf(tuple(leaf.shape[1:]), leaf.dtype.name, int(tf.size(values)) / leaf.shape[0])


def _of_results(function: str, results: Sequence[Any]) -> Any:
    """The nest of `Leaf` that results of several elements fit: an axis in which they differ has no fixed length."""
    import tensorflow as tf

    def of_one(leaf: Any) -> Leaf:
        if isinstance(leaf, tf.RaggedTensor):
            return _leaf(tuple(leaf.shape), leaf.dtype.name, int(tf.size(leaf.flat_values)))
        is_sparse = isinstance(leaf, tf.SparseTensor | tf.IndexedSlices)
        if not is_sparse and not isinstance(leaf, tf.Tensor | tf.Variable | np.ndarray | np.generic | int | float):
            raise Refused(
                f"{function} returns a value of type {type(leaf).__name__}: a tensor, or a tuple, list or dict of "
                "tensors is needed"
            )
        exact = tf.convert_to_tensor(conversions.made_dense(leaf))
        return Leaf(tuple(exact.shape), exact.dtype.name, is_sparse)

    def of_all(*same: Any) -> Leaf:
        parts = [of_one(leaf) for leaf in same]
        if len({(len(leaf.shape), leaf.dtype) for leaf in parts}) > 1:
            shapes = dict.fromkeys(f"{leaf.dtype} ({', '.join(map(str, leaf.sides))})" for leaf in parts)
            raise Refused(
                f"the result of {function} differs from element to element ({', then '.join(shapes)}): a batch needs "
                "one dtype and one number of axes"
            )
        shape = tuple(
            sides[0] if len(set(sides)) == 1 else None for sides in zip(*(leaf.shape for leaf in parts), strict=True)
        )
        values = float(np.mean([leaf.values for leaf in parts]))
        return _leaf(shape, parts[0].dtype, values, parts[0].sparse)

    return tf.nest.map_structure(of_all, *results)


def _leaf(shape: tuple[int | None, ...], dtype: str, values: float, sparse: bool = False) -> Leaf:
    """A leaf whose lengths are such that it has so many values."""
    if None not in shape:
        return Leaf(shape, dtype, sparse)
    fixed = float(np.prod([side for side in shape if side is not None]))
    return Leaf(shape, dtype, sparse, length=(values / fixed) ** (1 / shape.count(None)) if fixed else 0.0)
