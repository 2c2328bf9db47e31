"""The Compare page in a browser, on simulated subjects: from the choices to the answer, and what can come between."""

import re
from collections.abc import Callable

from msgspec.structs import replace
from playwright.sync_api import Page, Route, expect

from measure.store.store import Store
from tests import synthetic
from tests.browser import AppServer, Watch, wait_idle
from tests.engine import eventually
from tests.keeping import put
from tests.simulated_server import HELD_BATCH
from tests.steps import (
    HELD,
    LOST,
    SHORT,
    copied_link,
    ended,
    fill,
    finish,
    going_on,
    headline,
    hosted,
    lost,
    open_page,
    press,
    run_id_of,
    shown,
    start,
    status,
    tab_to,
)
from views.ui import session

KEPT = "What was measured is kept."


def test_from_choices_to_an_answer_that_a_reload_a_link_and_history_show_again(
    page: Page, new_page: Callable[..., Page], app_server: AppServer
):
    open_page(page, app_server, SHORT)
    expect(page.get_by_text("An example, measured before.").last).to_be_visible()
    page.locator(".st-key-cell_map_fn_graph label").click()
    expect(page).to_have_url(re.compile("strategies=map_fn.graph"))
    # Run is of the choices as they are, also where one has just been typed.
    fill(page, "size_batch", "16")
    run_id = start(page)
    run = ended(app_server, run_id)
    finish(page)
    assert run.request.size["batch"] == 16
    assert set(run.request.strategies) == {"batched.graph", "loop.eager", "map_fn.graph"}
    expect(headline(page)).to_have_text(run.verdict)

    wait_idle(page)
    code = page.locator(".st-key-answer [data-testid=stCode]").last
    code.hover()
    code.get_by_role("button").last.click()
    page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('def strategy(elems):')")
    link = copied_link(page, run_id)
    assert link == f"{app_server.url}/?run={run_id}"

    page.reload()
    expect(headline(page)).to_have_text(run.verdict)
    # Who has the link sees the run, with the choices that it was measured with, and can repeat it.
    other = new_page()
    other.goto(link)
    expect(headline(other)).to_have_text(run.verdict)
    expect(shown(other, "size_batch", "input")).to_have_value("16")
    again = start(other, "again")
    expect(shown(other, "reproduction")).to_contain_text("The verdict was reproduced")
    assert ended(app_server, again).parent == run_id

    # The run was one step of the page's history, and its choices none.
    page.bring_to_front()
    page.go_back()
    expect(page).to_have_url(re.compile(r"\?(?!run=).*size_batch=16"))
    expect(page.get_by_text("An example, measured before.").last).to_be_visible()
    page.go_forward()
    expect(page).to_have_url(link)
    expect(headline(page)).to_have_text(run.verdict)


def test_a_run_is_seen_in_two_tabs_and_cancelled_in_one(
    page: Page, new_page: Callable[..., Page], app_server: AppServer
):
    open_page(page, app_server, HELD)
    run_id = start(page)
    page.reload()
    expect(status(page)).to_be_visible()
    other = new_page()
    other.goto(page.url)
    expect(status(other)).to_be_visible()
    press(page, "cancel")
    finish(page)
    expect(page.get_by_text(KEPT).last).to_be_visible()
    finish(other)
    expect(other.get_by_text(KEPT).last).to_be_visible()
    assert ended(app_server, run_id).status == "cancelled"


def test_a_lost_connection_costs_nothing_that_was_measured(page: Page, app_server: AppServer, watch: Watch):
    open_page(page, app_server, HELD)
    run_id = start(page)
    progress, kept = shown(page, "progress"), Store(app_server.home)
    # Its code is loaded when it is first shown, and could not be without a connection.
    expect(page.get_by_role("button", name="Share").last).to_be_visible()
    with lost(page):
        assert kept.look(run_id).work
    # The page follows the run again.
    before = progress.inner_text()
    expect(progress).not_to_have_text(before, use_inner_text=True)
    with lost(page), going_on(app_server):
        eventually(lambda: not kept.look(run_id).work, "the run ends")
    finish(page)
    expect(headline(page)).to_have_text(ended(app_server, run_id).verdict)
    watch.forgive(LOST)


