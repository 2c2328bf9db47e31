"""The Compare page in a browser with the engine behind it: from the choice to the result."""

import re
from collections.abc import Callable

import psutil
from playwright.sync_api import Page, expect

from measure.store.store import Store
from tests.browser import TRACEBACK, AppServer, shot, wait_idle
from tests.steps import RUN_MS, finish, open_page, start, status, verdict


def charts(page: Page) -> list[str]:
    """Alternative texts of the charts that are drawn."""
    drawn = page.locator("[data-testid=stVegaLiteChart]:has(svg.marks)")
    return [drawn.nth(number).get_attribute("aria-label") or "" for number in range(drawn.count())]


def rows(page: Page) -> list[str]:
    """The names at the rows of the first chart, from above."""
    drawn = (
        page.locator("[data-testid=stVegaLiteChart]")
        .first.locator("svg .role-axis-label text")
        .evaluate_all("texts => texts.map(text => [text.getBoundingClientRect().y, text.textContent])")
    )
    return [text.split(" ", 1)[-1] for _, text in sorted(drawn)]


def libraries(pid: int) -> set[str]:
    """Of TensorFlow's libraries, those that a process has loaded."""
    paths = {mapped.path for mapped in psutil.Process(pid).memory_maps()}
    return {path for path in paths if "/tensorflow/" in path}


def test_choose_run_watch_and_read_the_result(new_page: Callable[..., Page], start_app: Callable[..., AppServer]):
    server, page = start_app(), new_page()
    open_page(page, server, "?budget=5")
    expect(page.get_by_text("An example, measured before.")).to_be_visible()
    shot(page, "first-visit", whole=True)
    for name, value in (("batch", "8"), ("height", "16"), ("width", "16")):
        box = page.locator(f".st-key-size_{name} input")
        box.fill(value)
        box.press("Enter")
        wait_idle(page)
    page.locator(".st-key-strategy_preset").get_by_text("The usual four").click()
    wait_idle(page)
    page.locator(".st-key-cell_map_fn_xla label").click()
    wait_idle(page)
    expect(page.get_by_text("5 strategies: needs about")).to_be_visible()
    run_id = start(page)
    expect(page.locator(".st-key-progress")).to_be_visible()
    # Which of them is at its turn when the page looks is not certain on a busy machine.
    expect(status(page)).to_contain_text(re.compile(r"loop\.eager|map_fn\.|vectorized_map\.|batched\."), timeout=RUN_MS)
    shot(page, "running")
    finish(page)

    run = Store(server.home).load(run_id)
    assert verdict(page) == run.verdict
    assert {m.strategy: m.outcome for m in run.measurements if not m.twin_of} == dict.fromkeys(
        ("loop.eager", "map_fn.graph", "map_fn.xla", "vectorized_map.graph", "batched.graph"), "ok"
    )
    assert len(charts(page)) == 2
    assert charts(page)[0].startswith("Latency of 5 strategies") and charts(page)[1].startswith("Peak memory")
    # Marks move with the results: at the end the rows of the chart stand as the run ranks them.
    ranked = [slug for group in run.ranking for slug in group]
    assert [name for name in rows(page) if name in run.request.strategies] == ranked and len(ranked) == 5
    shot(page, "result", whole=True)

    # Whatever pages come and go, there is one measuring process, and TensorFlow is nowhere else.
    open_page(new_page(), server)
    [host] = [child for child in server.children() if "measure.engine.host" in " ".join(child.cmdline())]
    assert libraries(host.pid) and not libraries(server.process.pid)
    assert TRACEBACK not in server.log()
