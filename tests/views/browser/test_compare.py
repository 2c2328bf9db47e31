"""The Compare page in a browser, on simulated subjects: from the choices to the answer, and what can come between."""

import re

from playwright.sync_api import Page, expect

from tests.browser import AppServer, wait_idle
from tests.steps import HELD, SHORT, ended, finish, headline, open_page, press, shown, start, tab_to

KEPT = "What was measured is kept."


def test_from_choices_to_an_answer_that_a_link_and_history_show_again(page: Page, app_server: AppServer):
    open_page(page, app_server, SHORT)
    expect(shown(page, "purpose")).to_be_visible()
    page.locator(".st-key-cell_map_fn_graph label").click()
    expect(page).to_have_url(re.compile("strategies=map_fn.graph"))
    # Run is of the choices as they are, also where one has just been typed.
    wait_idle(page)  # a page that is drawn anew may forget what is typed
    shown(page, "size_batch", "input").fill("16")
    run_id = start(page)
    run = ended(app_server, run_id)
    finish(page)
    assert run.request.size["batch"] == 16
    assert set(run.request.strategies) == {"batched.graph", "loop.eager", "map_fn.graph"}
    expect(headline(page)).to_have_text(run.verdict)

    press(page, f"share_{run_id}")
    # What says that it was copied stands for a moment only.
    page.wait_for_function("async id => (await navigator.clipboard.readText()).includes(id)", arg=run_id)
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == f"{app_server.url}/?run={run_id}"
    # Nobody else can open a link to this machine: there is the run file.
    expect(shown(page, f"share_{run_id}", "a")).to_have_attribute("href", re.compile(rf"{run_id}.*json"))
    expect(shown(page, f"share_{run_id}", "a")).to_be_visible()

    # The run was one step of the page's history, and its choices none.
    page.go_back()
    expect(page).to_have_url(re.compile(r"\?(?!run=).*size_batch=16"))
    expect(shown(page, "purpose")).to_be_visible()
    page.go_forward()
    expect(page).to_have_url(link)
    expect(headline(page)).to_have_text(run.verdict)

    # A link to two runs is one to two.
    open_page(page, app_server, f"?run={run_id}&with={run_id}")
    press(page, f"share_{run_id}")
    page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('with=')")


def test_the_keyboard_alone_suffices(page: Page, app_server: AppServer):
    """Choose, run and cancel without a mouse, from the top of the page, where Run is three keys away."""
    open_page(page, app_server, HELD)
    for key in ("Tab", "Enter", "Tab"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.closest('.st-key-run') !== null")
    # Enter takes the first workload that is found, and never runs anything.
    tab_to(page, ".st-key-workload")
    page.keyboard.type("outer")
    expect(page.get_by_role("option").first).to_contain_text("outer_product")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"\?(?!.*run=).*workload=outer_product"))
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
