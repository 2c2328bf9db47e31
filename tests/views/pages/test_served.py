"""The server around pages: links' previews, exports, uploads, messages; the ASGI applications are called."""

import asyncio
import io
import logging
import re
import sqlite3
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from msgspec.structs import replace
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from streamlit import runtime
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import WStates
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from measure.output import export
from measure.run.encoding import encode
from measure.run.run import Run
from measure.store import imports, store
from measure.store.store import Store
from tests import synthetic
from tests.asgi import Answer, ask
from tests.keeping import put
from tests.pages import RUN_ID, StoredClient
from tests.synthetic import HOSTILE
from views.pages import preview, server
from views.pages.preview import Preview
from views.pages.server import Downloads, Messages, Uploads, log_forged_values_briefly
from views.result import exports

OTHER, MIB = "a" * 24, 2**20
RUN = synthetic.run(RUN_ID)
DRAWN = (*(f"/export/{RUN_ID}/{ending}" for ending in exports.DRAWN), f"/export/runs.html?run={RUN_ID}")


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


def test_a_link_names_the_case_and_the_verdict_of_its_run_or_why_there_is_none(stored: StoredClient, monkeypatch):
    verdict = synthetic.sweep().verdict
    put(stored.store, replace(synthetic.run("a" * 24), verdict=verdict))
    put(stored.store, synthetic.sweep("b" * 24))
    stored.store.add(replace(synthetic.run("c" * 24), verdict=verdict))
    put(stored.store, replace(synthetic.partial(2, "d" * 24), verdict=verdict), live=True)
    monkeypatch.setattr(store, "_documents", lambda *_: 1 / 0)  # a link costs no more than a line
    for sign, page, is_said in (("a", "/", True), ("b", "/sweep", True), ("c", "/", True), ("d", "/", False)):
        title, about = said_of(f"{page}?run={sign * 24}")
        assert title.startswith("image_sqrt · batch 1") and title.endswith("CPU:0 · Mapbench")
        assert (verdict in about) is is_said and ("imported" in about) is (sign == "c")
    for run_id, page, leads_to in (
        ("b" * 24, "/", "sweep"),
        ("b" * 24, "/behind/a/proxy/", "sweep"),
        ("a" * 24, "/sweep", "./"),
        ("a" * 24, "/runs", None),
        ("e" * 24, "/", None),
    ):
        leads_to = leads_to and f"{leads_to}?run={run_id}&tab=Why%3F"
        assert html_of(f"{page}?run={run_id}&tab=Why%3F").headers.get("location") == leads_to
    title, about = said_of(f"/?run={'e' * 24}")
    assert said_of("/")[0] == title == "Mapbench" and "e" * 24 in about


def test_texts_from_elsewhere_stay_texts_and_all_else_stays_as_it_is(stored: StoredClient, monkeypatch):
    put(stored.store, replace(RUN, request=replace(RUN.request, workload=HOSTILE)))
    assert not set("<>") & set("".join(said_of(f"/?run={RUN_ID}")))
    assert "<title>" not in html_of(f"/static/index.html?run={RUN_ID}").text, "it comes packed"
    text = PlainTextResponse("<title>Streamlit</title>")
    assert html_of(f"/runs?run={RUN_ID}", text).text == "<title>Streamlit</title>", "this is no HTML"
    monkeypatch.setattr(preview.lookup, "line", lambda run_id: 1 / 0)
    assert said_of(f"/?run={RUN_ID}")[0] == "Mapbench", "a page is served even where its preview fails"


