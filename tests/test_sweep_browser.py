"""The Sweep page in a browser, with the engine behind it: sweep, cancel, continue, open a cell, move the slider."""

import re

import pytest
from playwright.sync_api import Page, expect

from measure.store import Store
from tests import synthetic
from tests.browser import AppServer, Watch, shot, wait_idle

RUN_MS = 120_000
# Small points of two fast strategies, and more of them than are measured before the click on Cancel.
SWEEP = "sweep?workload=square&from=1&to=200&points=6&strategies=batched.graph&strategies=loop.eager"


def open_page(page: Page, server: AppServer, watch: Watch, address: str) -> None:
    page.goto(f"{server.url}/{address}")
    wait_idle(page)
    # Opened by its address, a page asks for Streamlit's own files beside itself first.
    watch.forgive("404")


def press(page: Page, key: str) -> None:
    page.locator(f".st-key-{key} button").first.click()


def complete(server: AppServer, run_id: str) -> list[dict[str, int]]:
    run = Store(server.home).load(run_id)
    assert run is not None
    return [point.at for point in run.points if point.status == "complete"]


def run_id_of(page: Page) -> str:
    found = re.search(r"[?&]run=([0-9a-f]{24})", page.url)
    assert found is not None
    return found[1]


@pytest.mark.slow
def test_sweep_cancel_continue_and_look_at_a_point(page: Page, app_server: AppServer, watch: Watch):
    open_page(page, app_server, watch, SWEEP)
    expect(page.get_by_text("points, 2 strategies: needs about")).to_be_visible()
    press(page, "run")
    page.wait_for_url(re.compile(r"[?&]run=[0-9a-f]{24}"))
    first = run_id_of(page)
    progress = page.locator(".st-key-progress")
    expect(progress).to_contain_text(re.compile(r"[1-9]\d* complete"), timeout=RUN_MS)
    latency = page.locator("[data-testid=stVegaLiteChart]:has(svg.marks)").first
    expect(latency).to_be_visible(timeout=RUN_MS)
    press(page, "cancel")
    expect(progress).to_have_count(0)
    expect(page.get_by_text("points are complete. What was measured is kept")).to_be_visible()
    done = complete(app_server, first)
    assert done

    press(page, "continue")
    expect(progress).to_be_visible()
    page.wait_for_url(lambda address: first not in address)
    expect(progress).to_have_count(0, timeout=RUN_MS)
    wait_idle(page)
    second = run_id_of(page)
    assert second != first
    finished = Store(app_server.home).load(second)
    assert finished is not None and finished.parent == first
    expect(page.get_by_role("heading", level=2)).to_have_text(finished.verdict)
    expect(latency).to_contain_text("loop.eager")
    # What the first one measured is taken over as it is; where lines cross, there may be more beside it.
    for before in Store(app_server.home).load(first).points:
        if before.at in done:
            [after] = [point for point in finished.points if point.at == before.at]
            for old, new in zip(before.measurements, after.measurements, strict=True):
                assert (new.strategy, new.memory, new.correctness) == (old.strategy, old.memory, old.correctness)
                assert new.replicas[: len(old.replicas)] == old.replicas
    expect(page.get_by_text("It continues an earlier sweep")).to_be_visible()
    shot(page, "sweep", whole=True)


BAD = [
    ({"From": "200", "To": "10"}, "is reversed: write the smaller end first"),
    ({"From": "", "To": ""}, "batch is empty"),
    ({"From": "7", "To": "7"}, "is one point"),
    ({"From": "1", "To": "999999999999"}, "is not valid: a whole number from"),
    ({"From": "-5", "To": "10"}, "is not valid: a whole number from"),
    ({"From": "0", "To": "10"}, "has no place on a log scale"),
    ({"From": "one", "To": "10"}, "whole numbers are needed"),
    ({"From": "1", "To": "200", "Points": "5000"}, "5000 points is not valid: from 2 to 64 are"),
]


def test_bad_ranges_get_a_message_and_nothing_starts(page: Page, app_server: AppServer, watch: Watch):
    open_page(page, app_server, watch, SWEEP)
    before = Store(app_server.home).ids()
    run, axes = page.locator(".st-key-run button").first, page.locator(".st-key-axes")
    expect(run).to_be_enabled()
    for fields, says in BAD:
        for label, value in fields.items():
            field = axes.get_by_label(label, exact=True).first
            field.fill(value)
            field.press("Enter")
            wait_idle(page)
        expect(axes.get_by_role("alert")).to_have_count(1)
        expect(axes.get_by_role("alert")).to_contain_text(says)
        expect(run).to_be_disabled()
        expect(page.get_by_text("needs about")).to_have_count(0)
        page.keyboard.press("Control+Enter")  # the shortcut of the button
        wait_idle(page)
        assert "run=" not in page.url
        if says == BAD[0][1]:
            shot(page, "bad-range")
    # By the address, too: as a link from elsewhere may have it.
    open_page(page, app_server, watch, "sweep?workload=square&from=9&to=3&points=1")
    expect(axes.get_by_role("alert")).to_contain_text("is reversed")
    expect(run).to_be_disabled()
    assert Store(app_server.home).ids() == before, "nothing was queued"
    for label, value in {"From": "1", "To": "9", "Points": "3"}.items():
        axes.get_by_label(label, exact=True).first.fill(value)
        axes.get_by_label(label, exact=True).first.press("Enter")
        wait_idle(page)
    expect(axes.get_by_role("alert")).to_have_count(0)
    expect(run).to_be_enabled()


def test_a_cell_of_the_map_opens_its_comparison_and_the_slider_names_what_fits(
    page: Page, app_server: AppServer, watch: Watch
):
    run = synthetic.winners("fedcba9876543210fedcba98")
    Store(app_server.home).save(run)
    # By the address of a comparison, as a link from elsewhere may have it.
    open_page(page, app_server, watch, f"?run={run.id}")
    page.wait_for_url(re.compile(r"/sweep\?"))
    cells = page.locator(".st-key-sweep_map svg.marks")
    expect(cells).to_be_visible()
    box = cells.bounding_box()
    assert box is not None
    cells.click(position={"x": box["width"] * 0.15, "y": 30})
    # The upper left one: the least batch, the greatest height.
    expect(page.get_by_role("combobox", name="Show the comparison at")).to_have_value(re.compile("batch 1, height 32"))
    expect(page.locator(".st-key-point")).to_contain_text(run.points[2].verdict)
    shot(page, "map", whole=True)

    front = page.locator(".st-key-front")
    expect(front).to_contain_text("is fastest")
    slider = front.get_by_role("slider")
    slider.press("Home")
    expect(front).to_contain_text("Nothing fits into")
    slider.press("End")
    expect(front).to_contain_text("is fastest")
