"""One browser for all tests of this folder, and their pages."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import Watch, launched, open_tab


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with launched() as chromium:
        yield chromium


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Gathers the errors of a test's pages and asserts at its end that there were none."""
    watch = Watch()
    yield watch
    assert not watch.problems, "\n".join(watch.problems)


@pytest.fixture
def new_page(browser: Browser, watch: Watch) -> Iterator[Callable[..., Page]]:
    """``new_page(width=1280, height=800, color_scheme="light")`` opens a page.

    All pages are of one context: scripts that one page has compiled, the next one takes from the cache. Each is a
    session of its own all the same.
    """
    pages = []

    def open_page(width: int = 1280, height: int = 800, color_scheme: str = "light") -> Page:
        pages.append(open_tab(browser, watch, width, height, color_scheme))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    return new_page()
