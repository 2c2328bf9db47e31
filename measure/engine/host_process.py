"""One host as its launcher sees it: what is written to it, what it says, whether it answers, and why it ended."""

import contextlib
import os
import queue
import re
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from measure.engine.host_log import HostLog
from measure.engine.privacy import cleaned
from measure.subject.messages import TAIL_BYTES, Lines, ProtocolError, encode

# Messages that may wait for a host that stands still. One that works takes each in at once.
_MOST_WAITING = 1_000
# After so long without a word a host is asked whether it lives, and looked at in steps of so long.
_ASKED_AFTER_S = 5.0
_STEP_S = 1.0
# A host that loads TensorFlow cannot answer: for so long.
_START_S = 300.0
# For a host to end.
_END_S = 5.0
_LONGEST_REASON = 300
# Of a host that has ended, reads of what it had printed; bounded, since a process that it left behind may go on.
_MOST_DRAINS = 64

# What names the reason at the end of a traceback. TensorFlow writes advice below it.
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)(?::.*)?")


class HostProcess:
    """Nothing that is asked of it waits for the host, but `read`, which lasts as long as the host does."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: HostLog) -> None:
        """``process`` has pipes to all its streams; ``log``: where its errors go."""
        self._process, self._log = process, log
        self._waiting: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._tail = bytearray()
        self.was_ready = False
        threading.Thread(target=self._feed, name="mapbench-host-writer", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def write(self, message: dict[str, Any]) -> bool:
        """Have a message written, without waiting for that; False where too many wait already."""
        if self._waiting.qsize() >= _MOST_WAITING:
            return False
        self._waiting.put(message)
        return True

    def _feed(self) -> None:
        """Write what waits: of all threads, this one alone is kept waiting by a host that stands still."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError), self._process.stdin as pipe:
            while (message := self._waiting.get()) is not None:
                pipe.write(encode(message))
                pipe.flush()

    def read(self, take: Callable[[dict[str, Any]], None], silent_s: Callable[[], float]) -> str:
        """Pass on what the host says until it has ended, and return how, as a predicate. ``silent_s``: how long it may
        say nothing, also when it is asked, before it is killed. Time in which this process itself stood still does
        not count."""
        assert self._process.stdout is not None and self._process.stderr is not None
        lines, silence_s, asked = Lines(), 0.0, False
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            selector.register(self._process.stderr, selectors.EVENT_READ)
            while True:
                before_s = time.monotonic()
                ready = {key.fileobj for key, _ in selector.select(_STEP_S)}
                silence_s += min(time.monotonic() - before_s, _STEP_S)
                if self._process.stderr in ready and not self._take_errors():
                    selector.unregister(self._process.stderr)
                if self._process.stdout in ready:
                    if not (data := os.read(self._process.stdout.fileno(), 2**18)):
                        return self._ended()
                    silence_s, asked = 0.0, False
                    try:
                        for message in lines.feed(data):
                            self.was_ready = self.was_ready or message["event"] == "ready"
                            take(message)
                    except ProtocolError as error:
                        return self._killed(f"was killed, since it sent what is no message: {error}")
                elif silence_s > (most_s := silent_s() if self.was_ready else _START_S):
                    return self._killed(f"was killed, since it did not answer for {most_s:.0f} s")
                elif silence_s > _ASKED_AFTER_S and not asked:
                    asked = self.write({"op": "ping"})

    def close(self) -> None:
        """End the host and wait for it."""
        self._waiting.put(None)
        self._wait()

    def _take_errors(self) -> bool:
        """Keep the end of what the host prints, and the whole in the log; False when there will be no more."""
        assert self._process.stderr is not None
        data = os.read(self._process.stderr.fileno(), 2**16)
        self._tail += data
        del self._tail[:-TAIL_BYTES]
        self._log.write(data)
        return bool(data)

    def _killed(self, reason: str) -> str:
        self._process.kill()
        self._ended()
        return reason

    def _ended(self) -> str:
        status = self._wait()
        self._waiting.put(None)
        assert self._process.stdout is not None and self._process.stderr is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stderr, selectors.EVENT_READ)
            for _ in range(_MOST_DRAINS):
                if not selector.select(0) or not self._take_errors():
                    break
        self._process.stdout.close()
        self._process.stderr.close()
        if status is None:
            return "does not end, though it was killed"
        if status == -signal.SIGKILL:
            return f"was killed from outside (signal {-status}), as a system does when its memory runs out"
        ended = f"ended by signal {-status}" if status < 0 else f"ended with exit status {status}"
        words = last_words(self._tail.decode(errors="replace")) if status else ""
        return f"{ended}: {words}" if words else ended

    def _wait(self) -> int | None:
        """The status of the host, which is killed where it takes too long to end; None where not even that ends it."""
        for _ in range(2):
            try:
                return self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return None


def last_words(printed: str) -> str:
    """Return the line that says why a process ended, without folders: its last exception, or else its last line."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    reason = next((line for line in reversed(lines) if _EXCEPTION.fullmatch(line)), lines[-1] if lines else "")
    reason = str(cleaned(reason))
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1]}…"
