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
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from measure.subject import conditioning, counting, effects, shapes
from measure.subject.errors import shorten
from measure.subject.limits import NAME, Refused, limits, time_limit, told
from measure.subject.messages import Spec
from strategies import own_script
from strategies.conversions import made_dense
from strategies.layout import ScriptError
from workloads.discovery import without_addresses
from workloads.functions import Facts, Given

_SEED_NAMES = ("seed",)
_MOST_TITLE, _MOST_PRESETS = 80, 20


def derive(spec: Spec, give_up: Callable[[str], None]) -> Facts:
    """Return what is known of a function at a size, both in ``spec``; sizes that are left out have their defaults.

    ``give_up`` is told the sentence if the code takes longer than `LIMIT_S`, in another thread. Raises `Refused`.
    """
    with limits(), time_limit(give_up):
        assert spec.given is not None
        return _derived(spec.given, spec.size, spec.seed)


def _derived(given: Given, size: Mapping[str, int], seed: int) -> Facts:
    import tensorflow as tf

    helpers = _tools()
    module = _executed(given, seed)
    function = _named(module, given.function, "the function")
    if not callable(function):
        raise Refused(f"{given.function} is of type {type(function).__name__}: a function of one element is needed")
    _check_arguments(given.function, function)
    elems, sizes, parameters = _elements(module, given, size, seed, helpers)
    if own_script.may_draw(given):
        again, _, _ = _elements(_executed(given, seed), given, size, seed, helpers)
        if not _equal(elems, again):
            raise Refused(
                f"{given.elems} gives other elements in each process: seed its random numbers, as in "
                "np.random.default_rng(0)"
            )

    def element(index: int) -> Any:
        return tf.nest.map_structure(lambda leaf: leaf[index], elems)

    raw: list[Any] = []

    def dense(x: Any) -> Any:
        """The function as strategies map it: with dense results."""
        raw.append(function(x))
        return helpers.made_dense(raw[-1])

    asked, place = f"{given.function} of one element", shapes.typical(elems)
    first = element(place)
    with contextlib.redirect_stdout(io.StringIO()) as printed, told(asked):
        output, counted = counting.count(dense, first)
    results = [shapes.of_result(given.function, raw[0], helpers.made_dense)]
    ops, captured_bytes, untraced, is_fixed = _graph(dense, shapes.specs(elems))
    with told(asked):
        for index in shapes.spread(elems, is_fixed) - {place}:
            results.append(shapes.of_result(given.function, function(element(index)), helpers.made_dense))
        changes = not _equal(output, dense(first))
        moves = conditioning.condition(dense, first, output)
    result = shapes.merged(given.function, results)
    does = effects.of(ops or counted.op_types, changes=changes, prints=bool(printed.getvalue()))
    facts = Facts(
        size=sizes,
        parameters=parameters,
        is_called=callable(getattr(module, given.elems)),
        element=shapes.of_elements(elems),
        result=result,
        dtype=_main_dtype(elems),
        reference="shapes" if changes or does.draws else _reference(given, dense, first, output, helpers),
        flops=counted.flops,
        ops=max(1, counted.ops),
        functions=counted.functions,
        temporary_bytes=counted.temporary_bytes,
        batched_temporary_bytes=counted.batched_temporary_bytes,
        depth=round(max(1, counted.depth) * moves**2),  # tolerances grow with its root
        variable_bytes=captured_bytes,
        draws=does.draws,
        asserts=does.asserts,
        effects=does.others,
        unsupported={**does.unsupported, **shapes.unsupported(raw[0], result)},
        title=_title(module),
        presets=_presets(module, sizes),
        unknown_work=list(counted.unknown) or UNSET,
    )
    return replace(facts, notes=effects.notes(facts, does, untraced))


def _check_arguments(name: str, function: Callable[..., Any]) -> None:
    """Raise `Refused` where a function cannot be called with one argument."""
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise Refused(f"{name} is called with one element: {error}; an element of several parts is one tuple") from None
    except ValueError:  # a function in C does not tell
        return


# --- the code and its elements ---------------------------------------------------------------------------------------


def _executed(given: Given, seed: int) -> types.ModuleType:
    """The module that results from the code. It is found by name, as AutoGraph and pickle need it."""
    import tensorflow as tf

    try:
        own_script.check(given)
    except ScriptError as error:
        raise Refused(str(error)) from None
    module = types.ModuleType("mapbench_own")
    linecache.cache[NAME] = (len(given.code), None, given.code.splitlines(keepends=True), NAME)
    sys.modules[module.__name__] = module
    exec(own_script.seeds(given, seed), {"tf": tf, "np": np})
    with told("the code"):
        exec(compile(given.code, NAME, "exec"), module.__dict__)
    return module


def _elements(
    module: types.ModuleType, given: Given, size: Mapping[str, int], seed: int, helpers: Any
) -> tuple[Any, dict[str, int], list[str]]:
    """The elements as tensors, the sizes, and the parameters that the function of the elements is called with."""
    import tensorflow as tf

    made = _named(module, given.elems, "elems")
    parameters = _parameters(given.elems, made) if callable(made) else {}
    sizes = {name: default for name, default in parameters.items() if name not in _SEED_NAMES}
    for name in size:
        if name not in (valid := {*sizes, "batch"}):
            raise Refused(f"{given.elems} has no size {name!r}: its sizes are {', '.join(sorted(valid))}")
    sizes |= {name: value for name, value in size.items() if name in sizes}
    if callable(made):
        with told(f"{given.elems}()"):
            made = made(**{name: sizes.get(name, seed) for name in parameters})
    try:
        elems = helpers.tensors(made)
    except MemoryError:
        raise
    except Exception as error:
        raise Refused(f"{given.elems} gives no tensors: {shorten(without_addresses(str(error)))}") from None
    leaves = tf.nest.flatten(elems)
    if not leaves or any(leaf.shape.rank == 0 for leaf in leaves):
        raise Refused(f"{given.elems} has no first axis to map over: give an array of elements")
    lengths = sorted({leaf.shape[0] for leaf in leaves})
    if len(lengths) > 1:
        raise Refused(f"the parts of {given.elems} have {' and '.join(map(str, lengths))} elements: give as many of "
                      "each")  # fmt: skip
    if not lengths[0]:
        raise Refused(f"{given.elems} is empty: at least one element is needed")
    return elems, {**sizes, "batch": size.get("batch", sizes.get("batch", lengths[0]))}, list(parameters)


