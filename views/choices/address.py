"""A page's choices as data: from an address, from a run, and back into an address. Pure.

A form is widget key → value, and the keys are the names of an address's parameters. An address names a run, or none,
and the choices that are not that run's own, or not the defaults.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import strategies
import workloads
from measure.run.request import (
    ALLOCATORS,
    DEFAULT_BUDGET_S,
    RequestError,
    parse,
    parse_budget,
    parse_device,
    parse_size,
    parse_workload,
)
from measure.run.run import Request
from views.choices import texts
from views.ui import look
from views.ui.parameters import option_key, size_key
from workloads.spec import Option, Workload

AUTOMATIC = "auto"
# In the list of strategies: nothing is chosen. An empty list is the default.
NONE = "none"
WORDS = ("default", "all")
# What browsers count without a fault.
_MOST_DIGITS = 15

Form = dict[str, Any]
# The texts that an address has for a choice → its value; ValueError, with a sentence, where no field can show it.
Reader = Callable[[Sequence[str]], Any]


def _anything(value: Any) -> None:
    """Refuse nothing."""


@dataclass(frozen=True)
class Field:
    """A choice. ``check`` raises ValueError, with a sentence, for a value that its field can show and nobody can
    measure; ``within`` are the choices that decide what this one is about."""

    default: Any
    read: Reader
    check: Callable[[Any], object] = _anything
    within: tuple[str, ...] = ()


# Choices made so far → the fields that are known with them, these included.
Fields = Callable[[Mapping[str, Any]], dict[str, Field]]


def read(params: Mapping[str, Sequence[str]], own: Mapping[str, Any], fields: Fields) -> tuple[Form, tuple[str, ...]]:
    """Return the form that an address makes, and a sentence for each of its values that something else stands for.

    ``own`` is the form of the run that the address names, empty where it names none.
    """
    form: Form = {}
    notices = []
    while new := {key: field for key, field in fields(form).items() if key not in form}:
        for key, field in new.items():
            form[key] = _unsaid(key, field, form, own)
            if key in params:
                try:
                    form[key] = field.read(params[key])
                except ValueError as error:
                    instead = ", ".join(filter(None, spelled(form[key]))) or texts.NO_VALUE
                    notices.append(texts.USED_INSTEAD.format(fault=look.sentence(str(error)), value=instead))
    return form, tuple(notices)


def write(form: Mapping[str, Any], own: Mapping[str, Any], fields: Fields) -> dict[str, list[str]]:
    """Return the parameters with which `read` makes this form again."""
    return {key: spelled(form[key]) for key in changed(form, own, fields)}


def changed(form: Mapping[str, Any], own: Mapping[str, Any], fields: Fields) -> list[str]:
    """Return the keys of the choices that are not the run's own, or not the defaults."""
    known = fields(form).items()
    return [key for key, field in known if key in form and form[key] != _unsaid(key, field, form, own)]


def _unsaid(key: str, field: Field, form: Mapping[str, Any], own: Mapping[str, Any]) -> Any:
    """Return what is chosen where the address does not say it."""
    of_run = key in own and all(form.get(name) == own.get(name) for name in field.within)
    return own[key] if of_run else field.default


def spelled(value: Any) -> list[str]:
    """Return a choice as an address has it."""
    if isinstance(value, list):
        return value or [""]
    if isinstance(value, float) and value.is_integer():
        return [str(int(value))]
    return ["" if value is None else str(value)]


def fault(field: Field, value: Any) -> str | None:
    """Return the sentence that says why a value cannot be measured; None where it can, as a default always can."""
    try:
        if value != field.default:
            field.check(value)
    except ValueError as error:
        return look.sentence(str(error))
    return None


# --- the choices of a comparison -------------------------------------------------------------------------------------


