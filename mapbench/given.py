"""Live functions and arrays as code that another process can execute.

A function whose source can be had goes as source, with the imports, constants and functions that it uses. One of a
library is imported. Any other (a lambda, a closure, one that holds live tensors) goes as cloudpickle has it.
"""

import ast
import base64
import builtins
import contextlib
import inspect
import operator
import sys
import sysconfig
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from workloads import elems_file
from workloads.discovery import without_addresses
from workloads.functions import MOST_CODE, Given
from workloads.sources import globals_of

_MOST_QUOTED = 20  # lines of a function's source, as a comment
_IMPORTS = ("import ", "from ")


class NotSendable(ValueError):
    """A function or its elements cannot be handed to another process: the message names what and why."""


class _NoSource(Exception):
    """Something that a function uses has no source that could be sent."""


def given(
    fn: Callable[..., Any],
    elems: Any,
    batched: Callable[..., Any] | None,
    reference: Callable[..., Any] | None,
    title: str = "",
    presets: Mapping[str, Mapping[str, int]] | None = None,
) -> Given:
    """Return live functions and elements as a `Given`. Raises `NotSendable` with a sentence."""
    blocks: dict[str, str] = {}
    if title:
        blocks["TITLE"] = f"TITLE = {str(title)!r}"
    if presets:
        try:  # no numbers of NumPy's
            plain = {name: {key: operator.index(one) for key, one in size.items()} for name, size in presets.items()}
        except (TypeError, AttributeError) as error:
            raise NotSendable(f"presets are not valid: {error}") from None
        blocks["PRESETS"] = f"PRESETS = {plain!r}"
    function = _add(blocks, fn, "fn")
    names = {
        "elems": _add(blocks, elems, "elems") if callable(elems) else _add_elements(blocks, elems),
        "batched": _add(blocks, batched, "batched") if batched is not None else "",
        "reference": _add(blocks, reference, "reference") if reference is not None else "",
    }
    imports = [block for block in blocks.values() if block.startswith(_IMPORTS) and "\n" not in block]
    others = [block for block in blocks.values() if block not in imports]
    text = "\n\n\n".join(["\n".join(imports), *others]) + "\n"
    if len(text) > MOST_CODE:
        raise NotSendable(
            f"the functions hold {len(text) / 2**20:.0f} MiB of values, and at most {MOST_CODE / 2**20:.0f} MiB can be "
            "sent: make them in a function's module, or hand them over as elements"
        )
    return Given(code=text, function=function, **names)


# --- functions -------------------------------------------------------------------------------------------------------
# The code grows by blocks, each under the name that it binds; what a function needs stands before it.


def _add(blocks: dict[str, str], fn: Callable[..., Any], role: str) -> str:
    """Add a function; the name that it has in the code: that of its role where its own is none or is taken."""
    with contextlib.suppress(_NoSource):
        blocks |= _with_source(blocks, fn)
        return fn.__name__
    name = getattr(fn, "__name__", "")
    name = name if name.isidentifier() and name not in blocks else role
    while name in blocks:
        name += "_"
    if (place := _importable(fn)) is not None:
        blocks[name] = f"from {place[0]} import {place[1]} as {name}"
        return name
    lines = base64.encodebytes(_pickled(fn, role)).decode()
    quoted = "".join(f"# {line}\n" for line in _text(fn).splitlines()[:_MOST_QUOTED])
    blocks |= {module: f"import {module}" for module in ("base64", "cloudpickle")}
    blocks[name] = f'{quoted}{name} = cloudpickle.loads(base64.b64decode("""\n{lines}"""))'
    return name


def _with_source(blocks: Mapping[str, str], fn: Callable[..., Any]) -> dict[str, str]:
    """The blocks, with a function as source behind whatever it uses. Raises `_NoSource`, also where another has a name,
    such as the constant of another module."""
    source, name = _text(fn), getattr(fn, "__name__", "")
    # No lambda with a name, no closure, and nothing of a library, which is imported.
    if not source.startswith(("def ", "@")) or not inspect.isfunction(fn) or fn.__closure__ or _importable(fn):
        raise _NoSource
    if name in blocks:
        if blocks[name] != source:
            raise _NoSource
        return dict(blocks)
    made = {**blocks, name: source}  # before what it uses, since that may use it
    for used in sorted(globals_of(compile(source, name, "exec")) - {name}):
        if used not in fn.__globals__:
            if not hasattr(builtins, used):
                raise _NoSource
        elif (block := _line(used, value := fn.__globals__[used])) is not None:
            if made.setdefault(used, block) != block:
                raise _NoSource
        elif getattr(value, "__name__", "") == used:
            made = _with_source(made, value)
        else:
            raise _NoSource
    made[name] = made.pop(name)
    return made


