"""The workloads: functions that are mapped, one file each.

A file with a module-level ``WORKLOAD``, here also a tuple of several, is all that a new one takes. Besides this
package, ``workloads`` in the folder of what is kept is looked through, and so are the folders, or single files, of
the environment variable MAPBENCH_WORKLOADS. Such files are executed by whoever measures, as a test
runner does with its plug-ins.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
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


def _mapped(workload: Workload) -> list[Callable[..., Any]]:
    """The functions of a workload that are handed tensors, or arrays in their place."""
    functions = [workload.element, *workload.elements.values(), *workload.rewrites.values()]
    return functions + [function for function in (workload.numpy_element, workload.use) if function is not None]


def check(workload: Workload) -> None:
    """Raise ValueError or TypeError with a sentence where a workload's parts do not fit together."""
    discovery.check_slug(workload.slug)
    bounds = {parameter.name: parameter for parameter in workload.sizes}
    if "batch" not in bounds:
        raise ValueError(f"{workload.slug} has the sizes {', '.join(bounds) or 'none'}: one must be 'batch'")
    for parameter in workload.sizes:
        if not parameter.least <= parameter.default <= parameter.most:
            raise ValueError(
                f"{workload.slug}: the default of {parameter.name} is {parameter.default}: "
                f"it must lie from {parameter.least} to {parameter.most}"
            )
    for preset, size in workload.presets.items():
        for name, value in size.items():
            if name not in bounds or not bounds[name].least <= value <= bounds[name].most:
                raise ValueError(f"{workload.slug}: preset {preset!r} has {name}={value}, which is no valid size")
    if not workload.dtypes:
        raise ValueError(f"{workload.slug} has no dtypes: at least one is needed")
    choices = {option.name: option.values or () for option in workload.options}
    for chosen in ({}, *({name: value} for name, variants in workload.variants.items() for value in variants)):
        for name, value in chosen.items():
            if value not in choices.get(name, ()):
                raise ValueError(f"{workload.slug}: there is a variant for {name}={value}, which is no valid option")
        _check_case(Case(workload, workload.default_size(), workload.dtypes[0], chosen))


def _check_case(case: Case) -> None:
    """Check the functions that a workload has with these options, and what those of its metadata give."""
    workload = case.workload
    if workload.reference is None and "numpy" not in workload.rewrites:
        raise ValueError(f"{workload.slug} has no reference: give one, or a rewrite 'numpy', which is taken in float64")
    if (workload.variables is None) != (workload.variable_leaves is None):
        raise ValueError(f"{workload.slug}: variables and variable_leaves go together: give both, or neither")
    makers = [function for function in (workload.inputs, workload.variables) if function is not None]
    right = [workload.reference] if workload.reference else []
    for function in (*_mapped(workload), *makers, *right, *workload.helpers):
        discovery.check_sourced(function)
        if function.__name__ in RESERVED:
            raise ValueError(
                f"{workload.slug}: a function is named {function.__name__!r}: "
                f"choose a name other than {', '.join(RESERVED)}, which every script uses itself"
            )
    for kind, named in (("rewrite", workload.rewrites), ("element function", workload.elements)):
        for name in named:
            discovery.check_slug(name, f"{workload.slug}: {kind}")
    for function in makers:
        case.arguments(function)
    for function in _mapped(workload):
        case.keywords(function)
    most = {parameter.name: parameter.most for parameter in workload.sizes}
    for of_size in (case, replace(case, size=most)):
        for shapes in (workload.element_input, workload.element_output, workload.output, workload.variable_leaves):
            try:
                of_size.leaves(shapes)
            except (TypeError, ValueError) as error:
                raise TypeError(f"{workload.slug}: {getattr(shapes, '__name__', '')}: {error}") from None
        if not isinstance(of_size.cost, Cost):
            raise TypeError(f"{workload.slug}: {workload.cost.__name__} gives {of_size.cost!r}: a Cost is needed")


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
    known = _by_slug()
    if slug not in known:
        raise UnknownWorkload(f"workload {slug!r} is not known: choose one of {', '.join(known)}")
    return known[slug]


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
