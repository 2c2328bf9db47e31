"""A browser's side of Streamlit's protocol, without a browser: cookies, the WebSocket, widgets, uploads and downloads.

A session keeps the elements that its page shows, and says what a person does in the messages of the installed
Streamlit. Its visitor has an address of their own, as a proxy in front of the server would tell it.
"""

import asyncio
import contextlib
import http.cookies
import re
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

# The largest message that a session takes; and for how long it waits for what it has asked for.
_MOST_BYTES = 200 * 2**20
PATIENCE_S = 120.0
_XSRF = "_streamlit_xsrf"


class Refused(Exception):
    """The server has said no: status and text."""


@dataclass
class Session:
    """A page in a browser of its own. ``problems``: tracebacks that the page has shown."""

    url: str
    address: str
    cookies: dict[str, str] = field(default_factory=dict)
    elements: dict[tuple[int, ...], Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    query: str = ""
    slowest_s: float = 0.0
    reruns: int = 0

    def __post_init__(self) -> None:
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._finished = 0
        self._page = ""
        self._pages: dict[str, str] = {}
        self._states: dict[str, WidgetState] = {}
        self._fragments: dict[str, float] = {}
        self._answers: dict[str, Any] = {}
        self._id = ""

    # --- coming and going --------------------------------------------------------------------------------------------

    async def open(self, page: str = "", query: str = "") -> None:
        """Open a page of the app, as a person does who follows a link; raises `Refused` and OSError."""
        await self.close()
        for path in (f"/{page}" + (f"?{query}" if query else ""), "/_stcore/health", "/_stcore/host-config"):
            await self.fetch(path)
        self.query, self._page = query, ""
        await self._connect()
        await self.rerun()
        if page:
            await self.rerun(page=page)

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._reader
        if self._socket is not None:
            with contextlib.suppress(Exception):
                await self._socket.close()
        self._socket = self._reader = None
        self.elements.clear()
        self._states.clear()
        self._fragments.clear()

    async def _connect(self) -> None:
        token = self.cookies.get(_XSRF, "none")
        protocols: Any = ["streamlit", token]
        headers = {"Cookie": self._cookie_header(), "X-Forwarded-For": self.address}
        where = self.url.replace("http://", "ws://") + "/_stcore/stream"
        self._socket = await connect(
            where, subprotocols=protocols, origin=self.url, additional_headers=headers, max_size=_MOST_BYTES,  # type: ignore[arg-type]
            open_timeout=PATIENCE_S, proxy=None,
        )  # fmt: skip
        self._reader = asyncio.create_task(self._read(self._socket))

    # --- what a person does ------------------------------------------------------------------------------------------

    async def rerun(
        self, *, page: str | None = None, fragment: str = "", states: list[WidgetState] | None = None, wait: bool = True
    ) -> None:
        """Have the page's script run, or a fragment of it, and wait for its end."""
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string = self.query
        if page is not None:
            self._states.clear()
            asked.page_name = page
            asked.page_script_hash = self._pages.get(page, "")
        else:
            asked.page_script_hash = self._page
        asked.fragment_id = fragment
        asked.is_auto_rerun = bool(fragment)
        asked.context_info.timezone = "Europe/Berlin"
        asked.context_info.locale = "en-GB"
        asked.context_info.url = f"{self.url}/"
        for state in (*self._states.values(), *(states or ())):
            asked.widget_states.widgets.add().CopyFrom(state)
        before, begun = self._finished, time.monotonic()
        await self._send(message)
        if wait:
            await self._until(lambda: self._finished > before, "the end of a script")
            self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
            self.reruns += 1

    async def click(self, key: str) -> bool:
        """Press a button; False where there is none that can be pressed."""
        element = self.find(key)
        if element is None or element.disabled:
            return False
        await self.rerun(states=[WidgetState(id=element.id, trigger_value=True)])
        return True

    async def set(self, key: str, **value: Any) -> bool:
        """Set a widget to a value of its kind, as ``string_value="x"``; False where there is none."""
        element = self.find(key)
        if element is None:
            return False
        self._states[element.id] = WidgetState(id=element.id, **value)
        await self.rerun()
        return True

    async def watch_once(self) -> None:
        """Look at what a page looks at by itself, once."""
        fragments = dict(self._fragments)
        await asyncio.sleep(min(fragments.values(), default=1.0))
        if fragments:
            await self.rerun(fragment=next(iter(fragments)))

    async def upload(self, key: str, name: str, data: bytes) -> bool:
        """Drop a file on an uploader; False where there is none. Raises `Refused`."""
        element = self.find(key)
        if element is None:
            return False
        message = BackMsg()
        request_id = uuid.uuid4().hex
        message.file_urls_request.request_id = request_id
        message.file_urls_request.file_names.append(name)
        message.file_urls_request.session_id = self._id
        urls = (await self._asked(message, request_id)).file_urls[0]
        boundary = uuid.uuid4().hex
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = head.encode() + data + f"\r\n--{boundary}--\r\n".encode()
        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        await self.fetch(urls.upload_url, body, "PUT", kind | {"X-Xsrftoken": self.cookies.get(_XSRF, "")})
        state = WidgetState(id=element.id)
        info = state.file_uploader_state_value.uploaded_file_info.add()
        info.file_id, info.name, info.size = urls.file_id, name, len(data)
        info.file_urls.CopyFrom(urls)
        await self.rerun(states=[state])
        return True

    async def say(self, data: bytes) -> None:
        """Send what need not be a message; a server may close the connection for it."""
        if self._socket is not None:
            with contextlib.suppress(ConnectionClosed):
                await self._socket.send(data)

    async def fetch(
        self, path: str, data: bytes | None = None, method: str = "GET", headers: dict[str, str] | None = None
    ) -> bytes:
        """What the server answers to a request with this session's cookies; raises `Refused`."""
        return await asyncio.to_thread(self._fetch, path, data, method, headers or {})

    # --- what the page shows -----------------------------------------------------------------------------------------

    def find(self, key: str) -> Any:
        """The widget of this key, whatever number follows it; None where the page has none."""
        named = re.compile(rf"-{re.escape(key)}(_\d+)?$")
        return next((each for each in self.elements.values() if named.search(getattr(each, "id", ""))), None)

    def links(self) -> list[str]:
        """The addresses, on this server, of the links of the page that can be pressed."""
        shown = [each for each in self.elements.values() if not getattr(each, "disabled", False)]
        found = [urllib.parse.urljoin(f"{self.url}/", url) for each in shown if (url := getattr(each, "url", ""))]
        return [url for url in found if url.startswith(self.url)]

    @property
    def text(self) -> str:
        """All text of the page."""
        return "\n".join(filter(None, (getattr(element, "body", "") for element in self.elements.values())))

    @property
    def run_id(self) -> str:
        return urllib.parse.parse_qs(self.query).get("run", [""])[-1]

    # --- inside ------------------------------------------------------------------------------------------------------

    def _cookie_header(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def _fetch(self, path: str, data: bytes | None, method: str, headers: dict[str, str]) -> bytes:
        url = path if path.startswith("http") else self.url + path
        own = {"Cookie": self._cookie_header(), "X-Forwarded-For": self.address, "Origin": self.url}
        asked = urllib.request.Request(url, data, {**own, **headers}, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(asked, timeout=PATIENCE_S) as answer:
                for line in answer.headers.get_all("Set-Cookie") or ():
                    for name, morsel in http.cookies.SimpleCookie(line).items():
                        self.cookies[name] = morsel.coded_value
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            raise Refused(f"{error.code} {error.read(500).decode(errors='replace')}") from None

    async def _send(self, message: BackMsg) -> None:
        if self._socket is None:
            raise ConnectionError("the page is not open")
        try:
            await self._socket.send(message.SerializeToString())
        except ConnectionClosed as error:
            raise ConnectionError(f"the connection is closed: {error}") from None

    async def _asked(self, message: BackMsg, request_id: str) -> Any:
        await self._send(message)
        await self._until(lambda: request_id in self._answers, "an answer")
        return self._answers.pop(request_id)

    async def _until(self, is_so: Callable[[], bool], what: str) -> None:
        async with self._changed:
            waiting = self._changed.wait_for(lambda: is_so() or self._reader is None or self._reader.done())
            try:
                await asyncio.wait_for(waiting, PATIENCE_S)
            except TimeoutError:
                raise TimeoutError(f"{what} was waited for {PATIENCE_S:.0f} s") from None
        if not is_so():
            raise ConnectionError(f"the connection was lost before {what}")

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for data in socket:
                message = ForwardMsg()
                message.ParseFromString(data if isinstance(data, bytes) else data.encode())
                async with self._changed:
                    self._take(message)
                    self._changed.notify_all()
        except ConnectionClosed:
            pass
        finally:
            async with self._changed:
                self._reader = None
                self._changed.notify_all()

    def _take(self, message: ForwardMsg) -> None:
        match message.WhichOneof("type"):
            case "new_session":
                new = message.new_session
                self._id = new.initialize.session_id or self._id
                self._page = new.page_script_hash
                if not message.metadata.run.fragment_ids:
                    self.elements.clear()
                    self._fragments.clear()
            case "navigation":
                for page in message.navigation.app_pages:
                    self._pages[page.url_pathname] = page.page_script_hash
                self._page = message.navigation.page_script_hash or self._page
            case "delta":
                self._draw(tuple(message.metadata.delta_path), message.delta)
            case "page_info_changed":
                self.query = message.page_info_changed.query_string
            case "auto_rerun":
                self._fragments[message.auto_rerun.fragment_id] = message.auto_rerun.interval
            case "file_urls_response":
                self._answers[message.file_urls_response.response_id] = message.file_urls_response
            case "session_event":
                if message.session_event.WhichOneof("type") == "script_compilation_exception":
                    self.problems.append(str(message.session_event))
            case "script_finished":
                # One that another rerun has cut short is followed by that one's end.
                if message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    self._finished += 1

    def _draw(self, path: tuple[int, ...], delta: Delta) -> None:
        self.elements.pop(path, None)
        element: Any = {"new_element": delta.new_element, "add_block": delta.add_block}.get(
            delta.WhichOneof("type") or ""
        )
        if element is None:
            return
        kind = element.WhichOneof("type")
        inner = getattr(element, kind) if kind else None
        self.elements[path] = inner
        if kind == "exception":
            self.problems.append(f"{inner.type}: {inner.message}"[:500])
