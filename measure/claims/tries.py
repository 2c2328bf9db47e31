"""Trying claims, from their ids to a run that holds all evidence: in which order what is measured."""

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from measure.claims import known, scripts, verdicts
from measure.claims.spec import Claim, Compare, Need, Script, Swept
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.record import View
from measure.machine import environment
from measure.model import fit, place, text
from measure.model.place import utc_now
from measure.model.request import Request, RequestError, parse
from measure.model.run import Evidence, Run, Status, Warning
from measure.pool.clock import Clock
from measure.pool.launcher import HOST_START_S, Launcher
from measure.sweep import findings
from measure.sweep.request import parse_sweep
from measure.sweep.sweep import Sweep
from strategies.script import ScriptError
from workloads.discovery import DiscoveryError

WORKLOAD = "claims"


def chosen(ids: Sequence[str]) -> tuple[Claim, ...]:
    """Return the claims with these ids; of none, all. Raises `RequestError` where one is not known."""
    everything = {claim.id: claim for claim in known.all_claims()}
    for claim_id in ids:
        if claim_id not in everything:
            raise RequestError(f"claim {claim_id!r} is not known: 'claims' without a name lists them")
    return tuple(everything[claim_id] for claim_id in dict.fromkeys(ids)) or tuple(everything.values())


def needs_of(tried: Sequence[Claim]) -> tuple[Need, ...]:
    """Return what claims need, each once: what several of them need is measured for all."""
    return tuple({need.key: need for claim in tried for need in claim.needs}.values())


def seconds_of(tried: Sequence[Claim]) -> float:
    """Return about how long trying claims takes."""
    return sum(need.seconds for need in needs_of(tried))


class Tries:
    """Measures what claims need, with the protocol of a `Comparison`. A need that cannot be measured becomes evidence
    with the reason, and the others go on."""

    def __init__(
        self,
        run_id: str,
        ids: Sequence[str],
        launcher: Launcher,
        publish: Callable[[View], None],
        *,
        settings: Settings | None = None,
        parent: str | None = None,
    ) -> None:
        """Raises `RequestError` where a claim is not known."""
        self._claims = chosen(ids)
        self._needs = needs_of(self._claims)
        self._launcher, self._publish = launcher, publish
        # Neither the limit nor what the operating system sees is a figure of any claim.
        self._settings = dataclasses.replace(settings or Settings(), probes=False, process_peaks=False)
        self._clock = Clock(self._settings.bound_s)
        seconds = seconds_of(self._claims)
        self.request = Request(
            workload=WORKLOAD, size={}, dtype="", device="CPU:0", strategies=[], budget_s=max(1.0, seconds)
        )
        self._run = Run(
            id=run_id,
            kind="claims",
            parent=parent,
            created=utc_now(),
            request=self.request.record(),
            claims=[claim.id for claim in self._claims],
            evidence=[],
            digest={},
        )
        self._view = View(self._run, {}, forecast_s=seconds)
        self._part: Comparison | Sweep | None = None
        self._cancelled = self._stopped = False

    def view(self) -> View:
        return self._view

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        self._cancelled = True
        if (part := self._part) is not None:
            part.cancel()

    def stop(self) -> None:
        """End with what is known by now."""
        self._stopped = True
        if (part := self._part) is not None:
            part.stop()

    def warn(self, warning: Warning) -> None:
        """Add a warning about the run as a whole, once per code."""
        others = [known for known in self._run.warnings if known.code != warning.code]
        self._run = replace(self._run, warnings=[*others, warning])

    def run(self) -> Run:
        """Measure, and return the finished run. Does not raise for what a script, a strategy or a person did."""
        with self._clock.running():
            self._measure()
        status, reason = self._end()
        return close(self._run, status, reason, utc_now())

    def _measure(self) -> None:
        self._run = replace(self._run, started=utc_now(), environment=self._environment())
        tried = [claim for claim in self._claims if not verdicts.lacking(claim, self._run.environment)]
        self._needs = needs_of(tried)
        self._view = dataclasses.replace(self._view, started_s=time.monotonic())
        for number, need in enumerate(self._needs, 1):
            if self._cancelled or self._stopped or self._clock.is_over:
                break
            self._say(f"{number} of {len(self._needs)}: {words_of(need)}")
            found = self._measured(need)
            if not self._cancelled:
                self._run = replace(self._run, evidence=[*(self._run.evidence or []), found])
                self._say(self._view.message, result=True)

    def _end(self) -> tuple[Status, str]:
        if self._cancelled:
            return "cancelled", "cancelled by a person"
        if self._stopped:
            return "budget", "a person stopped it"
        if self._clock.is_over:
            return "budget", f"{self._clock.over} before everything that the claims need was measured"
        return "complete", "everything that the claims need is measured"

    def _measured(self, need: Need) -> Evidence:
        """The evidence of a need; where it cannot be measured, the reason."""
        if isinstance(need, Script):
            end = scripts.run(need, lambda: self._cancelled, self._clock.left_s)
            return Evidence(need=need.key, script=end)
        try:
            part = self._sweep(need) if isinstance(need, Swept) else self._comparison(need)
            run = self._run_of(part)
        except (RequestError, ScriptError, DiscoveryError) as error:
            return Evidence(need=need.key, reason=str(error))
        finally:
            self._part = None
        run = findings.of_comparison(run) if isinstance(need, Compare) else run
        return Evidence(need=need.key, run=replace(run, digest=UNSET))  # the whole has a digest of each piece

    def _comparison(self, need: Compare) -> Comparison:
        request = parse(_asked(need))
        if refusal := fit.check(request, environment.available_memory()):
            raise RequestError(refusal)
        return Comparison(place.new_id(), request, self._launcher, self._within, settings=self._settings_now)

    def _sweep(self, need: Swept) -> Sweep:
        axis = {"kind": "size", "name": need.axis, "values": list(need.values)}
        request = parse_sweep({**_asked(need), "axes": [axis]})
        return Sweep(place.new_id(), request, self._launcher, self._within, settings=self._settings_now)

    @property
    def _settings_now(self) -> Settings:
        """The settings of a part, which has the time that is left."""
        left_s = None if self._clock.bound_s is None else max(0.0, self._clock.left_s)
        return dataclasses.replace(self._settings, bound_s=left_s)

    def _run_of(self, part: Comparison | Sweep) -> Run:
        self._part = part
        if self._cancelled:  # just now, when there was no part to tell
            part.cancel()
        # What was measured before may have ended the host.
        start_s = min(HOST_START_S, self._clock.left_s)
        if not self._launcher.wait_ready(start_s, lambda: self._cancelled) and not self._cancelled:
            raise RequestError(f"nothing can be measured now: {self._launcher.state().message}")
        return part.run()

    def _within(self, view: View) -> None:
        """Say what the measurement that goes on is doing: nothing new is known of the claims."""
        message = f"{self._view.message}: {view.message}" if view.message else self._view.message
        self._publish(dataclasses.replace(self._view, message=message))

    def _say(self, message: str, *, result: bool = False) -> None:
        self._view = dataclasses.replace(
            self._view, run=self._run, message=message, version=self._view.version + result
        )
        self._publish(self._view)

    def _environment(self) -> dict[str, object]:
        return environment.collect(
            start_method=self._launcher.start_method, threads=None, tensorflow=self._launcher.state().details or {}
        )


