"""What the server does around pages: links' previews, exports, and uploads; the ASGI applications are called."""

import asyncio
import contextlib
import io
import re
import sqlite3
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from measure.judge import answer
from measure.model.run_file import encode
from measure.output import export
from measure.store import imports
from measure.store.store import Store
from tests import synthetic
from tests.deadlines import RUN_S
from tests.keeping import put
from tests.pages import RUN_ID, StoredClient
from tests.synthetic import HOSTILE
from views.charts import files
from views.pages import downloads, preview, uploads
from views.pages.downloads import Downloads
from views.pages.preview import Preview
from views.pages.uploads import Uploads
from views.result import exports, heading

OTHER, MIB = "a" * 24, 2**20
RUN = synthetic.run(RUN_ID)


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")


async def ask(app: Any, address: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Answer:
    """The answer to somebody who sends no body and waits for ever."""
    answer = Answer()

    async def receive() -> dict[str, Any]:
        if method == "GET":
            await asyncio.Future()
        raise AssertionError("nothing is read of what is refused")

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            answer.content += message.get("body", b"")

    path, _, query = address.partition("?")
    scope = {"type": "http", "method": method, "scheme": "http", "server": ("127.0.0.1", 80), "path": path,
             "query_string": query.encode(), "headers": [(k.encode(), v.encode()) for k, v in (headers or {}).items()],
             "asgi": {"version": "3.0", "spec_version": "2.4"}}  # fmt: skip
    await app(scope, receive, send)
    return answer


def asked(app: Any, address: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Answer:
    return asyncio.run(ask(app, address, method, headers))


async def _index(request: Request) -> HTMLResponse:
    return HTMLResponse("<head><title>Streamlit</title></head>" + "<p>text</p>" * 100)


async def _health(request: Request) -> PlainTextResponse:
    return PlainTextResponse("<title>Streamlit</title>")


# As Streamlit serves its pages: packed, inside of what an app adds.
PAGES = Starlette(
    routes=[Route("/", _index), Route("/sweep", _index), Route("/static/index.html", _index), Route("/runs", _health)],
    middleware=[Middleware(Preview), Middleware(GZipMiddleware)],
)


def html_of(address: str) -> Answer:
    """A page, as it is read by a program that takes packed answers."""
    return asked(PAGES, address, headers={"accept-encoding": "gzip"})


def said_of(address: str) -> tuple[str, str]:
    """Title and description, which are the same for both kinds of readers."""
    page = html_of(address).text
    (title,) = re.findall("<title>(.*?)</title>", page)
    (about,) = re.findall('name="description" content="(.*?)"', page)
    assert f'property="og:title" content="{title}"' in page and f'property="og:description" content="{about}"' in page
    return title, about


def test_a_link_names_the_case_and_the_verdict_of_its_run_or_why_there_is_none(fake):
    for path, run in (("/", synthetic.run(RUN_ID)), ("/sweep", synthetic.sweep(RUN_ID))):
        fake.show(run)
        assert said_of(f"{path}?run={RUN_ID}") == (f"{answer.heading(run)} · Mapbench", heading.verdict(run))
    fake.show(synthetic.partial(2, RUN_ID), "running")
    assert said_of(f"/?run={RUN_ID}")[1] == preview.texts.PREVIEW_UNFINISHED
    assert said_of("/") == ("Mapbench", preview.texts.ABOUT)
    assert said_of(f"/?run={OTHER}")[0] == "Mapbench" and OTHER in said_of(f"/?run={OTHER}")[1]


def test_a_link_to_a_run_of_another_kind_leads_to_its_page(fake):
    for run, page, leads_to in (
        (synthetic.sweep(RUN_ID), "/", "sweep"),
        (synthetic.sweep(RUN_ID), "/behind/a/proxy/", "sweep"),
        (synthetic.run(RUN_ID), "/sweep", "./"),
    ):
        fake.show(run)
        assert html_of(f"{page}?run={RUN_ID}&tab=Why%3F").headers["location"] == f"{leads_to}?run={RUN_ID}&tab=Why%3F"
        assert "location" not in html_of(f"{page}?run={OTHER}").headers
    assert "location" not in html_of(f"/runs?run={RUN_ID}").headers


def test_texts_from_elsewhere_stay_texts_and_all_else_stays_as_it_is(fake, monkeypatch):
    run = synthetic.run(RUN_ID)
    fake.show(replace(run, request=replace(run.request, workload=HOSTILE)))
    assert not set("<>") & set("".join(said_of(f"/?run={RUN_ID}")))
    assert "<title>" not in html_of(f"/static/index.html?run={RUN_ID}").text, "it comes packed"
    assert html_of(f"/runs?run={RUN_ID}").text == "<title>Streamlit</title>", "this is no HTML"
    monkeypatch.setattr(preview.opening, "find", lambda run_id: 1 / 0)
    assert said_of(f"/?run={RUN_ID}")[0] == "Mapbench", "a page is served even where its preview fails"


@pytest.fixture
def exporting(stored: StoredClient, tmp_path, monkeypatch) -> StoredClient:
    put(stored.store, RUN)
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    # A picture needs a process of its own.
    monkeypatch.setattr(files, "render", lambda run, name, form, file: file.write(b"drawn"))
    return stored


async def _page(request: Request) -> PlainTextResponse:
    return PlainTextResponse("a page")


def get(address: str, method: str = "GET") -> Answer:
    served = Starlette(routes=[Route("/{path:path}", _page)], middleware=[Middleware(Downloads)])
    return asked(served, address, method)


def test_a_run_is_sent_as_a_file_of_which_nothing_is_left_on_the_disk(exporting, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting.store, "artifact", lambda *asked: "/".join(asked).encode())
    before = sorted(tmp_path.iterdir())
    for address, ending, content in (
        ("/export/{}/json", "json", encode(RUN)),
        ("/export/{}/csv", "csv", "".join(export.table_csv(RUN)).encode()),
        ("/a/folder/export/{}/samples.csv", "samples.csv", "".join(export.samples_csv(RUN)).encode()),
        ("/export/{}/md?link=http://x/?run%3D1", "md", export.markdown(RUN, "http://x/?run=1").encode()),
        ("/export/{}/md?link=javascript:alert(1)", "md", export.markdown(RUN).encode()),
        ("/export/{}/latency.svg", "latency.svg", b"drawn"),
    ):
        answer = get(address.format(RUN_ID))
        assert (answer.status, answer.content) == (200, content)
        assert answer.headers["content-length"] == str(len(content))
        assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''mapbench-{RUN_ID}.{ending}"
        assert answer.headers["x-content-type-options"] == "nosniff"
    artifact = get("/" + exports.of_run(RUN_ID, "artifact", strategy="chunked.xla?chunk=8", name="trace.json.gz"))
    assert artifact.content == f"{RUN_ID}/chunked.xla?chunk=8/trace.json.gz".encode()
    assert artifact.headers["content-type"] == "application/octet-stream"
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_not_there_is_said_and_all_else_goes_by(exporting):
    for address, named in (
        (f"{OTHER}/json", OTHER),
        ("nothing/json", "«nothing»"),
        (f"{RUN_ID}/pdf", RUN_ID),
        (f"{RUN_ID}/map.svg", RUN_ID),
        (f"{RUN_ID}/artifact?strategy=loop.eager&name=graph.txt", RUN_ID),
    ):
        answer = get(f"/export/{address}")
        assert answer.status == 404 and named in answer.text
    assert get("/exported").text == get("/export").text == get("/").text == "a page"
    assert get(f"/export/{RUN_ID}/json", "POST").status == 405


def test_several_runs_are_an_archive_without_what_is_damaged_gone_or_too_much(exporting, tmp_path, monkeypatch):
    put(exporting.store, replace(RUN, id=OTHER))
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        connection.execute("UPDATE parts SET document = x'00' WHERE run = ? AND place = 2", (RUN_ID,))
    connection.close()
    exporting.store = Store(tmp_path)
    put(exporting.store, replace(RUN, id="b" * 24))
    monkeypatch.setattr(exports, "_MOST_PACKED", 1)
    left_out = [RUN_ID, "e" * 24, "b" * 24]
    with zipfile.ZipFile(io.BytesIO(get("/" + exports.of_runs([OTHER, *left_out])).content)) as archive:
        assert archive.namelist() == [f"mapbench-{OTHER}.json", "left out.txt"]
        assert archive.read(f"mapbench-{OTHER}.json") == encode(replace(RUN, id=OTHER))
        said = archive.read("left out.txt").decode().splitlines()
    assert all(run_id in line for run_id, line in zip(left_out, said, strict=True))


def test_a_disk_without_room_is_said_and_what_is_being_sent_is_bounded(exporting, monkeypatch):
    app = Downloads(Starlette())
    monkeypatch.setattr(downloads, "_MOST_BYTES", 0)
    assert asked(app, f"/export/{RUN_ID}/json").headers["retry-after"] == "30"
    monkeypatch.setattr(downloads, "_MOST_BYTES", 1)
    assert [asked(app, f"/export/{RUN_ID}/json").status for _ in range(3)] == [200] * 3, (
        "what was sent counts no longer"
    )
    monkeypatch.setattr(exports, "write", mock.Mock(side_effect=OSError(28, "No space left on device")))
    answer = get(f"/export/{RUN_ID}/json")
    assert answer.status == 503 and "No space left on device" in answer.text


@pytest.mark.parametrize("ending", ["json", "latency.png"])
def test_one_file_is_made_at_a_time_and_few_wait(exporting, monkeypatch, ending):
    at_work, most = [0], [0]

    async def write(*_: object) -> str:
        at_work[0] += 1
        most[0] = max(most[0], at_work[0])
        for _ in range(9):  # another one begins, if it can
            await asyncio.sleep(0)
        at_work[0] -= 1
        return "a.json"

    async def in_thread(called: object, *arguments: object) -> object:
        return await write() if called is downloads._write else called(*arguments)

    async def all_of_them() -> list[Answer]:
        app = Downloads(Starlette())
        return await asyncio.gather(*(ask(app, f"/export/{RUN_ID}/{ending}") for _ in range(8)))

    monkeypatch.setattr(downloads, "run_in_threadpool", in_thread)
    monkeypatch.setattr(downloads, "_MOST_WAITING", 5)
    answers = asyncio.run(all_of_them())
    assert most == [1] and sorted(answer.status for answer in answers) == [200] * 5 + [503] * 3


def test_a_picture_waits_for_the_end_of_sampling_and_no_longer_than_a_reader_does(exporting, monkeypatch):
    exporting.waiting = (OTHER,)
    exporting.show(synthetic.partial(0, OTHER), "running", round_number=2)
    monkeypatch.setattr(downloads, "_PAUSE_S", 0.0)
    assert get(f"/export/{RUN_ID}/latency.svg").status == 503
    assert get(f"/export/{RUN_ID}/csv").status == 200, "which takes a moment"
    exporting.show(synthetic.partial(0, OTHER), "running")
    assert get(f"/export/{RUN_ID}/latency.svg").content == b"drawn"
    looks = iter([True, True, False])
    monkeypatch.setattr(exports, "is_sampling", lambda: next(looks))
    monkeypatch.setattr(downloads, "_PAUSE_S", RUN_S)
    monkeypatch.setattr(downloads, "_LOOK_S", 0.0)
    assert get(f"/export/{RUN_ID}/latency.svg").content == b"drawn" and next(looks, None) is None


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> MemoryUploadedFileManager:
    """What Streamlit holds, on a server that allows files of 1 MiB."""
    held = MemoryUploadedFileManager("/_stcore/upload_file")
    monkeypatch.setattr(runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=held))
    monkeypatch.setenv("MAPBENCH_UPLOAD_MIB", "1")
    return held


def _hold(held: MemoryUploadedFileManager, name: str, data: bytes) -> None:
    held.add_file("session", UploadedFileRec(name, name, "application/json", data))


def _upload(
    held: MemoryUploadedFileManager, sizes: list[int | None], *, together: bool = False, method: str = "PUT"
) -> list[Answer]:
    """The answers to uploads that say these sizes, one after the other or all at once, by a server that holds all."""

    async def all_of_them() -> list[Answer]:
        all_have_come = asyncio.Event()
        if not together:
            all_have_come.set()

        async def server(scope: Any, receive: Any, send: Any) -> None:
            await all_have_come.wait()
            size = next(int(value) for name, value in scope["headers"] if name == b"content-length")
            _hold(held, scope["path"].rpartition("/")[2], bytes(size))
            await send({"type": "http.response.start", "status": 204, "headers": []})

        app = Uploads(server)

        async def put(number: int, size: int | None) -> Answer:
            headers = {} if size is None else {"content-length": str(size)}
            answer = await ask(app, f"/base/_stcore/upload_file/session/{number}", method, headers)
            for _ in range(3):  # what is due is done
                await asyncio.sleep(0)
            return answer

        if not together:
            return [await put(number, size) for number, size in enumerate(sizes)]
        tasks = [asyncio.create_task(put(number, size)) for number, size in enumerate(sizes)]
        await asyncio.sleep(0)
        all_have_come.set()
        return await asyncio.gather(*tasks)

    return asyncio.run(all_of_them())


def test_a_file_that_is_too_large_is_refused_before_it_is_read(held):
    large, unknown, right = _upload(held, [2 * MIB, None, MIB])
    assert (large.status, unknown.status, right.status) == (413, 411, 204)
    assert "2.0 MiB" in large.text and "1 MiB are allowed" in large.text
    assert _upload(held, [2 * MIB], method="OPTIONS")[0].status == 204, "all else goes by"


@pytest.mark.parametrize("together", [False, True])
def test_uploads_that_are_held_or_arriving_are_bounded(held, together):
    answers = _upload(held, [MIB] * 6, together=together)
    assert [answer.status for answer in answers] == [204] * 4 + [503] * 2
    assert answers[-1].headers["retry-after"] == "30"


def test_what_nobody_imports_is_let_go_of_and_a_slow_upload_ends(held, monkeypatch):
    monkeypatch.setattr(uploads, "_HELD_S", 0.0)
    assert [answer.status for answer in _upload(held, [MIB] * 12)] == [204] * 12
    monkeypatch.setattr(uploads, "_PATIENCE_S", -1000.0)
    assert [answer.status for answer in _upload(held, [1000], together=True)] == [408]


def test_what_was_imported_or_refused_is_let_go_of_and_one_file_is_checked_at_a_time(held, stored, monkeypatch):
    context = SimpleNamespace(session_id="session", uploaded_file_mgr=held)
    monkeypatch.setattr(uploads, "get_script_run_ctx", lambda: context)
    read, at_work = imports.read, []
    monkeypatch.setattr(imports, "read", lambda *given: (at_work.append(uploads._checking.locked()), read(*given))[1])
    run = synthetic.run("5" * 24)
    for data in (encode(run), b"{}"):
        _hold(held, "a file", data)
        uploaded = SimpleNamespace(file_id="a file", getvalue=lambda data=data: data)
        with contextlib.suppress(ValueError):  # the second one is no run
            assert uploads.take(uploaded, "me") == (run.id, True)
        assert held.get_stats() == {} and not uploads._checking.locked()
    assert stored.store.ids() == [run.id] and at_work == [True, True]
