"""The sources of functions that go into scripts, and the functions of the same file that they call."""

import dis
import functools
import inspect
import textwrap
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any


@functools.cache
def source_of(function: Callable[..., Any]) -> str:
    """The text of a function; of one that stands in for another, that one's."""
    return getattr(function, "__source__", None) or textwrap.dedent(inspect.getsource(function))


def helpers_of(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The functions of its file that a function calls by their names, each after those that it calls itself."""
    if hasattr(function, "__helpers__"):
        return list(function.__helpers__)
    ordered: list[Callable[..., Any]] = []
    begun = {function}

    def add(caller: Callable[..., Any]) -> None:
        named = [caller.__globals__.get(name) for name in globals_of(caller.__code__)]
        helpers = [one for one in named if isinstance(one, FunctionType) and one not in begun]
        # Not in the order of a set, which is another one in each process: a script is known by its digest.
        for helper in sorted(helpers, key=lambda one: one.__code__.co_firstlineno):
            if helper not in begun:
                begun.add(helper)
                add(helper)
                ordered.append(helper)

    add(function)
    return ordered


def globals_of(code: CodeType) -> set[str]:
    """Names that the code, or code nested in it, looks up outside of functions and does not bind itself."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    names -= bound_by(code)
    return names.union(*(globals_of(constant) for constant in code.co_consts if isinstance(constant, CodeType)))


def bound_by(code: CodeType) -> set[str]:
    """Names that the code binds outside of functions."""
    return {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_NAME"}
