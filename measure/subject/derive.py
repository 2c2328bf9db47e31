"""Derives what is known of a function that comes as bare code, by executing it in a process for that alone.

In the order in which it happens: the code is executed, the elements are made, the function is called on a few of them
and traced, and it is tried in float64. Whatever the code does wrong becomes a `Refused` with one sentence and the line.
"""

import builtins
import contextlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from msgspec import UNSET

from measure.subject import conditioning, counting, effects, shapes, state
from measure.subject.errors import shorten
from measure.subject.limits import NAME, Refused, limits, time_limit, told
from measure.subject.messages import Spec
from strategies import own_script
from strategies.conversions import made_dense
from strategies.layout import ScriptError
from workloads.functions import Facts, Given
from workloads.own import without_addresses

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

    asked = f"{given.function} of one element"
    held = state.of_python(module)
    raw: list[Any] = []

    def dense(x: Any) -> Any:
        """The function as strategies map it: with dense results."""
        raw.append(function(x))
        return helpers.made_dense(raw[-1])

    first = shapes.typical(elems)
    with _prints() as printed, told(asked):
        output, counted = counting.count(dense, element(first))
    changed = sorted(name for name, text in state.of_python(module).items() if held.get(name, text) != text)
    results = [shapes.of_result(given.function, raw[0], helpers.made_dense)]
    ops, captured_bytes, untraced, is_fixed = _graph(dense, shapes.specs(elems))
    with told(asked):
        for index in shapes.telling(elems, is_fixed) - {first}:
            results.append(shapes.of_result(given.function, function(element(index)), helpers.made_dense))
        again = dense(element(first))
        moves = conditioning.condition(dense, element(first), output)
    result = shapes.merged(given.function, results)
    everything = {*ops, *counted.op_types}
    # Two draws may be the same by chance. What is drawn without a state is the same each time, unless the function
    # keeps the seed.
    draws = any(map(effects.draws, everything))
    is_same = _equal(output, again) and not draws
    draws = draws or (not is_same and any(op.startswith("Stateless") for op in everything))
    asserts = effects.ASSERTIONS & everything
    does = effects.done(
        ops or counted.op_types, prints=bool(printed), changed=changed, keeps_state=not (is_same or draws)
    )
    facts = Facts(
        size=sizes,
        parameters=parameters,
        is_called=callable(getattr(module, given.elems)),
        element=shapes.of_elements(elems),
        result=result,
        dtype=_main_dtype(elems),
        reference=_reference(given, dense, element(first), output, helpers) if is_same else "shapes",
        flops=counted.flops,
        ops=max(1, counted.ops),
        functions=counted.functions,
        temporary_bytes=counted.temporary_bytes,
        batched_temporary_bytes=counted.batched_temporary_bytes,
        depth=round(max(1, counted.depth) * moves**2),  # tolerances grow with its root
        variable_bytes=captured_bytes,
        draws=draws,
        asserts=bool(asserts),
        effects=bool(does),
        title=_title(module),
        presets=_presets(module, sizes),
        unknown_work=list(counted.unknown) or UNSET,
    )
    notes = effects.notes(facts, does, asserts, untraced)
    return _with(
        facts,
        notes=notes,
        unsupported={**effects.unsupported(ops), **shapes.unsupported(raw[0], result)},
    )


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
    import linecache

    try:
        own_script.check(given)
        code = compile(given.code, NAME, "exec")
    except SyntaxError as error:
        raise Refused(f"line {error.lineno}: {error.msg}") from None
    except (ScriptError, ValueError) as error:
        raise Refused(str(error)) from None
    except (RecursionError, MemoryError):  # of the parser, which does not say where
        raise Refused("the code is nested too deeply for Python: split its longest expression") from None
    module = types.ModuleType("mapbench_own")
    linecache.cache[NAME] = (len(given.code), None, given.code.splitlines(keepends=True), NAME)
    sys.modules[module.__name__] = module
    exec(own_script.seeds(given, seed), {"tf": _tensorflow(), "np": np})
    with told("the code"):
        exec(code, module.__dict__)
    return module


