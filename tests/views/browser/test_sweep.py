"""The Sweep page in a browser: what a click into its charts opens."""

import re

from playwright.sync_api import Page, expect

from measure.store.store import Store
from tests import synthetic
from tests.browser import AppServer, wait_idle
from tests.keeping import put
from tests.steps import open_page, shown


def test_a_click_into_a_chart_opens_the_comparison_there(page: Page, app_server: AppServer):
    line, map_ = synthetic.sweep("5" * 24), synthetic.winners("6" * 24)
    put(Store(app_server.home), line)
    put(Store(app_server.home), map_)
    looked_at, comparison = page.get_by_role("combobox", name="Show the comparison at").last, shown(page, "point")
    open_page(page, app_server, f"sweep?run={line.id}")
    page.locator(".st-key-sweep_latency svg.marks path[aria-roledescription=point]").first.click()
    expect(looked_at).to_have_value("batch 1")
    expect(comparison).to_contain_text(line.points[0].verdict)

    # By the address of a comparison, as a link from elsewhere may have it.
    open_page(page, app_server, f"?run={map_.id}")
    expect(page).to_have_url(re.compile(r"/sweep\?"))
    cells = shown(page, "sweep_map", "svg.marks")
    expect(cells).to_be_visible()
    wait_idle(page, quiet_ms=1_000)  # it may still be made as wide as the page
    box = cells.bounding_box()
    assert box is not None
    # The upper left one: the least batch, the greatest height.
    cells.click(position={"x": box["width"] * 0.15, "y": 30})
    expect(looked_at).to_have_value("batch 1, height 32")
    expect(comparison).to_contain_text(map_.points[2].verdict)
    expect(comparison.get_by_role("heading").first).to_be_in_viewport()
