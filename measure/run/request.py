"""A request, parsed and validated once, with the same rules for the page, a link, the command line and a file."""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

import strategies
import workloads
from measure.run import forecast, text
from measure.run.run import MOST_STRATEGIES, Allocator, Request
from strategies import script
from strategies.spec import Strategy
from workloads.case import Case
from workloads.spec import Workload

# Seconds from the start of a comparison to its verdict, where the budget is automatic: enough to decide the usual ones
# on a quiet 2-core machine, with some seconds for samples where more is needed before; and while the answer is not
# usable.
AUTO = "auto"
DEFAULT_BUDGET_S, _SAMPLING_S, MAX_AUTO_S = 12.0, 4.0, 60.0
MOST_BUDGET_S = 86_400.0
# TensorFlow waits for 10 s before an allocation fails for good (kMaxMillisToWait in tsl's bfc_allocator.cc), and
# several may fail one after the other where memory is limited.
ALLOCATOR_WAITS_S = 35.0
MOST_THREADS = 1_024
SEEDS = 0, 2**32 - 1
ALLOCATORS: tuple[Allocator, ...] = get_args(Allocator)
# Of a machine's name; and what stands for each machine in its place.
MACHINE, ALL_MACHINES = re.compile(r"\w[\w.-]{0,59}", re.ASCII), "all machines"
# "default" leaves out what would keep a person waiting: one call, or tracing and compiling, beyond these.
DEFAULT_LATENCY_S = 2.0
DEFAULT_FIRST_CALL_S = 10.0


class RequestError(ValueError):
    """The request is invalid: the message names what was wrong, which value came in, and what is valid."""


def whole(name: str, value: Any, least: int, most: int) -> int:
    """Return ``value`` as an int from least to most; text and floats count where they are whole."""
    digits = str(value).strip().removesuffix(".0")
    if not re.fullmatch(r"[+-]?\d{1,18}", digits, re.ASCII) or not least <= int(digits) <= most:
        raise RequestError(f"{name}={value} is not valid: a whole number from {least} to {most} is needed")
    return int(digits)


def one_of(name: str, value: Any, valid: Sequence[str]) -> Any:
    """Return ``value``, the first of the valid ones where there is none."""
    if value is not None and value not in valid:
        raise RequestError(f"{name} {value!r} is not valid: {text.listed(valid, word='or')} is needed")
    return valid[0] if value is None else value


def named(workload: Workload, what: str, raw: Any, valid: Sequence[str]) -> Mapping[str, Any]:
    """Return the sizes or the options that ``raw`` gives, as far as the workload has them."""
    if raw is not None and not isinstance(raw, Mapping):
        raise RequestError(f"{what}s={raw!r} is not valid: names with their values are needed")
    for name in raw or {}:
        if name not in valid:
            their = f"its {what}s are {', '.join(valid)}" if valid else "it has none"
            raise RequestError(f"{workload.slug} has no {what} {name!r}: {their}")
    return raw or {}


def parse_workload(value: Any) -> Workload:
    if value not in workloads.names():
        raise RequestError(f"workload {value!r} is not known: choose one of {', '.join(workloads.names())}")
    return workloads.get(value)


def parse_size(workload: Workload, raw: Any) -> dict[str, int]:
    """Return all sizes of the workload; those that ``raw`` leaves out have their defaults."""
    given = named(workload, "size", raw, [size.name for size in workload.sizes])
    return {
        size.name: whole(size.name, given.get(size.name, size.default), size.least, size.most)
        for size in workload.sizes
    }


def parse_device(value: Any) -> str:
    """Return a device's canonical name, ``CPU:0`` or ``GPU:n``; only the host knows which devices there are."""
    match = re.fullmatch(r"(?:/?(?:device:)?)(cpu|gpu)(?::(\d{1,3}))?", str(value).strip(), re.IGNORECASE)
    if not match or (match[1].lower() == "cpu" and int(match[2] or 0) != 0):
        raise RequestError(f"device {value!r} is not valid: CPU:0, or GPU:0, GPU:1 … where there is one")
    return f"{match[1].upper()}:{int(match[2] or 0)}"


