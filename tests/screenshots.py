"""Takes the pictures of README and docs from real runs: ``python -m tests.screenshots [name …]``, all without a name.

What the pictures show was measured while they were taken; look at them before they are committed.
"""

import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser import ROOT, AppServer, launch, wait_idle

FOLDER = ROOT / "docs/pictures"
WIDTH, PHONE_WIDTH = 1400, 390
MOST_BYTES = 300 * 1024
RUN_MS = 400_000
# A person reads before Run is pressed: a browser that has just drawn a page is still one of the «other programs».
_READ_MS = 3_000
_WINDOW = 1000  # pixels of a window's height
_HIGHEST = 4000  # pixels of a page while its picture is taken: nothing of it scrolls


@dataclass
class Studio:
    """A browser, and a server; ``runs``: choices → the address of a run of them."""

    browser: Browser
    server: AppServer
    runs: dict[str, str] = field(default_factory=dict)

    def page(self, address: str, width: int = WIDTH, scheme: str = "light") -> Page:
        page = self.browser.new_context(
            viewport={"width": width, "height": _WINDOW}, color_scheme=scheme, device_scale_factor=1
        ).new_page()
        page.goto(f"{self.server.url}/{address}")
        wait_idle(page, quiet_ms=1000)
        return page

    def measured(self, choices: str) -> str:
        """The address of a finished run, measured once."""
        if choices not in self.runs:
            page = self.page(choices)
            _run(page)
            _finish(page)
            self.runs[choices] = page.url.removeprefix(f"{self.server.url}/")
            page.context.close()
        return self.runs[choices]


def _run(page: Page) -> None:
    page.wait_for_timeout(_READ_MS)
    page.locator(".st-key-run button:enabled").first.click()
    page.wait_for_url(re.compile(r"[?&]run=[0-9a-f]{24}"))
    expect(page.locator(".st-key-progress")).to_be_visible()


def _finish(page: Page) -> None:
    expect(page.locator(".st-key-progress")).to_have_count(0, timeout=RUN_MS)
    wait_idle(page, quiet_ms=1000)


def _save(page: Page, name: str, most: int) -> None:
    """The page from its top down to where it ends, at most ``most`` pixels."""
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": size["width"], "height": _HIGHEST})
    wait_idle(page, quiet_ms=1000)
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    ends = page.locator("[data-testid=stMainBlockContainer]").evaluate(
        "main => Math.max(...[...main.querySelectorAll('[data-testid=stElementContainer]')]"
        ".map(element => element.getBoundingClientRect().bottom))"
    )
    _shoot(page, name, min(most, ends + 24))


def _shoot(page: Page, name: str, height: float) -> None:
    path, size = FOLDER / f"{name}.png", page.viewport_size
    assert size is not None
    page.screenshot(path=path, animations="disabled", clip={"x": 0, "y": 0, "width": size["width"], "height": height})
    page.context.close()
    assert path.stat().st_size <= MOST_BYTES, f"{path} has {path.stat().st_size:,} bytes"
    print(path.relative_to(ROOT), f"{path.stat().st_size / 1024:.0f} KiB")


def _shown(name: str, address: str, most: int, **look: Any) -> Callable[[Studio], None]:
    return lambda studio: _save(studio.page(address, **look), name, most)


def _measured(name: str, choices: str, most: int, **look: Any) -> Callable[[Studio], None]:
    return lambda studio: _save(studio.page(studio.measured(choices), **look), name, most)


def _running(studio: Studio) -> None:
    page = studio.page("?size_batch=200&strategies=all&budget=60")
    _run(page)
    # In the middle of sampling: the first latencies are in the chart.
    expect(page.locator(".st-key-progress")).to_contain_text("round", timeout=RUN_MS)
    page.wait_for_timeout(6_000)
    address = page.url.removeprefix(f"{studio.server.url}/")
    _save(page, "running", 1250)
    page = studio.page(address)
    page.locator(".st-key-cancel button").first.click()
    _finish(page)
    page.context.close()


def _own_function(studio: Studio) -> None:
    page = studio.page("")
    page.get_by_role("button", name="Write your own function").click()
    wait_idle(page, quiet_ms=1000)
    page.locator(".st-key-own_check button").click()
    expect(page.locator(".own-facts")).to_be_visible(timeout=RUN_MS)
    wait_idle(page, quiet_ms=1000)
    _shoot(page, "own-function", _WINDOW)


_DEFAULT = "?strategies=default"
_LINES = "&".join(f"strategies={word}" for word in ("loop.eager", "map_fn.graph", "vectorized_map.graph", "batched"))
_DIAL = "&".join(f"strategies={word}.graph" for word in ("chunked", "map_fn", "vectorized_map"))
_MAP = "workload=outer_product&from=1&to=1000&sweep_2=side&from_2=2&to_2=32&budget=240"
PICTURES: dict[str, Callable[[Studio], None]] = {
    "first-visit": _shown("first-visit", "", 1100),
    "result": _measured("result", _DEFAULT, 1640),  # down to the end of the table
    "dark": _measured("dark", _DEFAULT, 1050, scheme="dark"),
    "phone": _measured("phone", _DEFAULT, 2450, width=PHONE_WIDTH),
    "running": _running,
    "own-function": _own_function,
    "claims": _shown("claims", "claims", 1250),
    "sweep": _measured("sweep", f"sweep?workload=square&from=1&to=100000&{_LINES}", 2200),
    "dial": _measured("dial", f"sweep?workload=outer_reduce&sweep=chunk&from=1&to=256&{_DIAL}", 2200),
    "map": _measured("map", f"sweep?{_MAP}", 2200),
}


def main(names: list[str]) -> int:
    unknown = set(names) - set(PICTURES)
    if unknown:
        print(f"not known: {', '.join(sorted(unknown))}; known are {', '.join(PICTURES)}", file=sys.stderr)
        return 2
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        environment = {"MAPBENCH_LOCK": str(Path(folder) / "measure.lock")}
        server = AppServer.start(ROOT / "app.py", Path(folder) / "home", environment)
        browser = launch(playwright)
        studio = Studio(browser, server)
        try:
            for name in names or PICTURES:
                PICTURES[name](studio)
        finally:
            server.stop()
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
