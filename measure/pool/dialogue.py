"""Talking to subjects: several dialogues at a time, each a generator that waits for its subject's next event.

Every way in which a subject can fail to answer (an error, its end, silence) becomes one `SubjectFailed`.
"""

import contextlib
import math
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from measure.pool.clock import Clock, TimeIsUp
from measure.pool.launcher import HOST_START_S, Event, Events, Launcher
from measure.pool.privacy import cleaned
from measure.pool.process import NOISE, how_ended, signal_of
from measure.run.run import TIME_OVER, Error, OutcomeName
from measure.subject import messages
from measure.subject.messages import Command, Failed, Said, Spec, disturbed

S = TypeVar("S", bound=Said)
T = TypeVar("T")
# A dialogue, or a part of one, yields (subject, deadline) to wait for that subject's next event, and gets None when the
# deadline passed.
Part = Generator[tuple[int, float], Event | None, T]
Dialogue = Part[None]

HOST_LOST = "the measuring process ended unexpectedly; what was measured before counts"
# The type of the error of a subject that was lost with it.
_LOST = "HostLost"
# So often does a job go on with another host; and how soon a cancel is heard.
_MOST_LOST, LOOK_S = 3, 0.5
# What is allowed for killed processes to be gone.
_END_S = 5.0
# What a process that dies for want of memory prints before: C++'s exception, and TensorFlow's allocator, after whose
# refusal some kernels crash.
_OUT_OF_MEMORY = {"bad_alloc": "bad_alloc", "ran out of memory trying to allocate": "ResourceExhausted"}
# What a process does until it says this, or once it has said `Checked`.
_STEPS: dict[type[Said], str] = {
    messages.Anew: "making or checking its first call",
    messages.Checked: "its memory was measured",
    messages.FirstCall: "making its first call",
    messages.Sampled: "it was timed",
}


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
    """All subjects of one job. ``cancelled`` may be set from any thread, the rest belongs to the job's."""

    def __init__(self, launcher: Launcher, clock: Clock | None = None) -> None:
        """``clock``: the job's; when its time is over, no dialogue begins, and those that are held fail."""
        self.clock = clock or Clock()
        self.cancelled = False
        self._launcher = launcher
        self._events: Events = deque()
        self._alive: dict[int, Launcher] = {}  # by the launcher that has started it
        # Events of subjects that nobody waited for: how they failed or ended.
        self._unheard: dict[int, Event] = {}
        self._lost = 0

    def start(self, spec: Spec, launcher: Launcher | None = None) -> int:
        """Start a subject, by another ``launcher`` where one is named; its number. Where the host was lost, another one
        comes first, whose time is no strategy's. Raises `HostLost`, and `TimeIsUp` where the job's time is over before.
        """
        begun_s, launcher = self.clock.now_s, launcher or self._launcher
        self._lost += launcher.state().state != "ready"
        start_s = max(0.0, min(HOST_START_S, self.clock.left_s))
        if self._lost > _MOST_LOST or not launcher.wait_ready(start_s, lambda: self.cancelled):
            raise Cancelled if self.cancelled else TimeIsUp if self.clock.is_over else HostLost
        subject = launcher.start(spec, self._events)
        self.clock.leave_out(begun_s, for_host=True)
        self._alive[subject] = launcher
        return subject

    def send(self, subject: int, command: Command) -> None:
        if subject in self._alive:
            self._alive[subject].send(subject, msgspec.to_builtins(command))

    def _kill(self, subject: int) -> None:
        if subject in self._alive:
            self._alive[subject].kill(subject)

    def until(
        self, subject: int, wanted: type[S], patience_s: Callable[[], float], take: Callable[[Said], None] | None = None
    ) -> Part[S]:
        """The next ``wanted`` message; earlier ones go to ``take``. ``patience_s``: seconds until the subject is
        killed, asked again when they have passed. Raises `SubjectFailed`."""
        begun_s, step = self.clock.now_s, _STEPS.get(wanted, "")
        while True:
            event = self._unheard.pop(subject, None) or (yield subject, begun_s + patience_s())
            if event is None:
                if self.clock.now_s < begun_s + patience_s() and not self.clock.is_over:
                    continue
                self._kill(subject)
                if self.clock.is_over:
                    type_, silent = TIME_OVER, f"{self.clock.over} before it answered"
                else:
                    type_, silent = "Timeout", f"no answer within {patience_s():.0f} s"
                raise SubjectFailed("timeout", Error(type=type_, message=f"{silent}, so the process was ended"))
            if event.kind == "exit":
                raise ended(cleaned(event.fields), step)
            try:
                # The one door through which a process's words come into a run: no folder of a person's does.
                message = messages.read(cleaned(event.fields))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                self._kill(subject)
                message = disturbed(cleaned(f"not a message: {event.fields!r:.200} ({error})"))
            if isinstance(message, Failed):
                error = Error(type=message.type, message=message.message, detail=message.detail)
                raise SubjectFailed(message.outcome, error)
            if isinstance(message, wanted):
                return message
            step = _STEPS.get(type(message), step)
            if take is not None:
                take(message)

    def undisturbed(self, attempt: Callable[[], Part[T]]) -> Part[T]:
        """A part of a dialogue, which is done once more where the host was lost, or this process stood still
        meanwhile: what it has measured, or that it was too late, is not its own doing. Raises `SubjectFailed`."""
        still_s = self.clock.still_s
        try:
            result = yield from attempt()
            if self.clock.still_s == still_s:
                return result
        except SubjectFailed as failure:
            was_paused = failure.outcome == "timeout" and self.clock.still_s != still_s
            if not was_paused and failure.error.type != _LOST:
                raise
            if self.clock.is_over:
                over = Error(type=TIME_OVER, message=f"{self.clock.over} before it could be tried again")
                raise SubjectFailed("not_run", over) from None
        return (yield from attempt())

    def ask(self, spec: Spec, wanted: type[S], patience_s: float = math.inf, launcher: Launcher | None = None) -> S:
        return self.hold_one(lambda: self.until(self.start(spec, launcher), wanted, lambda: patience_s))

    def hold_one(self, attempt: Callable[[], Part[T]]) -> T:
        """The result of a dialogue that is held by itself, `undisturbed`. Raises `SubjectFailed`, and what `hold`
        does."""
        results: list[T] = []

        def dialogue() -> Dialogue:
            results.append((yield from self.undisturbed(attempt)))

        try:
            self.hold([dialogue()])
        except SubjectFailed:
            if self.clock.is_over:
                raise TimeIsUp from None
            raise
        return results[0]

    def hold(self, dialogues: Iterable[Dialogue], at_once: int = 1) -> None:
        """Hold dialogues, ``at_once`` at a time, until all have ended. Raises `Cancelled`, `HostLost`, and `TimeIsUp`
        where the end of the job's time has ended some, or has kept them from beginning."""
        waiting, held, cut_short = iter(dialogues), dict[int, tuple[Dialogue, float]](), False

        def go_on(dialogue: Dialogue, event: Event | None) -> None:
            with contextlib.suppress(StopIteration):
                subject, deadline_s = dialogue.send(event)
                held[subject] = dialogue, deadline_s

        while True:
            while len(held) < at_once and (dialogue := next(waiting, None)):
                if self.clock.is_over:
                    cut_short, waiting = True, iter(())
                else:
                    go_on(dialogue, None)
            if not held:
                break
            event = self._next(min(deadline_s for _, deadline_s in held.values()))
            if event is not None and event.subject in held:
                go_on(held.pop(event.subject)[0], event)
            elif event is not None:
                self._unheard.setdefault(event.subject, event)
            else:
                now_s, is_over = self.clock.now_s, self.clock.is_over
                cut_short |= is_over
                for subject, (dialogue, deadline_s) in [*held.items()]:
                    if is_over or deadline_s <= now_s:
                        del held[subject]
                        go_on(dialogue, None)
        if cut_short:
            raise TimeIsUp

    def _next(self, deadline_s: float) -> Event | None:
        """The next event, or None when the deadline has passed, or the job's time is over."""
        event, left_s = None, math.inf
        while event is None and left_s > 0:
            if self.cancelled:
                raise Cancelled
            begun_s = self.clock.now_s
            left_s = min(deadline_s - begun_s, self.clock.left_s)
            wait_s = max(0.0, min(left_s, LOOK_S))
            event = self._event(wait_s)
            self.clock.leave_out(begun_s, wait_s)
        return event

    def _event(self, wait_s: float) -> Event | None:
        event = self._launcher.next(self._events, wait_s)
        if event is not None and event.kind == "exit":
            self._alive.pop(event.subject, None)
        return event

    def end(self) -> int:
        """Kill what is still alive and wait until it is gone, so that the next job has the machine to itself; the
        number of processes that are given up, since the kernel has not ended them by then."""
        for subject in self._alive:
            self._kill(subject)
        end_s = time.monotonic() + _END_S
        while self._alive and time.monotonic() < end_s:
            self._event(LOOK_S)
        return len(self._alive)


