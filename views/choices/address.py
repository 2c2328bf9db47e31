"""A page's address: which choices it makes, and which of its values are not valid. Pure.

The widgets themselves are bound to the address; this finds the values that they would silently replace, so that the
page can say so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import strategies
import workloads
from measure.model.request import (
    DEFAULT_BUDGET_S,
    RequestError,
    parse,
    parse_device,
    parse_size,
    parse_strategies,
    parse_workload,
)
from views.ui import look
from views.ui.parameters import option_key, size_key
from workloads.case import Case
from workloads.spec import Workload

AUTOMATIC = "auto"
# In the list of strategies: nothing is chosen. An empty list would be the default, which is what an address without
# the parameter means.
NONE = "none"
WORDS = ("default", "all")


@dataclass(frozen=True)
class Link:
    """The faults of an address: ``notices`` are sentences, plain text; ``strategies`` are the valid words of the list,
    None where all are."""

    notices: tuple[str, ...] = ()
    strategies: tuple[str, ...] | None = None


def read(params: Mapping[str, Sequence[str]]) -> Link:
    """Check an address's parameters (name → values) by the rules of `measure.model.request`."""
    notices: list[str] = []

    def one(key: str) -> str | None:
        values = params.get(key)
        return values[-1] if values else None

    def check(key: str, read_value: Callable[[str], Any], instead: str) -> None:
        text = one(key)
        if text is None:
            return
        try:
            read_value(text)
        except (RequestError, ValueError) as error:
            notices.append(f"{look.sentence(str(error))} {instead} is used instead.")

    first = workloads.get(workloads.names()[0])
    check("workload", parse_workload, f"{first.slug}")
    slug = one("workload")
    workload = workloads.get(slug) if slug in workloads.names() else first
    for parameter in workload.sizes:
        check(size_key(parameter.name), partial(_size, workload, parameter.name), str(parameter.default))
    for option in workload.options:
        check(option_key(option.name), option.parse, str(option.default))
    check("dtype", lambda text: _dtype(workload, text), workload.dtypes[0])
    check("device", parse_device, "CPU:0")
    check("budget", lambda text: parse(_with(workload, budget_s=text)), f"{DEFAULT_BUDGET_S:.0f} s")
    check("memory_limit", lambda text: parse(_with(workload, memory_limit_mib=text)), "no limit")
    check("threads", lambda text: parse(_with(workload, threads=text)), "TensorFlow's own choice")
    check("seed", lambda text: parse(_with(workload, seed=text)), "0")
    check("baseline", lambda text: _baseline(text), AUTOMATIC)
    kept = _strategies(workload, params.get("strategies"), notices)
    return Link(tuple(notices), kept)


def _with(workload: Workload, **fields: Any) -> dict[str, Any]:
    """Return the least request that has these fields, at a size that always fits any limit."""
    size = {parameter.name: parameter.least for parameter in workload.sizes}
    return {"workload": workload.slug, "size": size, "strategies": "all", **fields}


def _size(workload: Workload, name: str, text: str) -> None:
    parse_size(workload, {name: text})


def _dtype(workload: Workload, text: str) -> None:
    if text not in workload.dtypes:
        raise RequestError(f"dtype {text!r} is not valid for {workload.slug}: {', '.join(workload.dtypes)} are")


def _baseline(text: str) -> None:
    if text != AUTOMATIC:
        strategies.parse(text)


def _strategies(workload: Workload, words: Sequence[str] | None, notices: list[str]) -> tuple[str, ...] | None:
    """Return the valid words of the list of strategies, None where all are: any text can be typed into it, and the
    widget would keep it."""
    if not words:
        return None
    split = [part.strip() for word in words for part in word.split(",") if part.strip()]
    good = tuple(word for word in split if word == NONE or _known(workload, word, notices))
    if not good and notices:
        notices[-1] = f"{notices[-1]} The default strategies are used instead."
    return None if good == tuple(words) else good or (WORDS[0],)


def _known(workload: Workload, word: str, notices: list[str]) -> bool:
    try:
        # A default size keeps «default» cheap; whether a word is valid does not depend on the size.
        parse_strategies(Case(workload, workload.default_size(), workload.dtypes[0]), [word])
    except (RequestError, ValueError) as error:
        notices.append(look.sentence(str(error)))
        return False
    return True


def of_request(request: Any) -> dict[str, Any]:
    """Return widget key → value of the choices that a stored request makes, so that an opened run shows them."""
    values: dict[str, Any] = {
        "workload": request.workload,
        "dtype": request.dtype,
        "device": request.device,
        "strategies": list(request.strategies),
        "budget": float(request.budget_s),
        "memory_limit": request.memory_limit_mib,
        "threads": request.threads,
        "seed": request.seed,
    }
    values |= {size_key(name): value for name, value in request.size.items()}
    values |= {option_key(name): value for name, value in request.workload_options.items()}
    return values
