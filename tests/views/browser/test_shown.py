"""A run that is shown in a browser: wide, narrow, dark, printed, with and without a limit."""

import re
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, Route, expect

from measure.claims import known
from measure.claims.spec import Compare, Script, Swept
from measure.model.run_file import decode
from measure.store.store import Store
from tests import synthetic
from tests.browser import ROOT, AppServer, Watch, open_tab, shot, wait_idle
from tests.steps import open_page, press

WIDE, TABLET, PHONE = 1440, 768, 390
RUN_ID = "abcdef0123456789abcdef01"
_FITS = """() => {
  const main = document.querySelector('[data-testid=stMain]');
  return document.documentElement.scrollWidth <= window.innerWidth && main.scrollWidth <= main.clientWidth;
}"""


def narrow_until_it_fits(page: Page, width: int) -> None:
    """Make the page so wide, in which nothing may have to be scrolled sideways; tables and code scroll within
    themselves."""
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function(_FITS)


def charts_are_drawn(page: Page) -> None:
    expect(page.locator("svg.marks")).to_have_count(2)
    wait_idle(page)
    assert page.evaluate(_FITS)


def store(server: AppServer) -> str:
    """Puts a made-up run into the server's store and returns its address."""
    Store(server.home).save(synthetic.run(RUN_ID))
    return f"?run={RUN_ID}"


@pytest.fixture(scope="module")
def _watch() -> Watch:
    return Watch()


@pytest.fixture(scope="module")
def _wide(browser: Browser, _watch: Watch) -> Iterator[Page]:
    page = open_tab(browser, _watch, WIDE, 1200, "light")
    yield page
    page.close()


@pytest.fixture
def wide(_wide: Page, _watch: Watch, app_server: AppServer) -> Iterator[Page]:
    """The run in a page that several tests look at: each leaves it as wide as it was, and on the screen."""
    if RUN_ID not in _wide.url:
        open_page(_wide, app_server, store(app_server))
        charts_are_drawn(_wide)
    yield _wide
    assert not _watch.problems, "\n".join(_watch.problems)


def rows_are_level(page: Page) -> None:
    def rows(number: int) -> dict[str, float]:
        labels = page.locator("[data-testid=stVegaLiteChart]").nth(number).locator("svg .role-axis-label text")
        found = labels.evaluate_all("texts => texts.map(text => [text.textContent, text.getBoundingClientRect().y])")
        return {name: y for name, y in found if "." in name and " " in name and "MiB" not in name}

    latency, memory = rows(0), rows(1)
    assert len(latency) > 10 and latency.keys() == memory.keys()
    assert max(abs(latency[name] - memory[name]) for name in latency) <= 1


def test_the_rows_of_both_charts_are_level(wide: Page):
    rows_are_level(wide)


def test_the_rows_of_both_charts_are_level_without_a_limit(new_page: Callable[..., Page], app_server: AppServer):
    page = new_page(width=WIDE, height=1200)
    Store(app_server.home).save(replace(synthetic.run(RUN_ID[::-1]), limit=None))
    open_page(page, app_server, f"?run={RUN_ID[::-1]}")
    charts_are_drawn(page)
    rows_are_level(page)


def test_failures_explain_themselves_and_hostile_texts_stay_texts(wide: Page):
    failures = wide.locator(".st-key-failures")
    expect(failures).to_contain_text("The first call did not end within 10 s.")
    expect(failures).to_contain_text("<img src=x onerror=alert(1)> **bold** $x$ :red[red] :smile:")
    assert wide.locator(".st-key-failures img").count() == 0
    failures.get_by_text("Full text").first.click()
    expect(failures.get_by_text("ResourceExhaustedError").first).to_be_visible()


def test_print_has_verdict_and_charts(wide: Page):
    wide.emulate_media(media="print")
    shot(wide, "print", whole=True)
    expect(wide.get_by_role("heading", level=2)).to_be_visible()
    for number in range(2):
        expect(wide.locator("svg.marks").nth(number)).to_be_visible()
    # What a printer gets is the whole page, not the part that is in view.
    pages = wide.pdf(format="A4").count(b"/Type /Page\n")
    assert pages >= 2
    wide.emulate_media(media="screen")


