"""Uploads: the server lets in no more than it has room for, and what was imported is let go of at once.

Streamlit holds what is uploaded in memory for as long as its page is open, however often somebody uploads, and knows
one limit for all servers.
"""

import asyncio
import re
import threading
from typing import cast

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from measure import client, hosting
from measure.store import imports

_PATH = re.compile(r"/_stcore/upload_file/(?P<session>[^/]+)/(?P<file>[^/]+)$")
# What the form around a file takes.
_FORM_BYTES = 2**16
# So many of the largest files are held at a time, of all visitors.
_MOST_FILES = 4
# An upload ends when it is slower than this on average, and is held no longer than its page takes to import it.
_PATIENCE_S, _LEAST_BYTES_PER_S, _HELD_S = 30.0, 50_000, 120.0
_checking = threading.Lock()


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
        asked = _PATH.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if asked is None:
            await self._app(scope, receive, send)
            return
        length = Request(scope).headers.get("content-length", "")
        size = int(length) if re.fullmatch("[0-9]{1,15}", length) else None
        if (refusal := self._refusal(size)) is not None:
            await refusal(scope, receive, send)
        if refusal is not None or size is None:
            return
        self._arriving_bytes += size
        try:
            async with asyncio.timeout(_PATIENCE_S + size / _LEAST_BYTES_PER_S):
                await self._app(scope, receive, send)
        except TimeoutError:
            await PlainTextResponse("The upload took too long.", 408)(scope, receive, send)
        finally:
            self._arriving_bytes -= size
            asyncio.get_running_loop().call_later(_HELD_S, _held().remove_file, asked["session"], asked["file"])

    def _refusal(self, size: int | None) -> PlainTextResponse | None:
        most = most_bytes()
        if size is None:
            return PlainTextResponse("An upload has to say how large it is.", 411)
        if size > most + _FORM_BYTES:
            too_large = f"it has {size / 2**20:.1f} MiB, and {most // 2**20} MiB are allowed"
            return PlainTextResponse(f"This file is too large: {too_large}.", 413)
        held_bytes = sum(stat.byte_length for family in _held().get_stats().values() for stat in family)
        if self._arriving_bytes + held_bytes + size > _MOST_FILES * (most + _FORM_BYTES):
            busy = "Many files are being imported: try again in half a minute."
            return PlainTextResponse(busy, 503, {"Retry-After": "30"})
        return None


def _held() -> MemoryUploadedFileManager:
    """The files that Streamlit holds, of all visitors."""
    return cast(MemoryUploadedFileManager, runtime.get_instance().uploaded_file_mgr)
