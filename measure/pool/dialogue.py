"""Talking to subjects: several dialogues at a time, each a generator that waits for its subject's next event.

Every way in which a subject can fail to answer (an error, its end, silence) becomes one `SubjectFailed`.
"""

import contextlib
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from measure.pool.clock import LOOK_S, PAUSE_S, Clock, TimeIsUp
from measure.pool.launcher import HOST_START_S, Event, Events, Launcher
from measure.pool.privacy import cleaned
from measure.pool.process import how_ended, signal_of
from measure.run.run import TIME_OVER, Error, OutcomeName
from measure.subject import messages
from measure.subject.messages import Command, Failed, ProtocolError, Said, Spec, disturbed

S = TypeVar("S", bound=Said)
T = TypeVar("T")
# A dialogue, or a part of one, yields (subject, deadline) to wait for that subject's next event, and gets None when the
# deadline passed.
Part = Generator[tuple[int, float], Event | None, T]
Dialogue = Part[None]

HOST_LOST = "the measuring process ended unexpectedly; what was measured before counts"
# The type of the error of a subject that was lost with it.
_LOST = "HostLost"
# So often does a run go on with another host.
_MOST_LOST = 3
# What is allowed for killed processes to be gone.
_END_S = 5.0


class Cancelled(Exception):
    """Somebody asked for the end."""


class HostLost(Exception):
    """There is no host any more to start subjects from."""


@dataclass
class SubjectFailed(Exception):
    """A subject did not do its part: the outcome of its strategy and the reason."""

    outcome: OutcomeName
    error: Error


