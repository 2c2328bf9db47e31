"""What the server does around pages: links' previews, exports, and uploads; the ASGI applications are called."""

import io
import re
import sqlite3
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from msgspec.structs import replace
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from measure.judge import answer
from measure.output import export
from measure.run.encoding import encode
from measure.run.run import Run
from measure.store.store import Store
from tests import synthetic
from tests.asgi import Answer, ask
from tests.keeping import put
from tests.pages import RUN_ID, StoredClient
from tests.synthetic import HOSTILE
from views.pages import preview
from views.pages.preview import Preview
from views.pages.server import Downloads, Uploads
from views.result import exports

OTHER, MIB = "a" * 24, 2**20
RUN = synthetic.run(RUN_ID)


INDEX = HTMLResponse("<head><title>Streamlit</title></head>" + "<p>text</p>" * 100)


def html_of(address: str, served: Response = INDEX) -> Answer:
    """A page as Streamlit serves it, packed, and as it is read by a program that takes packed answers."""
    return ask(Preview(GZipMiddleware(served)), address, headers={"accept-encoding": "gzip"})


def said_of(address: str) -> tuple[str, str]:
    """Title and description, which are the same for both kinds of readers."""
    page = html_of(address).text
    (title,) = re.findall("<title>(.*?)</title>", page)
    (about,) = re.findall('name="description" content="(.*?)"', page)
    assert f'property="og:title" content="{title}"' in page and f'property="og:description" content="{about}"' in page
    return title, about


def test_a_link_names_the_case_and_the_verdict_of_its_run_or_why_there_is_none(fake):
    for path, run in (("/", synthetic.run(RUN_ID)), ("/sweep", synthetic.sweep(RUN_ID))):
        run = replace(run, verdict="as it is stored", measurements=[], points=[])
        fake.show(run)
        assert said_of(f"{path}?run={RUN_ID}") == (f"{answer.heading(run)} · Mapbench", run.verdict)
        fake.show(run, imported=True)
        assert run.verdict in (marked := said_of(f"{path}?run={RUN_ID}")[1]) and "imported" in marked
    fake.show(replace(synthetic.partial(2, RUN_ID), verdict="too early"), "running")
    assert "too early" not in said_of(f"/?run={RUN_ID}")[1]
    assert said_of("/")[0] == "Mapbench" and said_of("/")[1]
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
    text = PlainTextResponse("<title>Streamlit</title>")
    assert html_of(f"/runs?run={RUN_ID}", text).text == "<title>Streamlit</title>", "this is no HTML"
    monkeypatch.setattr(preview.opening, "find", lambda run_id: 1 / 0)
    assert said_of(f"/?run={RUN_ID}")[0] == "Mapbench", "a page is served even where its preview fails"


@pytest.fixture
def exporting(stored: StoredClient, tmp_path, monkeypatch) -> StoredClient:
    put(stored.store, RUN)
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    monkeypatch.setattr(export, "figures", drawn)
    return stored


def drawn(run: Run, forms: Sequence[str], folder: Path, name: str) -> list[Path]:
    """Stands in for the process that draws."""
    paths = [folder / f"{name}.latency.{form}" for form in forms]
    for path in paths:
        path.write_bytes(b"drawn")
    return paths


def get(address: str, method: str = "GET") -> Answer:
    return ask(Downloads(PlainTextResponse("a page")), address, method)


def test_a_run_is_sent_as_a_file_of_which_nothing_is_left_on_the_disk(exporting, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting.store, "artifact", lambda *asked: "/".join(asked).encode())
    before = sorted(tmp_path.iterdir())
    for address, ending, content in (
        ("/export/{}/json", "json", encode(RUN)),
        ("/export/{}/csv", "csv", "".join(export.table_csv(RUN)).encode()),
        ("/a/folder/export/{}/samples.csv", "samples.csv", "".join(export.samples_csv(RUN)).encode()),
        ("/export/{}/md?link=http://x/?run%3D1", "md", export.markdown(RUN, "http://x/?run=1").encode()),
        ("/export/{}/md?link=javascript:alert(1)", "md", export.markdown(RUN).encode()),
    ):
        answer = get(address.format(RUN_ID))
        assert (answer.status, answer.content) == (200, content)
        assert answer.headers["content-length"] == str(len(content))
        assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''mapbench-{RUN_ID}.{ending}"
        assert answer.headers["x-content-type-options"] == "nosniff"
    artifact = get("/" + exports.of_run(RUN_ID, "artifact", strategy="chunked.xla?chunk=8", name="trace.json.gz"))
    assert artifact.content == f"{RUN_ID}/chunked.xla?chunk=8/trace.json.gz".encode()
    assert artifact.headers["content-type"] == "application/octet-stream"
    with zipfile.ZipFile(io.BytesIO(get(f"/export/{RUN_ID}/figures.zip").content)) as figures:
        assert set(figures.namelist()) == {f"mapbench-{RUN_ID}.latency.{form}" for form in ("svg", "png")}
        assert {figures.read(name) for name in figures.namelist()} == {b"drawn"}
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_not_there_is_said_and_all_else_goes_by(exporting):
    for address, named in (
        (f"{OTHER}/json", OTHER),
        ("nothing/json", "«nothing»"),
        (f"{RUN_ID}/pdf", RUN_ID),
        (f"{RUN_ID}/latency.svg", RUN_ID),
        (f"{RUN_ID}/artifact?strategy=loop.eager&name=graph.txt", RUN_ID),
    ):
        answer = get(f"/export/{address}")
        assert answer.status == 404 and named in answer.text
    assert get("/exported").text == get("/export").text == get("/").text == "a page"


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


def test_a_disk_without_room_is_said_and_no_picture_is_drawn_while_latencies_are_sampled(exporting, monkeypatch):
    exporting.waiting = (OTHER,)
    exporting.show(synthetic.partial(0, OTHER), "running", round_number=2)
    assert get(f"/export/{RUN_ID}/figures.zip").status == 503
    assert get(f"/export/{RUN_ID}/csv").status == 200, "which takes a moment"
    exporting.show(synthetic.partial(0, OTHER), "running")
    assert get(f"/export/{RUN_ID}/figures.zip").status == 200
    monkeypatch.setattr(exports, "write", mock.Mock(side_effect=OSError(28, "No space left on device")))
    answer = get(f"/export/{RUN_ID}/json")
    assert answer.status == 503 and "No space left on device" in answer.text


def test_a_file_that_is_too_large_or_for_which_there_is_no_room_is_refused_before_it_is_read(monkeypatch):
    held = MemoryUploadedFileManager("/_stcore/upload_file")
    monkeypatch.setattr(runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=held))
    monkeypatch.setenv("MAPBENCH_UPLOAD_MIB", "1")

    def upload(size: int | None, method: str = "PUT") -> Answer:
        headers = {} if size is None else {"content-length": str(size)}
        return ask(Uploads(PlainTextResponse("taken")), "/base/_stcore/upload_file/session/1", method, headers)

    large = upload(2 * MIB)
    assert (large.status, upload(None).status, upload(MIB).status) == (413, 411, 200)
    assert "2.0 MiB" in large.text and "1 MiB are allowed" in large.text
    assert upload(2 * MIB, "OPTIONS").text == "taken", "all else goes by"
    held.add_file("session", UploadedFileRec("1", "1", "application/json", bytes(4 * MIB)))
    assert upload(MIB).headers["retry-after"] == "30"
