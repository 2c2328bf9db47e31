"""The workloads: functions that are mapped, one file each.

A file with a module-level ``WORKLOAD``, here also a tuple of several, is all that a new one takes. Besides this
package, ``workloads`` in the folder of what is kept is looked through, and so are the folders, or single files, of
the environment variable MAPBENCH_WORKLOADS. Such files are executed by whoever measures, as a test
runner does with its plug-ins.
"""

from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

from workloads import discovery, functions
from workloads.case import Case
from workloads.spec import Cost, Workload

# Only the script builder's own names: a workload's function of that name would be shadowed by them.
RESERVED = ("np", "tf", "elems", "signature", "fn", "mapped", "strategy", "variables", "outputs", "reference_output")


class UnknownWorkload(KeyError):
    """No workload has this slug; the message names those that there are."""

    def __str__(self) -> str:
        return str(self.args[0])


def check(workload: Workload) -> None:
    """Raise ValueError or TypeError with a sentence where a workload's parts do not fit together."""
    discovery.check_slug(workload.slug)
    bounds = {parameter.name: parameter for parameter in workload.sizes}
    if "batch" not in bounds:
        raise ValueError(f"{workload.slug} has the sizes {', '.join(bounds) or 'none'}: one must be 'batch'")
    if not workload.dtypes:
        raise ValueError(f"{workload.slug} has no dtypes: at least one is needed")
    for what, size in {"the default": workload.default_size(), **workload.presets}.items():
        for name, value in size.items():
            if name not in bounds or not bounds[name].least <= value <= bounds[name].most:
                raise ValueError(f"{workload.slug}: {what} has {name}={value}, which is no valid size")
    for kind, named in (("rewrite", workload.rewrites), ("element function", workload.elements)):
        for name in named:
            discovery.check_slug(name, f"{workload.slug}: {kind}")
    case = Case(workload, workload.default_size(), workload.dtypes[0])
    for function in filter(None, (workload.inputs, workload.variables)):
        check_function(workload.slug, function)
        case.arguments(function)
    mapped = (workload.element, *workload.elements.values(), *workload.rewrites.values(), workload.numpy_element)
    for function in filter(None, (*mapped, workload.use, workload.reference)):
        check_function(workload.slug, function)
        case.keywords(function)
    for shapes in (workload.element_input, workload.element_output, workload.output, workload.variable_leaves):
        case.leaves(shapes)
    if not isinstance(case.cost, Cost):
        raise TypeError(f"{workload.slug}: {workload.cost.__name__} gives {case.cost!r}: a Cost is needed")


def check_function(owner: str, function: Callable[..., Any]) -> None:
    """Raise ValueError with a sentence where a script cannot hold a function of a workload or a mapper."""
    discovery.check_sourced(function)
    if function.__name__ in RESERVED:
        raise ValueError(
            f"{owner}: a function is named {function.__name__!r}: "
            f"choose a name other than {', '.join(RESERVED)}, which every script uses itself"
        )


# Folders, or single files, of further workloads.
VARIABLE = "MAPBENCH_WORKLOADS"

# In the order in which they are shown; a workload from elsewhere may name another.
GROUPS = ("Elementwise", "Reductions", "Images", "Text", "Gradients", "Networks", "Linear algebra", "Limits")


def _place(workload: Workload) -> tuple[int, str]:
    return GROUPS.index(workload.group) if workload.group in GROUPS else len(GROUPS), workload.slug


_discovery = discovery.Discovery(__name__, "WORKLOAD", Workload, VARIABLE, "workloads", check, _place)


def _by_slug() -> Mapping[str, Workload]:
    own = functions.workloads()
    return {**_discovery.find().items, **own} if own else _discovery.find().items


def all() -> tuple[Workload, ...]:
    """Return every workload: the package's by group and slug, then those of a person's own files."""
    return tuple(_by_slug().values())


def names() -> tuple[str, ...]:
    """Return every workload's slug, in the order of `all`."""
    return tuple(_by_slug())


def get(slug: str) -> Workload:
    """Return the workload with this slug; `UnknownWorkload` (a KeyError) where there is none."""
    by_slug = _by_slug()
    if slug not in by_slug:
        raise UnknownWorkload(f"workload {slug!r} is not known: choose one of {', '.join(by_slug)}")
    return by_slug[slug]


def load_file(path: str | Path) -> Workload:
    """Execute one file, and return its workload; `discovery.DiscoveryError` with a sentence."""
    return _discovery.load_file(path)


def in_file(path: str | Path) -> str:
    """Return the slug of the workload in a file of those that are looked through; else `discovery.DiscoveryError`."""
    return _discovery.slug_in(path)


def files() -> Mapping[str, str]:
    """Return path → slug of the workload for each file of a person's own that can be used."""
    return _discovery.find().slugs


def version() -> Hashable:
    """Return a value that differs as soon as a file of a person's own is another than before."""
    return _discovery.find(), functions.version()


def broken() -> Mapping[str, str]:
    """Return path → sentence for each file of a person's own that cannot be used."""
    return _discovery.find().broken
