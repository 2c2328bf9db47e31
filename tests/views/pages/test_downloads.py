"""Exports: the server streams a run in another form from a file, one at a time, and keeps nothing of it."""

import asyncio
import io
import sqlite3
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from measure import runner
from measure.model.run_file import encode
from measure.output import export
from measure.runner import Snapshot
from measure.store.store import Store
from tests import synthetic
from tests.pages import StoredRunner
from views.charts import files
from views.pages import downloads
from views.pages.downloads import Downloads
from views.result import exports

ID = "0123456789abcdef01234567"
OTHER = "a" * 24
RUN = synthetic.run(ID)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredRunner:
    fake = StoredRunner(tmp_path)
    fake.store.save(RUN)
    monkeypatch.setattr(runner, "shared", lambda: fake)
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    return fake


@dataclass
class Answer:
    status_code: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""

    @property
    def text(self) -> str:
        return self.content.decode()


async def _ask(app: Any, address: str, method: str = "GET") -> Answer:
    answer = Answer()

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(3600)
        return {}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer.status_code = message["status"]
            answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            answer.content += message.get("body", b"")

    path, _, query = address.partition("?")
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": []}
    await app({**scope, "asgi": {"version": "3.0", "spec_version": "2.4"}}, receive, send)
    return answer


async def _page(request: Request) -> PlainTextResponse:
    return PlainTextResponse("a page")


class Client:
    """Who asks the server one thing after another."""

    def __init__(self) -> None:
        self._app = Starlette(routes=[Route("/{path:path}", _page)], middleware=[Middleware(Downloads)])

    def get(self, address: str, method: str = "GET") -> Answer:
        return asyncio.run(_ask(self._app, address, method))


@pytest.fixture
def client(fake: StoredRunner) -> Client:
    return Client()


@pytest.mark.parametrize(
    ("address", "name", "content"),
    [
        ("/export/{}/json", "mapbench-{}.json", encode(RUN)),
        ("/export/{}/csv", "mapbench-{}.csv", "".join(export.table_csv(RUN)).encode()),
        ("/a/folder/export/{}/samples.csv", "mapbench-{}.samples.csv", "".join(export.samples_csv(RUN)).encode()),
        ("/export/{}/md?link=http://x/?run%3D1", "mapbench-{}.md", export.markdown(RUN, "http://x/?run=1").encode()),
        ("/export/{}/md?link=javascript:alert(1)", "mapbench-{}.md", export.markdown(RUN).encode()),
    ],
)
def test_a_run_is_sent_as_a_file(client: Client, address: str, name: str, content: bytes):
    answer = client.get(address.format(ID))
    assert answer.status_code == 200 and answer.content == content
    assert answer.headers["content-length"] == str(len(content))
    assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''{name.format(ID)}"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (f"/export/{OTHER}/json", f"Run {OTHER} is not known here"),
        ("/export/nothing/json", "«nothing» is not the id of a run"),
        (f"/export/{ID}/pdf", f"Run {ID} has no such file"),
        (f"/export/{ID}/map.svg", f"Run {ID} has no such file"),
        (f"/export/{ID}/artifact?strategy=loop.eager&name=graph.txt", f"Run {ID} has no such file"),
    ],
)
def test_what_is_not_there_is_said(client: Client, address: str, reason: str):
    answer = client.get(address)
    assert answer.status_code == 404 and answer.text.startswith(reason)


def test_all_else_goes_by(client: Client):
    assert client.get("/exported").text == client.get("/export").text == client.get("/").text == "a page"
    assert client.get(f"/export/{ID}/json", "POST").status_code == 405


def test_several_runs_are_an_archive(client: Client, fake: StoredRunner):
    fake.store.save(replace(RUN, id=OTHER))
    answer = client.get("/" + exports.of_runs([ID, OTHER]))
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            f"mapbench-{run.id}.json": encode(run) for run in (RUN, replace(RUN, id=OTHER))
        }


