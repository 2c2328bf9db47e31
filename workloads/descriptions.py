"""Workloads and mappers of a person's own files as data: who measures executes a file, and pages work with its data.

A function whose source goes into scripts is its name, its parameters and its source. Metadata are a table for every
dtype and option, at the default sizes and with one of them doubled; at other sizes its numbers grow as the power of
that size that fits both.
"""

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import msgspec

from workloads.case import Case
from workloads.discovery import Offers, discoveries
from workloads.functions import leaves_from_wire, leaves_to_wire, stand_in
from workloads.sources import helpers_of, source_of
from workloads.spec import Cost, Workload

# The fields of a workload that are asked for metadata.
_ASKED = ("element_input", "element_output", "output", "variable_leaves", "cost")
# By its name a function is known in data, wherever it stands.
_NAME = "name of a function"


# --- where it is executed --------------------------------------------------------------------------------------------


def have_changed() -> bool:
    """True if files of a person's own are to be executed, or are gone."""
    return any(one.has_changed() for one in discoveries)


def describe() -> dict[str, dict[str, Any]]:
    """Return what files of a person's own offer, which are executed where they have changed: by the name of what is
    offered and by path the data, or the sentence that says what is wrong."""
    return {one.attribute: _all_described(one.find()) for one in discoveries}


@functools.lru_cache(maxsize=2)
def _all_described(offers: Offers[Any]) -> dict[str, Any]:
    data: dict[str, Any] = dict(offers.files)
    for path, offered in offers.files.items():
        try:
            data[path] = offered if isinstance(offered, str) else described(offered)
        except Exception as error:  # whatever somebody else's file may raise
            data[path] = f"{path} cannot be described: {type(error).__name__}: {error}"
    return data


def described(item: Any) -> Any:
    """Return a workload or a mapper as data of JSON. Raises what functions of its file raise, and
    `msgspec.ValidationError` where a field is of another type than its class says."""
    parts = {field.name: getattr(item, field.name) for field in fields(item)}
    table: list[dict[str, Any]] = []
    if isinstance(item, Workload):
        table += _table(item)
        parts |= dict.fromkeys(_ASKED)
        parts["variants"] = {
            option: {
                str(value): {name: part for name, part in changes.items() if name not in _ASKED}
                for value, changes in by_value.items()
            }
            for option, by_value in item.variants.items()
        }
    data = msgspec.json.decode(msgspec.json.encode({"parts": parts, "table": table}, enc_hook=_function))
    of_data(data, type(item))  # what a page could not make something of is told here
    return data


def _function(function: Any) -> Any:
    parameters = inspect.signature(function).parameters.values()
    return {
        _NAME: function.__name__,
        "parameters": [(one.name, one.kind.name, one.default is not one.empty) for one in parameters],
        "source": source_of(function),
        "helpers": helpers_of(function),
    }


def _table(workload: Workload) -> Iterator[dict[str, Any]]:
    valid = {option.name: option.values or (option.default,) for option in workload.options}
    for dtype, values in itertools.product(workload.dtypes, itertools.product(*valid.values())):
        case = Case(workload, workload.default_size(), dtype, dict(zip(valid, values, strict=True)))
        twice = {name: {**case.size, name: 2 * length} for name, length in case.size.items() if length}
        yield {
            "of": {"dtype": dtype, **case.options},
            "size": case.size,
            "metadata": _metadata(case),
            "twice": {name: _metadata(replace(case, size=size)) for name, size in twice.items()},
        }


def _metadata(case: Case) -> dict[str, Any]:
    element_input, element_output = (case.call(getattr(case.workload, name)) for name in _ASKED[:2])
    nests = element_input, element_output, case.output, case.leaves(case.workload.variable_leaves)
    return dict(zip(_ASKED, (*map(leaves_to_wire, nests), case.cost), strict=True))


# --- where it is shown -----------------------------------------------------------------------------------------------

_latest: Any = None


def take(described: Mapping[str, Mapping[str, Any]]) -> None:
    """Offer from now on what another process has described, and execute no file of a person's own here."""
    global _latest
    if described != _latest:
        for one in discoveries:
            files = described.get(one.attribute, {})
            one.take({path: data if isinstance(data, str) else of_data(data, one.kind) for path, data in files.items()})
        _latest = described


def of_data(data: Any, kind: type) -> Any:
    """Return the workload or mapper, a ``kind``, that was `described`: its functions only stand in for those of the
    file."""
    parts = _with_functions(data["parts"])
    if data["table"]:
        parts |= {name: _looking_up(data["table"], name) for name in _ASKED}
    item: Any = _converted(parts, kind)
    if not isinstance(item, Workload):
        return item
    types = {field.name: field.type for field in fields(Workload)}
    variants = {
        option: {
            value: {name: _converted(part, types[name]) for name, part in changes.items()}
            for value, changes in by_value.items()
        }
        for option, by_value in item.variants.items()
    }
    return replace(item, variants=variants)


def _converted(data: Any, kind: Any) -> Any:
    return msgspec.convert(data, kind, dec_hook=lambda _, function: function)


def _looking_up(table: list[dict[str, Any]], name: str) -> Callable[..., Any]:
    def looked_up(**case: Any) -> Any:
        row = next((row for row in table if row["of"].items() <= case.items()), table[0])
        doublings = {size: math.log2(max(1, case[size]) / row["size"][size]) for size in row["twice"]}
        result = _grown(row["metadata"][name], [(row["twice"][size][name], times) for size, times in doublings.items()])
        return msgspec.convert(result, Cost) if name == "cost" else leaves_from_wire(result)

    return looked_up


def _grown(result: Any, others: list[tuple[Any, float]]) -> Any:
    """The numbers of a result at other sizes. ``others``: the results with one size doubled, and how often it is."""
    if isinstance(result, dict | list):
        places = result if isinstance(result, dict) else range(len(result))
        parts = {place: _grown(result[place], [(other[place], times) for other, times in others]) for place in places}
        return parts if isinstance(result, dict) else list(parts.values())
    if type(result) not in (int, float):  # a bool is no number
        return result
    grown = result * math.prod((other / result) ** times for other, times in others if other and result)
    return round(grown) if isinstance(result, int) else grown


def _with_functions(data: Any) -> Any:
    if isinstance(data, list):
        return list(map(_with_functions, data))
    if isinstance(data, dict) and _NAME not in data:
        return {name: _with_functions(part) for name, part in data.items()}
    return _stand_in(msgspec.json.encode(data)) if isinstance(data, dict) else data


@functools.cache  # the same function in two places is one function, as a script needs it
def _stand_in(text: bytes) -> Callable[..., Any]:
    data, of = msgspec.json.decode(text), inspect.Parameter
    parameters = [
        of(name, getattr(of, kind), default=None if has_default else of.empty)
        for name, kind, has_default in data["parameters"]
    ]
    signature, helpers = inspect.Signature(parameters), _with_functions(data["helpers"])
    function = stand_in(data[_NAME])
    vars(function).update(__signature__=signature, __source__=data["source"], __helpers__=helpers)
    return function
