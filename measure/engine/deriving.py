"""Having a function of a person's own looked at: a subject that is thrown away executes the code, see `derive`."""

import contextlib
import time
from collections.abc import Iterator, Mapping

from measure.engine.clock import Clock, TimeIsUp
from measure.engine.dialogue import NATIVE_DEATHS, Dialogue, Dialogues, HostLost, SubjectFailed
from measure.engine.launcher import HOST_START_S, Launcher
from measure.engine.machine_lock import machine_lock
from measure.model.request import Request, RequestError
from measure.subject import limits, messages
from measure.subject.messages import Spec
from workloads import functions
from workloads.functions import Facts, Given, OwnFunction

# Beside the limit of the code itself: a fork, or an interpreter that imports TensorFlow, and the way back.
_BESIDE_S = 30.0


# How often is looked whether another process still measures on this machine, which the code would disturb.
_LOCK_POLL_S = 0.2


class Busy(RequestError):
    """Somebody measures on this machine, which the code would disturb; the message names who."""


class Deriving:
    """Has functions looked at while nobody measures on this machine."""

    def __init__(self, launcher: Launcher, name: str, *, patient: bool) -> None:
        """``name``: who asks, as others on this machine are told; ``patient``: wait for whoever measures, where
        others raise `Busy`."""
        self._launcher, self._name, self._patient = launcher, name, patient

    def give(self, given: Given, size: Mapping[str, int], seed: int) -> str:
        """Have a function looked at, and make it a workload of this process; its slug. Sizes that are left out have
        their defaults. Raises `RequestError` with a sentence where it cannot be measured."""
        with self._alone():
            return functions.add(OwnFunction(given=given, facts=facts_of(self._launcher, given, size, seed)))

    def complete(self, *requests: Request) -> None:
        """Look at the function of a person's own that requests ask for, at those of their sizes at which that was not
        done yet; nothing for any other workload. Raises what `give` does."""
        if any(_lacking(request) for request in requests):
            with self._alone():
                for request in requests:
                    look(self._launcher, request)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the machine, and have the host ready."""
        with machine_lock(self._name, lambda: False, self._wait):
            if not self._launcher.wait_ready(HOST_START_S, lambda: False):
                raise RequestError(f"nothing can be measured now: {self._launcher.state().message}")
            yield

    def _wait(self, who: str) -> None:
        if not self._patient:
            raise Busy(f"{who} is measuring on this machine, which the code would disturb: try again when it has ended")
        time.sleep(_LOCK_POLL_S)


def look(launcher: Launcher, request: Request, clock: Clock | None = None) -> None:
    """Do what `complete` does for somebody who has the machine already. ``clock``: of the run that it is a part of."""
    if (own := _lacking(request)) is not None:
        facts = facts_of(launcher, own.given, request.size, request.seed, clock)
        functions.add(OwnFunction(given=own.given, facts=facts))


def _lacking(request: Request) -> OwnFunction | None:
    """The function of which nothing is known at the size that is asked for; None where all is known."""
    return None if functions.get(request.workload, request.size) else functions.get(request.workload)


def facts_of(launcher: Launcher, given: Given, size: Mapping[str, int], seed: int, clock: Clock | None = None) -> Facts:
    """Return what is known of a function at a size. Raises `RequestError` with a sentence where it cannot be
    measured, and `TimeIsUp` where the time of a ``clock`` is over."""
    dialogues = Dialogues(launcher, clock)
    derived: list[Facts] = []

    def dialogue() -> Dialogue:
        subject = dialogues.start(Spec(role="derive", given=given, size=dict(size), seed=seed))
        try:
            said = yield from dialogues.until(subject, messages.Derived, limits.LIMIT_S + _BESIDE_S)
        except SubjectFailed as failure:
            if dialogues.clock.is_over:
                raise TimeIsUp from None
            message = failure.error.message
            if failure.error.type in ("Exit", *NATIVE_DEATHS):
                message = f"the code ended its process: it {message.removeprefix('the process ')}"
            raise RequestError(message) from None
        derived.append(said.facts)

    try:
        dialogues.hold([dialogue()])
    except HostLost:
        raise RequestError("the code could not be looked at: the measuring process ended") from None
    finally:
        dialogues.end()
    return derived[0]
