"""The preview of a link: programs that show one read the HTML of its page and run no scripts, so it stands there."""

import html
import logging
from typing import cast

from starlette.concurrency import run_in_threadpool
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from measure.judge import answer
from views.pages import opening, texts
from views.result import heading

_PAGES = ("", "compare", "sweep", "runs")
# What Streamlit puts into the HTML of a page, until its scripts run.
_TITLE = "<title>Streamlit</title>"
_log = logging.getLogger("mapbench.page")


class Preview(BaseHTTPMiddleware):
    """Names, in the HTML of a page, the case and the verdict of the run that its address names."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and scope["method"] == "GET" and scope["path"].rpartition("/")[2] in _PAGES
        # All else, such as a page's scripts, goes by: on its way through here it would take longer.
        await (super().__call__ if is_page else self.app)(scope, receive, send)

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        # The text is changed here, so it may not come packed.
        request.scope["headers"] = [item for item in request.scope["headers"] if item[0] != b"accept-encoding"]
        response = await call_next(request)
        if response.status_code != 200 or not response.headers.get("content-type", "").startswith("text/html"):
            return response
        parts = [part async for part in cast(StreamingResponse, response).body_iterator]
        page = b"".join(part.encode() if isinstance(part, str) else part for part in parts).decode()
        title, about = await run_in_threadpool(_said, request.query_params.get("run"))
        return HTMLResponse(page.replace(_TITLE, _tags(title, about)), headers={"Cache-Control": "no-cache"})


def _said(run_id: str | None) -> tuple[str, str]:
    """Return title and description of the page of a run, or of none."""
    try:
        snapshot, problem = opening.find(run_id) if run_id else (None, "")
        if snapshot is None:
            return texts.NAME, problem or texts.ABOUT
        about = heading.verdict(snapshot.run) if snapshot.state == "finished" else texts.PREVIEW_UNFINISHED
        return f"{answer.heading(snapshot.run)} · {texts.NAME}", about
    except Exception:
        # A page is shown without its preview rather than not at all.
        _log.exception("the preview could not be made")
        return texts.NAME, texts.ABOUT


def _tags(title: str, about: str) -> str:
    """Return title and description for browsers, and as the Open Graph protocol has them."""
    title, about = html.escape(title), html.escape(about)
    return (
        f'<title>{title}</title><meta name="description" content="{about}" />'
        f'<meta property="og:title" content="{title}" /><meta property="og:description" content="{about}" />'
        f'<meta property="og:type" content="website" /><meta property="og:site_name" content="{texts.NAME}" />'
    )
