"""A page's choices as data: from an address, from a run, back into an address, and in words. Pure.

A form is widget key → value, and the keys are the names of an address's parameters. An address names a run, or none,
and the choices that are not that run's own, or not the defaults.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import strategies
import workloads
from measure.judge import answer
from measure.run import request, sweep_request, text
from measure.run.request import Request
from measure.run.run import Run
from measure.run.sweep_request import SweepRequest
from views.choices import axes
from views.choices.grid import WORDS
from views.ui import look
from workloads.spec import Option

Kind = Literal["compare", "sweep"]
Form = dict[str, Any]
AUTOMATIC = "auto"
# None: automatic.
BUDGET_S = {"compare": None, "sweep": sweep_request.DEFAULT_BUDGET_S}
# Parameters that are no choices: the run that is shown, the open tab of its result, the run that it is compared with,
# and that it is shown in large.
OF_RESULT = ("run", "tab", "with", "present")
# Browsers count so far without a fault.
_MOST = 10**15
_OF_WORKLOAD: tuple[str, ...] = ("workload",)


def size_key(name: str) -> str:
    return f"size_{name}"


def option_key(name: str) -> str:
    return f"option_{name}"


@dataclass(frozen=True)
class Field:
    """A choice. ``read`` makes its value of the text in an address; ValueError, with a sentence, where no widget can
    show it. ``within`` are the choices that decide what this one is about: where they are a run's own, its value of
    this one is the default."""

    key: str
    default: Any
    read: Callable[[str], Any] = str
    within: tuple[str, ...] = ()


def fields(kind: Kind, form: Mapping[Any, Any]) -> Iterator[Field]:
    """Yield the choices of a page. The later ones follow from the earlier: ``form`` has the value of one by the time
    that the next is asked for."""
    yield Field("workload", workloads.names()[0], lambda text: request.parse_workload(text).slug)
    if "workload" not in form:  # of a run that cannot be asked for here
        return
    workload = workloads.get(form["workload"])
    for size in workload.sizes:
        yield Field(size_key(size.name), size.default, _number(size.name), _OF_WORKLOAD)
    for option in workload.options:
        if option.values is None:
            yield Field(option_key(option.name), int(option.default), _number(option.name), _OF_WORKLOAD)
        else:
            yield Field(option_key(option.name), str(option.default), partial(_option, option), _OF_WORKLOAD)
    yield Field("dtype", workload.dtypes[0], _one_of("dtype", workload.dtypes), _OF_WORKLOAD)
    usual, within = [WORDS[0]], _OF_WORKLOAD
    if kind == "sweep":
        offered = list(axes.sweepable(workload))
        yield Field("sweep", offered[0], _one_of("sweep", offered), _OF_WORKLOAD)
        if "sweep" not in form:  # the choices could not be drawn
            return
        seconds = axes.seconds(workload, form["sweep"])
        yield Field("sweep_2", axes.NOTHING, _one_of("sweep_2", seconds), ("workload", "sweep"))
        names = axes.swept(form)
        usual, within = axes.words(workload, names), ("workload", "sweep", "sweep_2")
        readers = {"points": _number("points"), "scale": _one_of("scale", sweep_request.SCALES)}
        for place, axis in enumerate(axes.start(workload, names), 1):
            for key, default in axes.form_of(axis, place).items():
                yield Field(key, default, readers.get(key.removesuffix("_2"), str), within)
    # All words, also those that mean nothing: the list of strategies shows them, and Run says so.
    yield Field("strategies", usual, lambda text: list(filter(None, request.words_of(text))), within)
    yield Field("device", "CPU:0", request.parse_place)
    yield Field("budget", BUDGET_S[kind], _number("budget", float, optional=True))
    yield Field("memory_limit", None, _number("memory_limit", optional=True))
    yield Field("threads", None, _number("threads", optional=True))
    yield Field("seed", 0, _number("seed"))
    yield Field("allocator", request.ALLOCATORS[0], _one_of("allocator", request.ALLOCATORS))
    yield Field("baseline", AUTOMATIC, lambda text: text if text == AUTOMATIC else strategies.parse(text).slug)


# --- from and into an address ----------------------------------------------------------------------------------------


def read(kind: Kind, params: Mapping[str, Sequence[str]], own: Mapping[str, Any]) -> tuple[Form, tuple[str, ...]]:
    """Return the form that an address makes, and a sentence for each of its values that something else stands for, and
    for its parameters that the page does not have. ``own``: the form of the run that it names, empty without one."""
    form: Form = {}
    notices = []
    for field in fields(kind, form):
        form[field.key] = _unsaid(field, form, own)
        if field.key in params:
            try:
                texts = params[field.key]
                form[field.key] = field.read(",".join(texts) if field.key == "strategies" else texts[-1])
            except ValueError as error:
                instead = ", ".join(filter(None, spelled(form[field.key]))) or "none"
                reason = look.sentence(look.shortened(str(error), look.MOST_SIGNS))
                notices.append(f"{reason} {instead} is used instead.")
    if unknown := [key for key in params if key not in form and key not in OF_RESULT]:
        notices.append(f"The address has parameters that mean nothing here: {text.listed(unknown, 5)}.")
    return form, tuple(notices)


def write(kind: Kind, form: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the parameters with which `read` makes this form again."""
    return {key: spelled(form[key]) for key in changed(kind, form, own)}