def test_what_is_damaged_or_gone_or_too_much_is_left_out_of_an_archive_and_said(
    fake: StoredRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ids = [f"{number:024x}" for number in range(3)]
    for run_id in ids:
        fake.store.save(replace(RUN, id=run_id))
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        connection.execute("UPDATE parts SET document = x'00' WHERE run = ? AND place = 2", (ids[0],))
    connection.close()
    fake.store = Store(tmp_path)
    monkeypatch.setattr(exports, "_MOST_PACKED", 1)
    file = io.BytesIO()
    assert exports.archive([ids[0], "e" * 24, ids[1], ids[2]], file) == "mapbench-runs.zip"
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == [f"mapbench-{ids[1]}.json", "left out.txt"]
        said = archive.read("left out.txt").decode().splitlines()
    assert said[0].startswith(f"Run {ids[0]} cannot be read: what is stored of it is damaged")
    assert said[1] == f"Run {'e' * 24} has been deleted."
    assert said[2].startswith(f"Run {ids[2]} is left out: the archive has 1 B without it")


def test_an_artifact_of_an_explanation_is_sent(client: Client, fake: StoredRunner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fake.store, "artifact", lambda *asked: "/".join(asked).encode())
    answer = client.get("/" + exports.of_run(ID, "artifact", strategy="chunked.xla?chunk=8", name="trace.json.gz"))
    assert answer.content == f"{ID}/chunked.xla?chunk=8/trace.json.gz".encode()
    assert answer.headers["content-type"] == "application/octet-stream"


def test_nothing_is_left_on_the_disk(client: Client, tmp_path: Path):
    before = sorted(tmp_path.iterdir())
    assert client.get(f"/export/{ID}/json").status_code == 200
    assert sorted(tmp_path.iterdir()) == before


def test_a_disk_without_room_is_said(client: Client, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exports, "write", full)
    answer = client.get(f"/export/{ID}/json")
    assert (answer.status_code, answer.text) == (503, "This could not be exported: No space left on device.")


def test_what_is_being_sent_is_bounded(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(downloads, "_MOST_BYTES", 0)
    answer = client.get(f"/export/{ID}/json")
    assert answer.status_code == 503 and answer.text.startswith("Many exports are under way")
    monkeypatch.setattr(downloads, "_MOST_BYTES", 1)
    for _ in range(3):
        assert client.get(f"/export/{ID}/json").status_code == 200, "what has been sent counts no longer"


def _asked_at_once(address: str, count: int) -> list[int]:
    """The answers' status where so many ask at once."""

    async def all_of_them() -> list[Answer]:
        app = Downloads(Starlette())
        return await asyncio.gather(*(_ask(app, address) for _ in range(count)))

    return [answer.status_code for answer in asyncio.run(all_of_them())]


@pytest.mark.parametrize("ending", ["json", "latency.png"])
def test_one_file_is_made_at_a_time_and_few_wait(fake: StoredRunner, monkeypatch: pytest.MonkeyPatch, ending: str):
    at_work, most = [0], [0]
    lock = threading.Lock()

    def write(*_: object) -> str:
        with lock:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
        threading.Event().wait(0.002)  # long enough for another to begin, if it could
        with lock:
            at_work[0] -= 1
        return "a.json"

    monkeypatch.setattr(exports, "write", write)
    monkeypatch.setattr(downloads, "_MOST_WAITING", 5)
    status = _asked_at_once(f"/export/{ID}/{ending}", 8)
    assert most == [1] and sorted(status) == [200] * 5 + [503] * 3


def test_no_picture_is_drawn_while_latencies_are_sampled(
    client: Client, fake: StoredRunner, monkeypatch: pytest.MonkeyPatch
):
    going_on = Snapshot(synthetic.partial(0, OTHER), "running", round_number=2)
    fake.snapshots[OTHER], fake.waiting = going_on, (OTHER,)
    monkeypatch.setattr(downloads, "_PAUSE_S", 0.0)
    monkeypatch.setattr(files, "render", lambda run, name, form, file: file.write(b"drawn"))
    answer = client.get(f"/export/{ID}/latency.svg")
    assert answer.status_code == 503 and answer.text.startswith("Charts are drawn when the run")
    assert client.get(f"/export/{ID}/csv").status_code == 200, "which takes a moment"
    fake.snapshots[OTHER] = Snapshot(synthetic.partial(0, OTHER), "running")
    assert client.get(f"/export/{ID}/latency.svg").content == b"drawn"


def test_a_picture_waits_for_the_end_of_sampling(client: Client, fake: StoredRunner, monkeypatch: pytest.MonkeyPatch):
    looks = iter([True, True, False])
    monkeypatch.setattr(exports, "is_sampling", lambda: next(looks, False))
    monkeypatch.setattr(downloads, "_LOOK_S", 0.0)
    monkeypatch.setattr(files, "render", lambda run, name, form, file: file.write(b"drawn"))
    assert client.get(f"/export/{ID}/latency.svg").content == b"drawn" and next(looks, None) is None


def test_a_picture_is_drawn_into_the_file(client: Client):
    answer = client.get(f"/export/{ID}/latency.svg")
    assert answer.content.startswith(b"<svg") and answer.headers["content-type"] == "image/svg+xml"


def test_the_memory_of_an_export_does_not_grow_with_what_is_written():
    """A table is made line by line: of what is written before, nothing is held."""
    lines: Callable[..., Iterator[str]] = export.samples_csv
    with tempfile.TemporaryFile() as file:
        for line in lines(RUN):
            assert len(line) < 200
            file.write(line.encode())
        assert file.tell() > 10_000
