"""The conditions that a request has to meet before it is queued, beside those of `parse`; and the bounds of runs."""

from collections.abc import Iterable, Sequence

from measure import hosting
from measure.claims.spec import QUESTIONS, Claim
from measure.claims.tries import seconds_of
from measure.engine.launcher import Launcher
from measure.jobs import Snapshot
from measure.machine import environment
from measure.model import bound, fit, text
from measure.model.request import Request, RequestError
from measure.model.run import Point
from measure.sweep import continuing
from measure.sweep.needs import SweepForecast, forecast_sweep
from measure.sweep.request import SweepRequest


def run_bound_s(budget_s: float) -> float:
    """The seconds within which a comparison with this budget ends, and so does an explanation of it."""
    return hosting.limits().run_s or bound.of_comparison(budget_s)


def sweep_bound_s(budget_s: float) -> float:
    """The seconds within which a sweep with this budget ends."""
    return hosting.limits().sweep_s or bound.of_sweep(budget_s)


def most_bytes() -> int | None:
    """The bytes of memory that a run may take here, if they are limited."""
    mib = hosting.limits().memory_mib
    return None if mib is None else mib * 2**20


def claims_bound_s(tried: Sequence[Claim]) -> float:
    """The seconds within which these are tried, or as many of them as can be."""
    return hosting.limits().sweep_s or bound.of_claims(seconds_of(tried))


def claims_refusal(tried: Sequence[Claim]) -> str | None:
    """The sentence that says why these claims cannot be tried at once, and which can be; None where they can."""
    bound_s, takes_s = claims_bound_s(tried), seconds_of(tried)
    if takes_s <= bound_s:
        return None
    groups = {title: [claim for claim in tried if claim.question == question] for question, title in QUESTIONS.items()}
    short = [f"«{title}»" for title, claims in groups.items() if claims and seconds_of(claims) <= bound_s]
    return bound.cannot(takes_s, bound_s, f"try {text.either(short)} by itself" if short else "try fewer of them")


def refusal(request: Request) -> str | None:
    """The sentence that says why a comparison does not fit here, or has no time for a sample; None where it can be."""
    return fit.check(request, environment.available_memory(), most_bytes()) or bound.check(
        request, hosting.limits().budget_s
    )


def missing(request: Request, devices: tuple[str, ...]) -> str | None:
    """The sentence that says that the request's device is not there, as far as devices are known by now."""
    if not devices or request.device in devices:
        return None
    return f"device {request.device!r} is not on this machine: {', '.join(devices)} can be used"


def sweep_needs(request: SweepRequest, taken: Iterable[Point] = ()) -> SweepForecast:
    """The forecast of a sweep here: what of it will be run in the memory that there is, and in its time."""
    bound_s, available_bytes, most = sweep_bound_s(request.base.budget_s), environment.available_memory(), most_bytes()
    return forecast_sweep(request, available_bytes if most is None else min(available_bytes, most), taken, bound_s)


def sweep_refusal(request: SweepRequest) -> str | None:
    """The sentence that says why no point of a sweep can be measured here; None where one can."""
    skipped = sweep_needs(request).skipped
    return skipped[0][1] if len(skipped) == len(request.points()) else None


def taken_over(request: SweepRequest, run_id: str, snapshot: Snapshot | None, launcher: Launcher) -> list[Point]:
    """The points of a sweep that has ended which a request goes on with. Raises `RequestError` where it cannot."""
    if snapshot is None:
        raise RequestError(f"run {run_id} is not known here: it was measured on another machine, or deleted")
    if snapshot.state != "finished":
        raise RequestError(f"run {run_id} is not finished: cancel it before it is continued")
    if refusal := continuing.refusal(snapshot.run, imported=snapshot.imported):
        raise RequestError(refusal)
    here = environment.collect(
        start_method=launcher.start_method,
        threads=request.base.threads,
        tensorflow=launcher.state().details or {},
    )
    return continuing.taken_over(snapshot.run, request, here)