def parse_place(value: Any) -> str:
    """Return a device's canonical name, after that of a machine where one is named: ``gpu-box / GPU:0``."""
    machine, slash, device = str(value).rpartition(" / ")
    if slash and machine != ALL_MACHINES:
        check_machine(machine)
    return f"{machine}{slash}{parse_device(device)}"


def check_machine(name: str) -> None:
    if not MACHINE.fullmatch(name):
        raise RequestError(f"machine {name!r} is not valid: letters, digits, '.', '-' and '_' are needed, 60 at most")


def case_of(asked: Request) -> Case:
    """Return the case of which a comparison asks; `DiscoveryError` where its workload is not known here."""
    workload = workloads.get(asked.workload)
    return Case(workload, asked.size, asked.dtype, asked.workload_options, asked.device, asked.seed)


def forecast_of(asked: Request, slowdown: float = 1.0) -> forecast.RunForecast:
    """Return the forecast of a comparison; ``slowdown`` as in `forecast.forecast_run`. Under a memory limit it may take
    longer, since TensorFlow waits before an allocation fails."""
    max_budget_s = asked.max_budget_s or asked.budget_s
    ahead = forecast.forecast_run(case_of(asked), asked.strategies, asked.budget_s, max_budget_s, slowdown)
    waits_s = ALLOCATOR_WAITS_S if asked.memory_limit_mib else 0.0
    return dataclasses.replace(ahead, max_seconds=ahead.max_seconds + waits_s)


def script_of(asked: Request, slug: str, *, allocator: Allocator | None = None) -> str:
    """Return the script of a strategy, as it runs for this request; with another ``allocator``, where one is named.
    Raises `ScriptError`."""
    chosen, limit_mib = allocator or asked.allocator or "default", asked.memory_limit_mib
    return script.build(case_of(asked), slug, threads=asked.threads, memory_limit_mib=limit_mib, allocator=chosen)


def default_strategies(case: Case) -> list[str]:
    """Return every mapper × mode that is forecast to finish in reasonable time, of the workload's first element
    function; the quickest where none does."""
    estimates = {
        strategy.slug: forecast.estimate(case, strategy)
        for strategy in strategies.all_strategies(case.workload)
        if not strategy.options and strategy.mode in strategies.mapper(strategy.mapper).default_modes
    }
    slugs = [
        slug
        for slug, estimate in estimates.items()
        if estimate.latency_s <= DEFAULT_LATENCY_S and estimate.first_call_s <= DEFAULT_FIRST_CALL_S
    ]
    return slugs or sorted(estimates, key=lambda slug: estimates[slug].latency_s)[:1]


def words_of(raw: str | Sequence[Any]) -> list[str]:
    """The words of a list of strategies, with commas between them or apart. Raises `RequestError`."""
    words = [str(word).strip() for word in (raw.split(",") if isinstance(raw, str) else raw)]
    if len(words) > MOST_STRATEGIES:
        raise RequestError(f"{len(words):,} strategies are too many: a run has at most {MOST_STRATEGIES:,}")
    return words


def parse_strategies(case: Case, raw: Any) -> list[str]:
    """Return slugs from ``all``, ``default``, slugs, mappers (all their modes) and modes, in order, each once.
    All but ``default`` have every element function of the workload."""
    if not isinstance(raw, str | list | tuple):
        raise RequestError(f"strategies={raw!r} is not valid: a list of slugs is needed")
    everything = strategies.all_strategies(case.workload)
    slugs: list[str] = []
    for word in words_of(raw):
        if word == "default":
            slugs += default_strategies(case)
        elif named := [item.slug for item in everything if word in ("all", item.mode, item.mapper)]:
            slugs += named
        elif word:
            slugs.append(_strategy(case.workload, word).slug)
    if not slugs:
        raise RequestError("no strategy is chosen: name at least one, or 'default', or 'all'")
    return list(dict.fromkeys(slugs))