def test_code_can_be_copied_and_compared(wide: Page):
    wide.get_by_role("tab", name="Code").click()
    code = wide.get_by_role("tabpanel", name="Code").locator("[data-testid=stCode]")
    expect(code.last).to_contain_text("def strategy(elems):")
    wide.locator(".st-key-code_against input").click()
    wide.keyboard.type("loop.eager")  # narrows the list, of which only a part is drawn
    wide.get_by_role("option", name="loop.eager", exact=True).click()
    wait_idle(wide)
    compared = wide.get_by_role("region", name="Differences")
    expect(compared).to_contain_text("− ")
    expect(compared).to_contain_text("+ ")


def test_a_phone_shows_what_a_wide_page_shows(wide: Page, new_page: Callable[..., Page], app_server: AppServer):
    """The same headings, charts, tables and buttons, none of them beyond the edge; and each tab fits."""

    def seen(page: Page, width: int) -> list[str]:
        page.get_by_role("tab", name="Break even").click()
        wait_idle(page)
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
        assert outside == []
        return [name for name, _, _ in boxes if "stVegaLiteChart" not in name]

    phone = new_page(width=PHONE, height=900)
    open_page(phone, app_server, store(app_server))
    charts_are_drawn(phone)
    expect(phone.get_by_role("heading", level=2).first).to_be_in_viewport()
    for end in ("m.scrollHeight", "0"):
        phone.locator("[data-testid=stMain]").evaluate(f"m => m.scrollTo(0, {end})")
        expect(phone.locator(".st-key-run button").first).to_be_in_viewport(ratio=1)
    shot(phone, "phone", whole=True)
    on_wide, on_phone = seen(wide, WIDE), seen(phone, PHONE)
    assert len(on_wide) > 20 and on_phone == on_wide
    for tab in ("Table", "Samples", "Memory over one call", "Code", "Environment"):
        phone.get_by_role("tab", name=tab).click()
        wait_idle(phone)
        assert phone.evaluate(_FITS), tab


def test_whatever_the_width_each_tab_fits(wide: Page):
    for tab in ("Table", "Break even", "Samples", "Memory over one call", "Code", "Environment"):
        wide.get_by_role("tab", name=tab).click()
        wait_idle(wide)
        assert wide.evaluate(_FITS), tab
        for width in (TABLET, PHONE):
            narrow_until_it_fits(wide, width)
        wide.set_viewport_size({"width": WIDE, "height": 1200})


def fits_and_is_written_in_ink(page: Page, scheme: str) -> None:
    """Whatever the width, all fits; and what is written in a chart has the colour of the text around it."""
    ink = page.locator("[data-testid=stVegaLiteChart]").first.evaluate("chart => getComputedStyle(chart).color")
    value = page.locator("svg.marks .mark-text.role-mark text", has_text=" ms").first
    assert value.evaluate("text => getComputedStyle(text).fill") == ink
    for width in (WIDE, TABLET, PHONE):
        narrow_until_it_fits(page, width)
        shot(page, f"failures-{scheme}-{width}", whole=True)
    page.set_viewport_size({"width": WIDE, "height": 1200})


def test_on_a_light_page_all_fits_and_can_be_read(wide: Page):
    fits_and_is_written_in_ink(wide, "light")


def test_on_a_dark_page_all_fits_and_can_be_read(new_page: Callable[..., Page], app_server: AppServer):
    page = new_page(width=WIDE, height=1200, color_scheme="dark")
    open_page(page, app_server, store(app_server))
    charts_are_drawn(page)
    fits_and_is_written_in_ink(page, "dark")
    background = page.locator("[data-testid=stApp]").evaluate("app => getComputedStyle(app).backgroundColor")
    assert max(int(part) for part in re.findall(r"\d+", background)[:3]) < 64


# --- claims ---

