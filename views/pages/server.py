"""What the server does around pages, as middleware: it sends exports, and takes uploads in.

An export is sent from a file that has no name and is gone afterwards. One file is made at a time, and one run's
figures: what many visitors ask for at once waits in turn, and takes the memory of one. No figure is drawn while
latencies are sampled.

Streamlit holds what is uploaded in memory for as long as its page is open, however often somebody uploads, and knows
one limit for all servers. Here no more is let in than there is room for, and what was imported is let go of at once.
"""

import asyncio
import contextlib
import logging
import mimetypes
import os
import re
import tempfile
import threading
from typing import IO, cast
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from measure import client, hosting
from measure.run import place
from measure.run.place import StoreError
from measure.store import imports
from views.pages import opening
from views.result import exports
from views.result.exports import NoFile

_EXPORT = re.compile(r"/export/(?:(?P<runs>runs\.zip)|(?P<run>[^/]{1,100})/(?P<ending>[\w.-]{1,100}))\Z")
_UPLOAD = re.compile(r"/_stcore/upload_file/(?P<session>[^/]+)/(?P<file>[^/]+)\Z")
# What is sent or taken in ends where it is slower than this on average.
_PATIENCE_S, _LEAST_BYTES_PER_S = 30.0, 50_000
_CHUNK = 2**18
# Of all visitors at a time: exports that are made, wait for it or are sent, and what they take of the disk.
_MOST_EXPORTS, _MOST_BYTES = 32, 512 * 2**20
_MOST_RUNS = 200
# What the form around a file takes, and so many of the largest files are held at a time, of all visitors. One is held
# no longer than its page takes to import it.
_FORM_BYTES, _MOST_FILES, _HELD_S = 2**16, 4, 120.0
_log = logging.getLogger("mapbench.page")
_checking = threading.Lock()


def _busy(sentence: str) -> Response:
    return PlainTextResponse(sentence, 503, {"Retry-After": "30"})


# --- exports ---------------------------------------------------------------------------------------------------------


class Downloads:
    """Answers what asks for an export; all else goes by."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turns = {True: asyncio.Lock(), False: asyncio.Lock()}  # of figures, and of all else
        self._exports = self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = _EXPORT.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
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
                file.seek(0)
                with contextlib.suppress(TimeoutError):  # the connection is closed in the middle of the file
                    async with asyncio.timeout(_PATIENCE_S + size / _LEAST_BYTES_PER_S):
                        await answer(scope, receive, send)
            finally:
                self._exports, self._bytes = self._exports - 1, self._bytes - size

    async def _answer(self, request: Request, asked: re.Match[str], file: IO[bytes]) -> Response:
        """Write what is asked for, and return the answer that sends it, or the sentence why there is none."""
        drawn = asked["ending"] == exports.FIGURES
        if self._exports > _MOST_EXPORTS or self._bytes >= _MOST_BYTES:
            return _busy("Many exports are under way: try again in half a minute.")
        try:
            if drawn and await run_in_threadpool(exports.is_sampling):
                return _busy("Figures are drawn when the run that is being measured has its samples: try again then.")
            async with self._turns[drawn]:
                name = await run_in_threadpool(_write, request, asked, file)
        except NoFile as error:
            return PlainTextResponse(str(error), 404)
        except (OSError, RuntimeError, StoreError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            _log.warning("%s could not be exported: %s", request.url.path, reason)
            return PlainTextResponse(f"This could not be exported: {reason}.", 503)
        kind, packed = mimetypes.guess_type(name)
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}",
            "Content-Length": str(file.seek(0, os.SEEK_END)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
        kind = "application/octet-stream" if kind is None or packed else kind
        return StreamingResponse(iter(lambda: file.read(_CHUNK), b""), headers=headers, media_type=kind)


def _write(request: Request, asked: re.Match[str], file: IO[bytes]) -> str:
    """Write what is asked for into a file; its name. Raises `NoFile`."""
    if asked["runs"]:
        ids = [run_id for run_id in request.query_params.getlist("run")[:_MOST_RUNS] if place.is_id(run_id)]
        return exports.archive(ids, file)
    snapshot, problem = opening.find(asked["run"])
    if snapshot is None:
        raise NoFile(problem)
    return exports.write(snapshot.run, asked["ending"], request.query_params, file)


# --- uploads ---------------------------------------------------------------------------------------------------------


def most_bytes() -> int:
    """The bytes that a run file may have here."""
    mib = hosting.limits().upload_mib
    return imports.MOST_BYTES if mib is None else mib * 2**20


def take(uploaded: UploadedFile, owner: str) -> tuple[str, bool]:
    """Keep the run of an uploaded file; its id, and False where it is here already. One file is checked at a time.
    Raises what `imports.read` and `Store.add` do."""
    try:
        with _checking:
            run = imports.read(uploaded.getvalue(), most_bytes())
            return run.id, client.shared().store.add(run, owner)
    finally:
        if (context := get_script_run_ctx()) is not None:
            cast(MemoryUploadedFileManager, context.uploaded_file_mgr).remove_file(context.session_id, uploaded.file_id)


class Uploads:
    """Refuses an upload before it is read: one that is too large, and one for which there is no room now."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._arriving_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = _UPLOAD.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if asked is None:
            await self._app(scope, receive, send)
            return
        length = Request(scope).headers.get("content-length", "")
        size = int(length) if re.fullmatch("[0-9]{1,15}", length) else 0
        held = cast(MemoryUploadedFileManager, runtime.get_instance().uploaded_file_mgr)
        held_bytes = sum(stat.byte_length for family in held.get_stats().values() for stat in family)
        most = most_bytes()
        if not size:
            refusal: Response = PlainTextResponse("An upload has to say how large it is.", 411)
        elif size > most + _FORM_BYTES:
            too_large = f"it has {size / 2**20:.1f} MiB, and {most // 2**20} MiB are allowed"
            refusal = PlainTextResponse(f"This file is too large: {too_large}.", 413)
        elif self._arriving_bytes + held_bytes + size > _MOST_FILES * (most + _FORM_BYTES):
            refusal = _busy("Many files are being imported: try again in half a minute.")
        else:
            self._arriving_bytes += size
            try:
                async with asyncio.timeout(_PATIENCE_S + size / _LEAST_BYTES_PER_S):
                    await self._app(scope, receive, send)
                return
            except TimeoutError:
                refusal = PlainTextResponse("The upload took too long.", 408)
            finally:
                self._arriving_bytes -= size
                asyncio.get_running_loop().call_later(_HELD_S, held.remove_file, asked["session"], asked["file"])
        await refusal(scope, receive, send)
