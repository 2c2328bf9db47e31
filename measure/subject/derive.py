"""Derives what is known of a function that comes as bare code, by executing it in a process for that alone.

In the order in which it happens: the code is executed, the elements are made, the function is called on a few of them
and traced, and it is tried in float64. Whatever the code does wrong becomes a `Refused` with one sentence and the line.
"""

import contextlib
import inspect
import io
import linecache
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET

from measure.subject import conditioning, counting, effects, limits
from measure.subject.errors import shorten
from measure.subject.limits import NAME, Refused, refusing
from measure.subject.messages import Spec
from strategies import own_script
from strategies.conversions import is_ragged, made_dense
from workloads.discovery import without_addresses
from workloads.functions import Facts, Given, has_named, leaves_from_wire, leaves_to_wire
from workloads.spec import Leaf, leaves

# Elements on which a function is called to see whether shapes differ, beside the shortest and the longest.
_SPREAD = 8
_REFERENCES = {
    "float64": "Results are compared with the function itself, run slice by slice in float64.",
    "own": "Results are compared with the function itself, run slice by slice in its own dtypes.",
    "given": "Results are compared with the reference that was given.",
}


class _Names(msgspec.Struct):
    """The names by which the code may describe itself."""

    TITLE: Annotated[str, msgspec.Meta(max_length=80, pattern=r"\A.*\Z")] = ""
    PRESETS: Annotated[dict[str, dict[str, Annotated[int, msgspec.Meta(ge=1)]]], msgspec.Meta(max_length=20)] = {}


def derive(spec: Spec) -> Facts:
    """Return what is known of a function at a size, both in ``spec``; sizes that are left out have their defaults.
    Raises `Refused`."""
    limits.limit_memory()
    assert spec.given is not None
    with limits.time_limit():
        return _derived(spec.given, spec.size, spec.seed)


def _derived(given: Given, size: Mapping[str, int], seed: int) -> Facts:
    import tensorflow as tf

    helpers = _helpers()
    module = _executed(given, seed)
    try:
        names = msgspec.convert(vars(module), _Names)
    except msgspec.ValidationError as error:
        raise Refused(f'TITLE is a text, and PRESETS are sizes, as {{"Small": {{"batch": 10}}}}: {error}') from None
    with refusing("the code"):
        function = getattr(module, given.function)
    elems, sizes, parameters = _elements(module, given, size, seed, helpers)
    if own_script.may_draw(given):
        again, _, _ = _elements(_executed(given, seed), given, size, seed, helpers)
        if not _equal(elems, again):
            raise Refused(
                f"{given.elems} gives other elements in each process: seed its random numbers, as in "
                "np.random.default_rng(0)"
            )

    def element(place: int) -> Any:
        return tf.nest.map_structure(lambda leaf: leaf[place], elems)

    def mapped(x: Any) -> Any:
        """The function as strategies map it: with dense results."""
        return helpers.made_dense(function(x))

    lengths = _lengths(elems)
    first = element(int(np.abs(lengths - lengths.mean()).argmin()))  # one of typical length
    places = np.linspace(0, len(lengths) - 1, _SPREAD).round().astype(int)
    with contextlib.redirect_stdout(io.StringIO()) as printed, refusing(f"{given.function} of one element"):
        output, counted = counting.count(mapped, first)
        changes = not _equal(output, mapped(first))
        moves = conditioning.condition(mapped, first, output)
        results = [
            _of_result(given.function, function(element(place)), helpers)
            for place in map(int, {lengths.argmin(), lengths.argmax(), *places})
        ]
        result = _merged(given.function, results)
    ops, captured_bytes, untraced = _graph(mapped, first)
    dtypes = [leaf.dtype for leaf in tf.nest.flatten(elems)]
    does = effects.of(ops or counted.op_types, changes=changes, prints=bool(printed.getvalue()))
    facts = Facts(
        size=sizes,
        parameters=parameters,
        is_called=callable(getattr(module, given.elems)),
        element=_of_elements(elems),
        result=result,
        dtype=next((dtype for dtype in dtypes if dtype.is_floating), dtypes[0]).name,
        reference="shapes" if changes or does.draws else _reference(given, mapped, first, output, helpers),
        flops=counted.flops,
        ops=max(1, counted.ops),
        batched_temporary_bytes=counted.batched_temporary_bytes,
        depth=round(max(1, counted.depth) * moves**2),  # tolerances grow with its root
        variable_bytes=captured_bytes,
        unsupported=does.unsupported,
        title=names.TITLE,
        presets=names.PRESETS,
        unknown_work=list(counted.unknown) or UNSET,
    )
    return msgspec.structs.replace(facts, notes=_notes(facts, does, untraced))


