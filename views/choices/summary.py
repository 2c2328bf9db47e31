"""Choices in a few words. Pure."""

from typing import Any

from measure.model.request import Request, case_of
from measure.sweep.request import SweepRequest
from views.choices import address

_NAMES = {"budget": "time budget", "memory_limit": "memory limit", "sweep_2": "second axis"}
_UNITS = {"budget": " s", "memory_limit": " MiB"}


def line(request: Request | SweepRequest) -> str:
    """image_sqrt · 100×64×64×3 · float32 · CPU:0 · 12 strategies, or what is swept in place of the shape."""
    base = request.base if isinstance(request, SweepRequest) else request
    about = _swept(request) if isinstance(request, SweepRequest) else [_shape(base)]
    count = len(base.strategies)
    return " · ".join((base.workload, *about, base.dtype, base.device, f"{count} strateg{'ies' if count > 1 else 'y'}"))


def _shape(request: Request) -> str:
    case = case_of(request)
    leaf = case.leaves(case.workload.element_input)[0]
    return "×".join(str(side) for side in (case.batch, *leaf.shape))


def _swept(request: SweepRequest) -> list[str]:
    swept = [f"{axis.name} {axis.values[0]:,} to {axis.values[-1]:,}" for axis in request.axes]
    names = {axis.name for axis in request.axes}
    return [*swept, *(f"{name} {value:,}" for name, value in request.base.size.items() if name not in names)]


def choice(key: str, value: Any) -> str:
    """Return a choice of a form with its name: batch 100, memory limit 64 MiB, 12 strategies."""
    if key == "strategies":
        return f"{len(value)} strategies" if len(value) > 1 else str(value[0]) if value else "no strategies"
    name = _NAMES.get(key, key).removeprefix("size_").removeprefix("option_").replace("_2", " of the second axis")
    if value is None:
        return f"no {name}"
    return f"{name} {', '.join(address.texts(value))}{_UNITS.get(key, '')}"
