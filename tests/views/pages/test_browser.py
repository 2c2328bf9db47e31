"""The Compare page in a browser, with the engine behind it: what a person does, from the choice to the shared link."""

import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, Route, expect

from measure.store.store import Store
from tests import synthetic
from tests.browser import AppServer, shot, wait_idle
from tests.steps import LONG, RUN_MS, SMALL, finish, open_page, press, start, verdict

pytestmark = pytest.mark.slow


def charts(page: Page) -> list[str]:
    """Alternative texts of the charts that are drawn."""
    drawn = page.locator("[data-testid=stVegaLiteChart]:has(svg.marks)")
    return [drawn.nth(number).get_attribute("aria-label") or "" for number in range(drawn.count())]


def fits(page: Page) -> bool:
    """Whether nothing has to be scrolled sideways; tables and code scroll within themselves."""
    window = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    return window and page.locator("[data-testid=stMain]").evaluate("main => main.scrollWidth <= main.clientWidth")


def store(server: AppServer, **changes: object) -> str:
    """Puts a made-up run into the server's store and returns its id."""
    run = synthetic.run("abcdef0123456789abcdef01", **changes)
    Store(server.home).save(run)
    return run.id


def test_choose_run_watch_and_read_the_result(page: Page, app_server: AppServer):
    open_page(page, app_server, "?budget=5")
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
    expect(page.locator(".st-key-progress div[role=status]")).to_contain_text("map_fn.xla", timeout=RUN_MS)
    shot(page, "running")
    finish(page)

    run = Store(app_server.home).load(run_id)
    assert verdict(page) == run.verdict
    assert {m.strategy: m.outcome for m in run.measurements if not m.twin_of} == dict.fromkeys(
        ("loop.eager", "map_fn.graph", "map_fn.xla", "vectorized_map.graph", "batched.graph"), "ok"
    )
    assert len(charts(page)) == 3
    assert charts(page)[0].startswith("Latency of 5 strategies") and charts(page)[1].startswith("Peak memory")
    for mark in ("map_fn.xla", "batched.graph"):
        expect(page.locator("[data-testid=stVegaLiteChart]").first).to_contain_text(mark)
    shot(page, "result", whole=True)


def test_results_arrive_in_the_charts_in_the_order_of_rank(page: Page, app_server: AppServer):
    """Marks move with the results: at the end the rows of the chart stand as the run ranks them."""
    open_page(page, app_server, "?size_batch=8&size_height=16&size_width=16&budget=5")
    run_id = start(page)
    finish(page)
    run = Store(app_server.home).load(run_id)
    drawn = (
        page.locator("[data-testid=stVegaLiteChart]")
        .first.locator("svg .role-axis-label text")
        .evaluate_all("texts => texts.map(text => [text.getBoundingClientRect().y, text.textContent])")
    )
    names = [text.split(" ", 1)[-1] for _, text in sorted(drawn)]
    rows = [name for name in names if name in run.request.strategies]
    ranked = [slug for group in run.ranking for slug in group]
    assert rows[: len(ranked)] == ranked


def test_cancel_stops_and_keeps_what_there_is(page: Page, app_server: AppServer):
    open_page(page, app_server, LONG)
    start(page)
    expect(page.locator(".st-key-progress div[role=status]")).to_be_visible(timeout=RUN_MS)
    press(page, "cancel")
    finish(page)
    expect(page.get_by_text("What was measured is kept.")).to_be_visible()
    press(page, "run")  # the next run is not hindered by the cancelled one
    expect(page.locator(".st-key-progress div[role=status]")).to_be_visible(timeout=RUN_MS)
    press(page, "cancel")
    finish(page)


def test_a_reload_and_a_second_tab_attach_to_the_running_job(
    page: Page, new_page: Callable[..., Page], app_server: AppServer
):
    open_page(page, app_server, LONG)
    start(page)
    page.reload()
    expect(page.locator(".st-key-progress")).to_be_visible()
    other = new_page()
    other.goto(page.url)
    expect(other.locator(".st-key-progress div[role=status]")).to_be_visible(timeout=RUN_MS)
    press(page, "cancel")
    finish(page)
    finish(other)  # the second tab sees the end too
    assert verdict(other) == verdict(page)


