"""Access to this server, as middleware: requests that are refused, and headers of every answer.

A website in another tab can have its own name resolve to this machine (DNS rebinding): then its pages may talk to a
server that listens to this machine alone, and `Host` holds the website's name. Streamlit checks names for WebSockets,
by `server.allowedHosts`; here the same list holds for whatever is asked.
"""

import contextlib
import logging
import re
from collections.abc import AsyncIterator
from urllib.parse import quote, urlencode

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose
from streamlit import config
from streamlit.web.server import server_util
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from measure import hosting
from views.ui import permission, session
from workloads import places

_ALLOWED_HOSTS = "server.allowedHosts"
# Set by a proxy in front of the server: then somebody else's machine may be the one that asks.
_OF_PROXIES = re.compile(r"forwarded|via|x-real-ip|x-forwarded-.*")
_QUOTED = 100  # signs of what came in
_log = logging.getLogger("mapbench.page")


def headers() -> dict[str, str]:
    """The headers of every answer: they say which sites may frame it, that its type is not to be guessed, and that no
    other site is to learn of an address."""
    return {
        "Content-Security-Policy": f"frame-ancestors 'self' {hosting.frame_ancestors()}".strip(),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
    }


def check_names() -> None:
    """Have a server that listens to this machine alone answer to its own names and those in the settings, also once
    Streamlit has read its settings anew; one that others reach checks names where some are set."""

    def add_own() -> None:
        names, address = config.get_option(_ALLOWED_HOSTS), config.get_option("server.address")
        if names or permission.is_this_machine(address):
            own = dict.fromkeys((*names, "localhost", "127.0.0.1", "::1", *filter(None, [address])))
            config.set_option(_ALLOWED_HOSTS, list(own), "Mapbench's start")

    add_own()
    config.on_config_parsed(add_own, force_connect=True)


def refusal(asked: Headers, is_socket: bool) -> str | None:
    """The sentence that says why a request with these headers is not answered."""
    host, origin = asked.get("host", "")[:_QUOTED], asked.get("origin")
    if not is_host_allowed(asked.get("host")):
        return (
            f"This server does not answer to the name {host!r}: open it as http://localhost or http://127.0.0.1, or "
            "start it with STREAMLIT_SERVER_ALLOWED_HOSTS and this name."
        )
    expects_proxies = places.hosted() or places.viewer() or hosting.proxies() or permission.policy() == "everybody"
    if not expects_proxies and any(map(_OF_PROXIES.fullmatch, asked.keys())):
        return (
            "This request came through a proxy, and the server was not told of one: start it with "
            f"{hosting.PROXIES} and the proxy's address, or with MAPBENCH_HOSTED=1 where strangers use it."
        )
    is_foreign = is_socket and origin is not None and origin.partition("://")[2] != asked.get("host")
    if is_foreign and not (server_util.allow_all_cross_origin_requests() or server_util.is_allowed_origin(str(origin))):
        # Streamlit would refuse it too, but first ask another server for this machine's address while all others wait.
        return (
            f"A page of {str(origin)[:_QUOTED]!r} asked for {host!r}: where a proxy changes the name, start the server "
            "with STREAMLIT_SERVER_CORS_ALLOWED_ORIGINS and the page's site."
        )
    return None


class Access:
    """Refuses whoever should not ask; leads from an address with a token to the same without it; sets `headers`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._headers = app, headers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        connection, is_socket, app = HTTPConnection(scope), scope["type"] == "websocket", self._app
        if sentence := refusal(connection.headers, is_socket):
            app = WebSocketClose() if is_socket else PlainTextResponse(f"{sentence}\n", 403)
            # A browser shows what an HTTP request is answered, and nothing of a refused WebSocket.
            _log.log(logging.WARNING if is_socket else logging.INFO, "refused: %s", sentence)
        elif not is_socket and scope["method"] == "GET" and "token" in connection.query_params:
            app = _unlocked(connection)
        await app(scope, receive, with_headers)


def _unlocked(connection: HTTPConnection) -> Response:
    """Lead to the same address without its token, so that it stands in no history, link or log; the browser remembers
    the right one. A link from a terminal is followed by the browser itself, so the strictest cookie will do."""
    rest = urlencode([(name, value) for name, value in connection.query_params.multi_items() if name != "token"])
    page = "./" + quote(connection.url.path.rpartition("/")[2])  # relative, as a proxy may have taken a folder off
    answer = RedirectResponse(f"{page}?{rest}" if rest else page, 303, {"Cache-Control": "no-store"})
    if permission.is_token(connection.query_params["token"]):
        name, value = permission.cookie()
        answer.set_cookie(name, value, httponly=True, samesite="strict", secure=session.is_secure(connection))
    return answer


async def fault(request: Request, error: Exception) -> Response:
    """The answer where there is a fault in the server, whose log has the traceback."""
    return PlainTextResponse("A fault in Mapbench: the server's log holds the details.\n", 500, headers())


@contextlib.asynccontextmanager
async def announcing(app: st.App) -> AsyncIterator[None]:
    """Print, once the server listens, the address that unlocks code, where there is one."""
    if permission.policy() == "token":
        # «localhost» is ::1 first for a browser, where another account's server may listen and be sent the token.
        address = str(st.get_option("server.address")).lower().replace("localhost", "127.0.0.1")
        page = server_util.get_url(f"[{address}]" if ":" in address else address).rstrip("/")
        print(f"  To run code of your own: {page}/?token={quote(permission.token())}\n", flush=True)
    yield
