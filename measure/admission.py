"""Admission to measuring: whether a request can be measured on this machine, and who may have how much of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from measure import hosting
from measure.claims.tries import seconds_of
from measure.machine import environment
from measure.making import Asked, bound_s, missing
from measure.run import deadline, fit, text
from measure.run.request import Request, RequestError
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


def check(asked: Asked, devices: tuple[str, ...], limits: hosting.Limits, *, is_here: bool = True) -> None:
    """Raise `Refused` where a request is beyond what is allowed, names a device that is not there, or can neither fit
    nor end in time. ``devices``: as far as they are known by now; ``is_here``: it is this machine into which it
    has to fit."""
    if not isinstance(asked, tuple):
        if sentence := beyond(asked, limits):
            raise Refused("limit", sentence)
        if sentence := missing(asked.base if isinstance(asked, SweepRequest) else asked, devices):
            raise Refused("machine", sentence)
    if is_here and (sentence := refusal(asked)):
        raise Refused("machine", sentence)


def within(asked: Request, limits: hosting.Limits) -> Request:
    """The request with an automatic budget that goes no further than is allowed."""
    if limits.budget_s is None or not asked.max_budget_s:
        return asked
    return replace(asked, max_budget_s=max(asked.budget_s, min(asked.max_budget_s, float(limits.budget_s))))


def refusal(asked: Asked) -> str | None:
    """The sentence that says why a comparison, any point of a sweep, or so many claims at once do not fit here or have
    no time; None where they can be measured."""
    if isinstance(asked, Request):
        most_bytes = hosting.limits().memory_bytes
        return fit.check(asked, environment.available_memory(), most_bytes) or deadline.check(asked)
    if isinstance(asked, SweepRequest):
        needs = sweep_needs(asked)
        return None if needs.points else needs.skipped[0][1]
    ends_s, takes_s = bound_s(asked), seconds_of(asked)
    if takes_s <= ends_s:
        return None
    takes, ends = text.seconds(takes_s), text.seconds(ends_s)
    return f"This cannot end in time: it takes about {takes} by forecast, and ends after {ends}; try fewer claims."


def sweep_needs(request: SweepRequest) -> fit.SweepForecast:
    """The forecast of a sweep here: what of it will be run in the memory that there is, and in its time."""
    available_bytes, most = environment.available_memory(), hosting.limits().memory_bytes
    return fit.forecast_sweep(request, available_bytes if most is None else min(available_bytes, most))


def beyond(request: Request | SweepRequest, limits: hosting.Limits) -> str | None:
    """The sentence on the first limit that a request does not keep; None where it keeps them all."""
    if isinstance(request, SweepRequest):
        base, most_s = request.base, limits.sweep_s
        cells = len(base.strategies) * math.prod(len(axis.values) for axis in request.axes)
    else:
        base, most_s, cells = request, limits.budget_s, 0
    for asked, value, most, unit in (
        ("{:,} threads were asked for", base.threads, limits.most_threads, ""),
        ("a memory limit of {:,} MiB was asked for", base.memory_limit_mib, limits.memory_mib, " MiB"),
        ("{:,} strategies were chosen", len(base.strategies), limits.most_strategies, ""),
        ("a budget of {:.10g} s was asked for", base.budget_s, most_s, " s"),
        ("the sweep has {:,} cells, strategies × points", cells, limits.most_cells, ""),
    ):
        if value is not None and most is not None and value > most:
            return f"{asked.format(value)}, and this server allows {most:,}{unit}"
    return None


# --- a visitor -------------------------------------------------------------------------------------------------------


def admit(visitor: Visitor, limits: hosting.Limits, going: Sequence[Work], needed_s: float, spent_s: float) -> None:
    """Raise `Refused`, which says when to come again, where a visitor can have no run of so many seconds now.
    ``going``: the work that is not done, in its order; ``spent_s``: seconds that were `counted` today."""
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
            raise Refused(reason, f"{sentence}: come again in about {text.seconds(max(1.0, wait_s))}")
    if limits.address_day_s is None:
        return
    before_s = sum(work.left_s for work in going if counted(work) == counted(visitor))
    left_s = max(0.0, limits.address_day_s - spent_s - before_s)
    if needed_s > left_s:
        whose = "an address" if visitor.address else "a visitor"
        raise Refused(
            "day",
            f"this takes about {text.seconds(needed_s)}, and of the {limits.address_day_s:,} s that this server "
            f"measures for {whose} in a day {math.floor(left_s):,} s are left: come again after midnight UTC",
        )


def counted(one: Visitor | Work) -> str:
    """The address for which seconds of a day are counted, or without one the session; empty for a command line."""
    return one.address or one.session


def check_owner(owner: str, visitor: Visitor, what: str) -> None:
    """Raise `RequestError` where a run is not the visitor's to deal with."""
    if visitor != NOBODY and visitor.owner != owner:
        raise RequestError(f"only who started a run can {what}")
