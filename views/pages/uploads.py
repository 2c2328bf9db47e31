"""Uploads: the server lets in no more than it has room for, and what was imported is let go of at once.

Streamlit holds what is uploaded in memory for as long as its page is open, however often somebody uploads, and knows
one limit for all servers.
"""

import asyncio
import re
import threading
from typing import Protocol, cast

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from measure import client, hosting
from measure.store import imports
from views.pages import texts

_PATH = re.compile(r"/_stcore/upload_file/(?P<session>[^/]+)/(?P<file>[^/]+)$")
# What the form around a file takes.
_FORM_BYTES = 2**16
# So many of the largest files are held at a time, of all visitors.
_MOST_FILES = 4
# An upload ends when it is slower than this on average, and is held no longer than its page takes to import it.
_PATIENCE_S, _LEAST_BYTES_PER_S, _HELD_S = 30.0, 50_000, 120.0
_checking = threading.Lock()


def most_bytes() -> int:
    """Return the bytes that a run file may have here."""
    mib = hosting.limits().upload_mib
    return imports.MOST_BYTES if mib is None else mib * 2**20


class Uploaded(Protocol):
    """A file as the page has it."""

    file_id: str

    def getvalue(self) -> bytes: ...


def take(uploaded: Uploaded, owner: str) -> tuple[str, bool]:
    """Keep the run of an uploaded file; its id, and False where it is here already. One file is checked at a time.
    Raises what `imports.read` and `Store.add` do."""
    try:
        with _checking:
            run = imports.read(uploaded.getvalue(), most_bytes())
            return run.id, client.shared().store.add(run, owner)
    finally:
        context = get_script_run_ctx()
        if context is not None:
            held = cast(MemoryUploadedFileManager, context.uploaded_file_mgr)
            held.remove_file(context.session_id, uploaded.file_id)


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
        if size is None:
            await PlainTextResponse(texts.NO_SIZE, 411)(scope, receive, send)
            return
        if (refusal := self._refusal(size)) is not None:
            await refusal(scope, receive, send)
            return
        self._arriving_bytes += size
        try:
            async with asyncio.timeout(_PATIENCE_S + size / _LEAST_BYTES_PER_S):
                await self._app(scope, receive, send)
        except TimeoutError:
            await PlainTextResponse(texts.SLOW_UPLOAD, 408)(scope, receive, send)
        finally:
            self._arriving_bytes -= size
            asyncio.get_running_loop().call_later(_HELD_S, _held().remove_file, asked["session"], asked["file"])

    def _refusal(self, size: int) -> PlainTextResponse | None:
        most = most_bytes()
        if size > most + _FORM_BYTES:
            return PlainTextResponse(texts.LARGE_UPLOAD.format(size=size / 2**20, most=most // 2**20), 413)
        stats = _held().get_stats().values()
        held_bytes = sum(stat.byte_length for family in stats for stat in family)
        if self._arriving_bytes + held_bytes + size > _MOST_FILES * (most + _FORM_BYTES):
            return PlainTextResponse(texts.MANY_UPLOADS, 503, {"Retry-After": "30"})
        return None


def _held() -> MemoryUploadedFileManager:
    """Return what Streamlit holds."""
    return cast(MemoryUploadedFileManager, runtime.get_instance().uploaded_file_mgr)