def _parameters(name: str, made: Callable[..., Any]) -> dict[str, int]:
    """Name → default of the parameters that are sizes or the seed. Raises `Refused` where another one is needed."""
    parameters = {}
    for parameter in inspect.signature(made).parameters.values():
        if isinstance(parameter.default, int) and not isinstance(parameter.default, bool):
            parameters[parameter.name] = parameter.default
        elif parameter.name in _SEED_NAMES:
            parameters[parameter.name] = 0
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        ):
            raise Refused(
                f"{name} asks for {parameter.name}: give it a default, as in {parameter.name}=100, to make it a size"
            )
    return parameters


def _title(module: types.ModuleType) -> str:
    title = getattr(module, "TITLE", "")
    if not isinstance(title, str) or not title.isprintable() or len(title) > _MOST_TITLE:
        raise Refused(f"TITLE is not valid: a text of at most {_MOST_TITLE} signs is needed")
    return title


def _presets(module: types.ModuleType, sizes: Mapping[str, int]) -> dict[str, dict[str, int]]:
    presets = getattr(module, "PRESETS", {})
    if not isinstance(presets, dict) or len(presets) > _MOST_PRESETS:
        raise Refused(
            f'PRESETS is not valid: at most {_MOST_PRESETS} names with sizes, as {{"Small": {{"batch": 10}}}}'
        )
    for name, preset in presets.items():
        is_valid = isinstance(name, str) and isinstance(preset, dict) and set(preset) <= set(sizes)
        if not is_valid or not all(type(value) is int and value > 0 for value in preset.values()):
            raise Refused(f"PRESETS[{name!r}] is not valid: whole numbers from 1 for {', '.join(sizes)} are needed")
    return presets


def _named(module: types.ModuleType, name: str, what: str) -> Any:
    if not hasattr(module, name):
        raise Refused(f"the code has no {name!r}, which was named as {what}, once it has run")
    return getattr(module, name)


def _main_dtype(elems: Any) -> str:
    import tensorflow as tf

    dtypes = [leaf.dtype for leaf in tf.nest.flatten(elems)]
    return next((dtype for dtype in dtypes if dtype.is_floating), dtypes[0]).name


# --- what the function is and does -----------------------------------------------------------------------------------


def _graph(function: Callable[..., Any], spec: Any) -> tuple[set[str], int, str, bool]:
    """The types of all ops that a trace of the function has, the bytes of what it captures, why it cannot be traced,
    empty where it can, and whether its results have a fixed shape there."""
    import tensorflow as tf

    try:
        concrete = tf.function(function).get_concrete_function(spec)
    except Exception as error:
        return set(), 0, shorten(without_addresses(str(error))), False
    graph = concrete.graph.as_graph_def()
    nodes = [*graph.node, *(node for one in graph.library.function for node in one.node_def)]
    held = [outer for outer, _ in concrete.graph.captures if outer.dtype != tf.resource]
    bytes_ = [leaf.dtype.size * leaf.shape.num_elements() for leaf in (*held, *concrete.graph.variables)]
    is_fixed = all(leaf.shape.is_fully_defined() for leaf in tf.nest.flatten(concrete.structured_outputs))
    return {node.op for node in nodes}, sum(bytes_), "", is_fixed


def _reference(given: Given, function: Callable[..., Any], element: Any, output: Any, helpers: Any) -> str:
    """Return how right results come about, for a function whose results do not change from call to call."""
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
    floats = [
        (tf.convert_to_tensor(a), tf.convert_to_tensor(b)) for a, b in zip(_flat(output), _flat(wider), strict=False)
    ]
    is_wider = all(b.dtype == tf.float64 for a, b in floats if a.dtype.is_floating)
    return "float64" if is_wider and all(a.shape == b.shape for a, b in floats) else "own"


def _equal(one: Any, other: Any) -> bool:
    def same(a: Any, b: Any) -> bool:
        a, b = np.asarray(a), np.asarray(b)
        # Text is compared as such, numbers by their bits: NaN is NaN.
        return a.shape == b.shape and (a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes())

    return all(same(*pair) for pair in zip(_flat(one), _flat(other), strict=True))


def _flat(nest: Any) -> list[Any]:
    """The tensors of a nest: of ragged ones their values and row splits."""
    import tensorflow as tf

    parts = (
        tf.nest.flatten(leaf, expand_composites=isinstance(leaf, tf.RaggedTensor)) for leaf in tf.nest.flatten(nest)
    )
    return [part for leaf in parts for part in leaf]


def _tools() -> types.ModuleType:
    """The helpers of own scripts, ready to be called here: their source is what scripts hold."""
    parts = (*own_script.HELPERS, own_script.in_float64, made_dense)
    module = types.ModuleType("mapbench_helpers")
    exec(
        "\n\n".join(["import numpy as np\nimport tensorflow as tf", *(inspect.getsource(part) for part in parts)]),
        module.__dict__,
    )
    return module
