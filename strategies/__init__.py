"""The mappers: ways in which a function is mapped, one file each.

A file with a module-level ``MAPPER``, here also a tuple of a family, is all that a new one takes; where those of a
person's own are looked for is said in `workloads.discovery`.
"""

import functools
from collections.abc import Hashable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import workloads
from strategies import rewrites
from strategies.conversions import is_ragged
from strategies.spec import ELEMENT, MODES, Mapper, Strategy
from workloads import discovery
from workloads.case import Case
from workloads.spec import Workload


def check(mapper: Mapper) -> None:
    """Raise ValueError with a sentence where a mapper's parts do not fit together."""
    discovery.check_slug(mapper.slug)
    if not mapper.modes or not set(mapper.modes) <= set(MODES):
        raise ValueError(
            f"{mapper.slug} has the modes {', '.join(mapper.modes) or 'none'}: {', '.join(MODES)} are known"
        )
    if (mapper.apply is None) == (mapper.rewrite is None):
        raise ValueError(f"{mapper.slug}: a mapper has either apply or the name of a rewrite")
    for function in filter(None, (mapper.apply, mapper.apply_ragged)):
        workloads.check_function(mapper.slug, function)


_discovery = discovery.Discovery(__name__, "MAPPER", Mapper, "MAPBENCH_MAPPERS", "mappers", check)


def _by_slug() -> Mapping[str, Mapper]:
    return _with_rewrites(_discovery.find(), workloads.version())


@functools.lru_cache(maxsize=1)
def _with_rewrites(offers: discovery.Offers[Mapper], version: Hashable) -> Mapping[str, Mapper]:
    """The mappers of files, then those of rewrites with a name of their own in the workloads of a version, in order."""
    by_slug = {**rewrites.mappers_of(workloads.all(), offers.items.values()), **offers.items}
    return dict(sorted(by_slug.items(), key=lambda item: (item[1].order, item[0])))


def mappers() -> tuple[Mapper, ...]:
    return tuple(_by_slug().values())


def mapper(slug: str) -> Mapper:
    """Return the mapper with this slug; ValueError with a sentence where there is none."""
    by_slug = _by_slug()
    if slug not in by_slug:
        raise ValueError(f"mapper {slug!r} is not known: choose one of {', '.join(by_slug)}")
    return by_slug[slug]


def broken() -> Mapping[str, str]:
    return _discovery.find().broken


def version() -> Hashable:
    """Return a value that differs as soon as a file of a person's own, a workload or a mapper, is another one."""
    return workloads.version(), _discovery.find()


# --- what is offered -------------------------------------------------------------------------------------------------


def missing(mapper: Mapper, workload: Workload, element: str | None = None) -> str | None:
    """Return the sentence that says what the mapper needs and the workload, with its options applied, does not have;
    None where nothing is missing. ``element`` is the name of a further element function."""
    if element is not None and element not in workload.elements:
        needed = f"an element function {element!r}"
    elif mapper.rewrite is not None and mapper.rewrite not in workload.rewrites:
        needed = f"a rewrite {mapper.rewrite!r}"
    elif mapper.element == "numpy_element" and workload.numpy_element is None:
        needed = "an element function in NumPy"
    else:
        return None
    further = f": it has {', '.join(workload.elements)}" if element and workload.elements else ""
    return f"{mapper.slug} needs {needed}, which {workload.slug} does not have{further}"


def unsupported(strategy: Strategy, workload: Workload) -> str | None:
    """Return the sentence that says why the strategy cannot work for the workload; None where it may."""
    chosen, mode = mapper(strategy.mapper), strategy.mode
    if mode in chosen.unsupported:
        return chosen.unsupported[mode]
    # The facts of a user function name the mappers of that time: a later one counts as one of its kind.
    kind = "loop" if chosen.side_effects == "per element" else "vectorized_map"
    for pattern, why in workload.unsupported.items():
        if fnmatchcase(f"{strategy.mapper}.{mode}", pattern):
            return why
        if workload.own and chosen.takes_elements and fnmatchcase(f"{kind}.{mode}", pattern):
            return why if chosen.side_effects else f"{why}: {chosen.slug} does not set side_effects"
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
    made: list[Strategy] = []
    for mapper in (mapper for mapper in mappers() if missing(mapper, workload) is None):
        further = [{ELEMENT: name} for name in workload.elements if mapper.takes_elements]
        made += [Strategy(mapper.slug, mode, options) for options in ({}, *further) for mode in mapper.modes]
    return made


def parse(slug: str) -> Strategy:
    """Return the strategy written as ``mapper.mode?option=value&…``, its options sorted and defaults left out. Raises
    ValueError with one sentence."""
    head, question, tail = slug.strip().partition("?")
    name, _, mode = head.partition(".")
    pairs = [pair.partition("=") for pair in tail.split("&")] if question else []
    if not name or not mode or not all(option and equals for option, equals, _ in pairs):
        raise ValueError(f"strategy {slug!r} is malformed: write mapper.mode or mapper.mode?option=value&option=value")
    chosen = mapper(name)
    if mode not in chosen.modes:
        raise ValueError(f"{name} has no mode {mode!r}: choose one of {', '.join(chosen.modes)}")
    options = {option.name: option for option in chosen.options}
    values: dict[str, Any] = {}
    for option, _, text in sorted(pairs):
        if option in values:
            raise ValueError(f"strategy {slug!r} gives {option} twice: give it once")
        if option in options:
            values[option] = options[option].parse(text)
        elif option == ELEMENT and chosen.takes_elements:
            discovery.check_slug(text, ELEMENT)
            values[option] = text
        else:
            valid = f"its options are {', '.join(options)}" if options else "it has none"
            raise ValueError(f"{name} has no option {option!r}: {valid}")
    defaults = {option.name: option.default for option in chosen.options}
    return Strategy(name, mode, {option: value for option, value in values.items() if value != defaults.get(option)})
