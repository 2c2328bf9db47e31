"""The mappers: ways in which a function is mapped, one file each.

A file with a module-level ``MAPPER``, here also a tuple of a family, is all that a new one takes. Besides this
package, ``mappers`` in the folder of what is kept is looked through, and so are the folders, or single files, of the
environment variable MAPBENCH_MAPPERS. Such files are executed by whoever measures, as a test
runner does with its plug-ins.
"""

import functools
from collections.abc import Hashable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import workloads
from strategies import rewrites
from strategies.conversions import is_ragged
from strategies.spec import ELEMENT, MODES, Mapper, Strategy
from workloads import discovery
from workloads.case import Case
from workloads.spec import Workload


class StrategyError(ValueError):
    """A strategy's slug is not valid: the message names what was wrong and what is valid."""


def check(mapper: Mapper) -> None:
    """Raise ValueError with a sentence where a mapper's parts do not fit together."""
    discovery.check_slug(mapper.slug)
    if not mapper.modes or not set(mapper.modes) <= set(MODES):
        raise ValueError(
            f"{mapper.slug} has the modes {', '.join(mapper.modes) or 'none'}: {', '.join(MODES)} are known"
        )
    if not set(mapper.default_modes) <= set(MODES) or not set(mapper.unsupported) <= set(mapper.modes):
        raise ValueError(f"{mapper.slug}: default_modes and unsupported name modes that it does not have")
    if (mapper.apply is None) == (mapper.rewrite is None):
        raise ValueError(f"{mapper.slug}: a mapper has either apply or the name of a rewrite")
    if any(option.name == ELEMENT for option in mapper.options):
        raise ValueError(f"{mapper.slug}: an option is named {ELEMENT!r}, which is every mapper's: choose another name")
    for function in filter(None, (mapper.apply, mapper.apply_ragged)):
        workloads.check_function(mapper.slug, function)


_discovery = discovery.Discovery(__name__, "MAPPER", Mapper, "MAPBENCH_MAPPERS", "mappers", check)


def _by_slug() -> Mapping[str, Mapper]:
    return _with_rewrites(_discovery.find(), workloads.version())


@functools.lru_cache(maxsize=1)
def _with_rewrites(offers: discovery.Offers[Mapper], version: Hashable) -> Mapping[str, Mapper]:
    """The mappers of files, then those of rewrites with a name of their own in the workloads of a version."""
    return {**offers.items, **rewrites.mappers_of(workloads.all(), offers.items)}


def mappers() -> tuple[Mapper, ...]:
    """Return every mapper, in order."""
    return tuple(sorted(_by_slug().values(), key=lambda mapper: (mapper.order, mapper.slug)))


def mapper(slug: str) -> Mapper:
    """Return the mapper with this slug; `StrategyError` where there is none."""
    by_slug = _by_slug()
    if slug not in by_slug:
        raise StrategyError(f"mapper {slug!r} is not known: choose one of {', '.join(by_slug)}")
    return by_slug[slug]


def load_file(path: str | Path) -> Mapper:
    """Execute one file, and return its mapper; `discovery.DiscoveryError` with a sentence."""
    return _discovery.load_file(path)


def broken() -> Mapping[str, str]:
    """Return path → sentence for each file of a person's own that cannot be used, or of which a rewrite cannot."""
    offers = _discovery.find()
    sentences = dict(offers.broken)
    for path, slug in workloads.files().items():
        if refused := rewrites.refusals(workloads.get(slug), offers.items):
            sentences[path] = f"{path}: {'; '.join(refused)}"
    return sentences


def version() -> Hashable:
    """Return a value that differs as soon as a file of a person's own, a workload or a mapper, is another one."""
    return workloads.version(), _discovery.find()


def offered(mapper: Mapper, workload: Workload) -> bool:
    """Return True if the workload, with its options applied, has what the mapper needs."""
    return missing(mapper, workload) is None


