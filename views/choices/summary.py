"""Choices in a few words. Pure."""

from typing import Any

from measure.judge import answer
from measure.run.request import Request
from measure.run.sweep_request import SweepRequest
from views.choices import address

# In place of a second size, where one is swept alone.
NOTHING = "nothing"
_UNITS = {"budget": " s", "memory_limit": " MiB"}


def line(request: Request | SweepRequest) -> str:
    """image_sqrt · 100×64×64×3 · float32 · CPU:0 · 12 strategies"""
    base, axes = (request.base, request.axes) if isinstance(request, SweepRequest) else (request, ())
    return f"{answer.asked_case(base.record(), axes)} · {choice('strategies', base.strategies)}"


def choice(key: str, value: Any) -> str:
    """Return a choice of a form with its name: batch 100, memory limit 64 MiB, 12 strategies."""
    if key == "strategies":
        return f"{len(value)} strategies" if len(value) != 1 else value[0]
    name = key.removeprefix("size_").removeprefix("option_").replace("_", " ")
    if name.endswith(" 2"):  # of the second axis of a sweep
        name = f"second {name.removesuffix(' 2')}"
    if value is None or value == NOTHING:
        return f"no {name}"
    return f"{name} {', '.join(address.spelled(value))}{_UNITS.get(key, '')}"
