"""The server's answers to `export/…`: a run in another form, sent from a file that has no name and is gone afterwards.

One file is made at a time, and one run's figures: what many visitors ask for at once waits in turn, and takes the
memory of one. No figure is drawn while latencies are sampled.
"""

import asyncio
import contextlib
import logging
import mimetypes
import os
import re
import tempfile
from collections.abc import Iterator
from typing import IO
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from measure.run import place
from measure.run.place import StoreError
from views.pages import opening
from views.result import exports
from views.result.exports import NoFile

_PATH = re.compile(r"/export/(?:(?P<runs>runs\.zip)|(?P<run>[^/]{1,100})/(?P<ending>[\w.-]{1,100}))\Z")
_MOST_RUNS = 200
# Of all visitors at a time: exports that are made, wait for it or are sent, and what they take of the disk.
_MOST_EXPORTS, _MOST_BYTES = 32, 512 * 2**20
# An answer ends when its reader takes less than this on average.
_PATIENCE_S, _LEAST_BYTES_PER_S = 30.0, 50_000
_CHUNK = 2**18
_log = logging.getLogger("mapbench.page")


class Downloads:
    """Answers what asks for an export; all else goes by."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turns = {True: asyncio.Lock(), False: asyncio.Lock()}  # of figures, and of all else
        self._exports = self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = _PATH.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if asked is None:
            await self._app(scope, receive, send)
            return
        size, home = 0, place.home()
        # Beside the runs, since `/tmp` may be memory.
        with tempfile.TemporaryFile(dir=home if os.access(home, os.W_OK) else None) as file:
            self._exports += 1
            try:
                answer = await self._answer(Request(scope), asked, file)
                size = file.tell()
                self._bytes += size
                with contextlib.suppress(TimeoutError):  # the connection is closed in the middle of the file
                    async with asyncio.timeout(_PATIENCE_S + size / _LEAST_BYTES_PER_S):
                        await answer(scope, receive, send)
            finally:
                self._exports, self._bytes = self._exports - 1, self._bytes - size

    async def _answer(self, request: Request, asked: re.Match[str], file: IO[bytes]) -> Response:
        """Write what is asked for, and return the answer that sends it, or the sentence why there is none."""
        drawn = asked["ending"] == exports.FIGURES
        if self._exports > _MOST_EXPORTS or self._bytes >= _MOST_BYTES:
            return _later("Many exports are under way: try again in half a minute.")
        try:
            if drawn and await run_in_threadpool(exports.is_sampling):
                return _later("Figures are drawn when the run that is being measured has its samples: try again then.")
            async with self._turns[drawn]:
                name = await run_in_threadpool(_write, request, asked, file)
        except NoFile as error:
            return PlainTextResponse(str(error), 404)
        except (OSError, RuntimeError, StoreError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            _log.warning("%s could not be exported: %s", request.url.path, reason)
            return PlainTextResponse(f"This could not be exported: {reason}.", 503)
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


def _later(sentence: str) -> Response:
    return PlainTextResponse(sentence, 503, {"Retry-After": "30"})


def _write(request: Request, asked: re.Match[str], file: IO[bytes]) -> str:
    """Write what is asked for into a file; its name. Raises `NoFile`."""
    if asked["runs"]:
        ids = [run_id for run_id in request.query_params.getlist("run")[:_MOST_RUNS] if place.is_id(run_id)]
        return exports.archive(ids, file)
    snapshot, problem = opening.find(asked["run"])
    if snapshot is None:
        raise NoFile(problem)
    return exports.write(snapshot.run, asked["ending"], request.query_params, file)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(_CHUNK):
        yield chunk
