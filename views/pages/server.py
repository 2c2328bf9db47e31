"""The server around pages, as middleware: it sends exports, takes uploads in, and drops what is no message.

An export is sent from a file that has no name and is gone afterwards. One file is made at a time, and one archive of
figures or report: what many visitors ask for at once waits in turn, and takes the memory of one. No chart is drawn
while latencies are sampled.

Streamlit holds what is uploaded in memory for as long as its page is open, however often somebody uploads, and knows
one limit for all servers. Here no more is let in than there is room for, and what was imported is let go of at once.
"""

import asyncio
import contextlib
import functools
import logging
import mimetypes
import os
import re
import tempfile
import threading
import time
import traceback
from collections import Counter
from typing import IO, cast
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnected
from streamlit import runtime
from streamlit.components.v2.bidi_component.serialization import BidiComponentSerde
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.common import is_element_id
from streamlit.runtime.state.session_state import Serialized, WStates
from streamlit.runtime.uploaded_file_manager import UploadedFile

from measure import client, hosting
from measure.run import place
from measure.run.request import RequestError
from measure.store import imports
from views.result import exports, lookup
from views.ui import look, session
from workloads import places

_EXPORT = re.compile(r"/export/(?:runs\.(?P<runs>zip|html)|(?P<run>[^/]{1,100})/(?P<ending>[\w.-]{1,100}))\Z")
_UPLOAD = re.compile(r"/_stcore/upload_file/(?P<session>[^/]+)/(?P<file>[^/]+)\Z")
# What is sent or taken in ends where it is slower than this on average.
_PATIENCE_S, _LEAST_BYTES_PER_S = 30.0, 50_000
_CHUNK = 2**18
# Of all visitors and of an address at a time: exports that are made, wait for it or are sent; and what all take of the
# disk.
_MOST_EXPORTS, _MOST_OF_ADDRESS, _MOST_BYTES = 32, 8, 512 * 2**20
_MOST_RUNS = 200
# What the form around a file takes, and so many of the largest files are held at a time, of all visitors. One is held
# no longer than its page takes to import it.
_FORM_BYTES, _MOST_FILES, _HELD_S = 2**16, 4, 120.0
_log = logging.getLogger("mapbench.page")
# Of a message. Streamlit keeps what widgets hold for minutes after a page is closed; at home one may hold a function
# of a person's own, with its elements.
_MESSAGE_BYTES, _HOME_MESSAGE_BYTES = 2**18, 2**23
# So many messages of a page a second are taken after the first few, which a page sends as it is opened: as fast as some
# can send them, the server would do nothing else.
_MESSAGES_PER_S, _FIRST_MESSAGES = 20, 40
_checking = threading.Lock()


def _busy(sentence: str) -> Response:
    return PlainTextResponse(sentence, 503, {"Retry-After": "30"})


def _address(scope: Scope) -> str:
    """The address of who asks; empty where nobody who is trusted tells it."""
    request = Request(scope)
    return session.address_of(
        request.client.host if request.client else None, request.headers.getlist("x-forwarded-for")
    )


# --- exports ---------------------------------------------------------------------------------------------------------


