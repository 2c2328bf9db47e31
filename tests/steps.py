"""Steps of a person on a page in a browser: open it, press Run, wait for the result, lose the connection."""

import contextlib
import re
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urljoin

from playwright.sync_api import Locator, Page, expect

from measure.model.run import Run
from measure.store.store import Store
from tests.browser import AppServer, wait_idle
from tests.deadlines import ANSWER_S, RUN_S
from tests.engine import eventually
from tests.simulated_server import GO_ON, HELD_BATCH, HOSTED

expect.set_options(timeout=1000 * ANSWER_S)
_TWO = "&size_height=16&size_width=16&strategies=batched.graph&strategies=loop.eager&budget=30"
# A run that ends soon, and one that goes on until it is cancelled or let go on, where subjects are simulated.
SHORT = f"?size_batch=8{_TWO}"
HELD = f"?size_batch={HELD_BATCH}{_TWO}"
_RUN_ID = re.compile(r"[?&]run=([0-9a-f]{24})")

# An emulated lost network leaves the connections that there are: a page's own is closed from within.
_REMEMBER_SOCKETS = """
window.__sockets = [];
window.WebSocket = class extends WebSocket {
  constructor(...args) { super(...args); window.__sockets.push(this); }
};
"""
_LOSE_SOCKETS = """() => window.__sockets.splice(0).forEach(socket => {
  socket.close(4000);
  socket.dispatchEvent(new CloseEvent("close", { code: 1006 }));
})"""
# What the browser and Streamlit write to the console while there is no connection.
LOST = "ERR_INTERNET_DISCONNECTED|WebSocket|when disconnected from server|reaching server endpoint|is not responding"


@contextlib.contextmanager
def _having(server: AppServer, name: str) -> Iterator[None]:
    (server.home / name).touch()
    try:
        yield
    finally:
        (server.home / name).unlink()


def going_on(server: AppServer) -> contextlib.AbstractContextManager[None]:
    """As long as this lasts, the server's runs are not held."""
    return _having(server, GO_ON)


def hosted(server: AppServer) -> contextlib.AbstractContextManager[None]:
    """As long as this lasts, strangers use the server."""
    return _having(server, HOSTED)


@contextlib.contextmanager
def lost(page: Page) -> Iterator[None]:
    """As long as this lasts, the page has no connection; afterwards it has one again."""
    app = page.locator("[data-testid=stApp]")
    page.context.set_offline(True)
    try:
        # As a lost network would in the end; without one, the server's answer to a close may never come.
        page.evaluate(_LOSE_SOCKETS)
        expect(app).not_to_have_attribute("data-test-connection-state", "CONNECTED")
        yield
    finally:
        page.context.set_offline(False)
    expect(app).to_have_attribute("data-test-connection-state", "CONNECTED")


def open_page(page: Page, server: AppServer, query: str = "") -> None:
    page.bring_to_front()
    page.add_init_script(_REMEMBER_SOCKETS)
    page.goto(f"{server.url}/{query}")
    wait_idle(page)


def press(page: Page, key: str) -> None:
    page.bring_to_front()  # a tab behind another is drawn once a second
    page.locator(f".st-key-{key} button").first.click()


def click(page: Page, role: Literal["button", "link", "tab"], name: str) -> None:
    """Click what has a name, once the page is drawn: meanwhile its former one may be there too."""
    wait_idle(page)
    page.get_by_role(role, name=name).last.click()


def fill(page: Page, key: str, value: str) -> Locator:
    """Type into a field, as somebody does who goes on without pressing Enter."""
    wait_idle(page)  # a page that is drawn anew may forget what is typed
    field = shown(page, key, "input")
    field.fill(value)
    return field


def start(page: Page, button: str = "run") -> str:
    """Press Run, or another button that starts a run, and return its id once the address has it."""
    before = _RUN_ID.search(page.url)
    press(page, button)
    other = rf"[?&]run=(?!{before[1]})[0-9a-f]{{24}}" if before else _RUN_ID
    expect(page).to_have_url(re.compile(other))
    run_id = run_id_of(page)
    # A short run may have ended before the page shows that it goes on.
    expect(page.locator(f".st-key-progress, .st-key-share_{run_id}").first).to_be_visible()
    return run_id


def run_id_of(page: Page) -> str:
    """The id that stands in the address."""
    found = _RUN_ID.search(page.url)
    assert found is not None, page.url
    return found[1]


def status(page: Page) -> Locator:
    """What a run that goes on has come to."""
    return shown(page, "progress", "div[role=status]")


def finish(page: Page) -> None:
    page.bring_to_front()
    expect(page.locator(".st-key-progress")).to_have_count(0, timeout=1000 * RUN_S)
    wait_idle(page)


def ended(server: AppServer, run_id: str) -> Run:
    """The run of a server, once all of it is stored."""
    kept = Store(server.home)
    eventually(lambda: (look := kept.look(run_id)) and not look.work, "the run has ended", RUN_S)
    run = kept.load(run_id)
    assert run is not None
    return run


def shown(page: Page, key: str, inside: str = "") -> Locator:
    """What has a key. While the page is drawn anew, its former one may be there too."""
    return page.locator(f".st-key-{key} {inside}".strip()).last


def headline(page: Page) -> Locator:
    """Where the verdict stands."""
    return page.get_by_role("heading", level=2).last


def copied_link(page: Page, run_id: str) -> str:
    """The link of a run, by its button Share."""
    press(page, f"share_{run_id}")
    # What says that it was copied stands for a moment only.
    page.wait_for_function("async id => (await navigator.clipboard.readText()).includes(id)", arg=run_id)
    return str(page.evaluate("navigator.clipboard.readText()"))


def download(page: Page) -> bytes:
    """The run file, by the link of the Export menu: it is sent as a file, so its tab is gone before anybody sees it."""
    press(page, "export")
    address = page.get_by_role("link", name="Run file (JSON)").last.get_attribute("href") or ""
    answer = page.request.get(urljoin(page.url, address))
    assert answer.ok and answer.headers["content-disposition"].startswith("attachment"), answer.text()
    return answer.body()


_FOCUSED = """() => {
  const element = document.activeElement;
  return element.tagName + ' ' + (element.closest('[class*=st-key-]')?.className.match(/st-key-\\S+/)[0] ?? '');
}"""


def tab_to(page: Page, where: str) -> None:
    """Press Tab until the focus is inside of what ``where`` selects."""
    trail = []
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("where => document.activeElement.closest(where) !== null", where):
            return
        trail.append(page.evaluate(_FOCUSED))
    raise AssertionError(f"Tab does not reach {where}, but {trail}")
