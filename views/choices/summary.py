"""Choices in a few words. Pure."""

from collections.abc import Sequence
from typing import Any

from measure.judge import answer
from measure.model.request import Request
from measure.sweep.request import SweepRequest
from views.choices import address

# In place of a second size, where one is swept alone.
NOTHING = "nothing"
_NAMES = {"budget": "time budget", "memory_limit": "memory limit", "sweep_2": "second size"} | {
    f"{name}_2": f"{name} of the second size" for name in ("from", "to", "points", "scale")
}
_UNITS = {"budget": " s", "memory_limit": " MiB"}


def line(request: Request | SweepRequest) -> str:
    """image_sqrt · 100×64×64×3 · float32 · CPU:0 · 12 strategies"""
    base, axes = (request.base, request.axes) if isinstance(request, SweepRequest) else (request, ())
    return f"{answer.asked_case(base.record(), axes)} · {_strategies(base.strategies)}"


def _strategies(slugs: Sequence[str]) -> str:
    return f"{len(slugs)} strategies" if len(slugs) != 1 else slugs[0]


def choice(key: str, value: Any) -> str:
    """Return a choice of a form with its name: batch 100, memory limit 64 MiB, 12 strategies."""
    if key == "strategies":
        return _strategies(value)
    name = _NAMES.get(key, key).removeprefix("size_").removeprefix("option_")
    if value is None or (key == "sweep_2" and value == NOTHING):
        return f"no {name}"
    return f"{name} {', '.join(address.texts(value))}{_UNITS.get(key, '')}"
