"""Runs that are followed in browsers: cancelled, seen in two tabs, waited for by two people."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser import AppServer
from tests.steps import HELD, SHORT, finish, open_page, press, start, status, verdict


def test_a_reload_and_a_second_tab_attach_to_the_running_job_which_can_be_cancelled(
    page: Page, new_page: Callable[..., Page], app_server: AppServer
):
    open_page(page, app_server, HELD)
    start(page)
    page.reload()
    expect(page.locator(".st-key-progress")).to_be_visible()
    other = new_page()
    other.goto(page.url)
    expect(status(other)).to_be_visible()
    press(page, "cancel")
    finish(page)
    finish(other)  # the second tab sees the end too
    assert verdict(other) == verdict(page)
    expect(page.get_by_text("What was measured is kept.")).to_be_visible()
    press(page, "run")  # the next run is not hindered by the cancelled one
    expect(status(page)).to_contain_text("MiB")
    press(page, "cancel")
    finish(page)


def test_two_people_queue(page: Page, new_page: Callable[..., Page], app_server: AppServer):
    open_page(page, app_server, HELD)
    first_id = start(page)
    other = new_page()
    open_page(other, app_server, SHORT)
    expect(other.get_by_text("A run is being measured on this machine; yours will wait")).to_be_visible()
    start(other)
    expect(other.get_by_text("waiting in the queue: 1 run before this one")).to_be_visible()
    expect(other.get_by_text("Now: Square root of images, batch 400")).to_be_visible()
    assert first_id not in other.locator("body").inner_text()
    press(page, "cancel")
    finish(page)
    finish(other)
    assert "batched.graph is fastest" in verdict(other)
