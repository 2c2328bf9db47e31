"""The preview of a link: title and description of its run stand in the HTML of the page."""

import asyncio
import re
from collections.abc import MutableMapping
from typing import Any

import pytest
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route

from measure import runner
from measure.judge import answer
from measure.model.run import Run
from measure.runner import Snapshot
from tests import synthetic
from tests.pages import RUN_ID, FakeRunner
from tests.synthetic import HOSTILE
from views.pages import preview
from views.pages.preview import Preview
from views.result import heading

UNKNOWN = "f" * 24


async def _index(request: Request) -> HTMLResponse:
    return HTMLResponse("<head><title>Streamlit</title></head>" + "<p>text</p>" * 100)


async def _health(request: Request) -> PlainTextResponse:
    return PlainTextResponse("<title>Streamlit</title>")


# As Streamlit serves its pages: packed, inside of what an app adds.
SERVED = Starlette(
    routes=[Route("/", _index), Route("/sweep", _index), Route("/static/index.html", _index), Route("/runs", _health)],
    middleware=[Middleware(Preview), Middleware(GZipMiddleware)],
)


def answered(path: str, query: str = "") -> tuple[str, dict[str, str]]:
    """The body and the headers of a page, as it is read by a program that takes packed answers."""
    parts: list[bytes] = []
    headers: dict[str, str] = {}
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "path": path,
        "query_string": query.encode(),
        "headers": [(b"accept-encoding", b"gzip")],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        parts.append(message.get("body", b""))
        headers.update({name.decode(): value.decode() for name, value in message.get("headers", ())})

    asyncio.run(SERVED(scope, receive, send))
    return b"".join(parts).decode(errors="replace"), headers


def fetched(path: str, run: str | None = None) -> str:
    return answered(path, f"run={run}" if run else "")[0]


def said(page: str) -> tuple[str, str]:
    """Title and description, which are the same for both kinds of readers."""
    (title,) = re.findall("<title>(.*?)</title>", page)
    (about,) = re.findall('name="description" content="(.*?)"', page)
    assert f'property="og:title" content="{title}"' in page and f'property="og:description" content="{about}"' in page
    return title, about


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    fake = FakeRunner()
    monkeypatch.setattr(runner, "shared", lambda: fake)
    return fake


def test_a_link_to_a_run_names_its_case_and_its_verdict(fake: FakeRunner):
    for path, run in (("/", synthetic.run(RUN_ID)), ("/sweep", synthetic.sweep(RUN_ID))):
        fake.snapshots[RUN_ID] = Snapshot(run, "finished", version=1)
        assert said(fetched(path, RUN_ID)) == (f"{answer.heading(run)} · Mapbench", heading.verdict(run))


@pytest.mark.parametrize(
    ("run", "page", "leads_to"),
    [
        (synthetic.sweep(RUN_ID), "/", "sweep"),
        (synthetic.sweep(RUN_ID), "/compare", "sweep"),
        (synthetic.sweep(RUN_ID), "/behind/a/proxy/", "sweep"),
        (synthetic.run(RUN_ID), "/sweep", "./"),
    ],
)
def test_a_link_to_a_run_of_the_other_kind_leads_to_its_page(fake: FakeRunner, run: Run, page: str, leads_to: str):
    fake.snapshots[RUN_ID] = Snapshot(run, "finished", version=1)
    assert answered(page, f"run={RUN_ID}&tab=Why%3F")[1]["location"] == f"{leads_to}?run={RUN_ID}&tab=Why%3F"
    assert "location" not in answered(page, f"run={UNKNOWN}")[1]
    assert "location" not in answered("/runs", f"run={RUN_ID}")[1]


def test_a_run_that_goes_on_has_no_verdict_yet(fake: FakeRunner):
    fake.snapshots[RUN_ID] = Snapshot(synthetic.partial(2, RUN_ID), "running", version=1)
    assert said(fetched("/", RUN_ID))[1] == "This run is being measured."


def test_a_link_without_a_run_says_what_the_page_is_for_and_a_dead_one_why(fake: FakeRunner):
    assert said(fetched("/"))[0] == said(fetched("/", UNKNOWN))[0] == "Mapbench"
    assert "TensorFlow" in said(fetched("/"))[1]
    assert f"Run {UNKNOWN} is not known here" in said(fetched("/", UNKNOWN))[1]


def test_texts_from_elsewhere_stay_texts(fake: FakeRunner):
    run = synthetic.run(RUN_ID)
    run = replace(run, request=replace(run.request, workload=HOSTILE))
    fake.snapshots[RUN_ID] = Snapshot(run, "finished", version=1)
    for text in said(fetched("/", RUN_ID)):
        assert "<" not in text and ">" not in text


def test_all_else_that_is_served_stays_as_it_is(fake: FakeRunner):
    assert "<title>" not in fetched("/static/index.html", RUN_ID), "it comes packed"
    assert fetched("/runs", RUN_ID) == "<title>Streamlit</title>", "this is no HTML"


def test_a_page_is_served_even_where_its_preview_fails(monkeypatch: pytest.MonkeyPatch):
    def fails(run_id: str) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(preview.opening, "find", fails)
    assert said(fetched("/", RUN_ID))[0] == "Mapbench"
