"""Steps of a person on a page in a browser: open it, press Run, wait for the result."""

import re
from typing import Literal

from playwright.sync_api import Locator, Page, expect

from measure.run.run import Run
from measure.store.store import Store
from tests.browser import AppServer, wait_idle
from tests.deadlines import ANSWER_S, RUN_S
from tests.engine import eventually
from tests.subjects import HELD_BATCH

expect.set_options(timeout=1000 * ANSWER_S)
_TWO = "&size_height=16&size_width=16&strategies=batched.graph&strategies=loop.eager&budget=30"
# A run that ends soon, and one that goes on until it is cancelled or let go on, where subjects are simulated.
SHORT = f"?size_batch=8{_TWO}"
HELD = f"?size_batch={HELD_BATCH}{_TWO}"
_RUN_ID = re.compile(r"[?&]run=([0-9a-f]{24})")


def open_page(page: Page, server: AppServer, query: str = "") -> None:
    page.bring_to_front()
    page.goto(f"{server.url}/{query}")
    wait_idle(page)


def press(page: Page, key: str) -> None:
    page.bring_to_front()  # a tab behind another is drawn once a second
    page.locator(f".st-key-{key} button").first.click()


def click(page: Page, role: Literal["button", "link", "tab"], name: str) -> None:
    """Click what has a name, once the page is drawn: meanwhile its former one may be there too."""
    wait_idle(page)
    page.get_by_role(role, name=name).last.click()


def start(page: Page) -> str:
    """Press Run, and return the run's id once the address has it."""
    press(page, "run")
    expect(page).to_have_url(_RUN_ID)
    found = _RUN_ID.search(page.url)
    assert found is not None, page.url
    # A short run may have ended before the page shows that it goes on.
    expect(page.locator(f".st-key-progress, .st-key-share_{found[1]}").first).to_be_visible()
    return found[1]


def finish(page: Page) -> None:
    page.bring_to_front()
    expect(page.locator(".st-key-progress")).to_have_count(0, timeout=1000 * RUN_S)
    wait_idle(page)


def ended(server: AppServer, run_id: str) -> Run:
    """The run of a server, once all of it is stored."""
    kept = Store(server.home)
    eventually(lambda: (look := kept.look(run_id)) and look.state == "finished", "the run has ended", RUN_S)
    run = kept.load(run_id)
    assert run is not None
    return run


def shown(page: Page, key: str, inside: str = "") -> Locator:
    """What has a key. While the page is drawn anew, its former one may be there too."""
    return page.locator(f".st-key-{key} {inside}".strip()).last


def headline(page: Page) -> Locator:
    """Where the verdict stands."""
    return page.get_by_role("heading", level=2).last


def tab_to(page: Page, where: str) -> None:
    """Press Tab until the focus is inside of what ``where`` selects."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("where => document.activeElement.closest(where) !== null", where):
            return
    raise AssertionError(f"Tab does not reach {where}")
