"""Five tasks of a newcomer in a browser: each within a few clicks, its answer in sight."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from tests.browser import AppServer, Watch, wait_idle
from tests.deadlines import ANSWER_S
from tests.engine import eventually
from tests.steps import finish, headline, open_page, shown, start

DESKTOP: ViewportSize = {"width": 1400, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
# By this Streamlit knows that its menu has to close once a page is chosen.
PHONES_NAME = "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36"


@dataclass
class Visitor:
    """Somebody who counts clicks and sees what is in the window; on a phone, also what one scroll brings."""

    page: Page
    phone: bool
    window: ViewportSize
    clicks: int = 0

    def click(self, what: Locator) -> None:
        wait_idle(self.page)
        what.last.click()
        self.clicks += 1

    def run(self) -> None:
        wait_idle(self.page)
        start(self.page)
        self.clicks += 1
        finish(self.page)

    def sees(self, what: Locator) -> None:
        expect(what.last).to_be_visible()
        wait_idle(self.page)
        screens = 2 if self.phone else 1

        def within() -> bool:
            box = what.last.bounding_box()
            return box is not None and box["y"] >= 0 and box["y"] + box["height"] <= screens * self.window["height"]

        eventually(within, f"{what} is in sight")


@pytest.fixture(params=["desktop", "phone"])
def visitor(request: pytest.FixtureRequest, browser: Browser, app_server: AppServer, watch: Watch) -> Iterator[Visitor]:
    phone = request.param == "phone"
    window = PHONE if phone else DESKTOP
    with browser.new_context(
        viewport=window,
        is_mobile=phone,
        has_touch=phone,
        user_agent=PHONES_NAME if phone else None,
        permissions=["clipboard-read", "clipboard-write"],
    ) as context:
        page = context.new_page()
        page.set_default_timeout(1000 * ANSWER_S)
        watch.follow(page)
        open_page(page, app_server)
        yield Visitor(page, phone, window)


def test_take_the_answer_with_its_code_and_hand_it_to_a_colleague(visitor: Visitor):
    page = visitor.page
    visitor.run()
    visitor.sees(headline(page))
    code = shown(page, "answer", "[data-testid=stCode]")
    visitor.sees(code)
    code.hover()
    visitor.click(code.get_by_role("button"))
    page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('def strategy(elems):')")
    assert visitor.clicks <= 3
    visitor.clicks = 0
    visitor.click(page.locator("[class*=st-key-share_] button"))
    page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('run=')")
    assert visitor.clicks <= 2


def test_the_best_under_64_mib_and_why_one_is_slow(visitor: Visitor):
    page = visitor.page
    visitor.click(page.locator(".st-key-example_cards button").nth(4))
    for words in ("loop.graph", "MiB"):
        visitor.sees(page.locator("svg.marks text", has_text=words).first)
    assert visitor.clicks <= 4
    visitor.clicks = 1
    visitor.click(page.get_by_role("tab", name="Why"))
    visitor.sees(page.get_by_role("tabpanel", name="Why").get_by_text(re.compile("map_fn.graph")).first)
    assert visitor.clicks <= 3


def test_where_the_winner_changes(visitor: Visitor):
    page = visitor.page
    if visitor.phone:
        visitor.click(page.get_by_test_id("stExpandSidebarButton"))
    visitor.click(page.get_by_role("link", name="Sweep"))
    visitor.click(page.get_by_role("button", name="Choose this sweep").first)
    visitor.run()
    visitor.sees(headline(page))
    visitor.sees(shown(page, "sweep_latency", "svg.marks"))
    assert visitor.clicks <= 5