def changed(kind: Kind, form: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    """Return the keys of the choices that are not the run's own, or not the defaults."""
    made = fields(kind, form)
    return [field.key for field in made if field.key in form and form[field.key] != _unsaid(field, form, own)]


def _unsaid(field: Field, form: Mapping[str, Any], own: Mapping[str, Any]) -> Any:
    """Return what is chosen where the address does not say it."""
    of_run = field.key in own and all(form[key] == own.get(key) for key in field.within)
    return own[field.key] if of_run else field.default


def spelled(value: Any) -> list[str]:
    if isinstance(value, list):
        return value or [""]
    if isinstance(value, float) and value.is_integer():
        return [str(int(value))]
    return ["" if value is None else str(value)]


# --- from a request, and in words ------------------------------------------------------------------------------------


def of_run(run: Run) -> Form:
    """Return the form of a run, which would measure the same again, with a word for the strategies of a comparison
    where there is one; empty where it cannot be asked for here, as an imported one may not."""
    try:
        if run.kind == "sweep":
            return of_request(sweep_request.of_run(run))
        asked = request.again(run.request)
    except ValueError:
        return {}
    form = of_request(asked)
    for word in WORDS:
        if {*request.parse_strategies(request.case_of(asked), word)} == {*asked.strategies}:
            form["strategies"] = [word]
    return form


def of_request(asked: Request | SweepRequest) -> Form:
    base, swept = (asked.base, asked.axes) if isinstance(asked, SweepRequest) else (asked, ())
    fixed = {name: value for name, value in base.size.items() if name not in [axis.name for axis in swept]}
    # Options of words are texts on the form.
    texts = {option.name for option in workloads.get(base.workload).options if option.values is not None}
    form = {
        **{key: getattr(base, key) for key in ("workload", "dtype", "threads", "seed")},
        "device": base.place,
        **{size_key(name): value for name, value in fixed.items()},
        **{option_key(name): str(value) if name in texts else value for name, value in base.workload_options.items()},
        "strategies": list(base.strategies),
        "budget": None if base.max_budget_s else float(base.budget_s),
        "memory_limit": base.memory_limit_mib,
        "allocator": base.allocator or "default",
        "baseline": AUTOMATIC,
    }
    if swept:
        form["sweep_2"] = axes.NOTHING
    for place, axis in enumerate(swept, 1):
        form |= {axes.keyed("sweep", place): axis.name, **axes.form_of(axis, place)}
    return form


def line(asked: Request | SweepRequest) -> str:
    """image_sqrt · 100×64×64×3 · float32 · CPU:0 · 12 strategies"""
    base, swept = (asked.base, asked.axes) if isinstance(asked, SweepRequest) else (asked, ())
    return f"{answer.asked_case(base.record(), swept)} · {choice('strategies', base.strategies)}"


def choice(key: str, value: Any) -> str:
    """Return a choice of a form with its name: batch 100, memory limit 64, 12 strategies."""
    if key == "strategies":
        return f"{len(value)} strategies" if len(value) != 1 else value[0]
    name = key.removeprefix("size_").removeprefix("option_").replace("_", " ")
    if name.endswith(" 2"):  # of the second axis of a sweep
        name = f"second {name.removesuffix(' 2')}"
    return f"{name} {', '.join(spelled(value)) or (AUTOMATIC if key == 'budget' else 'none')}"


# --- readers ---------------------------------------------------------------------------------------------------------


def _one_of(name: str, offered: Sequence[str]) -> Callable[[str], str]:
    return lambda text: str(request.one_of(name, text, offered))


def _number(name: str, kind: Callable[[str], float] = int, *, optional: bool = False) -> Callable[[str], Any]:
    """Return a reader of numbers, also of those that nobody can measure; with ``optional``, no text is None."""

    def read_number(text: str) -> float | None:
        if optional and not text:
            return None
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not abs(value) < _MOST:
            raise ValueError(f"{name}={text} is not valid: a {'whole ' * (kind is int)}number is needed")
        return value

    return read_number


def _option(option: Option, text: str) -> str:
    return str(option.parse(text))
