"""The cookie by which a hosted server knows its visitors again: it comes with a page's HTML, as no script can set it.

It holds a random token and nothing else. No script of a page can read it, and no other site sends it.
"""

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from views.ui import session
from workloads import places

_MAX_AGE_S = 180 * 86_400


class Cookie:
    """Gives a token to each browser that asks for a page and has none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = HTTPConnection(scope) if scope["type"] == "http" and places.hosted() else None
        if connection is None or session.is_token(connection.cookies.get(session.COOKIE, "")):
            await self._app(scope, receive, send)
            return
        schemes = (connection.url.scheme, connection.headers.get("x-forwarded-proto", ""))
        secure = "; Secure" if "https" in schemes else ""

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.append(
                        "set-cookie",
                        f"{session.COOKIE}={session.new_token()}; Max-Age={_MAX_AGE_S}; Path=/; HttpOnly; "
                        f"SameSite=Lax{secure}",
                    )
            await send(message)

        await self._app(scope, receive, with_cookie)