class Dialogues:
    """All subjects of one job. `cancel` may be called from any thread, the rest belongs to the job's."""

    def __init__(self, launcher: Launcher, clock: Clock | None = None) -> None:
        """``clock``: the job's; when its time is over, no dialogue begins, and those that are held fail."""
        self.clock = clock or Clock()
        self.cancelled = False
        self._launcher = launcher
        self._events: Events = deque()
        self._alive: set[int] = set()
        # Events of subjects that nobody waited for: how they failed or ended.
        self._unheard: dict[int, Event] = {}
        self._lost = 0  # how often the host was
        self._waited_s = 0.0  # for another one

    def cancel(self) -> None:
        self.cancelled = True

    @property
    def now_s(self) -> float:
        """The time of deadlines and budgets, which stands still while the host does, or a new one loads TensorFlow."""
        return self.clock.now_s - self._waited_s

    def start(self, spec: Spec) -> int:
        """Start a subject; its number. Where the host was lost, another one comes first. Raises `HostLost`."""
        began_s = self.now_s
        if is_lost := self._launcher.state().state != "ready":
            self._lost += 1
            if self._lost > _MOST_LOST or not self._launcher.wait_ready(HOST_START_S, lambda: self.cancelled):
                raise Cancelled if self.cancelled else HostLost
        subject = self._launcher.start(spec, self._events)
        if is_lost or self.now_s - began_s > PAUSE_S:  # the host stands still
            self._waited_s += self.now_s - began_s
        self._alive.add(subject)
        return subject

    def send(self, subject: int, command: Command) -> None:
        self._launcher.send(subject, msgspec.to_builtins(command))

    def until(
        self,
        subject: int,
        wanted: type[S],
        timeout_s: float,
        take: Callable[[Said], None] | None = None,
        longer_s: Callable[[], float] | None = None,
    ) -> Part[S]:
        """The next ``wanted`` message; earlier ones go to ``take``. ``longer_s``: gives another timeout when that
        one has passed. Raises `SubjectFailed`."""
        begun_s = self.now_s
        while True:
            event = self._unheard.pop(subject, None) or (yield subject, begun_s + timeout_s)
            if event is None:
                more_s = longer_s() if longer_s is not None else 0.0
                if more_s > timeout_s and not self.clock.is_over:
                    timeout_s = more_s
                    continue
                self._launcher.kill(subject)
                raise self._too_late(timeout_s)
            if event.kind == "exit":
                raise ended(cleaned(event.fields))
            try:
                # The one door through which a process's words come into a run: no folder of a person's does.
                message = messages.read(cleaned(event.fields))
            except ProtocolError as error:
                self._launcher.kill(subject)
                message = disturbed(cleaned(str(error)))
            if isinstance(message, Failed):
                error = Error(type=message.type, message=message.message, detail=message.detail)
                raise SubjectFailed(message.outcome, error)
            if isinstance(message, wanted):
                return message
            if take is not None:
                take(message)

    def undisturbed(self, attempt: Callable[[], Part[T]]) -> Part[T]:
        """A part of a dialogue, which is done once more where the host was lost, or this process stood still
        meanwhile: what it has measured, or that it was too late, is not its own doing. Raises `SubjectFailed`."""
        before_s = self.clock.still_s
        try:
            result = yield from attempt()
            if self.clock.still_s == before_s:
                return result
        except SubjectFailed as failure:
            was_paused = failure.outcome == "timeout" and self.clock.still_s != before_s
            if not (was_paused or failure.error.type == _LOST) or self.clock.is_over:
                raise
        return (yield from attempt())

    def hold(
        self, dialogues: Iterable[Dialogue], at_once: int = 1, costs: Iterable[int] | None = None, room: int = 0
    ) -> None:
        """Hold dialogues, ``at_once`` at a time, until all have ended. Raises `Cancelled`, `HostLost`, and `TimeIsUp`
        where the end of the job's time has ended some, or has kept them from beginning.

        ``costs``: bytes that each needs; those which together need more than ``room``, which may be nothing, are not
        held together.
        """
        source = zip(dialogues, costs, strict=True) if costs is not None else ((dialogue, 0) for dialogue in dialogues)
        held: dict[int, tuple[Dialogue, float, int]] = {}
        following = next(source, None)
        cut_short = False

        def go_on(dialogue: Dialogue, cost: int, event: Event | None) -> None:
            with contextlib.suppress(StopIteration):
                subject, deadline = dialogue.send(event)
                held[subject] = (dialogue, deadline, cost)

        while held or following:
            while following and len(held) < at_once and not self.clock.is_over:
                if held and following[1] + sum(cost for _, _, cost in held.values()) > room:
                    break
                go_on(following[0], following[1], None)
                following = next(source, None)
            if not held:
                if following and self.clock.is_over:
                    raise TimeIsUp
                continue
            event = self._next(min(deadline for _, deadline, _ in held.values()))
            if event is None:
                now, is_over = self.now_s, self.clock.is_over
                cut_short = cut_short or is_over
                for subject in [subject for subject, (_, deadline, _) in held.items() if is_over or deadline <= now]:
                    dialogue, _, cost = held.pop(subject)
                    go_on(dialogue, cost, None)
            elif event.subject in held:
                dialogue, _, cost = held.pop(event.subject)
                go_on(dialogue, cost, event)
            else:
                self._unheard.setdefault(event.subject, event)
        if cut_short:
            raise TimeIsUp

    def _next(self, deadline: float) -> Event | None:
        """The next event, or None when the deadline has passed, or the job's time is over."""
        event = None
        while event is None:
            if self.cancelled:
                raise Cancelled
            left_s = min(deadline - self.now_s, self.clock.left_s)
            event = self._launcher.next(self._events, max(0.0, min(left_s, LOOK_S)))
            if event is None and left_s <= 0:
                return None
        if event.kind != "message":
            self._alive.discard(event.subject)
        return event

    def _too_late(self, timeout_s: float) -> SubjectFailed:
        """The failure of a subject that has not answered in time."""
        if self.clock.is_over:
            error = Error(type=TIME_OVER, message=f"{self.clock.over} before it answered, so the process was ended")
        else:
            error = Error(type="Timeout", message=f"no answer within {timeout_s:.0f} s, so the process was ended")
        return SubjectFailed("timeout", error)

    def end(self) -> int:
        """Kill what is still alive and wait until it is gone, so that the next job has the machine to itself; the
        number of processes that are given up, since the kernel has not ended them by then."""
        for subject in self._alive:
            self._launcher.kill(subject)
        deadline = time.monotonic() + _END_S
        while self._alive and time.monotonic() < deadline:
            event = self._launcher.next(self._events, LOOK_S)
            if event is not None and event.kind != "message":
                self._alive.discard(event.subject)
        return len(self._alive)


# Ends that a defect in native code brings about.
NATIVE_DEATHS = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL")
# What a process that dies for want of memory prints before: C++'s exception, and TensorFlow's allocator, after whose
# refusal some kernels crash.
_OUT_OF_MEMORY = {"bad_alloc": "bad_alloc", "ran out of memory trying to allocate": "ResourceExhausted"}


def ended(fields: dict[str, Any]) -> SubjectFailed:
    """The failure of a strategy whose process ended when it should have gone on, from the event's fields."""
    status, tail = fields["status"], fields.get("tail", "")
    if status is None:
        return SubjectFailed("failed", Error(type=_LOST, message=HOST_LOST))
    outcome: OutcomeName
    if status >= 0:
        outcome, kind, how = "failed", "Exit", how_ended(status, tail)
    elif signs := [sign for sign in _OUT_OF_MEMORY if sign in tail]:
        outcome, kind = "out_of_memory", _OUT_OF_MEMORY[signs[0]]
        how = "ran out of memory in native code and ended"
    elif status == -signal.SIGKILL and fields.get("for_memory"):
        outcome, kind, how = "out_of_memory", "SIGKILL", "was ended by the system, whose memory ran out"
    else:
        outcome, kind, how = "failed", signal_of(status), how_ended(status, tail)
    return SubjectFailed(outcome, Error(type=kind, message=f"the process {how}", detail=tail))