def missing(mapper: Mapper, workload: Workload, element: str | None = None) -> str | None:
    """Return what the mapper needs and the workload does not have, in words; None where nothing is missing.
    ``element`` is the name of a further element function."""
    if element is not None and element not in workload.elements:
        return f"an element function {element!r}"
    if mapper.rewrite is not None and mapper.rewrite not in workload.rewrites:
        return f"a rewrite {mapper.rewrite!r}"
    if mapper.element == "numpy_element" and workload.numpy_element is None:
        return "an element function in NumPy"
    return None


def unsupported(strategy: Strategy, workload: Workload) -> str | None:
    """Return the sentence that says why the strategy cannot work for the workload; None where it may."""
    chosen, mode = mapper(strategy.mapper), strategy.mode
    patterns = {f"{strategy.mapper}.{mode}": chosen.unsupported.get(mode), **workload.unsupported}
    for pattern, why in patterns.items():
        if why and fnmatchcase(f"{strategy.mapper}.{mode}", pattern):
            return why
    case = Case(workload, workload.default_size(), workload.dtypes[0])
    elements, results = case.leaves(workload.element_input), case.leaves(workload.element_output)
    for leaves, what in ((elements, "elements"), (results, "results")):
        if mode == "xla" and any(leaf.dtype == "string" for leaf in leaves):
            return f"XLA takes no text, which the {what} are"
    if chosen.apply is None or not is_ragged([*elements, *results]):
        return None
    if mode in chosen.one_shape:
        return chosen.one_shape[mode]
    if is_ragged(results) and chosen.apply_ragged is None:
        return f"{chosen.title} stacks results of one shape, and the lengths of these differ"
    return None


def all_strategies(workload: Workload) -> list[Strategy]:
    """Return every offered mapper in each of its modes, of each of the element functions, with default options."""
    return [
        strategy
        for mapper in mappers()
        if offered(mapper, workload)
        for element in elements(mapper, workload)
        for strategy in of_mapper(mapper, element)
    ]


def elements(mapper: Mapper, workload: Workload) -> tuple[str | None, ...]:
    """Return the names of the workload's element functions that a mapper can map, None for ``element`` itself first."""
    return (None, *workload.elements) if mapper.takes_elements else (None,)


def of_mapper(mapper: Mapper, element: str | None = None) -> list[Strategy]:
    """Return a mapper in each of its modes with default options, of one element function."""
    return [Strategy(mapper.slug, mode, {ELEMENT: element} if element else {}) for mode in mapper.modes]


def parse(slug: str) -> Strategy:
    """Return the strategy written as ``mapper.mode?option=value&…``, its options sorted and defaults left out.

    Raises `StrategyError` with one sentence.
    """
    head, question, tail = slug.strip().partition("?")
    name, dot, mode = head.partition(".")
    if not name or not dot or not mode or (question and not tail):
        raise StrategyError(
            f"strategy {slug!r} is malformed: write mapper.mode or mapper.mode?option=value&option=value"
        )
    chosen = mapper(name)
    if mode not in chosen.modes:
        raise StrategyError(f"{name} has no mode {mode!r}: choose one of {', '.join(chosen.modes)}")
    return Strategy(name, mode, _options(chosen, slug, tail.split("&") if tail else []))


def _options(mapper: Mapper, slug: str, pairs: list[str]) -> dict[str, Any]:
    options = {option.name: option for option in mapper.options}
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise StrategyError(f"strategy {slug!r} is malformed: {pair!r} should read option=value")
        if name not in options and not (name == ELEMENT and mapper.takes_elements):
            valid = f"its options are {', '.join(options)}" if options else "it has none"
            raise StrategyError(f"{mapper.slug} has no option {name!r}: {valid}")
        if name in values:
            raise StrategyError(f"strategy {slug!r} gives {name} twice: give it once")
        try:
            if name not in options:
                discovery.check_slug(text, name)
            values[name] = options[name].parse(text) if name in options else text
        except ValueError as error:
            raise StrategyError(f"{mapper.slug}: {error}") from None
    return {
        name: values[name] for name in sorted(values) if name not in options or values[name] != options[name].default
    }
