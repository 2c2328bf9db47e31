"""The lines that processes exchange: one JSON object a line, UTF-8, at most `LONGEST_LINE` bytes.

Runner → host: ``{"op": "fork", "id", "spec"}``, ``{"op": "send", "id", "message"}``, ``{"op": "kill", "id"}``.
Host → runner: ``{"event": "ready" | "devices", …}`` of its own; of a subject ``{"id", "event": "started", "pid"}``,
``{"id", "event": "message", "message"}``, ``{"id", "event": "exit", "status", "signal", "tail"}``.
What is inside ``message`` is between the runner and the subject (see `measure.subject.subject`).
"""

import os
from typing import Any

import msgspec

LONGEST_LINE = 64 * 2**20


class ProtocolError(ValueError):
    """The other side sent what is not a line of this protocol."""


def encode(message: dict[str, Any]) -> bytes:
    """One line. Numbers that are not finite become null."""
    return msgspec.json.encode(message) + b"\n"


class Lines:
    """Cuts a stream of bytes into messages; keeps what is incomplete for the next call."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The messages that ``data`` completes. Raises `ProtocolError`, after which the stream cannot be trusted."""
        self._pending += data
        if len(self._pending) > self._longest:
            raise ProtocolError(f"a line is longer than {self._longest} bytes")
        if b"\n" not in data:
            return []
        *lines, rest = self._pending.split(b"\n")
        self._pending = bytearray(rest)
        messages = []
        for line in lines:
            if not line.strip():
                continue
            try:
                message = msgspec.json.decode(line)
            except msgspec.DecodeError:
                message = None
            if not isinstance(message, dict):
                raise ProtocolError(f"not a message: {bytes(line[:80])!r}")
            messages.append(message)
        return messages


class Channel:
    """A pair of file descriptors that carries lines, with blocking reads; for the subject's side."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self._lines = Lines()
        self._ready: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        data = memoryview(encode(message))
        while data:
            data = data[os.write(self._write_fd, data) :]

    def receive(self) -> dict[str, Any] | None:
        """The next message, or None when the other side has closed."""
        while not self._ready:
            data = os.read(self._read_fd, 2**16)
            if not data:
                return None
            self._ready = self._lines.feed(data)
        return self._ready.pop(0)