def fields(
    form: Mapping[str, Any],
    words: Callable[[Workload], list[str]] = lambda workload: [WORDS[0]],
    budget_s: float = DEFAULT_BUDGET_S,
) -> dict[str, Field]:
    """Return the fields of a comparison. ``words`` returns the strategies that are chosen where nobody says."""
    known = {"workload": Field(workloads.names()[0], _one(lambda text: parse_workload(text).slug))}
    if "workload" not in form:
        return known
    workload = workloads.get(form["workload"])
    within = ("workload",)
    for parameter in workload.sizes:
        check = partial(_check_size, workload, parameter.name)
        known[size_key(parameter.name)] = Field(parameter.default, _one(_whole(check)), check, within)
    for option in workload.options:
        known[option_key(option.name)] = _option(option, within)
    known["dtype"] = Field(workload.dtypes[0], _one(partial(_dtype, workload)), within=within)
    known["device"] = Field("CPU:0", _one(parse_device))
    known["strategies"] = Field(words(workload), _words, within=within)
    known["budget"] = Field(budget_s, _one(_seconds), parse_budget)
    for key, name, default in (
        ("memory_limit", "memory_limit_mib", None),
        ("threads", "threads", None),
        ("seed", "seed", 0),
    ):
        check = partial(_check, workload, name)
        known[key] = Field(default, _one(_whole(check, optional=default is None)), check)
    known["allocator"] = Field("pool", one_of("allocator", ALLOCATORS))
    known["baseline"] = Field(AUTOMATIC, _one(_baseline))
    return known


def of_request(request: Request) -> Form:
    """Return the form of a request that can be made here: its workload and its strategies are known."""
    chosen = {option.name: option for option in workloads.get(request.workload).options if option.values is not None}
    values: Form = {
        "workload": request.workload,
        "dtype": request.dtype,
        "device": request.device,
        "strategies": list(request.strategies),
        "budget": float(request.budget_s),
        "memory_limit": request.memory_limit_mib,
        "threads": request.threads,
        "seed": request.seed,
        "allocator": request.allocator or "default",
        "baseline": AUTOMATIC,
    }
    values |= {size_key(name): value for name, value in request.size.items()}
    for name, value in request.workload_options.items():
        values[option_key(name)] = str(value) if name in chosen else value
    return values


def text(given: Sequence[str]) -> str:
    """Read any text."""
    return given[-1]


def one_of(name: str, offered: Sequence[str]) -> Reader:
    """Return a reader of one of some words."""

    def read_word(word: str) -> str:
        if word not in offered:
            raise ValueError(texts.INVALID_WORD.format(name=name, word=word, offered=", ".join(offered)))
        return word

    return _one(read_word)


def whole(name: str) -> Reader:
    """Return a reader of whole numbers."""

    def refuse(value: Any) -> None:
        raise ValueError(texts.INVALID_NUMBER.format(name=name, value=value))

    return _one(_whole(refuse))


def _one(read_one: Callable[[str], Any]) -> Reader:
    return lambda given: read_one(given[-1])


def _whole(check: Callable[[Any], object], *, optional: bool = False) -> Callable[[str], int | None]:
    """Return a reader of whole numbers, also of those that ``check`` refuses; with ``optional``, no text is None."""

    def read_whole(text: str) -> int | None:
        if optional and not text:
            return None
        if re.fullmatch(rf"\s*[+-]?\d{{1,{_MOST_DIGITS}}}\s*", text):
            return int(text)
        check(text)  # raises, as no rule takes it, and says what is valid
        return None

    return read_whole


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    return seconds if math.isfinite(seconds) and abs(seconds) < 10**_MOST_DIGITS else parse_budget(text)


def _option(option: Option, within: tuple[str, ...]) -> Field:
    def check(value: Any) -> None:
        option.parse(str(value))

    if option.values is None:
        return Field(int(option.default), _one(_whole(check)), check, within)
    return Field(str(option.default), _one(lambda text: str(option.parse(text))), within=within)


def _words(given: Sequence[str]) -> list[str]:
    """Return all words, also those that mean nothing: the list of strategies shows them, and Run says so."""
    return [word.strip() for text in given for word in text.split(",") if word.strip()]


def _dtype(workload: Workload, text: str) -> str:
    if text not in workload.dtypes:
        valid = ", ".join(workload.dtypes)
        raise RequestError(texts.INVALID_DTYPE.format(dtype=text, workload=workload.slug, valid=valid))
    return text


def _baseline(text: str) -> str:
    return text if text == AUTOMATIC else strategies.parse(text).slug


def _check_size(workload: Workload, name: str, value: Any) -> None:
    parse_size(workload, {name: value})


def _check(workload: Workload, name: str, value: Any) -> None:
    # At a size that fits any limit, whatever the other fields hold.
    size = {parameter.name: parameter.least for parameter in workload.sizes}
    parse({"workload": workload.slug, "size": size, "strategies": "all", name: value})
