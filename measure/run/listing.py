"""The list of all that can be compared: every workload × mapper × mode, for people and as data."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

import strategies
import workloads
from measure.run.request import default_strategies
from strategies.spec import MODES, Mapper, Strategy
from workloads.case import Case
from workloads.spec import Workload


def lines(devices: Sequence[str]) -> Iterator[str]:
    for workload in workloads.all():
        yield f"{workload.slug}  {workload.summary}"
        yield f"    {workload.formula}"
        for parameter in workload.sizes:
            bounds = f"{parameter.least} to {parameter.most}"
            yield f"    --size {parameter.name}={parameter.default}  ({bounds}) {parameter.help}"
        for option in workload.options:
            yield f"    --workload-option {option.name}={option.default}  {option.help}"
        if workload.elements:
            yield f"    ?element={' | '.join(workload.elements)}  written in another way"
        yield f"    --dtype {' | '.join(workload.dtypes)}"
    yield ""
    for mapper in strategies.mappers():
        yield f"{mapper.slug}  {mapper.summary}"
        yield f"    {'  '.join(f'{mapper.slug}.{mode}' for mode in mapper.modes)}"
        for option in mapper.options:
            yield f"    ?{option.name}={option.default}  {option.help}"
    yield ""
    yield f"devices: {', '.join(devices)}"


def broken() -> dict[str, str]:
    return {**workloads.broken(), **strategies.broken()}


def grid(devices: Sequence[str]) -> dict[str, Any]:
    of_mapper = ("slug", "title", "summary", "modes", "default_modes", "options", "rewrite")
    return {
        "workloads": [_workload(workload) for workload in workloads.all()],
        "mappers": [_fields(mapper, *of_mapper) for mapper in strategies.mappers()],
        "modes": list(MODES),
        "devices": list(devices),
        "broken": broken(),
    }


def _workload(workload: Workload) -> dict[str, Any]:
    cases = (Case(workload, workload.default_size(), workload.dtypes[0], options) for options in workload.choices())
    return {
        **_fields(workload, "slug", "title", "group", "formula", "summary", "sizes", "dtypes", "options"),
        "presets": {name: dict(size) for name, size in workload.presets.items()},
        "rewrites": list(workload.rewrites),
        "elements": list(workload.elements),
        "grid": [{"options": case.options, "cells": list(_cells(case))} for case in cases],
    }


def _fields(item: Workload | Mapper, *names: str) -> dict[str, Any]:
    return {name: msgspec.to_builtins(getattr(item, name)) for name in names}


def _cells(case: Case) -> Iterator[dict[str, Any]]:
    """Every mapper in every mode; those that are ``default`` are measured where nobody chooses, at the default size."""
    chosen = default_strategies(case)
    for mapper, mode in itertools.product(strategies.mappers(), MODES):
        reason = strategies.missing(mapper, case.workload)
        if reason is None and mode not in mapper.modes:
            reason = f"{mapper.slug} has no mode {mode}: it has {', '.join(mapper.modes)}"
        reason = reason or strategies.unsupported(Strategy(mapper.slug, mode), case.workload)
        slug = f"{mapper.slug}.{mode}"
        cell = {"strategy": slug, "mapper": mapper.slug, "mode": mode, "supported": reason is None, "reason": reason}
        yield cell | {"default": reason is None and slug in chosen}