def _notes(facts: Facts, does: effects.Effects, untraced: str) -> list[str]:
    """Sentences on what was derived, and on what that means for mapping."""
    element, result = leaves_from_wire(facts.element), leaves_from_wire(facts.result)
    notes = [_REFERENCES[facts.reference]] if facts.reference in _REFERENCES else []
    if has_named(result):
        notes.append("Its result has named tuples in it: each strategy gives plain tuples of the same parts.")
    if any(leaf.sparse for leaf in leaves(result)):
        notes.append(
            "Its result is a tf.SparseTensor or tf.IndexedSlices: each strategy makes those of an element dense, and "
            "dense values are compared."
        )
    for nest, what in ((element, "The lengths of its elements differ"), (result, "Its results have no fixed shape")):
        if is_ragged(nest):
            notes.append(
                f"{what}: a batch of them is a tf.RaggedTensor, and strategies that need one shape, as "
                "tf.vectorized_map and XLA do, cannot work."
            )
    notes += does.notes
    if untraced:
        notes.append(f"It cannot be traced ({untraced}): only eager strategies that call it one by one can work.")
    if isinstance(facts.unknown_work, list):
        notes.append(f"The work of {', '.join(facts.unknown_work)} is not known: the limit is of bytes alone.")
    return notes


# --- the code and its elements ---------------------------------------------------------------------------------------


def _helpers() -> types.ModuleType:
    """The helpers of own scripts, ready to be called here: their source is what scripts hold."""
    parts = (*own_script.HELPERS, own_script.in_float64, made_dense)
    module = types.ModuleType("mapbench_helpers")
    source = ["import numpy as np\nimport tensorflow as tf", *(inspect.getsource(part) for part in parts)]
    exec("\n\n".join(source), module.__dict__)
    return module


def _executed(given: Given, seed: int) -> types.ModuleType:
    """The module that results from the code. It is found by name, as AutoGraph and pickle need it."""
    import tensorflow as tf

    module = sys.modules["mapbench_own"] = types.ModuleType("mapbench_own")
    linecache.cache[NAME] = (len(given.code), None, given.code.splitlines(keepends=True), NAME)
    exec(own_script.seeds(given, seed), {"tf": tf, "np": np})
    with refusing("the code"):
        exec(compile(given.code, NAME, "exec"), module.__dict__)
    return module


def _elements(
    module: types.ModuleType, given: Given, size: Mapping[str, int], seed: int, helpers: Any
) -> tuple[Any, dict[str, int], list[str]]:
    """The elements as tensors, the sizes, and the parameters that the function of the elements is called with: the
    whole numbers among them are sizes."""
    import tensorflow as tf

    with refusing(given.elems):
        made = getattr(module, given.elems)
        parameters = inspect.signature(made).parameters.values() if callable(made) else ()
        defaults = {one.name: one.default for one in parameters if type(one.default) is int or one.name == "seed"}
        sizes = {name: size.get(name, default) for name, default in defaults.items() if name != "seed"}
        if callable(made):
            made = made(**{name: sizes.get(name, seed) for name in defaults})
        elems = helpers.tensors(made)
    parts = tf.nest.flatten(elems)
    lengths = {leaf.shape[0] if leaf.shape.rank else 0 for leaf in parts}
    if len(lengths) != 1 or 0 in lengths:
        shapes = ", ".join(str(leaf.shape) for leaf in parts) or "none"
        raise Refused(
            f"{given.elems} has no first axis to map over, with one length from 1 on in all its parts: the shapes are "
            f"{shapes}"
        )
    batch = size.get("batch", sizes.get("batch", lengths.pop()))
    return elems, {**sizes, "batch": batch}, list(defaults)


# --- its shapes ------------------------------------------------------------------------------------------------------


