"""Live functions and arrays as code that another process can execute.

A function whose source can be had goes as source, with the imports, constants and functions that it uses: that is what
a person can read in the run. One of a library goes by its name there. Any other (a lambda, a closure, one that holds
live tensors) goes as cloudpickle has it.
"""

import ast
import base64
import builtins
import inspect
import operator
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from mapbench import elements
from mapbench.elements import NotSendable
from strategies.script import globals_of
from workloads import elems_file
from workloads.functions import Given

# What a run may hold of pickled values: it goes into the run file.
MOST_PICKLED_BYTES = 2 * 2**20
_MOST_QUOTED = 20  # lines of a function's source, as a comment
_PLAIN = (bool, int, float, complex, str, bytes, tuple, type(None))


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
    function = code.add(fn, "fn")
    made = code.add(elems, "elems") if callable(elems) else code.add_elements(elems)
    names = {
        "batched": code.add(batched, "batched") if batched is not None else "",
        "reference": code.add(reference, "reference") if reference is not None else "",
    }
    if title:
        code.add_constant("TITLE", str(title))
    if presets:
        code.add_constant("PRESETS", _numbers(presets))
    return Given(code=code.text(), function=function, elems=made, **names)


class _Code:
    """Code that grows: imports, then whatever each function needs before it."""

    def __init__(self) -> None:
        self._imports: dict[str, None] = {}
        self._blocks: dict[str, str] = {}

    def text(self) -> str:
        return "\n".join(self._imports) + "\n\n\n" + "\n\n\n".join(self._blocks.values()) + "\n"

    def add(self, fn: Callable[..., Any], role: str) -> str:
        """Add a function; the name that it has in the code."""
        if (imported := self._add_imported(fn, role)) is not None:
            return imported
        imports, blocks = dict(self._imports), dict(self._blocks)
        try:
            return self._add_source(fn)
        except _NoSource:
            # What was added on the way is not needed.
            self._imports, self._blocks = imports, blocks
        name = self._free(getattr(fn, "__name__", ""), role)
        self._imports |= dict.fromkeys(("import base64", "import cloudpickle"))
        lines = "\n".join(f'    "{line}"' for line in textwrap.wrap(base64.b64encode(_pickled(fn, role)).decode(), 100))
        self._blocks[name] = f"{_quoted(fn)}{name} = cloudpickle.loads(base64.b64decode(\n{lines}\n))"
        return name

    def _free(self, name: str, role: str) -> str:
        """A name for a function that has this one elsewhere: that of its role where it is none or is taken."""
        imported = {line.split()[-1].partition(".")[0] for line in self._imports}
        name = name if name.isidentifier() and name not in self._blocks and name not in imported else role
        while name in self._blocks or name in imported:
            name += "_"
        return name

    def add_elements(self, elems: Any) -> str:
        """Add arrays or ragged tensors, or a nest of dicts and tuples of them; the name that they have in the code."""
        text = elements.store(elems)
        if "tensorflow." in text:
            self._imports["import tensorflow"] = None
        self._blocks[elems_file.NAME] = text
        return elems_file.NAME

    def add_constant(self, name: str, value: Any) -> None:
        """Add what is said beside the functions. They may have a constant of that name, if it is the same."""
        text = f"{name} = {value!r}"
        if self._blocks.setdefault(name, text) != text:
            raise NotSendable(f"a function uses a {name} of its own: give no {name.lower()}, or rename that")

    def _add_imported(self, fn: Callable[..., Any], role: str) -> str | None:
        """Add a function of a library by its name there; None where it has none."""
        if (place := _place(fn)) is None:
            return None
        module, path = place
        self._imports[f"import {module}"] = None
        name = path.rpartition(".")[2]
        if self._blocks.get(name) == f"{name} = {module}.{path}":
            return name
        # A module may be called as its function is, as in `copy.copy`, and so may a function of another module.
        name = self._free(name, role)
        self._blocks[name] = f"{name} = {module}.{path}"
        return name

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
            text = f"{name} = {value!r}"
            if self._blocks.setdefault(name, text) != text:  # that of another module
                raise _NoSource
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


def _quoted(fn: Callable[..., Any]) -> str:
    """The source of a function that is pickled, as a comment for who reads the code; empty where it has none."""
    try:
        source = textwrap.dedent(inspect.getsource(fn)).strip("\n")
    except (OSError, TypeError):
        return ""
    return "".join(f"# {line}\n" for line in source.splitlines()[:_MOST_QUOTED])


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


def _place(fn: Callable[..., Any]) -> tuple[str, str] | None:
    """Return the module of a library and the path from it to a function; None where there is none. The names by which
    TensorFlow is documented come first: its modules have others."""
    # TensorFlow notes them on what its decorators wrap.
    documented = [("tensorflow", name) for name in getattr(inspect.unwrap(fn), "_tf_api_names", ())]
    named = getattr(fn, "__qualname__", getattr(fn, "__name__", ""))
    for module, path in (*documented, (getattr(fn, "__module__", None) or type(fn).__module__, named)):
        top, _, rest = f"{module}.{path}".partition(".")
        if not path or not _is_installed(sys.modules.get(module)):
            continue
        try:
            if operator.attrgetter(rest)(sys.modules[top]) is fn:
                return module, path
        except (AttributeError, ImportError):  # modules that are loaded when they are needed
            continue
    return None


def _numbers(presets: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Presets as code can have them: NumPy's whole numbers as Python's."""
    try:
        return {
            str(name): {str(size): operator.index(value) for size, value in sizes.items()}
            for name, sizes in presets.items()
        }
    except (AttributeError, TypeError):
        raise NotSendable(
            'presets are not valid: names with sizes in whole numbers are needed, as {"Small": {"batch": 10}}'
        ) from None


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
        what = ": ".join([type(error).__name__, *str(error).splitlines()[:1]])
        raise NotSendable(f"{role} cannot be sent to another process: {what}") from None
    finally:
        if is_own:
            cloudpickle.unregister_pickle_by_value(module)
    if len(data) > MOST_PICKLED_BYTES:
        raise NotSendable(
            f"{role} holds {len(data) / 2**20:.0f} MiB of values, and at most {MOST_PICKLED_BYTES >> 20} MiB "
            "can be sent: make them in the function's module, or hand them over as elements"
        )
    return data
