"""The Sweep page in a browser, with the engine behind it: sweep, cancel, continue, open a cell, move the slider."""

import contextlib
import re

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from measure.store.store import Store
from tests import synthetic
from tests.browser import AppServer, Watch, shot, wait_idle

pytestmark = pytest.mark.slow

RUN_MS = 120_000
# Small points of two fast strategies, and more of them than are measured before the click on Cancel.
SWEEP = "sweep?workload=square&from=1&to=200&points=9&strategies=batched.graph&strategies=loop.eager"


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


MAP = "sweep?workload=outer_product&from=1&to=8&points=3&sweep_2=side&from_2=2&to_2=8&points_2=2"
OPTION = "sweep?workload=outer_reduce&sweep=chunk&from=1&to=8&points=3&strategies=chunked.graph"
TOO_FAR = "is not valid: a whole number from"
# By what is swept: an address with a good range, which of its axes is spoiled, its name, and how. What is not written
# stays as it was.
BAD = {
    "batch": (
        SWEEP,
        1,
        "batch",
        [
            ({"From": "200", "To": "10"}, "is reversed: write the smaller end first"),
            ({"From": "", "To": ""}, "batch is empty"),
            ({"From": "7", "To": "7"}, "is one point"),
            ({"From": "1", "To": "999999999999"}, TOO_FAR),
            ({"From": "-5", "To": "10"}, TOO_FAR),
            ({"From": "0", "To": "10"}, "has no place on a log scale"),
            ({"From": "one", "To": "10"}, "whole numbers are needed"),
            ({"From": "1, 2, two"}, TOO_FAR),
            ({"From": "1", "To": "200", "Points": "5000"}, "5000 points is not valid: from 2 to 64 are"),
        ],
    ),
    # Of the others, one that concerns the ends and one that concerns what is swept: the sentences themselves are tested
    # where they are made.
    "linear": (
        f"{SWEEP}&scale=linear",
        1,
        "batch",
        [({"From": "200", "To": "10"}, "is reversed"), ({"From": "-5", "To": "10"}, TOO_FAR)],
    ),
    "second axis": (
        MAP,
        2,
        "side",
        [({"From": "8", "To": "2"}, "is reversed"), ({"From": "0", "To": "8"}, TOO_FAR)],
    ),
    "option": (
        OPTION,
        1,
        "chunk",
        [({"From": "8", "To": "2"}, "is reversed"), ({"From": "0", "To": "8"}, "has no place on a log scale")],
    ),
}


def fill(page: Page, number: int, fields: dict[str, str]) -> None:
    """Write into the fields of an axis, by their labels."""
    keys = {"From": "from", "To": "to", "Points": "points"}
    for label, value in fields.items():
        field = page.locator(f".st-key-{keys[label]}{'' if number == 1 else f'_{number}'} input")
        field.fill(value)
        field.press("Enter")
        wait_idle(page)


@pytest.mark.parametrize("swept", BAD)
def test_bad_ranges_get_a_message_and_nothing_starts(page: Page, app_server: AppServer, watch: Watch, swept: str):
    address, number, name, bad = BAD[swept]
    open_page(page, app_server, watch, address)
    before = Store(app_server.home).ids()
    run, axes = page.locator(".st-key-run button").first, page.locator(".st-key-axes")
    good = {
        label: page.locator(f".st-key-{key}{'' if number == 1 else f'_{number}'} input").input_value()
        for label, key in {"From": "from", "To": "to", "Points": "points"}.items()
    }
    expect(run).to_be_enabled()
    for fields, says in bad:
        fill(page, number, fields)
        expect(axes.get_by_role("alert")).to_have_count(1)
        expect(axes.get_by_role("alert")).to_contain_text(name)
        expect(axes.get_by_role("alert")).to_contain_text(says)
        expect(run).to_be_disabled()
        expect(page.get_by_text("needs about")).to_have_count(0)
        page.keyboard.press("Control+Enter")  # the shortcut of the button
        wait_idle(page)
        assert "run=" not in page.url
        if (fields, says) == bad[0]:
            shot(page, f"bad-range-{swept.replace(' ', '-')}")
    assert Store(app_server.home).ids() == before, "nothing was queued"
    fill(page, number, good)
    expect(axes.get_by_role("alert")).to_have_count(0)
    expect(run).to_be_enabled()


def test_a_bad_range_in_an_address_gets_a_message_and_nothing_starts(page: Page, app_server: AppServer, watch: Watch):
    """As a link from elsewhere may have it."""
    before = Store(app_server.home).ids()
    run, axes = page.locator(".st-key-run button").first, page.locator(".st-key-axes")
    open_page(page, app_server, watch, "sweep?workload=square&from=9&to=3&points=1")
    expect(axes.get_by_role("alert")).to_contain_text("is reversed")
    expect(run).to_be_disabled()
    many = "sweep?workload=outer_product&from=1&to=9999&points=64&sweep_2=side&from_2=2&to_2=100&points_2=64"
    # More than a map may have, of two axes that are good by themselves, is said where the run would be.
    open_page(page, app_server, watch, many)
    expect(axes.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".st-key-run_bar").get_by_role("alert")).to_contain_text("points are too many")
    expect(run).to_be_disabled()
    assert Store(app_server.home).ids() == before, "nothing was queued"


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
