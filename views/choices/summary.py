"""Choices in a few words. Pure."""

from collections.abc import Sequence
from typing import Any

from measure.judge import answer
from measure.run.request import Request
from measure.run.sweep_request import SweepRequest
from views.choices import address, texts

# In place of a second size, where one is swept alone.
NOTHING = "nothing"


def line(request: Request | SweepRequest) -> str:
    """image_sqrt · 100×64×64×3 · float32 · CPU:0 · 12 strategies"""
    base, axes = (request.base, request.axes) if isinstance(request, SweepRequest) else (request, ())
    return f"{answer.asked_case(base.record(), axes)} · {_strategies(base.strategies)}"


def _strategies(slugs: Sequence[str]) -> str:
    return texts.STRATEGY_COUNT.format(count=len(slugs)) if len(slugs) != 1 else slugs[0]


def choice(key: str, value: Any) -> str:
    """Return a choice of a form with its name: batch 100, memory limit 64 MiB, 12 strategies."""
    if key == "strategies":
        return _strategies(value)
    name = texts.FIELD_NAMES.get(key, key).removeprefix("size_").removeprefix("option_")
    if value is None or (key == "sweep_2" and value == NOTHING):
        return texts.NO_CHOICE.format(name=name)
    return f"{name} {', '.join(address.spelled(value))}{texts.FIELD_UNITS.get(key, '')}"
