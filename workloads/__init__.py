"""The workloads: functions that are mapped, one file each.

A file with a module-level ``WORKLOAD``, here also a tuple of several, is all that a new one takes; where those of a
person's own are looked for is said in `workloads.discovery`.
"""

import inspect
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from workloads import discovery, functions
from workloads.case import Case
from workloads.spec import Workload

# Only the script builder's own names: a workload's function of that name would be shadowed by them.
RESERVED = ("np", "tf", "elems", "signature", "fn", "mapped", "strategy", "variables", "outputs", "reference_output")


def check(workload: Workload) -> None:
    """Raise ValueError with a sentence, or what a function of the file raises, where a workload's parts do not fit
    together."""
    bounds = {parameter.name: parameter for parameter in workload.sizes}
    if "batch" not in bounds:
        raise ValueError(f"{workload.slug} has the sizes {', '.join(bounds) or 'none'}: one must be 'batch'")
    for what, size in {"the default": workload.default_size(), **workload.presets}.items():
        for name, value in size.items():
            if name not in bounds or not bounds[name].least <= value <= bounds[name].most:
                raise ValueError(f"{workload.slug}: {what} has {name}={value}, which is no valid size")
    for what, names in {"rewrite": workload.rewrites, "element function": workload.elements}.items():
        for name in names:
            discovery.check_slug(name, f"{workload.slug}: {what}")
    case = Case(workload, workload.default_size(), workload.dtypes[0])
    mapped = (workload.element, *workload.elements.values(), *workload.rewrites.values(), workload.numpy_element)
    for function in filter(None, (*mapped, workload.use, workload.reference)):
        check_function(workload.slug, function)
        case.keywords(function)
    for function in filter(None, (workload.inputs, workload.variables)):
        check_function(workload.slug, function)
        case.arguments(function)
    discovery.check_slug(workload.slug)
    # Whoever makes a forecast asks for all of these.
    assert case.tensor_bytes + case.cost.ops + case.cost.depth >= 0


def check_function(owner: str, function: Callable[..., Any]) -> None:
    """Raise ValueError with a sentence where a script cannot hold a function of a workload or a mapper."""
    if not inspect.isfunction(function) or function.__name__ == "<lambda>" or function.__closure__:
        raise ValueError(f"{function!r} cannot be put into a script: a top-level 'def' can")
    if function.__name__ in RESERVED:
        raise ValueError(
            f"{owner}: a function is named {function.__name__!r}: "
            f"choose a name other than {', '.join(RESERVED)}, which every script uses itself"
        )


# Folders, or single files, of further workloads.
VARIABLE = "MAPBENCH_WORKLOADS"

# In the order in which they are shown; a workload from elsewhere may name another.
GROUPS = ("Elementwise", "Reductions", "Images", "Text", "Gradients", "Networks", "Linear algebra", "Limits")

_discovery = discovery.Discovery(
    *(__name__, "WORKLOAD", Workload, VARIABLE, "workloads", check),
    order=lambda workload: (GROUPS.index(workload.group), workload.slug),
)


def _by_slug() -> Mapping[str, Workload]:
    return {**_discovery.find().items, **functions.workloads()}


def all() -> tuple[Workload, ...]:
    """Return every workload: the package's by group and slug, then those of a person's own files."""
    return tuple(_by_slug().values())


def names() -> tuple[str, ...]:
    return tuple(_by_slug())


def get(slug: str) -> Workload:
    """Return the workload with this slug; `discovery.DiscoveryError` where there is none."""
    by_slug = _by_slug()
    if slug not in by_slug:
        raise discovery.DiscoveryError(f"workload {slug!r} is not known: choose one of {', '.join(by_slug)}")
    return by_slug[slug]


load_file, in_file = _discovery.load_file, _discovery.slug_in


def version() -> Hashable:
    """Return a value that differs as soon as a file of a person's own is another than before."""
    return _discovery.find(), functions.version()


def broken() -> Mapping[str, str]:
    return _discovery.find().broken
