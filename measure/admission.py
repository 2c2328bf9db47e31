"""Admission to measuring: whether a request can be measured on this machine, and who may have how much of it.

Every way in asks here: buttons, links, imports and widgets all end in a request to `measure.client`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from measure import hosting
from measure.claims.spec import Claim
from measure.claims.tries import seconds_of
from measure.hosting import Limits
from measure.machine import environment
from measure.making import Asked, bound_s, missing
from measure.run import deadline, fit
from measure.run.request import Request, RequestError
from measure.run.run import Point
from measure.run.sweep_forecast import SweepForecast, forecast_sweep
from measure.run.sweep_request import SweepRequest
from measure.store.queue import Work


@dataclass(frozen=True)
class Visitor:
    """The one who asks. ``owner``: to whom runs belong; ``session``, ``address``: what they are counted by. A session
    that nothing tells from others of its address has that as its session, too."""

    owner: str = ""
    session: str = ""
    address: str = ""


# A command line, and whoever is at home.
NOBODY = Visitor()


class Refused(RequestError):
    """A request that is not accepted now. ``reason``: a word for it, by which refusals are counted."""

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason


# --- a request -------------------------------------------------------------------------------------------------------


def check(asked: Asked, devices: tuple[str, ...], limits: Limits) -> None:
    """Raise `Refused` where a request is beyond what is allowed, names a device that is not there, or can neither fit
    nor end in time. ``devices``: as far as they are known by now."""
    if isinstance(asked, tuple):
        reason = claims_refusal(asked)
    else:
        if reason := beyond(asked, limits):
            raise Refused("limit", reason)
        base = asked.base if isinstance(asked, SweepRequest) else asked
        fits = sweep_refusal(asked) if isinstance(asked, SweepRequest) else refusal(asked)
        reason = missing(base, devices) or fits
    if reason:
        raise Refused("machine", reason)


def refusal(request: Request) -> str | None:
    """The sentence that says why a comparison does not fit here, or has no time for a sample; None where it can be."""
    limits = hosting.limits()
    return fit.check(request, environment.available_memory(), limits.memory_bytes) or deadline.check(
        request, limits.budget_s
    )


def sweep_needs(request: SweepRequest, earlier: Iterable[Point] = ()) -> SweepForecast:
    """The forecast of a sweep here: what of it will be run in the memory that there is, and in its time."""
    available_bytes, most = environment.available_memory(), hosting.limits().memory_bytes
    return forecast_sweep(request, available_bytes if most is None else min(available_bytes, most), earlier)


def sweep_refusal(request: SweepRequest) -> str | None:
    """The sentence that says why no point of a sweep can be measured here; None where one can."""
    needs = sweep_needs(request)
    return None if needs.points else needs.skipped[0][1]


def claims_refusal(tried: Sequence[Claim]) -> str | None:
    """The sentence that says why these claims cannot be tried at once; None where they can."""
    ends_s, takes_s = bound_s(tuple(tried)), seconds_of(tried)
    if takes_s <= ends_s:
        return None
    return deadline.cannot(takes_s, ends_s, "try fewer of them")


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


# --- a visitor -------------------------------------------------------------------------------------------------------


def admit(visitor: Visitor, limits: Limits, going: Sequence[Work], needed_s: float, spent_s: float) -> None:
    """Raise `Refused`, which says when to come again, where a visitor can have no run of so many seconds now.
    ``going``: the work that is not done, in its order; ``spent_s``: seconds measured for the address today."""
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
            wait_s = sum(work.left_s for work in going[: going.index(works[0]) + 1])
            runs = f"1 run{whose} is" if len(works) == 1 else f"{len(works):,} runs{whose} are"
            sentence = f"{runs} going or waiting, and this server allows {most:,}"
            raise Refused(reason, f"{sentence}: come again in about {_waiting(wait_s)}")
    if limits.address_day_s is None:
        return
    left_s = max(0.0, limits.address_day_s - spent_s - sum(work.left_s for work in neighbours))
    if needed_s > left_s:
        raise Refused(
            "day",
            f"this takes about {_waiting(needed_s)}, and of the {limits.address_day_s:,} s that this server measures "
            f"for an address in a day {math.floor(left_s):,} s are left: come again after midnight UTC",
        )


def _waiting(seconds: float) -> str:
    """A time to wait, rounded up: 40 s, 3 min."""
    return f"{max(1, math.ceil(seconds))} s" if seconds <= 90 else f"{math.ceil(seconds / 60)} min"


def check_owner(owner: str, visitor: Visitor, what: str) -> None:
    """Raise `RequestError` where a run is not the visitor's to deal with."""
    if visitor != NOBODY and visitor.owner != owner:
        raise RequestError(f"only who started a run can {what}")
