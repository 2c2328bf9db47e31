"""A request, parsed and validated once, with the same rules for the page, a link, the command line and a file."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from msgspec.structs import replace

import strategies
import workloads
from measure.run import forecast, text
from measure.run.run import Allocator, Request
from strategies import script
from strategies.spec import MODES
from workloads.case import Case
from workloads.spec import Workload

# Seconds from the start of a comparison to its verdict: enough to decide the usual ones on a quiet 2-core machine; and
# those that are left for samples at the least, where no budget is given.
DEFAULT_BUDGET_S, _SAMPLING_S = 12.0, 4.0
MOST_BUDGET_S = 86_400.0
MOST_THREADS = 1_024
MOST_SEED = 2**32 - 1
ALLOCATORS: tuple[Allocator, ...] = get_args(Allocator)
# A hosted page takes requests from anyone: beyond this many bytes of inputs or outputs a size is a typing error.
MOST_BYTES = 2**44

# "default" leaves out what would keep a person waiting: one call, or tracing and compiling, beyond these.
DEFAULT_LATENCY_S = 2.0
DEFAULT_FIRST_CALL_S = 10.0


class RequestError(ValueError):
    """The request is invalid: the message names what was wrong, which value came in, and what is valid."""


def _whole(name: str, value: Any, least: int, most: int) -> int:
    """Return ``value`` as an int from least to most; text and floats count where they are whole."""
    digits = str(value).strip().removesuffix(".0")
    if not re.fullmatch(r"[+-]?\d{1,18}", digits, re.ASCII) or not least <= int(digits) <= most:
        raise RequestError(f"{name}={value} is not valid: a whole number from {least} to {most} is needed")
    return int(digits)


def parse_workload(value: Any) -> Workload:
    """Return the workload with the slug ``value``."""
    if value not in workloads.names():
        raise RequestError(f"workload {value!r} is not known: choose one of {', '.join(workloads.names())}")
    return workloads.get(value)


def parse_size(workload: Workload, raw: Mapping[str, Any]) -> dict[str, int]:
    """Return all sizes of the workload; those that ``raw`` leaves out have their defaults."""
    names = [parameter.name for parameter in workload.sizes]
    for name in raw:
        if name not in names:
            raise RequestError(f"{workload.slug} has no size {name!r}: its sizes are {', '.join(names)}")
    chosen = workload.default_size() | dict(raw)
    return {size.name: _whole(size.name, chosen[size.name], size.least, size.most) for size in workload.sizes}


def parse_options(workload: Workload, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return all options of the workload; those that ``given`` leaves out have their defaults."""
    raw = _mapping("workload_options", given)
    options = {option.name: option for option in workload.options}
    for name in raw:
        if name not in options:
            valid = f"its options are {', '.join(options)}" if options else "it has none"
            raise RequestError(f"{workload.slug} has no option {name!r}: {valid}")
    chosen = workload.default_options()
    for name, value in raw.items():
        try:
            chosen[name] = options[name].parse(str(value))
        except ValueError as error:
            raise RequestError(str(error)) from None
    return chosen


def parse_device(value: Any) -> str:
    """Return a device's canonical name, ``CPU:0`` or ``GPU:n``; only the host knows which devices there are."""
    match = re.fullmatch(r"(?:/?(?:device:)?)(cpu|gpu)(?::(\d{1,3}))?", str(value).strip(), re.IGNORECASE)
    if not match or (match[1].lower() == "cpu" and int(match[2] or 0) != 0):
        raise RequestError(f"device {value!r} is not valid: CPU:0, or GPU:0, GPU:1 … where there is one")
    return f"{match[1].upper()}:{int(match[2] or 0)}"


def case_of(asked: Request) -> Case:
    """Return the case of which a comparison asks; `workloads.UnknownWorkload` where its workload is not known here."""
    workload = workloads.get(asked.workload)
    return Case(workload, asked.size, asked.dtype, asked.workload_options, asked.device, asked.seed)


def script_of(asked: Request, slug: str, *, allocator: Allocator | None = None) -> str:
    """Return the script of a strategy, as it runs for this request; with another ``allocator``, where one is named.
    Raises `ScriptError`."""
    return script.build(
        case_of(asked),
        slug,
        threads=asked.threads,
        memory_limit_mib=asked.memory_limit_mib,
        allocator=allocator or asked.allocator or "default",
    )


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


def parse_strategies(case: Case, raw: str | Iterable[str]) -> list[str]:
    """Return slugs from ``all``, ``default``, slugs, mappers (all their modes) and modes, in order, each once.
    All but ``default`` have every element function of the workload."""
    workload = case.workload
    words = raw.split(",") if isinstance(raw, str) else list(raw)
    everything = strategies.all_strategies(workload)
    mappers = {mapper.slug for mapper in strategies.mappers()}
    slugs: list[str] = []
    for word in (str(word).strip() for word in words):
        if not word:
            continue
        if word == "all":
            slugs += [strategy.slug for strategy in everything]
        elif word == "default":
            slugs += default_strategies(case)
        elif word in MODES:
            slugs += [strategy.slug for strategy in everything if strategy.mode == word]
        elif word in mappers:
            _check_offered(workload, word)
            slugs += [strategy.slug for strategy in everything if strategy.mapper == word]
        else:
            try:
                strategy = strategies.parse(word)
            except ValueError as error:
                raise RequestError(str(error)) from None
            _check_offered(workload, strategy.mapper, strategy.element)
            slugs.append(strategy.slug)
    if not slugs:
        raise RequestError("no strategy is chosen: name at least one, or 'default', or 'all'")
    return list(dict.fromkeys(slugs))