def test_two_people_queue(page: Page, new_page: Callable[..., Page], app_server: AppServer):
    open_page(page, app_server, LONG)
    first_id = start(page)
    other = new_page()
    open_page(other, app_server, SMALL)
    expect(other.get_by_text("A comparison is running on this machine; yours will wait")).to_be_visible()
    start(other)
    expect(other.get_by_text("waiting in the queue: 1 run before this one")).to_be_visible()
    expect(other.get_by_text("Now: Square root of images, batch 400")).to_be_visible()
    assert first_id not in other.locator("body").inner_text()
    press(page, "cancel")
    finish(page)
    finish(other)
    assert "batched.graph is fastest" in verdict(other)


def test_a_link_opens_choices_and_starts_nothing_and_back_works(page: Page, app_server: AppServer):
    open_page(page, app_server, SMALL)
    box = page.locator(".st-key-size_batch input")
    box.fill("9")
    box.press("Enter")
    wait_idle(page)
    assert "size_batch=9" in page.url and "run=" not in page.url
    start(page)
    finish(page)
    link = page.url
    assert "size_batch=9" in link
    page.go_back()
    wait_idle(page)
    assert "run=" not in page.url
    expect(page.get_by_text("An example, measured before.")).to_be_visible()
    expect(box).to_have_value("9")
    page.goto(link)
    wait_idle(page)
    expect(box).to_have_value("9")
    expect(page.locator(".st-key-cell_loop_eager input")).to_be_checked()
    expect(page.locator(".st-key-cell_map_fn_graph input")).not_to_be_checked()
    assert "batched.graph is fastest" in verdict(page)


def test_what_is_not_valid_in_a_link_is_said(page: Page, app_server: AppServer):
    open_page(page, app_server, "?workload=nope&size_batch=-4&strategies=bogus&run=zz")
    for said in (
        "Workload 'nope' is not known",
        "Batch=-4 is not valid",
        "'bogus' is malformed",
        "is not the id of a run",
    ):
        expect(page.get_by_text(said)).to_be_visible()
    # What is said to be replaced is replaced in the address too, so that the link copied now is valid.
    assert not re.search("size_batch|bogus|nope", page.url)


def test_of_the_strategies_in_a_link_the_valid_ones_stay(page: Page, app_server: AppServer):
    open_page(page, app_server, "?strategies=bogus&strategies=map_fn.graph&strategies=loop.turbo")
    expect(page.get_by_text("'bogus' is malformed")).to_be_visible()
    expect(page.get_by_text("no mode 'turbo'")).to_be_visible()
    expect(page.locator(".st-key-cell_map_fn_graph input")).to_be_checked()
    assert re.findall("strategies=([^&]*)", page.url) == ["map_fn.graph"]


def test_a_page_is_idle_only_when_the_code_of_its_elements_has_come(page: Page, app_server: AppServer):
    held: list[Route] = []
    page.route("**/NumberInput*.js", lambda route: held.append(route))
    page.goto(app_server.url)
    expect(page.locator("[data-testid=stSkeleton]")).not_to_have_count(0)
    with pytest.raises(AssertionError, match="was not idle"):
        wait_idle(page, timeout_ms=1_000)
    for route in held:
        route.continue_()
    wait_idle(page)
    expect(page.locator("[data-testid=stNumberInput]")).not_to_have_count(0)


def test_a_phone_shows_what_a_wide_page_shows(new_page: Callable[..., Page], app_server: AppServer):
    """The same headings, charts, tables and buttons, none of them beyond the edge."""

    def seen(width: int) -> tuple[list[str], list[str]]:
        page = new_page(width=width, height=900)
        open_page(page, app_server, f"?run={store(app_server)}")
        expect(page.locator("svg.marks")).to_have_count(3)
        assert fits(page)
        shown = page.locator(
            "[data-testid=stVegaLiteChart], [data-testid=stDataFrame], [data-testid=stMetric], "
            "[data-testid=stButton] button, [data-testid=stSelectbox], [data-testid=stNumberInput]"
        )
        boxes = shown.evaluate_all(
            "elements => elements.map(element => ["
            "element.dataset.testid + ' ' + (element.innerText || '').replace(/\\s+/g, ''),"
            " element.getBoundingClientRect().left, element.getBoundingClientRect().right])"
        )
        outside = [f"{name} {left:.0f} to {right:.0f}" for name, left, right in boxes if left < 0 or right > width]
        return [name for name, _, _ in boxes if "stVegaLiteChart" not in name], outside

    wide, phone = seen(1440), seen(390)
    assert len(wide[0]) > 20 and phone[0] == wide[0]
    assert phone[1] == [] and wide[1] == []