def test_the_keyboard_alone_suffices(page: Page, app_server: AppServer):
    """Choose, run and cancel without a mouse, from the top of the page."""
    open_page(page, app_server, HELD)
    tab_to(page, ".st-key-cell_map_fn_graph")
    page.keyboard.press("Space")
    expect(page).to_have_url(re.compile("strategies=map_fn.graph"))
    # The focus stays where it was, or the next step would begin at the top again.
    expect(page.locator(".st-key-cell_map_fn_graph input")).to_be_focused()
    tab_to(page, ".st-key-run")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("run="))
    expect(shown(page, "cancel")).to_be_visible()
    tab_to(page, ".st-key-cancel")
    page.keyboard.press("Enter")
    finish(page)
    expect(page.get_by_text(KEPT).last).to_be_visible()
    first = page.url
    page.keyboard.press("Control+Enter")
    expect(page).not_to_have_url(first)
    press(page, "cancel")
    finish(page)


def test_a_field_whose_code_comes_late_has_the_runs_choice_and_not_a_default(page: Page, app_server: AppServer):
    held: list[Route] = []
    run = synthetic.run("c" * 24)
    size = {**run.request.size, "batch": 64}
    put(Store(app_server.home), replace(run, request=replace(run.request, size=size, memory_limit_mib=96)))
    page.route("**/NumberInput*.js", lambda route: held.append(route))
    page.goto(f"{app_server.url}/?run={run.id}")
    page.get_by_role("tab", name="Samples").last.click()  # runs the page once more
    expect(page.get_by_role("tabpanel", name="Samples").last).to_contain_text("rocess")
    page.unroute("**/*.js")
    for route in held:
        route.continue_()
    press(page, "fold")
    expect(shown(page, "size_batch", "input")).to_have_value("64")
    wait_idle(page)
    page.get_by_text("Advanced").last.click()
    limit = shown(page, "memory_limit", "input")
    expect(limit).to_have_value("96")
    expect(page).to_have_url(re.compile(rf"\?run={run.id}&tab=Samples$"))
    limit.fill("")
    limit.press("Enter")
    expect(page).to_have_url(re.compile("&memory_limit=$"))


def test_visitors_of_a_hosted_server_see_neither_each_others_queue_nor_end_each_others_runs(
    page: Page, app_server: AppServer, watch: Watch
):
    assert page.context.browser is not None
    with hosted(app_server), page.context.browser.new_context() as context:
        open_page(page, app_server, HELD)
        run_id = start(page)
        page.reload()  # the visitor is known by a cookie that outlives it
        expect(shown(page, "cancel")).to_be_visible()
        (cookie,) = [each for each in page.context.cookies(app_server.url) if each["name"] == session.COOKIE]
        assert cookie["httpOnly"] and cookie["value"] not in page.evaluate("document.cookie")

        stranger = context.new_page()
        watch.follow(stranger)
        open_page(stranger, app_server, SHORT)
        waiting = start(stranger)
        expect(stranger.get_by_text("waiting in the queue: 1 run before this one").last).to_be_visible()
        expect(stranger.locator("body")).not_to_contain_text(run_id)
        expect(page.locator("body")).not_to_contain_text(waiting)
        open_page(stranger, app_server, f"?run={run_id}")
        expect(shown(stranger, "progress")).to_contain_text("started by another visitor")
        expect(stranger.locator(".st-key-cancel")).to_have_count(0)
        press(page, "cancel")
        finish(page)
        finish(stranger)
        assert run_id_of(page) == run_id
    assert ended(app_server, run_id).request.size["batch"] == HELD_BATCH
