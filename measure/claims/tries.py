"""Trying claims: what they need is measured, one need after the other, into a run that holds all evidence."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from measure.claims import known, scripts, verdicts
from measure.claims.spec import Claim, Compare, Need, Script
from measure.engine.bench import Settings, here
from measure.engine.comparison import Comparison
from measure.engine.record import View
from measure.engine.sweep import Parts
from measure.judge import analysis, sweep_findings
from measure.pool.clock import Clock
from measure.pool.launcher import HOST_START_S, Launcher
from measure.run import place, text
from measure.run.request import Request, RequestError, parse
from measure.run.run import Evidence, Run, Status

WORKLOAD = "claims"


def chosen(ids: Sequence[str]) -> tuple[Claim, ...]:
    """Return the claims with these ids; of none, all. Raises `RequestError` where there is none with one of them."""
    everything = {claim.id: claim for claim in known.all_claims()}
    for claim_id in ids:
        if claim_id not in everything:
            raise RequestError(f"claim {claim_id!r} is not known: 'claims' without a name lists them")
    return tuple(everything[claim_id] for claim_id in dict.fromkeys(ids or everything))


def still_tried(run: Run) -> tuple[Claim, ...]:
    """Return the claims of a run that there still are. Raises `RequestError` where there is none of them."""
    if not (claims := [claim for claim, _ in verdicts.of_claims(run)]):
        raise RequestError("the claims of this run are no longer tried")
    return tuple(claims)


def needs_of(claims: Sequence[Claim]) -> tuple[Need, ...]:
    """Return what claims need, each once: what several of them need is measured for all."""
    return tuple({need.key: need for claim in claims for need in claim.needs}.values())


def seconds_of(claims: Sequence[Claim]) -> float:
    return sum(need.seconds for need in needs_of(claims))


def words_of(need: Need) -> str:
    """Return what is measured, in a few words: «outer_product, batch 100, 4 strategies»."""
    if isinstance(need, Script):
        return "a script of its own"
    sizes = (f"{name} {value:,}" for name, value in need.size.items())
    return ", ".join([need.workload, *sizes, text.listed(need.strategies, 3)])


def request_of(need: Compare) -> Request:
    asked = {name: getattr(need, name) for name in ("workload", "size", "strategies", "device")}
    return parse({**asked, "workload_options": need.options, "budget_s": 2 * need.seconds})


class Tries(Parts):
    """Measures what claims need, with the protocol of a `Comparison`. Where no host can be started for one of them, the
    reason becomes its evidence, and the others go on."""

    def __init__(
        self, run_id: str, claims: Sequence[Claim], launcher: Launcher, publish: Callable[[View], None], *,
        settings: Settings, parent: str | None = None,
    ) -> None:  # fmt: skip
        self._claims, self._launcher, self._publish = claims, launcher, publish
        # Neither the limit nor what the operating system sees is a figure of any claim.
        self._settings = dataclasses.replace(settings, probes=False, process_peaks=False)
        self._clock = Clock(settings.bound_s)
        seconds = seconds_of(claims)
        self.request = Request(
            workload=WORKLOAD, size={}, dtype="", device="CPU:0", strategies=[], budget_s=max(1.0, seconds)
        )
        run = Run(
            id=run_id, kind="claims", parent=parent, created=place.utc_now(), request=self.request.record(),
            claims=[claim.id for claim in claims], evidence=[], digest={},
        )  # fmt: skip
        super().__init__(View(run, {}, forecast_s=seconds))

    def run(self) -> Run:
        """Measure, and return the finished run. Does not raise for what a script, a strategy or a person did."""
        with self._clock.running():
            run = replace(self._view.run, started=place.utc_now(), environment=here(self._launcher, None))
            self._view = dataclasses.replace(self._view, run=run, started_s=time.monotonic())
            needs = needs_of([claim for claim in self._claims if not verdicts.lacking(claim, run.environment)])
            for number, need in enumerate(needs, 1):
                if self._cancelled or self._stopped or self._clock.is_over:
                    break
                self._say(f"{number} of {len(needs)}: {words_of(need)}")
                evidence = self._measured(need)
                if not self._cancelled:
                    run = replace(run, evidence=[*(run.evidence or []), evidence])
                    self._view = dataclasses.replace(self._view, run=run, version=self._view.version + 1)
                    self._say(self._view.message)
        status: Status = "complete"
        reason = "everything that the claims need is measured"
        if self._cancelled:
            status, reason = "cancelled", "cancelled by a person"
        elif self._stopped:
            status, reason = "budget", "a person stopped it"
        elif self._clock.is_over:
            status, reason = "budget", f"{self._clock.over} before everything that the claims need was measured"
        return close(run, status, reason, place.utc_now())

    def _measured(self, need: Need) -> Evidence:
        """The evidence of a need, measured in the time that is left; where it cannot be measured, the reason."""
        if isinstance(need, Script):
            end = scripts.run(need, lambda: self._cancelled, self._clock.left_s)
            return Evidence(need=need.key, script=end)
        # What was measured before may have ended the host.
        start_s = min(HOST_START_S, self._clock.left_s)
        if not self._launcher.wait_ready(start_s, lambda: self._cancelled):
            reason = f"nothing can be measured now: {self._launcher.state().message}"
            return Evidence(need=need.key, reason=reason)
        settings = dataclasses.replace(self._settings, bound_s=max(1.0, self._clock.left_s))
        part = Comparison(place.new_id(), request_of(need), self._launcher, self._say_within, settings=settings)
        self._begin(part)
        run = sweep_findings.of_comparison(part.run())
        self._part = None
        return Evidence(need=need.key, run=replace(run, digest=UNSET))  # the whole has a digest of each piece

    def _say(self, message: str) -> None:
        self._view = dataclasses.replace(self._view, message=message)
        self._publish(self._view)

    def _say_within(self, view: View) -> None:
        """Say what the measurement that goes on is doing: no claim has more evidence by that."""
        message = f"{self._view.message}: {view.message}" if view.message else self._view.message
        self._publish(dataclasses.replace(self._view, message=message))


def close(run: Run, status: Status, reason: str, finished: str) -> Run:
    run = replace(run, status=status, stop_reason=reason, finished=finished)
    return replace(run, verdict=verdicts.summary(run))


# Kind → what makes a run that has ended of one that grew: of the run, its status, the reason, and the time of day.
CLOSE: Mapping[str, Callable[[Run, Status, str, str], Run]] = {
    "compare": analysis.close,
    "sweep": sweep_findings.close,
    "claims": close,
}
