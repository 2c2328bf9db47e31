"""A lost connection costs nothing that was measured, on a server of its own."""

import re

import pytest
from playwright.sync_api import Page, expect

from measure.store.store import Store
from tests.browser import AppServer, Watch
from tests.steps import LONG, LOST, RUN_MS, SMALL, finish, open_page, press, sever, start, verdict


@pytest.mark.slow
def test_a_lost_connection_attaches_again(page: Page, app_server: AppServer, watch: Watch):
    open_page(page, app_server, LONG)
    start(page)
    expect(page.locator(".st-key-progress div[role=status]")).to_contain_text(re.compile(r"\d MiB"), timeout=RUN_MS)
    app = page.locator("[data-testid=stApp]")
    page.context.set_offline(True)
    sever(page)
    expect(app).not_to_have_attribute("data-test-connection-state", "CONNECTED")
    page.wait_for_timeout(1_500)
    page.context.set_offline(False)
    expect(app).to_have_attribute("data-test-connection-state", "CONNECTED")
    # The page follows the run again, and its button works.
    before = page.locator(".st-key-progress").inner_text()
    expect(page.locator(".st-key-progress")).not_to_have_text(before, use_inner_text=True)
    press(page, "cancel")
    finish(page)
    expect(page.get_by_text("What was measured is kept.")).to_be_visible()
    watch.forgive(LOST)


@pytest.mark.slow
def test_a_run_that_ends_while_the_connection_is_lost_is_shown(page: Page, app_server: AppServer, watch: Watch):
    open_page(page, app_server, SMALL)
    run_id = start(page)
    # Its code is loaded when it is first shown, and could not be without a connection.
    expect(page.get_by_role("button", name="Share")).to_be_visible()
    page.context.set_offline(True)
    sever(page)
    expect(page.locator("[data-testid=stApp]")).not_to_have_attribute("data-test-connection-state", "CONNECTED")
    kept = Store(app_server.home)
    for _ in range(RUN_MS // 500):
        if not kept.look(run_id).live:
            break
        page.wait_for_timeout(500)
    page.context.set_offline(False)
    finish(page)
    assert verdict(page) == kept.load(run_id).verdict
    watch.forgive(LOST)