def _elements(
    module: types.ModuleType, given: Given, size: Mapping[str, int], seed: int, helpers: Any
) -> tuple[Any, dict[str, int], list[str]]:
    """The elements as tensors, the sizes, and the parameters that the function of the elements is called with."""
    import tensorflow as tf

    made = _named(module, given.elems, "elems")
    defaults: dict[str, int] = {}
    parameters: list[str] = []
    if callable(made):
        for name, parameter in inspect.signature(made).parameters.items():
            value = parameter.default
            if isinstance(value, int) and not isinstance(value, bool):
                parameters.append(name)
                if name not in _SEED_NAMES:
                    defaults[name] = value
            elif name in _SEED_NAMES:
                parameters.append(name)
            elif value is parameter.empty and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                raise Refused(f"{given.elems} asks for {name}: give it a default, as in {name}=100, to make it a size")
        _check_size(given, size, {*defaults, "batch"})
        asked = {**defaults, **{name: value for name, value in size.items() if name in defaults}}
        keywords = {name: asked.get(name, seed) for name in parameters}
        with told(f"{given.elems}()"):
            made = made(**keywords)
        defaults = asked
    else:
        _check_size(given, size, {"batch"})
    try:
        elems = helpers.tensors(made)
    except MemoryError:
        raise
    except Exception as error:
        raise Refused(f"{given.elems} gives no tensors: {shorten(without_addresses(str(error)))}") from None
    leaves = tf.nest.flatten(elems)
    if not leaves or any(leaf.shape.rank == 0 for leaf in leaves):
        raise Refused(f"{given.elems} has no first axis to map over: give an array of elements")
    lengths = {leaf.shape[0] for leaf in leaves}
    if len(lengths) > 1:
        raise Refused(
            f"the parts of {given.elems} have {' and '.join(map(str, sorted(lengths)))} elements: give as many of each"
        )
    (length,) = lengths
    if not length:
        raise Refused(f"{given.elems} is empty: at least one element is needed")
    batch = size.get("batch", defaults.get("batch", length))
    return elems, {**defaults, "batch": batch}, parameters


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
        known = isinstance(name, str) and isinstance(preset, dict) and set(preset) <= set(sizes)
        if not known or not all(type(value) is int and value > 0 for value in preset.values()):
            raise Refused(f"PRESETS[{name!r}] is not valid: whole numbers from 1 for {', '.join(sizes)} are needed")
    return presets


def _check_size(given: Given, size: Mapping[str, int], known: set[str]) -> None:
    for name in size:
        if name not in known:
            raise Refused(f"{given.elems} has no size {name!r}: its sizes are {', '.join(sorted(known))}")


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


def _with(facts: Facts, **changes: Any) -> Facts:
    from msgspec.structs import replace

    return replace(facts, **changes)


def _tensorflow() -> Any:
    import tensorflow as tf

    return tf


def _tools() -> types.ModuleType:
    """The helpers of own scripts, ready to be called here: their source is what scripts hold."""
    parts = (*own_script.HELPERS, own_script.in_float64, made_dense)
    module = types.ModuleType("mapbench_helpers")
    exec(
        "\n\n".join(["import numpy as np\nimport tensorflow as tf", *(inspect.getsource(part) for part in parts)]),
        module.__dict__,
    )
    return module


@contextlib.contextmanager
def _prints() -> Iterator[list[str]]:
    """Collect the fact that the code prints from Python."""
    printed: list[str] = []
    original = builtins.print

    def watching(*args: Any, **kwargs: Any) -> None:
        if not printed:
            printed.append("")
        original(*args, **kwargs)

    builtins.print = watching
    try:
        yield printed
    finally:
        builtins.print = original