def _line(name: str, value: Any) -> str | None:
    """The line that binds a value that has one: a module, what can be imported, and a constant."""
    if isinstance(value, ModuleType) and _is_installed(value):
        return f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else "")
    if (place := _importable(value)) is not None:
        return f"from {place[0]} import {place[1]} as {name}"
    try:
        return f"{name} = {value!r}" if ast.literal_eval(repr(value)) == value else None
    except (ValueError, SyntaxError):  # nan, say, or an object
        return None


def _text(fn: Callable[..., Any]) -> str:
    """The source of a function; empty where it has none."""
    try:
        return textwrap.dedent(inspect.getsource(fn)).strip("\n")
    except (OSError, TypeError):
        return ""


def _is_installed(module: ModuleType | None) -> bool:
    """True if every process of this interpreter can import the module: it is Python's own or a package's."""
    if module is None or module.__name__ == "__main__":
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ in sys.stdlib_module_names
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(Path(file).is_relative_to(place) for place in places)


def _importable(value: Any) -> tuple[str, str] | None:
    """Return the module and the name by which any process can import a value; None where there are none."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    there = sys.modules.get(module or "")
    if module and name and _is_installed(there) and getattr(there, name, None) is value:
        return module, name
    return None


def _pickled(fn: Callable[..., Any], role: str) -> bytes:
    import cloudpickle

    module = inspect.getmodule(fn)
    # What a module of the caller's own holds cannot be imported by other processes.
    is_own = module is not None and module.__name__ != "__main__" and not _is_installed(module)
    try:
        if is_own:
            cloudpickle.register_pickle_by_value(module)
        return cloudpickle.dumps(fn)
    except Exception as error:  # whatever the objects that it holds may raise
        what = without_addresses(": ".join([type(error).__name__, *str(error).splitlines()[:1]]))
        raise NotSendable(f"{role} cannot be sent to another process: {what}") from None
    finally:
        if is_own:
            cloudpickle.unregister_pickle_by_value(module)


# --- elements --------------------------------------------------------------------------------------------------------


def _add_elements(blocks: dict[str, str], elems: Any) -> str:
    """Keep arrays or ragged tensors, or a nest of dicts and tuples of them, in a file; their name in the code."""
    arrays: list[np.ndarray] = []
    nest = _nest(elems, arrays)
    if (held := sum(array.nbytes for array in arrays)) > elems_file.MOST_BYTES:
        raise NotSendable(f"the elements hold {elems_file.too_many(held)}")
    if "tensorflow." in nest:
        blocks["tensorflow"] = "import tensorflow"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "elems.npz")
        np.savez(file, **{str(place): array for place, array in enumerate(arrays)})  # type: ignore[arg-type]
        blocks[elems_file.NAME] = f"{elems_file.store(str(file))}\n{elems_file.NAME} = {nest}"
    return elems_file.NAME


def _nest(part: Any, arrays: list[np.ndarray]) -> str:
    """The code of a nest of the file's arrays; those are added to ``arrays``, whose places are their names there."""
    if isinstance(part, dict):
        if not all(isinstance(name, str) for name in part):
            raise NotSendable(f"the elements have the keys {', '.join(map(repr, part))}: text is needed")
        return "{" + ", ".join(f"{name!r}: {_nest(one, arrays)}" for name, one in part.items()) + "}"
    if isinstance(part, tuple):
        return "(" + "".join(f"{_nest(one, arrays)}, " for one in part) + ")"
    values, splits = part, []
    if hasattr(part, "nested_row_splits"):  # a tf.RaggedTensor
        values, splits = part.flat_values, part.nested_row_splits
    elif isinstance(part, list):  # perhaps of arrays of other lengths
        try:
            if len({np.shape(row) for row in part}) > 1:
                values = np.concatenate([np.asarray(row) for row in part])
                splits = [np.cumsum([0, *map(len, part)])]
        except (TypeError, ValueError):
            message = "the elements differ in more than their lengths: give them as a tf.RaggedTensor"
            raise NotSendable(message) from None
    if splits:
        rows = ", ".join(_held(one, arrays) for one in splits)
        return f"tensorflow.RaggedTensor.from_nested_row_splits({_held(values, arrays)}, [{rows}])"
    return _held(values, arrays)


def _held(part: Any, arrays: list[np.ndarray]) -> str:
    array = np.asarray(part)
    if array.dtype == object and not all(isinstance(one, bytes | str) for one in array.flat):
        raise NotSendable(f"the elements hold {type(array.flat[0]).__name__}: numbers or text are needed")
    arrays.append(array.astype("S") if array.dtype.kind in "OU" else array)
    return f'{elems_file.NAME}["{len(arrays) - 1}"]'