def ended(fields: dict[str, Any], step: str = "") -> SubjectFailed:
    """The failure of a strategy whose process ended while a ``step`` went on, from the event's fields."""
    status, tail = fields["status"], NOISE.sub("", fields.get("tail", ""))
    if status is None:
        return SubjectFailed("failed", Error(type=_LOST, message=HOST_LOST))
    outcome: OutcomeName = "out_of_memory"
    if status < 0 and (signs := [sign for sign in _OUT_OF_MEMORY if sign in tail]):
        kind, how = _OUT_OF_MEMORY[signs[0]], "ran out of memory in native code and ended"
    elif status == -signal.SIGKILL and fields.get("for_memory"):
        kind, how = "SIGKILL", "was ended by the system, whose memory ran out"
    else:
        outcome, kind, how = "failed", signal_of(status) if status < 0 else "Exit", how_ended(status, tail)
    message = f"the process {how}"
    if step and kind in ("SIGABRT", "SIGSEGV"):
        message = f"TensorFlow crashed ({kind}) while {step}" + "".join(how.partition(": ")[1:])
        if fields.get("onednn"):
            message += ". oneDNN may be the cause: start Mapbench with TF_ENABLE_ONEDNN_OPTS=0 to rule it out"
    return SubjectFailed(outcome, Error(type=kind, message=message, detail=tail))