def words_of(need: Need) -> str:
    """Return what is measured, in a few words: «outer_product, batch 100, 4 strategies»."""
    if isinstance(need, Script):
        return "a script of its own"
    sizes = [f"{name} {value:,}" for name, value in need.size.items()]
    if isinstance(need, Swept):
        sizes.append(f"{need.axis} {need.values[0]:,} to {need.values[-1]:,}")
    return ", ".join([need.workload, *sizes, text.listed(need.strategies, 3)])


def close(run: Run, status: Status, reason: str, finished: str) -> Run:
    """Return a run of claims at its end, with its verdict; what was not measured says so in the verdicts."""
    run = replace(run, status=status, stop_reason=reason, finished=finished)
    return replace(run, verdict=summary(run))


def summary(run: Run) -> str:
    """Return the verdicts of a run of claims, counted: «Of 41 claims 31 hold, 6 do not and 4 depend.»"""
    tried = [claim for claim_id in run.claims or [] if (claim := known.get(claim_id)) is not None]
    counted = Counter(verdicts.of_run(claim, run).word for claim in tried)
    parts = [f"{count} {_COUNTED[word][count > 1]}" for word in verdicts.WORDS if (count := counted[word])]
    if unknown := len(run.claims or []) - len(tried):
        parts.append(f"{unknown} {'is' if unknown == 1 else 'are'} not known here")
    return f"Of {_counted(len(run.claims or []))} {text.listed(parts)}." if parts else "No claim was tried."


def _counted(claims: int) -> str:
    return "1 claim" if claims == 1 else f"{claims} claims"


# A verdict on one claim, and on several.
_COUNTED = {
    "holds": ("holds", "hold"),
    "does not hold": ("does not", "do not"),
    "depends": ("depends", "depend"),
    "cannot tell": ("cannot be told", "cannot be told"),
    "cannot be tried here": ("cannot be tried here", "cannot be tried here"),
}


def _asked(need: Compare | Swept) -> dict[str, object]:
    return {
        "workload": need.workload,
        "workload_options": dict(need.options) if isinstance(need, Compare) else {},
        "size": dict(need.size),
        "strategies": list(need.strategies),
        "device": need.device,
        "budget_s": need.budget_s,
    }
