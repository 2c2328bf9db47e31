"""The keyboard alone suffices for the main job."""

import re

from playwright.sync_api import Page, expect

from tests.browser import AppServer, wait_idle
from tests.steps import HELD, finish, open_page, press, status, tab_to


def test_the_keyboard_alone_suffices(page: Page, app_server: AppServer):
    """Choose, run and cancel without a mouse, from the top of the page."""
    open_page(page, app_server, HELD.replace("&strategies=loop.eager", ""))
    tab_to(page, ".st-key-cell_map_fn_graph")
    page.keyboard.press("Space")
    wait_idle(page)
    expect(page.locator(".st-key-cell_map_fn_graph input")).to_be_checked()
    # The focus stays where it was, or the next step would begin at the top again.
    assert page.evaluate("document.activeElement.closest('.st-key-cell_map_fn_graph') !== null")
    tab_to(page, ".st-key-row_vectorized_map")
    page.keyboard.press("Enter")
    wait_idle(page)
    expect(page.locator(".st-key-cell_vectorized_map_xla input")).to_be_checked()
    tab_to(page, ".st-key-run")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("run="))
    expect(status(page)).to_be_visible()
    tab_to(page, ".st-key-cancel")
    page.keyboard.press("Enter")
    finish(page)
    expect(page.get_by_text("What was measured is kept.")).to_be_visible()
    first = page.url
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda url: url != first)
    expect(page.locator(".st-key-progress")).to_be_visible()
    press(page, "cancel")
    finish(page)
