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
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not places.hosted():
            await self.app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        known = session.is_token(connection.cookies.get(session.COOKIE, ""))
        forwarded = connection.headers.get("x-forwarded-proto", "")
        secure = "; Secure" if "https" in (connection.url.scheme, forwarded) else ""

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start" and not known:
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.append(
                        "set-cookie",
                        f"{session.COOKIE}={session.new_token()}; Max-Age={_MAX_AGE_S}; Path=/; HttpOnly; "
                        f"SameSite=Lax{secure}",
                    )
            await send(message)

        await self.app(scope, receive, with_cookie)
