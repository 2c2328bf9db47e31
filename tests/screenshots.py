"""Takes the pictures of README and docs from real runs: ``python -m tests.screenshots [name …]``, all without a name.

What the pictures show was measured while they were taken; look at them before they are committed.
"""

import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, FloatRect, Page, expect, sync_playwright

from tests.browser import ROOT, AppServer, launch, wait_idle

FOLDER = ROOT / "docs/pictures"
WIDTH, PHONE_WIDTH = 1400, 390
MOST_BYTES = 300 * 1024
RUN_MS = 400_000
# A person reads before Run is pressed: a browser that has just drawn a page is still one of the «other programs».
_READ_MS = 3_000
_WINDOW = 1000  # pixels, which hold a window
_HIGHEST = 4000  # pixels of a page while its picture is taken: nothing of it scrolls


@dataclass
class Studio:
    """A browser, and a server; ``last`` is the address of the run on show."""

    browser: Browser
    server: AppServer
    last: str = ""

    def page(self, address: str, width: int = WIDTH, scheme: str = "light") -> Page:
        page = self.browser.new_context(
            viewport={"width": width, "height": 1000}, color_scheme=scheme, device_scale_factor=1
        ).new_page()
        page.goto(address)
        wait_idle(page, quiet_ms=1000)
        return page

    def result(self) -> str:
        """The address of a finished run, measured once."""
        if not self.last:
            page = self.page(f"{self.server.url}/?strategies=default")
            _run(page)
            _finish(page)
            self.last = page.url
            page.context.close()
        return self.last


def _run(page: Page) -> None:
    page.wait_for_timeout(_READ_MS)
    page.locator(".st-key-run button:enabled").first.click()
    page.wait_for_url(re.compile(r"[?&]run=[0-9a-f]{24}"))
    expect(page.locator(".st-key-progress")).to_be_visible()


def _finish(page: Page) -> None:
    expect(page.locator(".st-key-progress")).to_have_count(0, timeout=RUN_MS)
    wait_idle(page, quiet_ms=1000)


def _save(page: Page, name: str, *, most: int) -> None:
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
    _shoot(page, name, {"x": 0, "y": 0, "width": size["width"], "height": min(most, ends + 24)})


def _shoot(page: Page, name: str, clip: FloatRect) -> None:
    path = FOLDER / f"{name}.png"
    page.screenshot(path=path, animations="disabled", clip=clip)
    page.context.close()
    assert path.stat().st_size <= MOST_BYTES, f"{path} has {path.stat().st_size:,} bytes"
    print(path.relative_to(ROOT), f"{path.stat().st_size / 1024:.0f} KiB")


def _first_visit(studio: Studio) -> None:
    _save(studio.page(studio.server.url), "first-visit", most=1100)


def _running(studio: Studio) -> None:
    page = studio.page(f"{studio.server.url}/?size_batch=200&strategies=all&budget=60")
    _run(page)
    # In the middle of sampling: the first latencies are in the chart.
    expect(page.locator(".st-key-progress div[role=status]")).to_contain_text(re.compile(r"sampling.*\d\s[mµ]?s", re.S),
                                                                           timeout=RUN_MS)  # fmt: skip
    page.wait_for_timeout(6_000)
    address = page.url
    _save(page, "running", most=1250)
    page = studio.page(address)
    page.locator(".st-key-cancel button").first.click()
    _finish(page)
    page.context.close()


def _result(studio: Studio) -> None:
    # Down to the end of the table.
    _save(studio.page(studio.result()), "result", most=1640)


def _dark(studio: Studio) -> None:
    _save(studio.page(studio.result(), scheme="dark"), "dark", most=1050)


def _phone(studio: Studio) -> None:
    page = studio.page(studio.result(), width=PHONE_WIDTH)
    _save(page, "phone", most=_HIGHEST)


def _own_function(studio: Studio) -> None:
    page = studio.page(studio.server.url)
    page.set_viewport_size({"width": WIDTH, "height": _WINDOW})
    page.get_by_role("button", name="Write your own function").click()
    wait_idle(page, quiet_ms=1000)
    page.locator(".st-key-own_check button").click()
    expect(page.locator(".own-facts")).to_be_visible(timeout=RUN_MS)
    wait_idle(page, quiet_ms=1000)
    _shoot(page, "own-function", {"x": 0, "y": 0, "width": WIDTH, "height": _WINDOW})


def _claims(studio: Studio) -> None:
    _save(studio.page(f"{studio.server.url}/claims"), "claims", most=1250)


def _sweep(studio: Studio) -> None:
    four = "&".join(f"strategies={word}" for word in ("loop.eager", "map_fn.graph", "vectorized_map.graph", "batched"))
    _swept(studio, f"workload=square&from=1&to=100000&{four}", "sweep")


def _dial(studio: Studio) -> None:
    three = "&".join(f"strategies={word}.graph" for word in ("chunked", "map_fn", "vectorized_map"))
    _swept(studio, f"workload=outer_reduce&sweep=chunk&from=1&to=256&{three}", "dial")


def _map(studio: Studio) -> None:
    _swept(studio, "workload=outer_product&from=1&to=1000&sweep_2=side&from_2=2&to_2=32&budget=240", "map")


def _swept(studio: Studio, choices: str, name: str) -> None:
    page = studio.page(f"{studio.server.url}/sweep?{choices}")
    _run(page)
    _finish(page)
    _save(page, name, most=2200)


PICTURES: dict[str, Callable[[Studio], None]] = {
    "first-visit": _first_visit,
    "result": _result,
    "dark": _dark,
    "phone": _phone,
    "running": _running,
    "own-function": _own_function,
    "claims": _claims,
    "sweep": _sweep,
    "dial": _dial,
    "map": _map,
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
