"""The Sweep page in a browser: sweep, cancel, continue, open a cell, move the slider."""

import contextlib
import re

from playwright.sync_api import Page, TimeoutError, expect

from measure.store.store import Store
from tests import synthetic
from tests.browser import AppServer, Watch, shot, wait_idle
from tests.simulated_server import HELD_BATCH
from tests.steps import going_on, press, run_id_of

# Its last point is held.
SWEEP = f"sweep?workload=square&from=1&to={HELD_BATCH}&points=9&strategies=batched.graph&strategies=loop.eager"


def open_page(page: Page, server: AppServer, watch: Watch, address: str) -> None:
    page.goto(f"{server.url}/{address}")
    wait_idle(page)
    # Opened by its address, a page asks for Streamlit's own files beside itself first.
    watch.forgive("404")


def complete(server: AppServer, run_id: str) -> list[dict[str, int]]:
    run = Store(server.home).load(run_id)
    assert run is not None
    return [point.at for point in run.points if point.status == "complete"]


def test_sweep_cancel_continue_and_look_at_a_point(page: Page, app_server: AppServer, watch: Watch):
    open_page(page, app_server, watch, SWEEP)
    expect(page.get_by_text("points, 2 strategies: needs about")).to_be_visible()
    press(page, "run")
    page.wait_for_url(re.compile(r"[?&]run=[0-9a-f]{24}"))
    first = run_id_of(page)
    progress = page.locator(".st-key-progress")
    expect(progress).to_contain_text(re.compile(r"[1-9]\d* complete"))
    latency = page.locator("[data-testid=stVegaLiteChart]:has(svg.marks)").first
    expect(latency).to_be_visible()
    # What is looked at stays, whatever state the points are in by then.
    looked_at = page.get_by_role("combobox", name="Show the comparison at")
    first_point = page.get_by_role("option", name=re.compile(r"^batch 1 \("))
    for _ in range(20):  # the list closes where the points that it offers change
        looked_at.click()
        with contextlib.suppress(TimeoutError):
            first_point.click(timeout=1_000)
            break
    expect(looked_at).to_have_value(re.compile(r"^batch 1 \("))
    press(page, "cancel")
    expect(progress).to_have_count(0)
    expect(looked_at).to_have_value(re.compile(r"^batch 1 \("))
    expect(page.get_by_text("points are complete. What was measured is kept")).to_be_visible()
    done = complete(app_server, first)
    assert done

    press(page, "continue")
    expect(progress).to_be_visible()
    page.wait_for_url(lambda address: first not in address)
    with going_on(app_server):
        expect(progress).to_have_count(0)
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


def test_a_bad_range_gets_a_message_beside_it_and_nothing_starts(page: Page, app_server: AppServer, watch: Watch):
    open_page(page, app_server, watch, SWEEP)
    before = Store(app_server.home).ids()
    run, axes = page.locator(".st-key-run button").first, page.locator(".st-key-axes")
    expect(run).to_be_enabled()
    for ends, says in (
        (("200", "10"), "is reversed: write the smaller end first"),
        (("", ""), "batch is empty"),
        (("1", "999999999999"), "is not valid: a whole number from"),
    ):
        fill(page, *ends)
        expect(axes.get_by_role("alert")).to_have_count(1)
        expect(axes.get_by_role("alert")).to_contain_text("batch")
        expect(axes.get_by_role("alert")).to_contain_text(says)
        expect(run).to_be_disabled()
        expect(page.get_by_text("needs about")).to_have_count(0)
        page.keyboard.press("Control+Enter")  # the shortcut of the button
        wait_idle(page)
        assert "run=" not in page.url
        shot(page, "bad-range")
    assert Store(app_server.home).ids() == before, "nothing was queued"
    fill(page, "1", "200")
    expect(axes.get_by_role("alert")).to_have_count(0)
    expect(run).to_be_enabled()


def test_examples_come_first_on_a_phone_too(page: Page, app_server: AppServer, watch: Watch):
    page.set_viewport_size({"width": 390, "height": 844})
    open_page(page, app_server, watch, "sweep")
    examples, axes = page.locator(".st-key-examples"), page.locator(".st-key-axes")
    expect(examples).to_be_in_viewport()
    top, below = examples.bounding_box(), axes.bounding_box()
    assert top is not None and below is not None and top["y"] + top["height"] <= below["y"]


def fill(page: Page, *ends: str) -> None:
    """Write into the fields of the range."""
    for key, value in zip(("from", "to"), ends, strict=True):
        field = page.locator(f".st-key-{key} input")
        field.fill(value)
        field.press("Enter")
        wait_idle(page)


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
    # Right under the map, and without a scroll.
    comparison = page.locator(".st-key-point")
    expect(comparison).to_contain_text(run.points[2].verdict)
    expect(comparison.get_by_role("heading").first).to_be_in_viewport()
    shot(page, "map", whole=True)

    front = page.locator(".st-key-front")
    expect(front).to_contain_text("is fastest")
    slider = front.get_by_role("slider")
    slider.press("Home")
    expect(front).to_contain_text("Nothing fits into")
    slider.press("End")
    expect(front).to_contain_text("is fastest")


def test_a_point_of_a_line_opens_its_comparison_and_two_strategies_can_be_asked_about(
    page: Page, app_server: AppServer, watch: Watch
):
    run = synthetic.sweep("fedcba9876543210fedcba97")
    Store(app_server.home).save(run)
    open_page(page, app_server, watch, f"sweep?run={run.id}")
    dots = page.locator(".st-key-sweep_latency svg.marks path[aria-roledescription=point]")
    dots.first.click()
    expect(page.get_by_role("combobox", name="Show the comparison at")).to_have_value(re.compile(r"^batch 1 \("))
    expect(page.locator(".st-key-point")).to_contain_text(run.points[0].verdict)
    wait_idle(page)

    # By keys, since a list that is open is closed where the page is drawn anew; and where it scrolls.
    asked = page.get_by_role("combobox", name="Where does")
    page.locator("[data-testid=stMain]").evaluate("m => m.scrollTo(0, 400)")
    expect(asked).to_be_in_viewport(ratio=1)
    asked.fill("batched.graph")
    expect(page.get_by_role("option", name="batched.graph")).to_have_attribute("data-focused", "true")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-crossovers")).to_contain_text("batched.graph overtakes loop.eager at batch 4 [")
