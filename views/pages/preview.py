"""The preview of a link: programs that show one read the HTML of its page and run no scripts, so it stands there.

A link that names a run of the other page's kind leads on to that page. The page itself could do it, too; but then the
browser would keep both addresses, and Back would lead to the first, which leads on again.
"""

import html
import logging
from typing import cast

from starlette.concurrency import run_in_threadpool
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from measure.run.request import RequestError
from measure.store.entries import RUNNING
from views.result import lookup
from views.ui import look

# The last part of a page's address → the kind of runs that it shows.
_PAGES = {"": "compare", "compare": "compare", "sweep": "sweep", "claims": "claims", "runs": ""}
# The address of the page of a kind, relative to any other page.
_PATHS = {"compare": "./", "sweep": "sweep", "claims": "claims"}
# What Streamlit puts into the HTML of a page, until its scripts run.
_TITLE = "<title>Streamlit</title>"
_NAME = "Mapbench"
_ABOUT = "Which way of mapping a function over a batch to use in TensorFlow: latency, memory and correctness compared."
_log = logging.getLogger("mapbench.page")


class Preview(BaseHTTPMiddleware):
    """Names, in the HTML of a page, the case and the verdict of the run that its address names."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and scope["method"] == "GET" and _last(scope["path"]) in _PAGES
        # All else, such as a page's scripts, goes by: on its way through here it would take longer.
        await (super().__call__ if is_page else self.app)(scope, receive, send)

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        title, about, kind = await run_in_threadpool(_described, request.query_params.get("run"))
        shown = _PAGES[_last(request.url.path)]
        if kind and shown and kind != shown:
            return RedirectResponse(f"{_PATHS[kind]}?{request.url.query}")
        # The text is changed here, so it may not come packed.
        request.scope["headers"] = [item for item in request.scope["headers"] if item[0] != b"accept-encoding"]
        response = await call_next(request)
        if response.status_code != 200 or not response.headers.get("content-type", "").startswith("text/html"):
            return response
        parts = [part async for part in cast(StreamingResponse, response).body_iterator]
        page = b"".join(part.encode() if isinstance(part, str) else part for part in parts).decode()
        title, about = html.escape(title), html.escape(about)
        # For browsers, and as the Open Graph protocol has it.
        tags = (
            f'<title>{title}</title><meta name="description" content="{about}" />'
            f'<meta property="og:title" content="{title}" /><meta property="og:description" content="{about}" />'
            f'<meta property="og:type" content="website" /><meta property="og:site_name" content="{_NAME}" />'
        )
        return HTMLResponse(page.replace(_TITLE, tags), headers={"Cache-Control": "no-cache"})


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _described(run_id: str | None) -> tuple[str, str, str]:
    """Title and description of the page of a run, and the run's kind, empty where it is not known here. All is what the
    list of runs shows of it, so that nobody's run costs more than its line: a verdict from elsewhere is marked."""
    try:
        if not run_id:
            return _NAME, _ABOUT, ""
        line = lookup.line(run_id)
        about = "This run is being measured." if line.status == RUNNING else line.verdict
        if line.imported:
            about = f"From a file that was imported: {about}"
        case = (line.size,) if line.kind == "claims" else (line.workload, line.size, line.device)
        return " · ".join(filter(None, (*case, _NAME))), about, line.kind
    except RequestError as error:
        return _NAME, look.sentence(str(error)), ""
    except Exception:
        # A page is shown without its preview rather than not at all.
        _log.exception("the preview could not be made")
        return _NAME, _ABOUT, ""
