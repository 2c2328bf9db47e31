"""A page without a browser: the WebSocket of a Streamlit server, in the messages that a browser sends and is sent."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import requests
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import FileUploaderState, UploadedFileInfo
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.deadlines import ANSWER_S

# Widget's id → the field of its state, by its type, and the value.
States = Mapping[str, Mapping[str, Any]]
PRESSED = {"trigger_value": True}  # of a button
_OF_A_WHOLE_PAGE = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_WITH_COMPILE_ERROR)


class Page:
    """A page that is open. ``query``: of its address."""

    def __init__(self, socket: ClientConnection, query: str) -> None:
        self.socket, self.query, self._script = socket, query, ""
        self._drawn: dict[tuple[int, ...], Any] = {}  # the elements, by their paths
        self._finished, self._places = asyncio.Event(), asyncio.Queue[Any]()
        self._reader = asyncio.create_task(self._read())
        self._looks: dict[str, asyncio.Task[None]] = {}  # of the fragments that are drawn again and again

    @classmethod
    async def open(
        cls, url: str, name: str = "", query: str = "", headers: Mapping[str, str] | None = None, **options: Any
    ) -> "Page":
        """Open the page of this name, and wait until it is drawn. ``options`` are those of `connect`. Raises what
        `rerun` and `connect` do."""
        socket = await connect(
            f"{url.replace('http', 'ws', 1)}/_stcore/stream", additional_headers=headers, subprotocols=["streamlit"],
            compression=None, max_size=None, proxy=None, **options,
        )  # fmt: skip
        page = cls(socket, query)
        await page.rerun(name=name)
        return page

    async def close(self) -> None:
        for task in (self._reader, *self._looks.values()):
            task.cancel()
        await self.socket.close()

    def widgets(self) -> dict[str, str]:
        """The ids of the widgets that are drawn, by their keys."""
        ids = [element.id for element in self._drawn.values() if getattr(element, "id", "")]
        return {one.split("-", 2)[-1]: one for one in ids}

    def message(self, states: States | None = None, name: str = "", fragment: str = "") -> BackMsg:
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string, asked.page_script_hash, asked.page_name = self.query, "" if name else self._script, name
        asked.fragment_id, asked.is_auto_rerun, asked.context_info.timezone = fragment, bool(fragment), "UTC"
        for widget_id, state in (states or {}).items():
            asked.widget_states.widgets.add(id=widget_id, **state)
        return message

    async def rerun(self, states: States | None = None, name: str = "") -> None:
        """Have the page drawn anew, or the one of this name, and wait for it. Raises TimeoutError, and ConnectionClosed
        where the server has closed the WebSocket."""
        self._finished.clear()
        await self.socket.send(self.message(states, name).SerializeToString())
        await asyncio.wait_for(self._finished.wait(), ANSWER_S)

    async def press(self, key: str) -> None:
        """Press the button with this key. Raises KeyError where it is not drawn."""
        await self.rerun({self.widgets()[key]: PRESSED})

    async def upload(self, key: str, url: str, browser: requests.Session, data: bytes) -> None:
        """Choose a file in an uploader. ``browser``: with the cookies of the server."""
        asked = BackMsg()
        asked.file_urls_request.file_names.append("a.json")
        await self.socket.send(asked.SerializeToString())
        place = await asyncio.wait_for(self._places.get(), ANSWER_S)
        token, form = {"X-Xsrftoken": browser.cookies.get("_streamlit_xsrf")}, {"file": ("a.json", data)}
        if (await asyncio.to_thread(browser.put, url + place.upload_url, files=form, headers=token)).ok:
            info = UploadedFileInfo(file_id=place.file_id, name="a.json", size=len(data), file_urls=place)
            state = {"file_uploader_state_value": FileUploaderState(uploaded_file_info=[info])}
            await self.rerun({self.widgets()[key]: state})

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for data in self.socket:
                self._apply(ForwardMsg.FromString(data))
        self._finished.set()

    def _apply(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "new_session" and not message.metadata.run.fragment_ids:
            while self._looks:
                self._looks.popitem()[1].cancel()
            self._drawn.clear()
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            element = message.delta.new_element
            self._drawn[tuple(message.metadata.delta_path)] = getattr(element, element.WhichOneof("type"))
        elif kind == "navigation":
            self._script = message.navigation.page_script_hash
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "file_urls_response":
            self._places.put_nowait(message.file_urls_response.file_urls[0])
        elif kind == "auto_rerun" and message.auto_rerun.fragment_id not in self._looks:
            fragment = message.auto_rerun.fragment_id
            self._looks[fragment] = asyncio.create_task(self._look(fragment, message.auto_rerun.interval))
        elif kind == "script_finished" and message.script_finished in _OF_A_WHOLE_PAGE:
            self._finished.set()

    async def _look(self, fragment: str, every_s: float) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                await asyncio.sleep(every_s)
                await self.socket.send(self.message(fragment=fragment).SerializeToString())
