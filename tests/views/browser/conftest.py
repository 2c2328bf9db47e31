"""One browser for all tests of this folder."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser import launched


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with launched() as chromium:
        yield chromium
