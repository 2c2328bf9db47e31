"""Live functions and arrays as code that another process can execute.

A function whose source can be had goes as source, with the imports, constants and functions that it uses: that is what
a person can read in the run. Any other (a lambda, a closure, one that holds live tensors) goes as cloudpickle has it.
"""

import ast
import base64
import builtins
import inspect
import sys
import sysconfig
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from strategies.script import globals_of
from workloads import elems_file
from workloads.functions import Given

# What a run may hold of pickled values: it goes into the run file.
MOST_PICKLED_BYTES = 2 * 2**20
_PLAIN = (bool, int, float, complex, str, bytes, tuple, type(None))


class NotSendable(ValueError):
    """A function or its elements cannot be handed to another process: the message names what and why."""


class _NoSource(Exception):
    """Something that a function uses has no source that could be sent."""


def given(
    fn: Callable[..., Any], elems: Any, batched: Callable[..., Any] | None, reference: Callable[..., Any] | None
) -> Given:
    """Return live functions and elements as a `Given`. Raises `NotSendable` with a sentence."""
    code = _Code()
    function = code.add(fn, "fn")
    made = code.add(elems, "elems") if callable(elems) else code.add_elements(elems)
    return Given(
        code=code.text(),
        function=function,
        elems=made,
        batched=code.add(batched, "batched") if batched is not None else "",
        reference=code.add(reference, "reference") if reference is not None else "",
    )


class _Code:
    """Code that grows: imports, then whatever each function needs before it."""

    def __init__(self) -> None:
        self._imports: dict[str, None] = {}
        self._blocks: dict[str, str] = {}

    def text(self) -> str:
        return "\n".join(self._imports) + "\n\n\n" + "\n\n\n".join(self._blocks.values()) + "\n"

    def add(self, fn: Callable[..., Any], role: str) -> str:
        """Add a function; the name that it has in the code."""
        imports, blocks = dict(self._imports), dict(self._blocks)
        try:
            return self._add_source(fn)
        except _NoSource:
            # What was added on the way is not needed.
            self._imports, self._blocks = imports, blocks
        name = getattr(fn, "__name__", "")
        name = name if name.isidentifier() and name not in self._blocks else f"pickled_{role}"
        self._imports |= dict.fromkeys(("import base64", "import cloudpickle"))
        lines = "\n".join(f'    "{line}"' for line in textwrap.wrap(base64.b64encode(_pickled(fn, role)).decode(), 100))
        self._blocks[name] = f"{name} = cloudpickle.loads(base64.b64decode(\n{lines}\n))"
        return name

    def add_elements(self, elems: Any) -> str:
        """Add arrays or ragged tensors, or a dict or tuple of them; the name that they have in the code."""
        made = elems_file.NAME
        is_nest = isinstance(elems, dict | tuple)
        parts = elems if isinstance(elems, dict) else dict(enumerate(elems)) if is_nest else {"": elems}
        arrays: dict[str, np.ndarray] = {}
        further = []
        for name, part in parts.items():
            if (values_and_splits := _ragged(part)) is None:
                arrays[str(name)] = _array(part)
                continue
            values, splits = values_and_splits
            arrays |= {f"{name} values": _array(values), **{f"{name} {axis}": one for axis, one in enumerate(splits)}}
            self._imports["import tensorflow"] = None
            popped = ", ".join(f'{made}.pop("{name} {axis}")' for axis in range(len(splits)))
            further.append(
                f'{made}["{name}"] = tensorflow.RaggedTensor.from_nested_row_splits(\n'
                f'    {made}.pop("{name} values"), [{popped}]\n)'
            )
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "elems.npz" if is_nest or further else "elems.npy")
            if is_nest or further:
                np.savez(file, **arrays)  # type: ignore[arg-type]  # no array is named as an option of savez
            else:
                np.save(file, arrays[""])
            lines = [elems_file.kept(str(file)), *further]
        if isinstance(elems, tuple):
            lines.append(f"{made} = tuple({made}[str(place)] for place in range({len(elems)}))")
        elif further and not is_nest:
            lines.append(f'{made} = {made}[""]')
        self._blocks[made] = "\n".join(lines)
        return made

    def _add_source(self, fn: Callable[..., Any]) -> str:
        """Add a function as source, after whatever it uses. Raises `_NoSource`."""
        source, name = _source(fn), fn.__name__
        if name in self._blocks:
            if self._blocks[name] != source:
                raise _NoSource
            return name
        self._blocks[name] = source  # before what it uses, since that may use it
        for used in sorted(globals_of(compile(source, name, "exec")) - {name}):
            if used in fn.__globals__:
                self._add_value(used, fn.__globals__[used])
            elif not hasattr(builtins, used):
                raise _NoSource
        self._blocks[name] = self._blocks.pop(name)
        return name

    def _add_value(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _is_installed(value):
            self._imports[f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else "")] = None
        elif inspect.isfunction(value) and not _is_installed(inspect.getmodule(value)):
            if value.__name__ != name:
                raise _NoSource
            self._add_source(value)
        elif _is_plain(value):
            self._blocks.setdefault(name, f"{name} = {value!r}")
        elif (place := _importable(value)) is not None:
            self._imports[f"from {place[0]} import {place[1]} as {name}"] = None
        else:
            raise _NoSource


