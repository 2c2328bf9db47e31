"""Live functions and arrays as code that another process can execute.

A function whose source can be had goes as source, with the imports, constants and functions that it uses: that is what
a person can read in the run. One of a library is imported. Any other (a lambda, a closure, one that holds live
tensors) goes as cloudpickle has it.
"""

import ast
import base64
import builtins
import inspect
import json
import operator
import re
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
_IMPORT = re.compile("(import|from) .+")  # of one line


class NotSendable(ValueError):
    """A function or its elements cannot be handed to another process: the message names what and why."""

    def __init__(self, message: str) -> None:
        super().__init__(without_addresses(message))


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
    code = _Code()
    names = {
        "function": code.add(fn, "fn"),
        "elems": code.add(elems, "elems") if callable(elems) else code.add_elements(elems),
        "batched": code.add(batched, "batched") if batched is not None else "",
        "reference": code.add(reference, "reference") if reference is not None else "",
    }
    if title:
        code.add_constant("TITLE", str(title))
    if presets:
        try:
            code.add_constant(
                "PRESETS", json.loads(json.dumps(presets, default=operator.index))
            )  # no numbers of NumPy's
        except TypeError as error:
            raise NotSendable(f"presets are not valid: {error}") from None
    text = code.text()
    if len(text) > MOST_CODE:
        raise NotSendable(
            f"the functions hold {len(text) / 2**20:.0f} MiB of values, and at most {MOST_CODE / 2**20:.0f} MiB can be "
            "sent: make them in a function's module, or hand them over as elements"
        )
    return Given(code=text, **names)


class _Code:
    """Code that grows: what each function needs stands before it."""

    def __init__(self) -> None:
        self._blocks: dict[str, str] = {}  # by the name that each binds

    def text(self) -> str:
        imports = [block for block in self._blocks.values() if _IMPORT.fullmatch(block)]
        others = [block for block in self._blocks.values() if not _IMPORT.fullmatch(block)]
        return "\n\n\n".join(["\n".join(imports), *others]) + "\n"

    def add(self, fn: Callable[..., Any], role: str) -> str:
        """Add a function; the name that it has in the code: that of its role where its own is none or is taken."""
        before = dict(self._blocks)
        try:
            return self._add_source(fn)
        except _NoSource:
            self._blocks = before  # what was added on the way is not needed
        name = getattr(fn, "__name__", "")
        name = name if name.isidentifier() and name not in self._blocks else role
        while name in self._blocks:
            name += "_"
        if (place := _importable(fn)) is not None:
            self._bind(name, f"from {place[0]} import {place[1]} as {name}")
            return name
        data = base64.b64encode(_pickled(fn, role)).decode()
        for module in ("base64", "cloudpickle"):
            self._bind(module, f"import {module}")
        lines = "\n".join(f'    "{line}"' for line in textwrap.wrap(data, 100))
        quoted = "".join(f"# {line}\n" for line in _text(fn).splitlines()[:_MOST_QUOTED])
        self._bind(name, f"{quoted}{name} = cloudpickle.loads(base64.b64decode(\n{lines}\n))")
        return name

    def add_elements(self, elems: Any) -> str:
        """Keep arrays or ragged tensors, or a nest of dicts and tuples of them, in a file; their name in the code."""
        if (held := _bytes(elems)) > elems_file.MOST_BYTES:  # before they are copied
            raise NotSendable(f"the elements hold {elems_file.too_many(held)}")
        arrays: list[np.ndarray] = []
        nest = _nest(elems, arrays)
        if "tensorflow." in nest:
            self._bind("tensorflow", "import tensorflow")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "elems.npz")
            np.savez(file, **{str(place): array for place, array in enumerate(arrays)})  # type: ignore[arg-type]
            self._bind(elems_file.NAME, f"{elems_file.store(str(file))}\n{elems_file.NAME} = {nest}")
        return elems_file.NAME

    def add_constant(self, name: str, value: Any) -> None:
        """Add what is said beside the functions. They may have a constant of that name, if it is the same."""
        try:
            self._bind(name, f"{name} = {value!r}")
        except _NoSource:
            message = f"a function uses a {name} of its own: give no {name.lower()}, or rename that"
            raise NotSendable(message) from None

    def _bind(self, name: str, block: str) -> None:
        """Add the code that binds a name. Raises `_NoSource` where another has it, such as the constant of another
        module."""
        if self._blocks.setdefault(name, block) != block:
            raise _NoSource

    def _add_source(self, fn: Callable[..., Any]) -> str:
        """Add a function as source, after whatever it uses. Raises `_NoSource`."""
        source, name = _text(fn), getattr(fn, "__name__", "")
        # No lambda with a name, no closure, and nothing of a library, which is imported.
        if not source.startswith(("def ", "@")) or not inspect.isfunction(fn) or fn.__closure__ or _importable(fn):
            raise _NoSource
        if name not in self._blocks:
            self._bind(name, source)  # before what it uses, since that may use it
            for used in sorted(globals_of(compile(source, name, "exec")) - {name}):
                if used in fn.__globals__:
                    self._add_value(used, fn.__globals__[used])
                elif not hasattr(builtins, used):
                    raise _NoSource
            del self._blocks[name]
        self._bind(name, source)
        return name

    def _add_value(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _is_installed(value):
            self._bind(name, f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else ""))
        elif (place := _importable(value)) is not None:
            self._bind(name, f"from {place[0]} import {place[1]} as {name}")
        elif inspect.isfunction(value) and value.__name__ == name:
            self._add_source(value)
        elif _is_plain(value):
            self._bind(name, f"{name} = {value!r}")
        else:
            raise _NoSource