class Downloads:
    """Answers what asks for an export; all else goes by."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turns = {True: asyncio.Lock(), False: asyncio.Lock()}  # of what is drawn, and of all else
        self._exports = self._bytes = 0
        self._exports_of: Counter[str] = Counter()  # by address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = _EXPORT.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if asked is None:
            await self._app(scope, receive, send)
            return
        size, home, address = 0, place.home(), _address(scope)
        # Beside the runs, since `/tmp` may be memory.
        with tempfile.TemporaryFile(dir=home if os.access(home, os.W_OK) else None) as file:
            self._exports += 1
            self._exports_of[address] += 1
            try:
                answer = await self._answer(Request(scope), asked, file, address)
                size = file.tell()
                self._bytes += size
                file.seek(0)
                with contextlib.suppress(TimeoutError):  # the connection is closed in the middle of the file
                    async with asyncio.timeout(_PATIENCE_S + size / _LEAST_BYTES_PER_S):
                        await answer(scope, receive, send)
            finally:
                self._exports, self._bytes = self._exports - 1, self._bytes - size
                self._exports_of[address] -= 1
                self._exports_of = +self._exports_of

    async def _answer(self, request: Request, asked: re.Match[str], file: IO[bytes], address: str) -> Response:
        """Write what is asked for, and return the answer that sends it, or the sentence why there is none."""
        drawn = (asked["runs"] or asked["ending"]) in exports.DRAWN
        if self._exports > _MOST_EXPORTS or self._bytes >= _MOST_BYTES:
            return _busy("Many exports are under way: try again in half a minute.")
        if address and self._exports_of[address] > _MOST_OF_ADDRESS:
            return _busy("Many exports of your address are under way: try again in half a minute.")
        try:
            if drawn and await run_in_threadpool(exports.is_sampling):
                return _busy("Charts are drawn when the run that is being measured has its samples: try again then.")
            async with self._turns[drawn]:
                name = await run_in_threadpool(_write, request, asked, file)
        except RequestError as error:
            return PlainTextResponse(look.sentence(str(error)), 404)
        except (OSError, RuntimeError, place.StoreError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            _log.warning("%s could not be exported: %s", request.url.path, reason)
            return PlainTextResponse(f"This could not be exported: {reason}.", 503)
        kind, packed = mimetypes.guess_type(name)
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}",
            "Content-Length": str(file.seek(0, os.SEEK_END)),
            "Cache-Control": "no-store",
        }
        kind = "application/octet-stream" if kind is None or packed else kind
        return StreamingResponse(iter(lambda: file.read(_CHUNK), b""), headers=headers, media_type=kind)


def _write(request: Request, asked: re.Match[str], file: IO[bytes]) -> str:
    """Write what is asked for into a file; its name. Raises `RequestError`."""
    if asked["runs"]:
        ids = [run_id for run_id in request.query_params.getlist("run")[:_MOST_RUNS] if place.is_id(run_id)]
        if asked["runs"] == exports.REPORT:
            return exports.report(list(dict.fromkeys(ids)), most_bytes(), file)
        return exports.archive(ids, file)
    return exports.write(lookup.find(asked["run"]).run, asked["ending"], request.query_params, file)


# --- uploads ---------------------------------------------------------------------------------------------------------


def most_bytes() -> int:
    """The bytes that a run file may have here."""
    mib = hosting.limits().upload_mib
    return imports.MOST_BYTES if mib is None else mib * 2**20


def take(uploaded: UploadedFile, owner: str) -> dict[str, bool]:
    """Keep the runs of an uploaded file; their ids, with False where one is here already. One file is checked at a
    time. Raises what `imports.read_all` and `Store.add` do."""
    try:
        with _checking:
            runs = imports.read_all(uploaded.getvalue(), most_bytes())
            store = client.shared().store
            # Those that are here first: where one of them turns out to be another run, none is kept.
            added = {run.id: store.add(run, owner) for run in sorted(runs, key=lambda run: store.entry(run.id) is None)}
            return {run.id: added[run.id] for run in runs}
    finally:
        if (context := get_script_run_ctx()) is not None:
            cast(MemoryUploadedFileManager, context.uploaded_file_mgr).remove_file(context.session_id, uploaded.file_id)


class Uploads:
    """Refuses an upload before it is read: one that is too large, and one for which there is no room now. Of that, an
    address has what the largest file takes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._arriving_bytes = 0
        self._bytes_of: Counter[str] = Counter()  # by address: what arrives, or has arrived and may be held still

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
        address = _address(scope)
        if not size:
            refusal: Response = PlainTextResponse("An upload has to say how large it is.", 411)
        elif size > most + _FORM_BYTES:
            too_large = f"it has {size / 2**20:.1f} MiB, and {most // 2**20} MiB are allowed"
            refusal = PlainTextResponse(f"This file is too large: {too_large}.", 413)
        elif self._arriving_bytes + held_bytes + size > _MOST_FILES * (most + _FORM_BYTES):
            refusal = _busy("Many files are being imported: try again in half a minute.")
        elif address and self._bytes_of[address] + size > most + _FORM_BYTES:
            refusal = _busy("Your address has imported large files just now: try again in two minutes.")
        else:
            self._arriving_bytes += size
            self._bytes_of[address] += size
            try:
                async with asyncio.timeout(_PATIENCE_S + size / _LEAST_BYTES_PER_S):
                    await self._app(scope, receive, send)
                return
            except ClientDisconnect:  # Streamlit would log a traceback
                return
            except TimeoutError:
                refusal = PlainTextResponse("The upload took too long.", 408)
            finally:
                self._arriving_bytes -= size
                let_go = functools.partial(self._let_go, held, asked, address, size)
                asyncio.get_running_loop().call_later(_HELD_S, let_go)
        await refusal(scope, receive, send)

    def _let_go(self, held: MemoryUploadedFileManager, asked: re.Match[str], address: str, size: int) -> None:
        held.remove_file(asked["session"], asked["file"])
        self._bytes_of[address] -= size
        self._bytes_of = +self._bytes_of


