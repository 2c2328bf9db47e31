"""The conditions that a request has to meet before it is queued, beside those of `parse`; and the bounds of runs."""

import math
from collections.abc import Iterable, Sequence

from measure import hosting
from measure.admission import Refused, beyond
from measure.claims.spec import QUESTIONS, Claim
from measure.claims.tries import seconds_of
from measure.hosting import Limits
from measure.machine import environment
from measure.model import deadline, fit, text
from measure.model.request import Request, RequestError
from measure.model.run import Point
from measure.pool.launcher import Launcher
from measure.store.store import Kept
from measure.sweep import continuing
from measure.sweep.needs import SweepForecast, forecast_sweep
from measure.sweep.request import SweepRequest

Asked = Request | SweepRequest | Sequence[Claim]


def bound_s(asked: Asked, *, why: bool = False) -> float:
    """The seconds within which a comparison ends, or a sweep, or as many of these claims are tried as can be. ``why``:
    reasons are asked for too."""
    limits = hosting.limits()
    if isinstance(asked, Request):
        return min(limits.run_s or math.inf, deadline.of_comparison(asked, why=why))
    seconds = (
        deadline.of(asked.base.budget_s) if isinstance(asked, SweepRequest) else deadline.of_claims(seconds_of(asked))
    )
    return min(limits.sweep_s or math.inf, seconds)


def explanation_bound_s(request: Request) -> float:
    """The seconds within which an explanation ends."""
    return min(hosting.limits().run_s or math.inf, deadline.of_explanation(request))


def most_bytes() -> int | None:
    """The bytes of memory that a run may take here, if they are limited."""
    mib = hosting.limits().memory_mib
    return None if mib is None else mib * 2**20


def claims_refusal(tried: Sequence[Claim]) -> str | None:
    """The sentence that says why these claims cannot be tried at once, and which can be; None where they can."""
    ends_s, takes_s = bound_s(tried), seconds_of(tried)
    if takes_s <= ends_s:
        return None
    groups = {title: [claim for claim in tried if claim.question == question] for question, title in QUESTIONS.items()}
    short = [f"«{title}»" for title, claims in groups.items() if claims and seconds_of(claims) <= ends_s]
    return deadline.cannot(takes_s, ends_s, f"try {text.either(short)} by itself" if short else "try fewer of them")


def refusal(request: Request) -> str | None:
    """The sentence that says why a comparison does not fit here, or has no time for a sample; None where it can be."""
    return fit.check(request, environment.available_memory(), most_bytes()) or deadline.check(
        request, hosting.limits().budget_s
    )


def check(request: Asked, devices: tuple[str, ...], limits: Limits) -> None:
    """Raise `Refused` where a request is beyond what is allowed, names a device that is not there, or can neither fit
    nor end in time."""
    if isinstance(request, Request | SweepRequest):
        base = request.base if isinstance(request, SweepRequest) else request
        if reason := beyond(request, limits):
            raise Refused("limit", reason)
        if reason := missing(base, devices):
            raise Refused("machine", reason)
    if isinstance(request, SweepRequest):
        reason = sweep_refusal(request)
    else:
        reason = refusal(request) if isinstance(request, Request) else claims_refusal(request)
    if reason:
        raise Refused("machine", reason)


def missing(request: Request, devices: tuple[str, ...]) -> str | None:
    """The sentence that says that the request's device is not there, as far as devices are known by now."""
    if not devices or request.device in devices:
        return None
    return f"device {request.device!r} is not on this machine: {', '.join(devices)} can be used"


def sweep_needs(request: SweepRequest, taken: Iterable[Point] = ()) -> SweepForecast:
    """The forecast of a sweep here: what of it will be run in the memory that there is, and in its time."""
    available_bytes, most = environment.available_memory(), most_bytes()
    room = available_bytes if most is None else min(available_bytes, most)
    return forecast_sweep(request, room, taken)


def sweep_refusal(request: SweepRequest) -> str | None:
    """The sentence that says why no point of a sweep can be measured here; None where one can."""
    needs = sweep_needs(request)
    return None if needs.points else needs.skipped[0][1]


def taken_over(request: SweepRequest, run_id: str, kept: Kept | None, launcher: Launcher) -> list[Point]:
    """The points of a sweep that has ended which a request goes on with. Raises `RequestError` where it cannot."""
    if kept is None:
        raise RequestError(f"run {run_id} is not known here: it was measured on another machine, or deleted")
    if kept.work is not None:
        raise RequestError(f"run {run_id} is not finished: cancel it before it is continued")
    if refusal := continuing.refusal(kept.run, imported=kept.imported):
        raise RequestError(refusal)
    here = environment.collect(
        start_method=launcher.start_method,
        threads=request.base.threads,
        tensorflow=launcher.state().details or {},
    )
    return continuing.taken_over(kept.run, request, here)