# --- functions -------------------------------------------------------------------------------------------------------


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
        return module.__name__ in sys.builtin_module_names or module.__name__ in sys.stdlib_module_names
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(Path(file).is_relative_to(place) for place in places)


def _importable(value: Any) -> tuple[str, str] | None:
    """Return the module and the name by which any process can import a value; None where there are none."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    there = sys.modules.get(module or "")
    if module and name and _is_installed(there) and getattr(there, name, None) is value:
        return module, name
    return None


def _is_plain(value: Any) -> bool:
    """True if the value's text is code that gives it."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):  # nan, say, or an object
        return False


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
        what = ": ".join([type(error).__name__, *str(error).splitlines()[:1]])
        raise NotSendable(f"{role} cannot be sent to another process: {what}") from None
    finally:
        if is_own:
            cloudpickle.unregister_pickle_by_value(module)


# --- elements --------------------------------------------------------------------------------------------------------


def _bytes(nest: Any) -> int:
    """The bytes of the arrays in a nest."""
    parts = nest.values() if isinstance(nest, dict) else nest if isinstance(nest, tuple | list) else ()
    return getattr(nest, "nbytes", 0) + sum(map(_bytes, parts))


def _nest(part: Any, arrays: list[np.ndarray]) -> str:
    """The code of a nest of the file's arrays; those are added to ``arrays``, whose places are their names there."""
    if isinstance(part, dict):
        if not all(isinstance(name, str) for name in part):
            raise NotSendable(f"the elements have the keys {', '.join(map(repr, part))}: text is needed")
        return "{" + ", ".join(f"{name!r}: {_nest(one, arrays)}" for name, one in part.items()) + "}"
    if isinstance(part, tuple):
        return "(" + "".join(f"{_nest(one, arrays)}, " for one in part) + ")"
    if hasattr(part, "nested_row_splits"):  # a tf.RaggedTensor
        splits = ", ".join(_held(one, arrays) for one in part.nested_row_splits)
        return f"tensorflow.RaggedTensor.from_nested_row_splits({_held(part.flat_values, arrays)}, [{splits}])"
    try:
        if isinstance(part, list) and len({np.shape(row) for row in part}) > 1:  # a list of arrays of other lengths
            splits = _held(np.cumsum([0, *map(len, part)]), arrays)
            values = _held(np.concatenate([np.asarray(row) for row in part]), arrays)
            return f"tensorflow.RaggedTensor.from_row_splits({values}, {splits})"
    except (TypeError, ValueError):
        raise NotSendable("the elements differ in more than their lengths: give them as a tf.RaggedTensor") from None
    return _held(part, arrays)


def _held(part: Any, arrays: list[np.ndarray]) -> str:
    array = np.asarray(part)
    if array.dtype == object and not all(isinstance(one, bytes | str) for one in array.flat):
        raise NotSendable(f"the elements hold {type(array.flat[0]).__name__}: numbers or text are needed")
    arrays.append(array.astype("S") if array.dtype.kind in "OU" else array)
    return f'{elems_file.NAME}["{len(arrays) - 1}"]'