CLAIMS_ID = "abcdef0123456789abcdef03"
_OUTSIDE = """() => [...document.querySelectorAll(
  '[data-testid=stMain] :is([class*=st-key-claim] *, button, h2, h3, table, pre, [data-testid=stVegaLiteChart])'
)].filter(element => {
  const box = element.getBoundingClientRect();
  if (!box.width || (box.left >= 0 && box.right <= window.innerWidth + 1)) return false;
  // Tables and code scroll within themselves.
  for (let outer = element.parentElement; outer && outer.dataset.testid !== 'stMain'; outer = outer.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(outer).overflowX) && outer.scrollWidth > outer.clientWidth)
      return false;
  return true;
}).map(element => element.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("evidence", ["", "compare", "swept", "script"])
def test_whatever_the_width_claims_and_their_evidence_fit(
    new_page: Callable[..., Page], app_server: AppServer, watch: Watch, scheme: str, evidence: str
):
    run = replace(decode((ROOT / "views/example_claims.json").read_bytes()), id=CLAIMS_ID)
    # As one from elsewhere: the newest verdicts of this server are those of other tests.
    if (kept := Store(app_server.home)).look(CLAIMS_ID) is None:
        kept.add(run)
    query = f"claims?run={CLAIMS_ID}"
    if evidence:
        kind = {"compare": Compare, "swept": Swept, "script": Script}[evidence]
        there = {item.need for item in run.evidence or []}
        fit = (c for c in known.all_claims() if isinstance(c.needs[0], kind) and c.needs[0].key in there)
        query += f"&claim={next(fit).id}"
    page = new_page(width=WIDE, height=1200, color_scheme=scheme)
    open_page(page, app_server, query)
    expect(page.locator(f".st-key-{'claims_back' if evidence else 'claims_all'}")).to_be_visible()
    if evidence in ("compare", "swept"):
        expect(page.locator("svg.marks").first).to_be_visible()
    for width in (WIDE, PHONE):
        narrow_until_it_fits(page, width)
        wait_idle(page)
        assert page.evaluate(_OUTSIDE) == []
        shot(page, f"claims-{evidence or 'list'}-{scheme}-{width}", whole=bool(evidence))
    watch.forgive("_stcore")  # Streamlit looks for its server beside the page first


# --- addresses ---


def test_what_is_not_valid_in_a_link_is_said_and_refuses_run_or_is_replaced(page: Page, app_server: AppServer):
    open_page(
        page,
        app_server,
        "?workload=nope&size_batch=-4&run=zz&strategies=bogus&strategies=map_fn.graph&strategies=loop.turbo",
    )
    for said in (
        "Workload 'nope' is not known",
        "Batch=-4 is not valid",
        "'bogus' is malformed",
        "no mode 'turbo'",
        "is not the id of a run",
    ):
        expect(page.get_by_text(said)).to_be_visible()
    expect(page.locator(".st-key-cell_map_fn_graph input")).to_be_checked()
    expect(page.locator(".st-key-run button").first).to_be_disabled()
    # The address has what the form shows: what was replaced is gone, and what is to be put right is there.
    assert "nope" not in page.url and "size_batch=-4" in page.url
    assert re.findall("strategies=([^&]*)", page.url) == ["bogus", "map_fn.graph", "loop.turbo"]


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


def test_a_field_whose_code_comes_late_has_the_runs_choice_and_not_a_default(page: Page, app_server: AppServer):
    held: list[Route] = []
    run = synthetic.run(RUN_ID[1:] + "2")
    size = {**run.request.size, "batch": 64}
    Store(app_server.home).save(replace(run, request=replace(run.request, size=size, memory_limit_mib=96, threads=1)))
    for kind in ("NumberInput", "Multiselect"):
        page.route(f"**/{kind}*.js", lambda route: held.append(route))
    page.goto(f"{app_server.url}/?run={run.id}")
    page.get_by_role("tab", name="Samples").click()  # runs the page once more
    expect(page.get_by_role("tabpanel", name="Samples")).to_contain_text("rocess")
    page.unroute("**/*.js")
    for route in held:
        route.continue_()
    wait_idle(page)
    press(page, "fold")
    wait_idle(page)
    expect(page.locator(".st-key-size_batch input")).to_have_value("64")
    page.get_by_text("Advanced").click()
    for key, chosen in (("memory_limit", "96"), ("threads", "1")):
        expect(page.locator(f".st-key-{key} input")).to_have_value(chosen)
    assert page.url.partition("?")[2] == f"run={run.id}&tab=Samples"
    limit = page.locator(".st-key-memory_limit input")
    limit.fill("")
    limit.press("Enter")
    wait_idle(page)
    expect(limit).to_have_value("")
    assert page.url.endswith("&memory_limit="), "and it can be emptied"
