"""Admission to measuring: who may have how much of a server that strangers share.

Every way in asks here: buttons, links, imports and widgets all end in a request to `measure.client`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Protocol

from measure.hosting import Limits
from measure.model.request import Request, RequestError
from measure.sweep.request import SweepRequest


@dataclass(frozen=True)
class Visitor:
    """The one who asks. ``owner``: to whom runs belong; ``session``, ``address``: what they are counted by. A session
    that nothing tells from others of its address has that as its session, too."""

    owner: str = ""
    session: str = ""
    address: str = ""


# A command line, and whoever is at home.
NOBODY = Visitor()


class Going(Protocol):
    """Work that waits or is done: for whom, and the seconds that are left of it by forecast."""

    @property
    def session(self) -> str: ...

    @property
    def address(self) -> str: ...

    @property
    def left_s(self) -> float: ...


class Refused(RequestError):
    """A request that is not accepted now. ``reason``: a word for it, by which refusals are counted."""

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason


def beyond(request: Request | SweepRequest, limits: Limits) -> str | None:
    """The sentence on the first limit that a request does not keep; None where it keeps them all."""
    swept = isinstance(request, SweepRequest)
    base = request.base if isinstance(request, SweepRequest) else request
    rules: tuple[tuple[str, float | None, float | None, str], ...] = (
        ("{:,} threads were asked for", base.threads, limits.most_threads, ""),
        ("a memory limit of {:,} MiB was asked for", base.memory_limit_mib, limits.memory_mib, " MiB"),
        ("{:,} strategies were chosen", len(base.strategies), limits.most_strategies, ""),
        ("a budget of {:.10g} s was asked for", base.budget_s, limits.sweep_s if swept else limits.budget_s, " s"),
    )
    for asked, value, most, unit in rules:
        if value is not None and most is not None and value > most:
            return f"{asked.format(value)}, and this server allows {most:,}{unit}"
    if isinstance(request, SweepRequest) and limits.most_cells is not None:
        cells = len(base.strategies) * math.prod(len(axis.values) for axis in request.axes)
        if cells > limits.most_cells:
            return f"the sweep has {cells:,} cells, strategies × points, and this server allows {limits.most_cells:,}"
    return None


def admit(
    visitor: Visitor, limits: Limits, going: Sequence[Going], needed_s: float, spent_s: float, now: datetime
) -> None:
    """Raise `Refused`, which says when to come again, where a visitor can have no run of so many seconds now.
    ``going``: the work that is not done, in its order; ``spent_s``: seconds measured for the address today; ``now``:
    in UTC."""
    if visitor == NOBODY:
        return
    mine = [work for work in going if work.session == visitor.session != ""]
    neighbours = [work for work in going if work.address == visitor.address != ""]
    for reason, works, most, whose in (
        ("session", mine, limits.session_runs, " of yours"),
        ("address", neighbours, limits.address_runs, " of your address"),
        ("queue", going, limits.queue_length, ""),
    ):
        if most is not None and len(works) >= most:
            before = going[: going.index(works[0]) + 1]
            count = "1 run" if len(works) == 1 else f"{len(works):,} runs"
            raise Refused(
                reason,
                f"{count}{whose} {'is' if len(works) == 1 else 'are'} going or waiting, and this server allows "
                f"{most:,}: come again in about {_waiting(sum(work.left_s for work in before))}",
            )
    if limits.address_day_s is None:
        return
    left_s = max(0.0, limits.address_day_s - spent_s - sum(work.left_s for work in neighbours))
    if needed_s > left_s:
        midnight = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
        raise Refused(
            "day",
            f"this takes about {_waiting(needed_s)}, and of the {limits.address_day_s:,} s that this server measures "
            f"for an address in a day {math.floor(left_s):,} s are left: come again after midnight UTC, in "
            f"{_waiting((midnight - now).total_seconds())}",
        )


def _waiting(seconds: float) -> str:
    """A time to wait, rounded up: 40 s, 3 min, 3 h 20 min."""
    if seconds <= 90:
        return f"{max(1, math.ceil(seconds))} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def check_owner(owner: str, visitor: Visitor, what: str) -> None:
    """Raise `RequestError` where a run is not the visitor's to deal with."""
    if visitor != NOBODY and visitor.owner != owner:
        raise RequestError(f"only who started a run can {what}")
