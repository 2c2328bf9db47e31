"""Uploads: what is too large or too much at once is refused before it is read, and nothing is held for long."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from measure import runner
from measure.model.run import Run
from measure.model.run_file import encode
from measure.store import imports
from measure.store.store import Store
from tests import synthetic
from views.pages import uploads
from views.pages.uploads import Uploads

MIB = 2**20
RUN = synthetic.run("5" * 24)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> MemoryUploadedFileManager:
    """What Streamlit holds, on a server that allows files of 1 MiB."""
    held = MemoryUploadedFileManager("/_stcore/upload_file")
    monkeypatch.setattr(runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=held))
    monkeypatch.setenv("MAPBENCH_UPLOAD_MIB", "1")
    return held


def _upload(
    held: MemoryUploadedFileManager, sizes: list[int | None], *, together: bool = False, method: str = "PUT"
) -> list[tuple[int, str]]:
    """The answers to uploads that say these sizes, one after the other or all at once, by a server that reads all."""
    all_have_come = threading.Event()

    async def server(scope: Any, receive: Any, send: Any) -> None:
        while together and not all_have_come.is_set():
            await asyncio.sleep(0)
        size = next(int(value) for name, value in scope["headers"] if name == b"content-length")
        name = scope["path"].rpartition("/")[2]
        held.add_file("session", UploadedFileRec(name, name, "application/json", bytes(size)))
        await send({"type": "http.response.start", "status": 204, "headers": []})

    app = Uploads(server)

    async def put(number: int, size: int | None) -> tuple[int, str]:
        said: list[Any] = []

        async def send(message: Any) -> None:
            said.append(message)

        async def receive() -> Any:
            raise AssertionError("nothing is read of what is refused")

        headers = [] if size is None else [(b"content-length", str(size).encode())]
        path = f"/base/_stcore/upload_file/session/{number}"
        await app({"type": "http", "method": method, "path": path, "headers": headers}, receive, send)
        for _ in range(3):  # what is due is done
            await asyncio.sleep(0)
        return said[0]["status"], b"".join(part.get("body", b"") for part in said[1:]).decode()

    async def all_of_them() -> list[tuple[int, str]]:
        if not together:
            return [await put(number, size) for number, size in enumerate(sizes)]
        tasks = [asyncio.create_task(put(number, size)) for number, size in enumerate(sizes)]
        await asyncio.sleep(0)
        all_have_come.set()
        return await asyncio.gather(*tasks)

    return asyncio.run(all_of_them())


def test_a_file_that_is_too_large_is_refused_before_it_is_read(held: MemoryUploadedFileManager) -> None:
    large, unknown, right = _upload(held, [2 * MIB, None, MIB])
    assert large == (413, "This file is too large: it has 2.0 MiB, and 1 MiB are allowed.")
    assert unknown == (411, "An upload has to say how large it is.")
    assert right[0] == 204


@pytest.mark.parametrize("together", [False, True])
def test_uploads_that_are_held_or_arriving_are_bounded(held: MemoryUploadedFileManager, together: bool) -> None:
    answers = _upload(held, [MIB] * 6, together=together)
    assert [status for status, _ in answers] == [204] * 4 + [503] * 2
    assert answers[-1][1] == "Many files are being imported: try again in half a minute."


def test_what_nobody_imports_is_let_go_of(held: MemoryUploadedFileManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_HELD_S", 0.0)
    assert [status for status, _ in _upload(held, [MIB] * 12)] == [204] * 12


def test_all_else_goes_by(held: MemoryUploadedFileManager) -> None:
    assert _upload(held, [2 * MIB], method="OPTIONS")[0][0] == 204


def test_a_slow_upload_ends(held: MemoryUploadedFileManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_PATIENCE_S", -1000.0)
    assert _upload(held, [1000], together=True) == [(408, "The upload took too long.")]


def test_what_was_imported_is_let_go_of_and_so_is_what_was_refused(
    held: MemoryUploadedFileManager, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    monkeypatch.setattr(runner, "shared", lambda: SimpleNamespace(store=store))
    context = SimpleNamespace(session_id="session", uploaded_file_mgr=held)
    monkeypatch.setattr(uploads, "get_script_run_ctx", lambda: context)
    for name, data in (("right", encode(RUN)), ("wrong", b"{}")):
        held.add_file("session", UploadedFileRec(name, name, "application/json", data))
        uploaded = SimpleNamespace(file_id=name, getvalue=lambda data=data: data)
        if name == "right":
            assert uploads.take(uploaded, "me") == (RUN.id, True)
        else:
            with pytest.raises(ValueError, match="not a valid run file"):
                uploads.take(uploaded, "me")
        assert held.get_stats() == {}


def test_one_file_is_checked_at_a_time(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    at_work, most = [0], [0]

    def read(data: bytes, most_bytes: int) -> Run:
        at_work[0] += 1
        most[0] = max(most[0], at_work[0])
        threading.Event().wait(0.002)  # long enough for another to begin, if it could
        at_work[0] -= 1
        return RUN

    monkeypatch.setattr(imports, "read", read)
    monkeypatch.setattr(runner, "shared", lambda: SimpleNamespace(store=SimpleNamespace(add=lambda run, owner: True)))
    uploaded = SimpleNamespace(file_id="a", getvalue=bytes)
    threads = [threading.Thread(target=uploads.take, args=(uploaded, "me")) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
