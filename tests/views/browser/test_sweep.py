"""The Sweep page in a browser: sweep, cancel, continue; and what a click into its charts opens."""

import re

from playwright.sync_api import Page, expect

from measure.model.run import Run
from measure.store.store import Store
from tests import synthetic
from tests.browser import AppServer, wait_idle
from tests.keeping import put
from tests.simulated_server import HELD_BATCH
from tests.steps import ended, finish, going_on, headline, open_page, press, shown, start

# Its last point is held.
SWEEP = f"sweep?workload=square&from=1&to={HELD_BATCH}&points=5&strategies=batched.graph&strategies=loop.eager"


def complete(run: Run) -> list[dict[str, int]]:
    return [point.at for point in run.points if point.status == "complete"]


def test_a_sweep_is_cancelled_and_continued(page: Page, app_server: AppServer):
    open_page(page, app_server, SWEEP)
    first_id = start(page)
    expect(shown(page, "progress")).to_contain_text(re.compile(r"[1-9]\d* complete"))
    expect(shown(page, "sweep_latency", "svg.marks")).to_be_visible()
    press(page, "cancel")
    finish(page)
    expect(page.get_by_text("points are complete. What was measured is kept").last).to_be_visible()
    with going_on(app_server):
        second = ended(app_server, start(page, "continue"))
        finish(page)
    first = ended(app_server, first_id)
    assert second.parent == first_id and second.status == "complete"
    expect(headline(page)).to_have_text(second.verdict)
    # What the first one measured is taken over as it is; where lines cross, there may be more beside it.
    assert complete(first)
    after = {str(point.at): point for point in second.points}
    for before in first.points:
        if before.status == "complete":
            for old, new in zip(before.measurements, after[str(before.at)].measurements, strict=True):
                assert (new.strategy, new.memory, new.correctness) == (old.strategy, old.memory, old.correctness)
                assert new.replicas[: len(old.replicas)] == old.replicas


def test_a_click_into_a_chart_opens_the_comparison_there(page: Page, app_server: AppServer):
    line, map_ = synthetic.sweep("5" * 24), synthetic.winners("6" * 24)
    put(Store(app_server.home), line)
    put(Store(app_server.home), map_)
    looked_at, comparison = page.get_by_role("combobox", name="Show the comparison at").last, shown(page, "point")
    open_page(page, app_server, f"sweep?run={line.id}")
    page.locator(".st-key-sweep_latency svg.marks path[aria-roledescription=point]").first.click()
    expect(looked_at).to_have_value(re.compile(r"^batch 1 \("))
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
    expect(looked_at).to_have_value(re.compile("batch 1, height 32"))
    expect(comparison).to_contain_text(map_.points[2].verdict)
    expect(comparison.get_by_role("heading").first).to_be_in_viewport()

    front = shown(page, "front")
    front.get_by_role("slider").press("Home")
    expect(front).to_contain_text("Nothing fits into")
    front.get_by_role("slider").press("End")
    expect(front).to_contain_text("is fastest")
