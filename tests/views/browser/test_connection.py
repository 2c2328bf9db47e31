"""Whom a server listens to, and that a lost connection costs nothing that was measured."""

import re

import psutil
from playwright.sync_api import Page, expect

from measure.store.store import Store
from tests.browser import AppServer, Watch
from tests.engine import eventually
from tests.steps import HELD, LOST, finish, going_on, lost, open_page, press, run_id_of, start, status, verdict


def test_a_server_listens_to_this_machine_alone_unless_it_is_told_otherwise(app_server: AppServer):
    connections = psutil.Process(app_server.process.pid).net_connections("inet")
    assert {each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN} == {"127.0.0.1"}


def test_a_lost_connection_attaches_again_also_to_a_run_that_has_ended_meanwhile(
    page: Page, app_server: AppServer, watch: Watch
):
    open_page(page, app_server, HELD)
    run_id = start(page)
    progress = page.locator(".st-key-progress")
    expect(status(page)).to_contain_text(re.compile(r"\d\sMiB"))
    # Its code is loaded when it is first shown, and could not be without a connection.
    expect(page.get_by_role("button", name="Share")).to_be_visible()
    with lost(page):
        page.wait_for_timeout(1_500)
    # The page follows the run again, and its buttons work.
    before = progress.inner_text()
    expect(progress).not_to_have_text(before, use_inner_text=True)
    press(page, "cancel")
    finish(page)
    expect(page.get_by_text("What was measured is kept.")).to_be_visible()

    press(page, "run")
    page.wait_for_url(lambda address: "run=" in address and run_id not in address)
    run_id = run_id_of(page)
    expect(status(page)).to_contain_text(re.compile(r"\d\sMiB"))
    kept = Store(app_server.home)
    with lost(page), going_on(app_server):
        assert kept.look(run_id).live
        eventually(lambda: not kept.look(run_id).live, "the run ends")
    finish(page)
    assert "is fastest" in verdict(page) and verdict(page) == kept.load(run_id).verdict
    watch.forgive(LOST)