def test_what_cannot_fit_is_refused_before_run(page: Page, app_server: AppServer):
    open_page(page, app_server, "?workload=outer_product&size_batch=1000000&size_side=32")
    expect(page.get_by_text("This cannot fit")).to_be_visible()
    expect(page.get_by_text("is the largest that fits")).to_be_visible()
    expect(page.locator(".st-key-run button").first).to_be_disabled()


def test_print_has_verdict_and_charts(page: Page, app_server: AppServer):
    open_page(page, app_server, f"?run={store(app_server)}")
    expect(page.locator("svg.marks")).to_have_count(3)
    page.emulate_media(media="print")
    shot(page, "print", whole=True)
    expect(page.get_by_role("heading", level=2)).to_be_visible()
    for number in range(3):
        expect(page.locator("svg.marks").nth(number)).to_be_visible()
    # What a printer gets is the whole page, not the part that is in view.
    pages = page.pdf(format="A4").count(b"/Type /Page\n")
    assert pages >= 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1440])
def test_light_dark_and_narrow(new_page: Callable[..., Page], app_server: AppServer, scheme: str, width: int):
    page = new_page(width=width, height=900, color_scheme=scheme)
    open_page(page, app_server, f"?run={store(app_server)}")
    expect(page.locator("svg.marks")).to_have_count(3)
    assert fits(page)
    # What is written in a chart has the colour of the text around it.
    ink = page.locator("[data-testid=stVegaLiteChart]").first.evaluate("chart => getComputedStyle(chart).color")
    value = page.locator("svg.marks .mark-text.role-mark text", has_text=" ms").first
    assert value.evaluate("text => getComputedStyle(text).fill") == ink
    shot(page, f"failures-{scheme}-{width}", whole=True)
    # What fits does not depend on colours.
    for tab in ("Samples", "Memory over one call", "Code", "Environment") if scheme == "light" else ():
        page.get_by_role("tab", name=tab).click()
        wait_idle(page)
        assert fits(page), tab


@pytest.mark.parametrize("limited", [True, False])
def test_the_rows_of_both_charts_are_level(page: Page, app_server: AppServer, limited: bool):
    page.set_viewport_size({"width": 1440, "height": 1200})
    run_id = store(app_server)
    if not limited:
        kept = Store(app_server.home)
        kept.save(replace(kept.load(run_id), id=run_id[::-1], limit=None))
        run_id = run_id[::-1]
    open_page(page, app_server, f"?run={run_id}")
    expect(page.locator("svg.marks")).to_have_count(3)

    def rows(number: int) -> dict[str, float]:
        labels = page.locator("[data-testid=stVegaLiteChart]").nth(number).locator("svg .role-axis-label text")
        found = labels.evaluate_all("texts => texts.map(text => [text.textContent, text.getBoundingClientRect().y])")
        return {name: y for name, y in found if "." in name and " " in name and "MiB" not in name}

    latency, memory = rows(0), rows(1)
    assert len(latency) > 10 and latency.keys() == memory.keys()
    assert max(abs(latency[name] - memory[name]) for name in latency) <= 1


def test_failures_explain_themselves_and_hostile_texts_stay_texts(page: Page, app_server: AppServer):
    open_page(page, app_server, f"?run={store(app_server)}")
    failures = page.locator(".st-key-failures")
    expect(failures).to_contain_text("The first call did not end within 10 s.")
    expect(failures).to_contain_text("<img src=x onerror=alert(1)> **bold** $x$ :red[red] :smile:")
    assert page.locator(".st-key-failures img").count() == 0
    failures.get_by_text("Full text").first.click()
    expect(failures.get_by_text("ResourceExhaustedError").first).to_be_visible()


def test_code_can_be_copied_and_compared(page: Page, app_server: AppServer):
    open_page(page, app_server, f"?run={store(app_server)}&tab=Code")
    expect(page.locator("[data-testid=stCode]").last).to_contain_text("def strategy(elems):")
    page.locator(".st-key-code_against input").click()
    page.keyboard.type("loop.eager")  # narrows the list, of which only a part is drawn
    page.get_by_role("option", name="loop.eager", exact=True).click()
    wait_idle(page)
    compared = page.get_by_role("region", name="Differences")
    expect(compared).to_contain_text("− ")
    expect(compared).to_contain_text("+ ")


def test_runner_is_the_only_one(page: Page, app_server: AppServer):
    """Whatever pages come and go, there is one measuring process."""
    for _ in range(2):
        open_page(page, app_server)
    hosts = [child for child in app_server.children() if "measure.engine.host" in " ".join(child.cmdline())]
    assert len(hosts) == 1
