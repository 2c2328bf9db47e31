"""Takes the pictures of README and docs from real runs: ``python -m tests.screenshots [name …]``, all without a name.

What the pictures show was measured while they were taken; look at them before they are committed.
"""

import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser import ROOT, TOKEN, AppServer, launch, wait_idle

FOLDER = ROOT / "docs/pictures"
WIDTH, PHONE_WIDTH = 1400, 390
MOST_BYTES = 300 * 1024
RUN_MS = 400_000
# A person reads before Run is pressed: a browser that has just drawn a page is still one of the «other programs».
_READ_MS = 3_000
_WINDOW = 1000  # pixels of a window's height
_HIGHEST = 4000  # pixels of a page while its picture is taken: nothing of it scrolls

_DEFAULT = "?strategies=default"
_LINES = "&".join(f"strategies={word}" for word in ("loop.eager", "map_fn.graph", "vectorized_map.graph", "batched"))
_DIAL = "&".join(f"strategies={word}.graph" for word in ("chunked", "map_fn", "vectorized_map"))
_MAP = "workload=outer_product&from=1&to=1000&sweep_2=side&from_2=2&to_2=32&budget=240"


@dataclass(frozen=True)
class Picture:
    """``most``: pixels from the top of the page; ``at``: when it is taken."""

    address: str
    most: int
    at: str = "the end of its run"
    width: int = WIDTH
    scheme: str = "light"


PICTURES = {
    "first-visit": Picture("", 1100, "once"),
    "result": Picture(_DEFAULT, 1640),  # down to the end of the table
    "dark": Picture(_DEFAULT, 1050, scheme="dark"),
    "phone": Picture(_DEFAULT, 2450, width=PHONE_WIDTH),
    "running": Picture("?size_batch=200&strategies=all&budget=60", 1250, "the middle of sampling"),
    "own-function": Picture(f"?token={TOKEN}", _WINDOW, "a check of a function"),
    "claims": Picture("claims", 1250, "once"),
    "sweep": Picture(f"sweep?workload=square&from=1&to=100000&{_LINES}", 2200),
    "dial": Picture(f"sweep?workload=outer_reduce&sweep=chunk&from=1&to=256&{_DIAL}", 2200),
    "map": Picture(f"sweep?{_MAP}", 2200),
}


@dataclass
class Studio:
    """A browser, and a server; ``runs``: choices → the address of a finished run of them."""

    browser: Browser
    server: AppServer
    runs: dict[str, str] = field(default_factory=dict)

    def take(self, name: str, picture: Picture) -> None:
        page = self._open(picture)
        if picture.at == "the middle of sampling":
            _run(page)
            # The first latencies are in the chart.
            expect(page.locator(".st-key-progress")).to_contain_text("round", timeout=RUN_MS)
            page.wait_for_timeout(6_000)
        elif picture.at == "a check of a function":
            page.get_by_role("button", name="Write your own function").click()
            wait_idle(page, quiet_ms=1000)
            page.locator(".st-key-own_check button").click()
            expect(page.locator(".own-facts")).to_be_visible(timeout=RUN_MS)
        elif picture.at == "the end of its run":
            if picture.address not in self.runs:
                _run(page)
                _finish(page)
                self.runs[picture.address] = page.url
            page.goto(self.runs[picture.address])
        path, height = FOLDER / f"{name}.png", _WINDOW if name == "own-function" else _HIGHEST
        page.set_viewport_size({"width": picture.width, "height": height})
        wait_idle(page, quiet_ms=1000)
        page.mouse.move(0, 0)
        page.evaluate("document.activeElement.blur()")
        ends = page.locator("[data-testid=stMainBlockContainer]").evaluate(
            "main => Math.max(...[...main.querySelectorAll('[data-testid=stElementContainer]')]"
            ".map(element => element.getBoundingClientRect().bottom))"
        )
        clip = {"x": 0, "y": 0, "width": picture.width, "height": min(picture.most, ends + 24)}
        page.screenshot(path=path, animations="disabled", clip=clip)
        assert path.stat().st_size <= MOST_BYTES, f"{path} has {path.stat().st_size:,} bytes"
        print(path.relative_to(ROOT), f"{path.stat().st_size / 1024:.0f} KiB")
        if picture.at == "the middle of sampling":
            page.locator(".st-key-cancel button").first.click()
            _finish(page)
        page.context.close()

    def _open(self, picture: Picture) -> Page:
        page = self.browser.new_context(
            viewport={"width": picture.width, "height": _WINDOW}, color_scheme=picture.scheme, device_scale_factor=1
        ).new_page()
        page.goto(f"{self.server.url}/{picture.address}")
        wait_idle(page, quiet_ms=1000)
        return page


def _run(page: Page) -> None:
    page.wait_for_timeout(_READ_MS)
    page.locator(".st-key-run button:enabled").first.click()
    page.wait_for_url(re.compile(r"[?&]run=[0-9a-f]{24}"))
    expect(page.locator(".st-key-progress")).to_be_visible()


def _finish(page: Page) -> None:
    expect(page.locator(".st-key-progress")).to_have_count(0, timeout=RUN_MS)
    wait_idle(page, quiet_ms=1000)


def main(names: list[str]) -> int:
    if unknown := set(names) - set(PICTURES):
        print(f"not known: {', '.join(sorted(unknown))}; known are {', '.join(PICTURES)}", file=sys.stderr)
        return 2
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        environment = {"MAPBENCH_LOCK": str(Path(folder) / "measure.lock")}
        server = AppServer.start(ROOT / "app.py", Path(folder) / "home", environment)
        studio = Studio(launch(playwright), server)
        try:
            for name in names or PICTURES:
                studio.take(name, PICTURES[name])
        finally:
            server.stop()
            studio.browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
