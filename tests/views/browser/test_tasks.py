"""Five things that people come for, from a first visit: in how few clicks, and with the answer in sight."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import AppServer, wait_idle
from tests.steps import RUN_MS, finish, open_page, run_id_of

WIDE, PHONE = (1400, 900), (390, 844)


@dataclass
class Person:
    """Somebody at a page, who counts the clicks; typing into a field that was clicked is none."""

    page: Page
    scrolls: int
    clicks: int = 0

    def click(self, element: Locator) -> None:
        self.page.bring_to_front()  # a tab behind another is drawn once a second, and moves under the mouse
        element.click()
        self.clicks += 1
        wait_idle(self.page)

    def press(self, key: str) -> None:
        self.click(self.page.locator(f".st-key-{key} button:visible").first)

    def run(self) -> None:
        self.press("run")
        self.page.wait_for_url("**run=*")
        finish(self.page)

    def sees(self, element: Locator) -> None:
        """Assert that an element is in sight, or will be after as many screens of scrolling as this person accepts."""
        expect(element).to_be_visible()
        box = element.bounding_box()
        assert box is not None
        height = self.page.evaluate("innerHeight")
        assert 0 <= box["y"] + 20 <= height * (1 + self.scrolls), (box, height)


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def person(request: pytest.FixtureRequest, new_page: Callable[..., Page], app_server: AppServer) -> Person:
    page = new_page(*request.param)
    open_page(page, app_server, "?size_batch=8&size_height=16&size_width=16&budget=4")
    return Person(page, scrolls=int(request.param == PHONE))


def test_the_answer_its_code_its_link_and_why_one_is_slow(
    person: Person, new_page: Callable[..., Page], app_server: AppServer
):
    """Three tasks that begin with the same click."""
    page = person.page
    person.run()
    begun = person.clicks

    code = page.locator(".st-key-answer [data-testid=stCode]")
    person.sees(page.get_by_text("Take", exact=True))
    person.sees(code)
    for part in ("Against what others take", "What it costs", "What would change it"):
        person.sees(page.get_by_text(part, exact=True))
    code.hover()
    person.click(code.get_by_role("button"))
    assert "def strategy(elems):" in page.evaluate("navigator.clipboard.readText()")
    assert person.clicks <= 3

    person.clicks = begun
    person.press(f"share_{run_id_of(page)}")
    link = page.evaluate("navigator.clipboard.readText()")
    assert person.clicks <= 2
    colleague = Person(new_page(*PHONE), scrolls=1)
    colleague.page.goto(link)
    wait_idle(colleague.page)
    colleague.sees(colleague.page.get_by_role("heading", level=1))
    colleague.sees(colleague.page.get_by_text("Take", exact=True))

    person.clicks = begun
    person.press("evidence_Why")
    expect(page.get_by_role("tab", name="Why")).to_be_in_viewport()  # the page has moved there: nothing moves any more
    person.press("explain")
    expect(page.locator(".st-key-tabs").get_by_text("loop.graph").first).to_be_visible(timeout=RUN_MS)
    expect(page.locator(".st-key-explaining")).to_have_count(0, timeout=RUN_MS)
    person.sees(page.locator(".st-key-tabs").get_by_text("loop.graph").first)
    assert person.clicks <= 3


def test_what_is_best_under_64_mib(person: Person):
    person.click(person.page.locator(".st-key-advanced summary"))
    limit = person.page.locator(".st-key-memory_limit input")
    person.click(limit)
    limit.fill("64")  # which waits for the field, where a page that is drawn anew would lose what is typed
    limit.press("Enter")
    wait_idle(person.page)
    expect(limit).to_have_value("64")
    person.run()
    person.sees(person.page.get_by_role("heading", level=1).filter(has_text="limit 64 MiB"))
    person.sees(person.page.get_by_text("Take", exact=True))
    assert person.clicks <= 4


def test_where_the_winner_changes(person: Person):
    if person.scrolls:
        person.click(person.page.get_by_test_id("stExpandSidebarButton"))
    person.click(person.page.locator("a[href$='/sweep']:visible").first)
    if person.scrolls:
        # Streamlit closes the menu for a phone's browser; in a window that is as narrow a click beside it does.
        person.page.mouse.click(PHONE[0] - 5, 5)
    person.press("example_0")
    person.press("run")
    expect(person.page.locator(".st-key-progress")).to_have_count(0, timeout=RUN_MS)
    wait_idle(person.page)
    person.sees(person.page.get_by_role("heading", level=2))
    assert person.clicks <= 5