def _check_offered(workload: Workload, mapper: str, element: str | None = None) -> None:
    if lacking := strategies.missing(strategies.mapper(mapper), workload, element):
        valid = f": it has {', '.join(workload.elements)}" if element and workload.elements else ""
        raise RequestError(f"{mapper} needs {lacking}, which {workload.slug} does not have{valid}")


def parse_budget(value: Any) -> float:
    """Return the seconds from the start of a run to its verdict."""
    try:
        budget_s = float(value)
    except (TypeError, ValueError, OverflowError):
        budget_s = math.nan
    if not 1.0 <= budget_s <= MOST_BUDGET_S:  # NaN fails this too
        raise RequestError(f"budget {value} is not valid: seconds from 1 to {MOST_BUDGET_S:.0f} are needed")
    return budget_s


def parse_dtype(workload: Workload, value: Any) -> str:
    """Return the dtype of the inputs; the workload's first one where none is given."""
    dtype = str(value or workload.dtypes[0])
    if dtype not in workload.dtypes:
        raise RequestError(f"dtype {dtype!r} is not valid for {workload.slug}: {', '.join(workload.dtypes)} are")
    return dtype


def parse_seed(value: Any) -> int:
    """Return the seed of the inputs."""
    return _whole("seed", value or 0, 0, MOST_SEED)


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise RequestError(f"{name}={value!r} is not valid: names with their values are needed")
    return value or {}


def again(request: Request, **changes: Any) -> Request:
    """A request that was made, perhaps elsewhere and long ago, as it can be measured here and now, with ``changes`` of
    its fields. Older ones, which name no allocator, had the default one. Raises `RequestError`."""
    former = replace(request, allocator=request.allocator or "default", **changes)
    return parse({name: getattr(former, name) for name in former.__struct_fields__})


def parse(raw: Mapping[str, Any]) -> Request:
    """Return a valid `Request` from the keys of a run file's request, all of which but ``workload`` have defaults.

    Raises `RequestError` with one sentence. Sizes that cannot fit into memory are a matter of `fit`, which depends on
    the machine.
    """
    fields = set(Request.__struct_fields__)
    for key in raw:
        if key not in fields:
            raise RequestError(f"a request has no field {key!r}: its fields are {', '.join(sorted(fields))}")
    if "workload" not in raw:
        raise RequestError(f"no workload is named: choose one of {', '.join(workloads.names())}")
    workload = parse_workload(raw["workload"])
    size = parse_size(workload, _mapping("size", raw.get("size")))
    options = parse_options(workload, raw.get("workload_options"))
    dtype = parse_dtype(workload, raw.get("dtype"))
    device = parse_device(raw.get("device") or "CPU:0")
    seed = parse_seed(raw.get("seed"))
    case = Case(workload, size, dtype, options, device, seed)
    if max(case.input_bytes, case.output_bytes) > MOST_BYTES:
        raise RequestError(
            f"size {', '.join(f'{k}={v}' for k, v in size.items())} is too large: its output alone is "
            f"{case.output_bytes / 2**40:.0f} TiB"
        )
    limit = raw.get("memory_limit_mib")
    if limit is not None:
        limit = _whole("memory limit", limit, 1, 2**24)
        if limit * 2**20 < case.read_bytes:
            raise RequestError(f"memory limit {limit} MiB is below the inputs: they take {text.size(case.read_bytes)}")
    threads, chosen = raw.get("threads"), raw.get("strategies")
    if chosen is not None and not isinstance(chosen, str | list | tuple):
        raise RequestError(f"strategies={chosen!r} is not valid: a list of slugs is needed")
    slugs = parse_strategies(case, "default" if chosen is None else chosen)
    if raw.get("budget_s") is not None:
        budget_s = parse_budget(raw["budget_s"])
    else:
        needed_s = forecast.forecast_run(case, slugs).seconds
        budget_s = float(max(DEFAULT_BUDGET_S, math.ceil(needed_s + _SAMPLING_S)))
    allocator: Any = raw.get("allocator") or "pool"
    if allocator not in ALLOCATORS:
        raise RequestError(f"allocator {allocator!r} is not valid: {' or '.join(ALLOCATORS)} is needed")
    return Request(
        workload=workload.slug,
        workload_options=options,
        size=size,
        dtype=dtype,
        device=device,
        strategies=slugs,
        budget_s=budget_s,
        memory_limit_mib=limit,
        threads=None if threads is None else _whole("threads", threads, 1, MOST_THREADS),
        seed=seed,
        allocator=allocator,
    ).record()
