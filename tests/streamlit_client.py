"""A page of the app without a browser: Streamlit's protocol over one WebSocket, and the widgets that a page draws."""

import contextlib
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import ClientConnection, connect

from tests.deadlines import ANSWER_S


@contextlib.contextmanager
def opened(url: str, headers: Mapping[str, str] | None = None) -> Iterator["Session"]:
    """A page of the server at ``url``, that has been drawn once. ``headers`` are sent in place of a browser's, ``Host``
    and ``Origin`` too: whatever they say, the server that is talked to stays the same."""
    at = urlsplit(url)
    sent = {"Host": at.netloc, "Origin": url, **(headers or {})}
    options: dict[str, Any] = {"origin": sent.pop("Origin"), "subprotocols": ["streamlit", "none"]}
    with connect(
        f"ws://{sent.pop('Host')}/_stcore/stream",
        sock=socket.create_connection((at.hostname, at.port), timeout=ANSWER_S),
        additional_headers=sent,
        open_timeout=ANSWER_S,
        max_size=None,
        **options,
    ) as connection:
        session = Session(connection)
        session.rerun()
        yield session


@dataclass
class Session:
    """A page that is open: ``elements`` are what its script has drawn, by their places."""

    connection: ClientConnection
    query: str = ""
    elements: dict[tuple[int, ...], Any] = field(default_factory=dict)
    _states: dict[str, WidgetState] = field(default_factory=dict)

    @property
    def widgets(self) -> dict[str, Any]:
        """The widgets of the page by their keys; those without one have Streamlit's own name."""
        # An id is `$$ID-`, a digest and the key.
        found = {getattr(element, "id", ""): element for element in self.elements.values()}
        return {name.split("-", 2)[-1]: element for name, element in found.items() if name}

    def set(self, key: str, **value: Any) -> None:
        """Set a widget to a value of its kind, as ``string_value="x"``, and have the script run."""
        widget = self.widgets[key].id
        self._states[widget] = WidgetState(id=widget, **value)
        self.rerun()

    def click(self, key: str) -> None:
        """Press a button, and have the script run."""
        self.rerun(WidgetState(id=self.widgets[key].id, trigger_value=True))

    def rerun(self, *pressed: WidgetState) -> None:
        """Have the page's script run, and wait for its end."""
        message = BackMsg()
        message.rerun_script.query_string = self.query
        message.rerun_script.widget_states.widgets.extend([*self._states.values(), *pressed])
        self.connection.send(message.SerializeToString())
        while not self._take(ForwardMsg.FromString(self.connection.recv(ANSWER_S, decode=False))):
            pass

    def _take(self, message: ForwardMsg) -> bool:
        """Note what a message says; True if the script has come to its end."""
        match message.WhichOneof("type"):
            case "new_session" if not message.metadata.run.fragment_ids:
                self.elements.clear()
            case "page_info_changed":
                self.query = message.page_info_changed.query_string
            case "delta":
                element = message.delta.new_element
                if kind := element.WhichOneof("type"):
                    self.elements[tuple(message.metadata.delta_path)] = getattr(element, kind)
            case "script_finished":
                # One that another run has cut short is followed by that one's end.
                return bool(message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN)
        return False
