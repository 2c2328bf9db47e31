"""Visitors of a hosted server: each is known by a cookie that outlives a reload, and ends no run of another one."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from measure.store.store import Store
from tests.browser import AppServer, Watch, shot, wait_idle
from tests.steps import HELD, finish, open_page, press, start
from views.ui import session


@pytest.fixture
def hosted(start_app: Callable[..., AppServer]) -> AppServer:
    return start_app("tests.simulated_server", MAPBENCH_HOSTED="1")


@pytest.fixture
def stranger(browser: Browser, watch: Watch) -> Iterator[Page]:
    """A page of another person's browser, which has no cookie yet."""
    with browser.new_context() as context:
        page = context.new_page()
        watch.follow(page)
        yield page


def test_a_visitor_is_known_after_a_reload_and_a_stranger_cannot_cancel(page: Page, stranger: Page, hosted: AppServer):
    open_page(page, hosted, HELD)
    expect(page.locator(".st-key-allowed")).to_contain_text("What this demo allows: 1 min for a comparison")
    run_id = start(page)
    expect(page.locator(".st-key-cancel")).to_be_visible()
    page.reload()
    expect(page.locator(".st-key-cancel")).to_be_visible()
    (cookie,) = [each for each in page.context.cookies(hosted.url) if each["name"] == session.COOKIE]
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["secure"]) == (True, "Lax", False)
    assert cookie["value"] not in page.evaluate("document.cookie")

    open_page(stranger, hosted, f"?run={run_id}")
    expect(stranger.locator(".st-key-progress")).to_contain_text("started by another visitor")
    expect(stranger.locator(".st-key-cancel")).to_have_count(0)
    shot(stranger, "hosted-stranger")

    # Another tab of the same browser is the same visitor, and has a run already.
    open_page(page, hosted, HELD)
    press(page, "run")
    expect(page.locator(".st-key-run_bar")).to_contain_text("1 run of yours is going or waiting")
    assert "run=" not in page.url
    shot(page, "hosted-refused")
    open_page(page, hosted, f"?run={run_id}")
    press(page, "cancel")
    finish(page)
    wait_idle(stranger)
    kept = Store(hosted.home)
    run = kept.load(run_id)
    assert run is not None and run.status == "cancelled"
    assert cookie["value"] not in repr(kept.look(run_id)), "the token itself is kept nowhere"