def _lengths(elems: Any) -> np.ndarray:
    """The lengths of elements, where these differ."""
    import tensorflow as tf

    parts = tf.nest.flatten(elems)
    ragged = [leaf.row_lengths().numpy() for leaf in parts if isinstance(leaf, tf.RaggedTensor)]
    return np.sum(ragged, axis=0) if ragged else np.zeros(parts[0].shape[0])


def _of_elements(elems: Any) -> Any:
    """The wire of a nest of `Leaf` of one element, from a batch of them."""
    import tensorflow as tf

    def one(leaf: Any) -> Leaf:
        values = leaf.flat_values if isinstance(leaf, tf.RaggedTensor) else leaf
        return _leaf(tuple(leaf.shape[1:]), leaf.dtype.name, int(tf.size(values)) / leaf.shape[0])

    return leaves_to_wire(tf.nest.map_structure(one, elems))


def _of_result(function: str, output: Any, helpers: Any) -> Any:
    """The result of one element as a nest of `Leaf`."""
    import tensorflow as tf

    def one(leaf: Any) -> Leaf:
        if isinstance(leaf, tf.RaggedTensor):
            return _leaf(tuple(leaf.shape), leaf.dtype.name, int(tf.size(leaf.flat_values)))
        is_sparse = isinstance(leaf, tf.SparseTensor | tf.IndexedSlices)
        if not is_sparse and not isinstance(leaf, tf.Tensor | tf.Variable | np.ndarray | np.generic | int | float):
            raise Refused(
                f"{function} returns a value of type {type(leaf).__name__}: a tensor, or a tuple, list or dict of "
                "tensors is needed"
            )
        exact = tf.convert_to_tensor(helpers.made_dense(leaf))
        return Leaf(tuple(exact.shape), exact.dtype.name, is_sparse)

    return tf.nest.map_structure(one, output)


def _merged(function: str, results: Sequence[Any]) -> Any:
    """The wire of what all results fit: an axis in which they differ has no fixed length."""
    import tensorflow as tf

    def one(*parts: Leaf) -> Leaf:
        first = parts[0]
        for leaf in parts:
            if (len(leaf.shape), leaf.dtype) != (len(first.shape), first.dtype):
                shapes = (f"{part.dtype} ({', '.join(map(str, part.sides))})" for part in (first, leaf))
                raise Refused(
                    f"the result of {function} differs from element to element ({', then '.join(shapes)}): "
                    "a batch needs one dtype and one number of axes"
                )
        axes = zip(*(leaf.shape for leaf in parts), strict=True)
        shape = tuple(sides[0] if len(set(sides)) == 1 else None for sides in axes)
        return _leaf(shape, first.dtype, float(np.mean([leaf.values for leaf in parts])), first.sparse)

    return leaves_to_wire(tf.nest.map_structure(one, *results))


def _leaf(shape: tuple[int | None, ...], dtype: str, values: float, sparse: bool = False) -> Leaf:
    """A leaf whose lengths are such that it has so many values."""
    if None not in shape:
        return Leaf(shape, dtype, sparse)
    fixed = float(np.prod([side for side in shape if side is not None]))
    return Leaf(shape, dtype, sparse, length=(values / fixed) ** (1 / shape.count(None)) if fixed else 0.0)


# --- what the function is and does -----------------------------------------------------------------------------------


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


def _reference(given: Given, function: Callable[..., Any], element: Any, output: Any, helpers: Any) -> str:
    """How right results come about, for a function whose results do not change from call to call."""
    import tensorflow as tf

    if given.reference:
        return "given"
    if any(leaf.dtype == tf.string for leaf in tf.nest.flatten(output)):  # it shows digits, more of wider numbers
        return "own"
    if not any(leaf.dtype.is_floating and leaf.dtype != tf.float64 for leaf in tf.nest.flatten(element)):
        return "own"
    try:
        wider = function(helpers.in_float64(element))
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
    """The tensors of a nest: of ragged ones their values and row splits."""
    import tensorflow as tf

    return [
        part
        for leaf in tf.nest.flatten(nest)
        for part in ((*leaf.nested_row_splits, leaf.flat_values) if isinstance(leaf, tf.RaggedTensor) else (leaf,))
    ]