def _strategy(workload: Workload, slug: str) -> Strategy:
    """Return the strategy of a slug, or the first of a mapper's, which the workload has to have."""
    try:
        mappers = {mapper.slug: mapper for mapper in strategies.mappers()}
        strategy = strategies.parse(f"{slug}.{mappers[slug].modes[0]}" if slug in mappers else slug)
    except ValueError as error:
        raise RequestError(str(error)) from None
    if refusal := strategies.missing(mappers[strategy.mapper], workload, strategy.element):
        raise RequestError(refusal)
    return strategy


def parse_budget(value: Any) -> float:
    try:
        budget_s = float(value)
    except (TypeError, ValueError, OverflowError):
        budget_s = math.nan
    if not 1.0 <= budget_s <= MOST_BUDGET_S:  # NaN fails this too
        raise RequestError(f"budget must be {AUTO!r} or from 1 to {MOST_BUDGET_S:.0f} seconds; got {value}")
    return budget_s


def again(request: Request, **changes: Any) -> Request:
    """A request that was made, perhaps elsewhere and long ago, as it can be measured here and now, with ``changes`` of
    its fields. Older ones, which name no allocator, had the default one. Raises `RequestError`."""
    former = replace(request, allocator=request.allocator or "default", **changes)
    return parse({name: getattr(former, name) for name in former.__struct_fields__})


def parse(raw: Mapping[str, Any]) -> Request:
    """Return a valid `Request` from the keys of a run file's request, all of which but ``workload`` have defaults.
    Raises `RequestError` with one sentence. Whether it fits this machine is a matter of `fit`."""
    fields = Request.__struct_fields__
    for key in raw:
        if key not in fields:
            raise RequestError(f"a request has no field {key!r}: its fields are {', '.join(sorted(fields))}")
    given: dict[str, Any] = dict.fromkeys(fields) | dict(raw)
    if given["workload"] is None:
        raise RequestError(f"no workload is named: choose one of {', '.join(workloads.names())}")
    workload = parse_workload(given["workload"])
    machine, _, device = parse_place(given["device"] or "CPU:0").rpartition(" / ")
    options = {option.name: option for option in workload.options}
    chosen = named(workload, "option", given["workload_options"], list(options))
    try:
        chosen = {name: options[name].parse(str(value)) for name, value in chosen.items()}
    except ValueError as error:
        raise RequestError(str(error)) from None
    case = Case(
        workload,
        size=parse_size(workload, given["size"]),
        dtype=one_of("dtype", given["dtype"] or None, workload.dtypes),
        options=chosen,
        device=device,
        seed=whole("seed", given["seed"] or 0, *SEEDS),
    )
    limit, threads = given["memory_limit_mib"], given["threads"]
    slugs = parse_strategies(case, "default" if given["strategies"] is None else given["strategies"])
    budget_s, max_budget_s = given["budget_s"], given["max_budget_s"] or msgspec.UNSET
    if budget_s in (None, AUTO):
        budget_s = float(max(DEFAULT_BUDGET_S, math.ceil(forecast.forecast_run(case, slugs).needed_s + _SAMPLING_S)))
        max_budget_s = MAX_AUTO_S
    budget_s = parse_budget(budget_s)
    if max_budget_s is not msgspec.UNSET:
        max_budget_s = max(budget_s, parse_budget(max_budget_s))
    return Request(
        workload=workload.slug, workload_options=dict(case.options), size=dict(case.size), dtype=case.dtype,
        device=case.device, strategies=slugs, budget_s=budget_s, max_budget_s=max_budget_s, seed=case.seed,
        machine=machine or given["machine"] or msgspec.UNSET,
        memory_limit_mib=None if limit is None else whole("memory limit", limit, 1, 2**24),
        threads=None if threads is None else whole("threads", threads, 1, MOST_THREADS),
        allocator=one_of("allocator", given["allocator"] or None, ALLOCATORS),
    ).record()  # fmt: skip
