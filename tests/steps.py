"""Steps of a person on a page in a browser: open it, press Run, wait for the result, lose the connection."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

from playwright.sync_api import Locator, Page, expect

from tests.browser import AppServer, wait_idle
from tests.simulated_server import GO_ON, HELD_BATCH

# Long enough for a slow machine; nothing waits this long where it works.
RUN_MS = 180_000
expect.set_options(timeout=30_000)
_TWO = "&size_height=16&size_width=16&strategies=batched.graph&strategies=loop.eager&budget=4"
# A run that ends soon, and one that goes on until it is cancelled or let go on, where subjects are simulated.
SHORT = f"?size_batch=8{_TWO}"
HELD = f"?size_batch={HELD_BATCH}{_TWO}"


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
def going_on(server: AppServer) -> Iterator[None]:
    """As long as this lasts, the server's runs are not held."""
    (server.home / GO_ON).touch()
    try:
        yield
    finally:
        (server.home / GO_ON).unlink()


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


def start(page: Page) -> str:
    """Press Run and return the run's id once the address has it."""
    press(page, "run")
    page.wait_for_url(re.compile(r"[?&]run=[0-9a-f]{24}"))
    run_id = run_id_of(page)
    # A short run may have ended before the page shows that it goes on.
    expect(page.locator(f".st-key-progress, .st-key-share_{run_id}").first).to_be_visible()
    return run_id


def run_id_of(page: Page) -> str:
    """The id that stands in the address."""
    found = re.search(r"[?&]run=([0-9a-f]{24})", page.url)
    assert found is not None, page.url
    return found[1]


def status(page: Page) -> Locator:
    """What a run that goes on has come to; while the page is drawn anew, its former one may be there too."""
    return page.locator(".st-key-progress div[role=status]").last


def finish(page: Page) -> None:
    page.bring_to_front()
    expect(page.locator(".st-key-progress")).to_have_count(0, timeout=RUN_MS)
    wait_idle(page)


def verdict(page: Page) -> str:
    return page.get_by_role("heading", level=2).inner_text()


def download(page: Page, path: Path) -> bytes:
    """The run file, by the link of the Export menu: it is sent as a file, so its tab is gone before anybody sees it."""
    press(page, "export")
    address = page.get_by_role("link", name="Run file (JSON)").get_attribute("href") or ""
    answer = page.request.get(urljoin(page.url, address))
    assert answer.ok and answer.headers["content-disposition"].startswith("attachment"), answer.text()
    path.write_bytes(answer.body())
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