@pytest.fixture
def exporting(stored: StoredClient, tmp_path, monkeypatch) -> StoredClient:
    put(stored.store, RUN)
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    monkeypatch.setattr(export, "figures", drawn)
    monkeypatch.setattr(export, "report", lambda runs, file: file.write(" ".join(run.id for run in runs).encode()))
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
        ("/export/{}/html", "html", RUN_ID.encode()),
    ):
        answer = get(address.format(RUN_ID))
        assert (answer.status, answer.content) == (200, content)
        assert answer.headers["content-length"] == str(len(content))
        assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''mapbench-{RUN_ID}.{ending}"
    artifact = get("/" + exports.of_run(RUN_ID, "artifact", strategy="chunked.xla?chunk=8", name="trace.json.gz"))
    assert artifact.content == f"{RUN_ID}/chunked.xla?chunk=8/trace.json.gz".encode()
    assert artifact.headers["content-type"] == "application/octet-stream"
    with zipfile.ZipFile(io.BytesIO(get(f"/export/{RUN_ID}/figures.zip").content)) as figures:
        assert set(figures.namelist()) == {f"mapbench-{RUN_ID}.latency.{form}" for form in ("svg", "png")}
        assert {figures.read(name) for name in figures.namelist()} == {b"drawn"}
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_not_there_is_said_and_all_else_goes_by(exporting, monkeypatch):
    for address, named in (
        (f"{OTHER}/json", OTHER),
        ("nothing/json", "«nothing»"),
        (f"{RUN_ID}/pdf", RUN_ID),
        (f"{RUN_ID}/latency.svg", RUN_ID),
        (f"{RUN_ID}/artifact?strategy=loop.eager&name=graph.txt", RUN_ID),
    ):
        answer = get(f"/export/{address}")
        assert answer.status == 404 and named in answer.text
    monkeypatch.setenv("MAPBENCH_VIEWER", "1")
    assert get(f"/export/{RUN_ID}/json").status == 200
    assert {get(address).status for address in DRAWN} == {404}, "what draws is no package of a viewer's"
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


def test_several_runs_are_one_report_or_a_sentence_why_not(exporting, monkeypatch):
    put(exporting.store, replace(RUN, id=OTHER))
    address = "/" + exports.of_runs([OTHER, RUN_ID, OTHER], exports.REPORT)
    answer = get(address)
    assert answer.content == f"{OTHER} {RUN_ID}".encode() and "mapbench-runs.html" in str(answer.headers)
    assert "b" * 24 in get(f"{address}&run={'b' * 24}").text
    many = "".join(f"&run={number:024x}" for number in range(imports.MOST_RUNS))
    assert get("/export/runs.html?run=x").status == get(address + many).status == 404
    monkeypatch.setattr(server, "most_bytes", lambda: len(encode(RUN)) + 1)
    assert "choose fewer" in get(address).text


def test_a_disk_without_room_is_said_and_no_picture_is_drawn_while_latencies_are_sampled(exporting, monkeypatch):
    exporting.waiting = (OTHER,)
    exporting.show(synthetic.partial(0, OTHER), "running", round_number=2)
    assert {get(address).status for address in DRAWN} == {503}
    assert get(f"/export/{RUN_ID}/csv").status == 200, "which takes a moment"
    exporting.show(synthetic.partial(0, OTHER), "running")
    assert get(f"/export/{RUN_ID}/figures.zip").status == 200
    monkeypatch.setattr(exports, "write", mock.Mock(side_effect=OSError(28, "No space left on device")))
    answer = get(f"/export/{RUN_ID}/json")
    assert answer.status == 503 and "No space left on device" in answer.text


@pytest.fixture
def held(monkeypatch) -> MemoryUploadedFileManager:
    """What Streamlit holds of files that were uploaded."""
    held = MemoryUploadedFileManager("/_stcore/upload_file")
    monkeypatch.setattr(runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=held))
    monkeypatch.setenv("MAPBENCH_UPLOAD_MIB", "1")
    monkeypatch.setenv("MAPBENCH_TRUSTED_PROXIES", "127.0.0.1")
    return held


def test_a_file_that_is_too_large_or_for_which_there_is_no_room_is_refused_before_it_is_read(held):
    app = Uploads(PlainTextResponse("taken"))

    def upload(size: int | None, method: str = "PUT", address: str = "192.0.2.1") -> Answer:
        headers = {"x-forwarded-for": address} | ({} if size is None else {"content-length": str(size)})
        return ask(app, "/base/_stcore/upload_file/session/1", method, headers)

    large = upload(2 * MIB)
    assert (large.status, upload(None).status) == (413, 411)
    assert "2.0 MiB" in large.text and "1 MiB are allowed" in large.text
    assert upload(2 * MIB, "OPTIONS").text == "taken", "all else goes by"
    addresses = ("192.0.2.1", "192.0.2.1", "192.0.2.2")
    assert [upload(MIB, address=address).status for address in addresses] == [200, 503, 200], "no more than one takes"
    held.add_file("session", UploadedFileRec("1", "1", "application/json", bytes(4 * MIB)))
    assert upload(MIB, address="192.0.2.3").headers["retry-after"] == "30"


