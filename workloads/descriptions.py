"""Workloads and mappers of a person's own files as data: who measures executes a file, and pages work with its data.

A function whose source goes into scripts is its name, its parameters and its source. One that is asked for metadata is
a table of what it gives for every dtype and option that it names, at the default sizes and with one of them changed;
elsewhere its numbers grow as the power of that size that fits both.
"""

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import msgspec
import numpy as np

from workloads.functions import leaves_from_wire, leaves_to_wire
from workloads.sources import helpers_of, source_of
from workloads.spec import Cost, Workload

# The fields of a workload that are asked for metadata.
_ASKED = ("element_input", "element_output", "output", "variable_leaves", "cost")


# --- where it is executed --------------------------------------------------------------------------------------------


def described(item: Any) -> Any:
    """Return a workload or a mapper as data of JSON. Raises what functions of its file raise, and
    `msgspec.ValidationError` where a field is of another type than its class says."""
    parts = {field.name: getattr(item, field.name) for field in fields(item)}
    if isinstance(item, Workload):
        parts |= _tables(item, parts, {})
        parts["variants"] = {
            name: {
                str(value): {**changes, **_tables(item, changes, {name: value})} for value, changes in by_value.items()
            }
            for name, by_value in item.variants.items()
        }
    data = msgspec.json.decode(msgspec.json.encode(parts, enc_hook=_plain))
    of_data(data, type(item))  # what a page could not make something of is told here
    return data


def _plain(value: Any) -> Any:
    """A number of NumPy's, or a function whose source goes into scripts, as data."""
    if isinstance(value, np.generic):
        return value.item()
    helpers = [_function(helper, {"source": source_of(helper)}) for helper in helpers_of(value)]
    return _function(value, {"source": source_of(value), "helpers": helpers})


def _function(function: Callable[..., Any], more: Mapping[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {
        "name": function.__name__,
        "parameters": [(one.name, one.kind.name, one.default is not one.empty) for one in parameters],
        **more,
    }


def _tables(workload: Workload, parts: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata among the fields of a workload, or of one of its variants, which has these ``options``."""
    asked = {name: parts[name] for name in _ASKED if parts.get(name) is not None}
    return {name: _function(one, {"table": _table(workload, one, options)}) for name, one in asked.items()}


def _table(workload: Workload, function: Callable[..., Any], options: Mapping[str, Any]) -> list[dict[str, Any]]:
    parameters = inspect.signature(function).parameters
    takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    sizes = {one.name: one for one in workload.sizes if takes_all or one.name in parameters}
    size = {name: one.default for name, one in sizes.items()}
    choices: dict[str, tuple[Any, ...]] = {"dtype": workload.dtypes, "seed": (0,)}
    choices |= {one.name: one.values or (one.default,) for one in workload.options}
    choices |= {name: (value,) for name, value in options.items()}
    named = [name for name in choices if name in parameters]

    def result(arguments: Mapping[str, Any]) -> Any:
        given = function(**arguments)
        return given if isinstance(given, Cost) else leaves_to_wire(given)

    rows = []
    for values in itertools.product(*(choices[name] for name in named)):
        chosen = dict(zip(named, values, strict=True))
        changed = {}
        for name, one in sizes.items():
            other = 2 * one.default if 2 * one.default <= one.most else max(one.least, one.default // 2)
            if other not in (0, one.default):
                changed[name] = (one.default, other, result({**chosen, **size, name: other}))
        rows.append({"choices": chosen, "result": result({**chosen, **size}), "changed": changed})
    return rows


# --- where it is shown -----------------------------------------------------------------------------------------------


def of_data(data: Any, kind: type) -> Any:
    """Return the workload or mapper, a ``kind``, that was `described`: its functions only stand in for those of the
    file."""
    item: Any = msgspec.convert(data, kind, dec_hook=_made)
    if not isinstance(item, Workload):
        return item
    types = {field.name: field.type for field in fields(Workload)}
    variants = {
        option.name: {
            option.parse(text): {name: msgspec.convert(part, types[name], dec_hook=_made) for name, part in new.items()}
            for text, new in item.variants[option.name].items()
        }
        for option in item.options
        if option.name in item.variants
    }
    return replace(item, variants=variants)


def _made(kind: Any, data: Any) -> Callable[..., Any]:
    return _stand_in(msgspec.json.encode(data))


@functools.cache  # the same function in two places is one function, as a script needs it
def _stand_in(text: bytes) -> Callable[..., Any]:
    data = msgspec.json.decode(text)

    def stands_in(**arguments: Any) -> Any:
        row = next((row for row in data["table"] if row["choices"].items() <= arguments.items()), data["table"][0])
        others = [
            (math.log(max(1, arguments[name]) / default) / math.log(other / default), result)
            for name, (default, other, result) in row["changed"].items()
        ]
        result = _grown(row["result"], others)
        return msgspec.convert(result, Cost) if isinstance(result, dict) else leaves_from_wire(result)

    stands_in.__name__ = stands_in.__qualname__ = data["name"]
    stands_in.__source__ = data.get("source")  # type: ignore[attr-defined]
    helpers = [_made(None, helper) for helper in data.get("helpers", ())]
    stands_in.__helpers__ = helpers  # type: ignore[attr-defined]
    stands_in.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, getattr(inspect.Parameter, kind), default=None if has_default else inspect._empty)
            for name, kind, has_default in data["parameters"]
        ]
    )
    return stands_in


def _grown(result: Any, others: list[tuple[float, Any]]) -> Any:
    """The numbers of a result at other sizes. ``others``: the results with one size changed, and how often that change
    was made."""
    if isinstance(result, dict):
        return {name: _grown(part, [(times, other[name]) for times, other in others]) for name, part in result.items()}
    if isinstance(result, list):
        return [_grown(part, [(times, other[place]) for times, other in others]) for place, part in enumerate(result)]
    if type(result) not in (int, float) or not result:  # a bool is no number
        return result
    grown = result * math.prod((other / result) ** times for times, other in others if other)
    return round(grown) if isinstance(result, int) else grown