# --- messages --------------------------------------------------------------------------------------------------------


class Messages:
    """Drops what comes through a WebSocket and is larger than a message of a page, or none: Streamlit would log a
    traceback for each. What comes faster than from a page waits with its sender."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        due_s = 0.0

        async def receive_messages() -> Message:
            nonlocal due_s
            while (message := await receive())["type"] == "websocket.receive":
                now_s = time.monotonic()
                due_s = max(due_s, now_s - _FIRST_MESSAGES / _MESSAGES_PER_S) + 1 / _MESSAGES_PER_S
                if due_s > now_s:
                    await asyncio.sleep(due_s - now_s)
                if _is_of_a_page(message):
                    break
            return message

        with contextlib.suppress(WebSocketDisconnected):  # of who has gone Streamlit would log a traceback
            await self._app(scope, receive_messages if scope["type"] == "websocket" else receive, send)


def _is_of_a_page(message: Message) -> bool:
    data = message.get("bytes") or b""
    if len(data) > (_MESSAGE_BYTES if places.hosted() or places.viewer() else _HOME_MESSAGE_BYTES):
        return False
    try:
        asked = BackMsg.FromString(data)
    except Exception:  # of protobuf, which is Streamlit's matter
        return False
    widgets = asked.rerun_script.widget_states.widgets
    return asked.WhichOneof("type") is not None and all(is_element_id(widget.id) for widget in widgets)


_read = WStates.__getitem__
# Where Streamlit reads the values of widgets that a browser has sent.
_READING = {one.__code__ for one in (_read, WStates.get_serialized, BidiComponentSerde.deserialize)}


def take_values_of_their_types() -> None:
    """Have Streamlit take a value that a browser sent for none where it is of another type than its widget's: who draws
    would find a number where a text was asked for."""

    def read(states: WStates, id_: str) -> object:
        sent, widget = states.states.get(id_), states.widget_metadata.get(id_)
        sent_as = sent.value.WhichOneof("value") if isinstance(sent, Serialized) else None
        both = (sent_as, widget.value_type if widget else None)
        # A field of whole numbers is sent these, and declares others.
        if None not in both and both[0] != both[1] and both != ("int_value", "double_value"):
            raise KeyError(id_)
        return _read(states, id_)

    WStates.__getitem__ = read  # type: ignore[method-assign]


def log_forged_values_briefly() -> None:
    """Log one line in place of a traceback where a browser sent a value that its widget cannot have, such as broken
    JSON of a selection: it breaks the sender's page alone."""
    for name in ("streamlit.error_util", BidiComponentSerde.__module__, _log.name):
        logging.getLogger(name).addFilter(_is_logged_whole)


def _is_logged_whole(record: logging.LogRecord) -> bool:
    _, error, trace = record.exc_info or (None, None, None)
    if not any(frame.f_code in _READING for frame, _ in traceback.walk_tb(trace)):
        return True
    _log.warning("A browser sent a value that its widget cannot have: %r", str(error)[:100])
    return False