def test_an_address_has_few_exports_at_a_time(exporting, monkeypatch):
    monkeypatch.setenv("MAPBENCH_TRUSTED_PROXIES", "127.0.0.1")
    monkeypatch.setattr(server, "_MOST_OF_ADDRESS", 0)
    app, address = Downloads(PlainTextResponse("a page")), f"/export/{RUN_ID}/json"
    assert ask(app, address, headers={"x-forwarded-for": "192.0.2.1"}).status == 503
    assert ask(app, address).status == 200, "whose address is not known"


def test_who_goes_away_during_an_upload_leaves_no_traceback(held):
    gone = mock.AsyncMock(side_effect=ClientDisconnect)
    ask(Uploads(gone), "/_stcore/upload_file/session/1", "PUT", {"content-length": "9"})
    assert gone.called


def test_of_what_comes_through_a_websocket_only_messages_of_a_page_reach_it(monkeypatch):
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    rerun, forged, large = BackMsg(), BackMsg(), BackMsg()
    large.rerun_script.query_string = "q" * MIB
    rerun.rerun_script.widget_states.widgets.add(id=f"$$ID-{'0' * 32}-run", trigger_value=True)
    forged.rerun_script.widget_states.widgets.add(id="run", trigger_value=True)
    alien = [{"bytes": forged.SerializeToString()}, {"text": "a text"}, {"bytes": b"\xff" * 9}, {"bytes": b""},
             {"bytes": large.SerializeToString()}]  # fmt: skip
    good = [{"type": f"websocket.{what}", "bytes": rerun.SerializeToString()} for what in ("receive", "disconnect")]
    arriving = iter([*({"type": "websocket.receive", **message} for message in alien), *good])
    reached = []

    async def page(scope, receive, send):
        reached.extend([await receive(), await receive()])

    asyncio.run(Messages(page)({"type": "websocket"}, mock.AsyncMock(side_effect=arriving), None))
    assert reached == good


def test_messages_that_come_faster_than_from_a_page_wait_and_take_no_turn_of_others(monkeypatch):
    rerun, paused = BackMsg(), []
    rerun.rerun_script.query_string = "q"
    message = {"type": "websocket.receive", "bytes": rerun.SerializeToString()}

    async def page(scope, receive, send):
        for _ in range(100):
            await receive()

    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: 1e6 + sum(paused)))
    monkeypatch.setattr(server, "asyncio", SimpleNamespace(sleep=mock.AsyncMock(side_effect=paused.append)))
    asyncio.run(Messages(page)({"type": "websocket"}, mock.AsyncMock(return_value=message), None))
    assert len(paused) == pytest.approx(60, abs=1) and sum(paused) == pytest.approx(3, rel=0.05)


def test_a_value_that_its_widget_cannot_have_writes_no_traceback_and_a_fault_does():
    states = WStates()
    states.set_widget_metadata(WidgetMetadata("id", lambda value: value, lambda value: value, "json_value"))
    states.set_widget_from_proto(WidgetState(id="id", json_value="{"))
    log_forged_values_briefly()

    def is_logged(fails: Callable[[], object]) -> bool:
        with pytest.raises(ValueError) as raised:
            fails()
        record = logging.LogRecord("", logging.ERROR, "", 0, "", (), (raised.type, raised.value, raised.tb))
        return bool(logging.getLogger("streamlit.error_util").filter(record))

    assert [is_logged(lambda: states["id"]), is_logged(lambda: int("x"))] == [False, True]


def test_a_value_of_another_type_than_its_widgets_is_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(WStates, "__getitem__", WStates.__getitem__)  # so that it is set back
    server.take_values_of_their_types()
    states = WStates()
    for kind, sent, read in (
        ("string_value", {"int_value": 3}, None), ("string_value", {"string_value": "3"}, "3"),
        ("double_value", {"int_value": 3}, 3),
    ):  # fmt: skip
        states.set_widget_metadata(WidgetMetadata("id", lambda value: value, lambda value: value, kind))
        states.set_widget_from_proto(WidgetState(id="id", **sent))
        assert states.get("id") == read