def _source(fn: Callable[..., Any]) -> str:
    if not inspect.isfunction(fn) or fn.__closure__ or not fn.__name__.isidentifier():
        raise _NoSource
    try:
        source = textwrap.dedent(inspect.getsource(fn)).strip("\n")
    except (OSError, TypeError):
        raise _NoSource from None
    if not source.startswith(("def ", "@")):  # a lambda with a name, say
        raise _NoSource
    return source


def _is_installed(module: ModuleType | None) -> bool:
    """True if every process of this interpreter can import the module: it is Python's own or a package's."""
    if module is None or module.__name__ == "__main__":
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ in sys.builtin_module_names or module.__name__ in sys.stdlib_module_names
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(Path(file).is_relative_to(place) for place in places)


def _is_plain(value: Any) -> bool:
    """True if the value's text is code that gives it."""
    try:
        return type(value) in _PLAIN and ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError):  # nan, or a tuple that holds something else
        return False


def _importable(value: Any) -> tuple[str, str] | None:
    """Return the module and the name by which any process can import a value; None where there are none."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    there = sys.modules.get(module or "")
    if module and name and _is_installed(there) and getattr(there, name, None) is value:
        return module, name
    return None


def _ragged(part: Any) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """Return the values and row splits of a ``tf.RaggedTensor``, or of a list of arrays whose lengths differ; None for
    anything else."""
    if hasattr(part, "nested_row_splits"):
        return np.asarray(part.flat_values), [np.asarray(one) for one in part.nested_row_splits]
    try:
        if not isinstance(part, list) or len({np.shape(row) for row in part}) <= 1:
            return None
        rows = [np.asarray(row) for row in part]
        return np.concatenate(rows), [np.cumsum([0, *map(len, rows)])]
    except (TypeError, ValueError):
        raise NotSendable("the elements differ in more than their lengths: give them as a tf.RaggedTensor") from None


def _array(part: Any) -> np.ndarray:
    array = np.asarray(part)
    if array.dtype == object:
        if not all(isinstance(one, bytes | str) for one in array.flat):
            raise NotSendable(f"the elements hold {type(array.flat[0]).__name__}: numbers or text are needed")
        array = array.astype("S")
    return array.astype("S") if array.dtype.kind == "U" else array


def _pickled(fn: Callable[..., Any], role: str) -> bytes:
    import cloudpickle

    module = inspect.getmodule(fn)
    # What a module of the caller's own holds cannot be imported by other processes.
    is_own = module is not None and module.__name__ != "__main__" and not _is_installed(module)
    try:
        if is_own:
            cloudpickle.register_pickle_by_value(module)
        data = cloudpickle.dumps(fn)
    except Exception as error:  # whatever the objects that it holds may raise
        raise NotSendable(
            f"{role} cannot be sent to another process: {type(error).__name__}: {str(error).splitlines()[0]}"
        ) from None
    finally:
        if is_own:
            cloudpickle.unregister_pickle_by_value(module)
    if len(data) > MOST_PICKLED_BYTES:
        raise NotSendable(
            f"{role} holds {len(data) / 2**20:.0f} MiB of values, and at most {MOST_PICKLED_BYTES >> 20} MiB "
            "can be sent: make them in the function's module, or hand them over as elements"
        )
    return data
