"""Executes one file of somebody's own and answers for it: ``python -m workloads.reader PACKAGE FILE``.

`workloads.own` starts it. What the file prints goes nowhere, and whatever it does, it does here.
"""

import faulthandler
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from workloads import own

# Ends by itself without questions; and where a question takes so long that whoever asked must have ended.
_IDLE_S = 10.0
_LONGEST_S = 2 * max(own.LOAD_LIMIT_S, own.ANSWER_LIMIT_S)


def main(package: str, path: str) -> None:
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    numbers: dict[Callable[..., Any], int] = {}
    takes: dict[Callable[..., Any], list[Any]] = {}

    def described(value: Any) -> Any:
        if not inspect.isfunction(value):
            return _plain(value)
        return own.describe(value, numbers.setdefault(value, len(numbers)))

    # In native code, so that it works whatever the file does.
    faulthandler.dump_traceback_later(_LONGEST_S, exit=True)
    try:
        item = importlib.import_module(package).load_file(path)
        takes = _takes(item)
        offer = own.Offer(item=msgspec.Raw(msgspec.msgpack.encode(item, enc_hook=described)))
    except own.DiscoveryError as error:
        offer = own.Offer(error=str(error))
    except BaseException as error:
        offer = own.Offer(error=f"{path} cannot be loaded: {type(error).__name__}: {error}")
    own.send(answers, msgspec.msgpack.encode(offer))
    while True:
        faulthandler.dump_traceback_later(_IDLE_S, exit=True)
        data = own.receive(questions)
        if data is None:
            os._exit(0)
        faulthandler.dump_traceback_later(_LONGEST_S, exit=True)
        question = msgspec.msgpack.decode(data, type=own.Question)
        function = list(numbers)[question.number]
        try:
            arguments = msgspec.convert(question.arguments, tuple[*takes.get(function, [])])  # type: ignore[misc]
            value = function(*arguments, **question.keywords)
            wire = own.leaves_to_wire(value) if question.nest else value
            answer = own.Answer(value=msgspec.Raw(msgspec.msgpack.encode(wire, enc_hook=_plain)))
        except BaseException as error:
            answer = own.Answer(error=f"{type(error).__name__}: {error}")
        own.send(answers, msgspec.msgpack.encode(answer))


def _takes(item: Any) -> dict[Callable[..., Any], list[Any]]:
    """Return the types of the positional arguments of each function that an item holds, as far as they are known."""
    types: dict[Callable[..., Any], list[Any]] = {}
    for name, hint in get_type_hints(type(item)).items():
        value = getattr(item, name)
        if inspect.isfunction(value):
            # Either a Callable, or one or None.
            callable_hint = next(one for one in (hint, *get_args(hint)) if get_origin(one) is Callable)
            takes, _ = get_args(callable_hint)
            types[value] = [] if takes is ... else takes
    return types


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is no plain data")


if __name__ == "__main__":
    main(*sys.argv[1:])
