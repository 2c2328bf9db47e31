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
from measure.run.request import ALLOCATORS, DEFAULT_BUDGET_S, parse, parse_budget, parse_device, parse_workload
from measure.run.run import Request
from views.ui import look
from views.ui.parameters import option_key, size_key
from workloads.spec import Option

AUTOMATIC = "auto"
# In the list of strategies: nothing is chosen. An empty list is the default.
NONE = "none"
WORDS = ("default", "all")
# Parameters that are no choices: the run that is shown, and the open tab of its result.
_OF_RESULT = ("run", "tab")
# Browsers count so far without a fault.
_WHOLE = re.compile(r"\s*[+-]?\d{1,15}\s*")

Form = dict[str, Any]
# The texts that an address has for a choice → its value; ValueError, with a sentence, where no field can show it.
Reader = Callable[[Sequence[str]], Any]


@dataclass(frozen=True)
class Field:
    """A choice. ``check`` raises ValueError, with a sentence, for a value that its field can show and nobody can
    measure; ``within`` are the choices that decide what this one is about."""

    default: Any
    read: Reader
    check: Callable[[Any], object] = lambda value: None
    within: tuple[str, ...] = ()


# Choices made so far → the fields that follow from them, these included.
Fields = Callable[[Mapping[str, Any]], dict[str, Field]]


def read(params: Mapping[str, Sequence[str]], own: Mapping[str, Any], fields: Fields) -> tuple[Form, tuple[str, ...]]:
    """Return the form that an address makes, and a sentence for each of its values that something else stands for, and
    for its parameters that the page does not have.

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
                    instead = ", ".join(filter(None, spelled(form[key]))) or "none"
                    notices.append(f"{look.sentence(str(error))} {instead} is used instead.")
    if unknown := [key for key in params if key not in form and key not in _OF_RESULT]:
        notices.append(f"The address has parameters that mean nothing here: {', '.join(unknown)}.")
    return form, tuple(notices)


def write(form: Mapping[str, Any], own: Mapping[str, Any], fields: Fields) -> dict[str, list[str]]:
    """Return the parameters with which `read` makes this form again."""
    return {key: spelled(form[key]) for key in changed(form, own, fields)}


def changed(form: Mapping[str, Any], own: Mapping[str, Any], fields: Fields) -> list[str]:
    """Return the keys of the choices that are not the run's own, or not the defaults."""
    made = fields(form).items()
    return [key for key, field in made if key in form and form[key] != _unsaid(key, field, form, own)]


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


# --- the choices of a comparison -------------------------------------------------------------------------------------


def fields(form: Mapping[str, Any], budget_s: float = DEFAULT_BUDGET_S) -> dict[str, Field]:
    """Return the fields of a comparison."""
    made = {"workload": Field(workloads.names()[0], lambda given: parse_workload(given[-1]).slug)}
    if "workload" not in form:
        return made
    workload = workloads.get(form["workload"])
    within = ("workload",)
    # The rest of what is asked for while a number is checked: it fits any limit, whatever the other fields hold.
    size = {parameter.name: parameter.least for parameter in workload.sizes}
    rest = {"workload": workload.slug, "strategies": strategies.all_strategies(workload)[0].slug}

    def number(default: int | None, name: str, part: str = "") -> Field:
        """``part``: the part of a request that the number stands in, which belongs to the workload."""

        def check(value: Any) -> None:
            asked: dict[str, Any] = {**rest, "size": dict(size), "workload_options": {}}
            (asked[part] if part else asked)[name] = value
            parse(asked)

        return Field(default, _whole(check, optional=default is None), check, within if part else ())

    for parameter in workload.sizes:
        made[size_key(parameter.name)] = number(parameter.default, parameter.name, "size")
    for option in workload.options:
        if option.values is None:
            made[option_key(option.name)] = number(int(option.default), option.name, "workload_options")
        else:
            made[option_key(option.name)] = Field(str(option.default), partial(_word, option), within=within)
    made["dtype"] = Field(workload.dtypes[0], one_of("dtype", workload.dtypes), within=within)
    made["device"] = Field("CPU:0", lambda given: parse_device(given[-1]))
    # All words, also those that mean nothing: the list of strategies shows them, and Run says so.
    made["strategies"] = Field(
        [WORDS[0]], lambda given: [word.strip() for part in given for word in part.split(",") if word.strip()],
        within=within,
    )  # fmt: skip
    made["budget"] = Field(budget_s, _seconds, parse_budget)
    made["memory_limit"] = number(None, "memory_limit_mib")
    made["threads"] = number(None, "threads")
    made["seed"] = number(0, "seed")
    made["allocator"] = Field("pool", one_of("allocator", ALLOCATORS))
    made["baseline"] = Field(
        AUTOMATIC, lambda given: given[-1] if given[-1] == AUTOMATIC else strategies.parse(given[-1]).slug
    )
    return made


def of_request(request: Request) -> Form:
    """Return the form of a request that can be made here: its workload and its strategies are offered."""
    words = {option.name for option in workloads.get(request.workload).options if option.values is not None}
    options = {name: str(value) if name in words else value for name, value in request.workload_options.items()}
    same = ("workload", "dtype", "device", "threads", "seed")
    return {
        **{key: getattr(request, key) for key in same},
        "strategies": list(request.strategies),
        "budget": float(request.budget_s),
        "memory_limit": request.memory_limit_mib,
        "allocator": request.allocator or "default",
        "baseline": AUTOMATIC,
        **{size_key(name): value for name, value in request.size.items()},
        **{option_key(name): value for name, value in options.items()},
    }


# --- readers ---------------------------------------------------------------------------------------------------------


def text(given: Sequence[str]) -> str:
    """Read any text."""
    return given[-1]


def one_of(name: str, offered: Sequence[str]) -> Reader:
    """Return a reader of one of some words."""

    def read_word(given: Sequence[str]) -> str:
        if given[-1] not in offered:
            raise ValueError(f"{name}={given[-1]} is not valid: choose one of {', '.join(offered)}")
        return given[-1]

    return read_word


def whole(name: str) -> Reader:
    """Return a reader of whole numbers."""

    def refuse(value: Any) -> None:
        raise ValueError(f"{name}={value} is not valid: a whole number is needed")

    return _whole(refuse)


def _whole(check: Callable[[Any], object], *, optional: bool = False) -> Reader:
    """Return a reader of whole numbers, also of those that ``check`` refuses; with ``optional``, no text is None."""

    def read_whole(given: Sequence[str]) -> int | None:
        if _WHOLE.fullmatch(given[-1]):
            return int(given[-1])
        if given[-1] or not optional:
            check(given[-1])  # raises, as no rule takes it, and says what is valid
        return None

    return read_whole


def _seconds(given: Sequence[str]) -> float:
    try:
        seconds = float(given[-1])
    except ValueError:
        seconds = math.nan
    return seconds if abs(seconds) < 1e15 else parse_budget(given[-1])  # the rest, and NaN, is refused


def _word(option: Option, given: Sequence[str]) -> str:
    return str(option.parse(given[-1]))
