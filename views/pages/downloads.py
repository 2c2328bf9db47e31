"""The server's answers to `export/…`: a run in another form, sent from a file that has no name and is gone afterwards.

One file is made at a time, and one picture: what many visitors ask for at once waits in turn, and takes the memory of
one. No picture is drawn while latencies are sampled.
"""

import asyncio
import contextlib
import logging
import mimetypes
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from measure.run import place
from measure.run.place import StoreError
from views.pages import opening, texts
from views.result import exports
from views.result.exports import NoFile

_PATH = re.compile(r"/export/(?:(?P<runs>runs\.zip)|(?P<run>[^/]{1,100})/(?P<ending>[\w.-]{1,100}))")
_MOST_RUNS = 200
# What is being sent, of all visitors: room on the disk, and answers at a time.
_MOST_BYTES, _MOST_SENT = 512 * 2**20, 32
_MOST_WAITING = 16
# An answer ends when its reader takes less than this on average.
_PATIENCE_S, _LEAST_BYTES_PER_S = 30.0, 50_000
_CHUNK = 2**18
# For how long a picture waits for a pause between samples, and how often it looks.
_PAUSE_S, _LOOK_S = 15.0, 0.25
_log = logging.getLogger("mapbench.page")


class _Later(Exception):
    """It cannot be had now, as a sentence says."""


class Downloads:
    """Answers what asks for an export; all else goes by."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._making, self._drawing = _Turns(), _Turns()
        self._sent, self._sent_bytes = 0, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = _PATH.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if asked is None or asked.end() != len(scope["path"]):
            await self._app(scope, receive, send)
            return
        with tempfile.TemporaryFile(dir=_folder()) as file:
            answer = await self._answer(Request(scope), asked, file)
            size = file.tell()
            self._sent, self._sent_bytes = self._sent + 1, self._sent_bytes + size
            try:
                with contextlib.suppress(TimeoutError):  # the connection is closed in the middle of the file
                    async with asyncio.timeout(_PATIENCE_S + size / _LEAST_BYTES_PER_S):
                        await answer(scope, receive, send)
            finally:
                self._sent, self._sent_bytes = self._sent - 1, self._sent_bytes - size

    async def _answer(self, request: Request, asked: re.Match[str], file: IO[bytes]) -> Response:
        """Write what is asked for, and return the answer that sends it, or the sentence why there is none."""
        try:
            if asked["ending"] and asked["ending"].endswith(exports.DRAWN):
                await _pause()
                turns = self._drawing
            else:
                turns = self._making
            async with turns.turn():
                if self._sent >= _MOST_SENT or self._sent_bytes >= _MOST_BYTES:
                    raise _Later(texts.MANY_EXPORTS)
                name = await run_in_threadpool(_write, request, asked, file)
        except NoFile as error:
            return PlainTextResponse(str(error), 404)
        except _Later as error:
            return PlainTextResponse(str(error), 503, {"Retry-After": "30"})
        except (OSError, RuntimeError, StoreError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            _log.warning("%s could not be exported: %s", request.url.path, reason)
            return PlainTextResponse(texts.NOT_EXPORTED.format(reason=reason), 503)
        size = file.seek(0, os.SEEK_END)
        kind, packed = mimetypes.guess_type(name)
        return StreamingResponse(
            _chunks(file),
            media_type="application/octet-stream" if kind is None or packed else kind,
            headers={
                "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}",
                "Content-Length": str(size),
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
            },
        )


class _Turns:
    """One at a time, in the order of those who ask; so many may wait."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._waiting = 0

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        if self._waiting >= _MOST_WAITING:
            raise _Later(texts.MANY_EXPORTS)
        self._waiting += 1
        try:
            async with self._lock:
                yield
        finally:
            self._waiting -= 1


async def _pause() -> None:
    """Wait until no latencies are sampled, and no longer than a reader has patience for."""
    ends = time.monotonic() + _PAUSE_S
    while await run_in_threadpool(exports.is_sampling):
        if time.monotonic() >= ends:
            raise _Later(texts.WHEN_MEASURED)
        await asyncio.sleep(_LOOK_S)


def _write(request: Request, asked: re.Match[str], file: IO[bytes]) -> str:
    """Write what is asked for into a file; its name. Raises `NoFile`."""
    if asked["runs"]:
        ids = [run_id for run_id in request.query_params.getlist("run")[:_MOST_RUNS] if place.is_id(run_id)]
        return exports.archive(ids, file)
    snapshot, problem = opening.find(asked["run"])
    if snapshot is None:
        raise NoFile(problem)
    return exports.write(snapshot.run, asked["ending"], request.query_params, file)


def _folder() -> Path | None:
    """The folder in which files lie while they are sent: beside the runs, since `/tmp` may be memory."""
    home = place.home()
    return home if os.access(home, os.W_OK) else None


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(_CHUNK):
        yield chunk
