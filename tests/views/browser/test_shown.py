"""Pages that show stored runs in a browser: to everybody, on a phone, in the dark, on paper."""

import functools
import itertools

import pytest
from axe_playwright_python.sync_playwright import Axe
from msgspec.structs import replace
from playwright.sync_api import Page, ViewportSize, expect

import strategies
import workloads
from measure.claims import known
from measure.claims.spec import Compare
from measure.judge.analysis import analyse
from measure.judge.findings import findings
from measure.judge.verdict import verdict
from measure.run import decision
from measure.run.encoding import decode
from measure.run.run import Measurement, Run
from measure.store.store import Store
from tests import synthetic
from tests.browser import ROOT, AppServer, wait_idle
from tests.engine import eventually
from tests.keeping import put
from tests.steps import click, headline, open_page

COMPARED, SWEPT, MAPPED, TRIED, ENDED = (digit * 24 for digit in "12348")
WIDE: ViewportSize = {"width": 1440, "height": 800}
ZOOMED: ViewportSize = {"width": 700, "height": 450}  # 1400 x 900 at 200%
PHONE: ViewportSize = {"width": 390, "height": 844}
# Tables and code scroll within themselves.
_OUTSIDE = """() => [...document.querySelectorAll(
  '[data-testid=stMain] :is(button, h2, h3, table, pre, [data-testid=stVegaLiteChart], [data-testid=stMetric])'
)].filter(element => {
  const box = element.getBoundingClientRect();
  if (!box.width || (box.left >= 0 && box.right <= window.innerWidth + 1)) return false;
  for (let outer = element.parentElement; outer && outer.dataset.testid !== 'stMain'; outer = outer.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(outer).overflowX) && outer.scrollWidth > outer.clientWidth)
      return false;
  return true;
}).map(element => element.outerHTML.slice(0, 120))"""
# The theme's background, and no colour on its way to another.
_DARK = """() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor === 'rgb(15, 22, 32)'
  && !document.getAnimations().some(each => each instanceof CSSTransition && each.playState === 'running')"""
_FITS = """() => {
  const main = document.querySelector('[data-testid=stMain]');
  return document.documentElement.scrollWidth <= window.innerWidth && main.scrollWidth <= main.clientWidth;
}"""


def serious(page: Page, **options: object) -> list[str]:
    """Everything serious that axe-core says about a page."""
    # What passes is not reported in full, which takes longer than the rules themselves.
    options["resultTypes"] = ["violations"]
    return [
        f"{page.url}: {violation['id']}: {violation['nodes'][0]['html']}"
        for violation in Axe().run(page, options=options).response["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


def in_ink(page: Page) -> bool:
    """True if what is written in a chart has the colour of the text around it."""
    ink = page.locator("[data-testid=stVegaLiteChart]").first.evaluate("chart => getComputedStyle(chart).color")
    value = page.locator("svg.marks .mark-text.role-mark text", has_text=" ms").first
    return bool(value.evaluate("text => getComputedStyle(text).fill") == ink)


def darken(page: Page) -> None:
    """Have the page in its dark theme, with all colours where they come to rest."""
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(_DARK)
    wait_idle(page)


def test_a_result_in_light_and_dark_on_paper_and_on_a_phone(page: Page, app_server: AppServer):
    put(Store(app_server.home), synthetic.run(COMPARED))
    page.set_viewport_size(WIDE)
    open_page(page, app_server, f"?run={COMPARED}&tab=Code")
    expect(page.locator("svg.marks")).to_have_count(1)
    eventually(lambda: in_ink(page), "charts are drawn")
    said = serious(page)
    # Texts from elsewhere stay texts.
    failures = page.locator(".st-key-failures")
    expect(failures).to_contain_text("<img src=x onerror=alert(1)> **bold** $x$ :red[red] :smile:")
    expect(failures.locator("img")).to_have_count(0)

    darken(page)
    eventually(lambda: in_ink(page), "charts are drawn anew")
    said += serious(page, runOnly=["color-contrast"])
    assert not said, "\n".join(said)

    page.emulate_media(media="print")
    expect(page.locator("svg.marks")).to_be_visible()
    assert page.pdf(format="A4").count(b"/Type /Page\n") >= 2, "all of it, not the part that is in view"
    page.emulate_media(media="screen")

    for size in (WIDE, PHONE):
        page.set_viewport_size(size)
        page.wait_for_function(_FITS)
        for end in ("m.scrollHeight", "0"):
            page.locator("[data-testid=stMain]").evaluate(f"m => m.scrollTo(0, {end})")
            expect(page.locator(".st-key-run button").first).to_be_in_viewport(ratio=1)
    expect(headline(page)).to_be_in_viewport()
    for tab in ("Why", "Samples", "Details"):
        click(page, "tab", tab)
        expect(page.get_by_role("tabpanel", name=tab).last).not_to_be_empty()
        page.wait_for_function(_FITS)
    eventually(lambda: page.evaluate(_OUTSIDE) == [], "nothing reaches beyond the screen")


@functools.cache
def states() -> dict[str, Run]:
    """Comparisons as they may end, beside the one that has everything."""
    whole, calm = synthetic.run(), synthetic.run(unhappy=False)
    timed = [item for item in calm.measurements if item.twin_of is None]
    every = strategies.all_strategies(workloads.get("image_sqrt"))
    failed = [item for item in whole.measurements if item.outcome in ("failed", "timeout", "out_of_memory")]

    def of(*items: Measurement, **more: object) -> Run:
        request = replace(calm.request, strategies=[item.strategy for item in items])
        run = analyse(replace(calm, request=request, measurements=list(items), ranking=[], **more))
        return replace(run, verdict=verdict(findings(run)))

    def paced(item: Measurement, *factors: float) -> Measurement:
        pairs = zip(item.replicas, itertools.cycle(factors))
        replicas = [replace(one, samples_s=[factor * s for s in one.samples_s]) for one, factor in pairs]
        return replace(item, replicas=replicas)

    def begun(done: int) -> list[Measurement]:
        return [item for item in synthetic.partial(done).measurements if item.twin_of is None]

    return {
        "many": of(*(
            paced(replace(timed[0], strategy=one.slug, mapper=one.mapper, mode=one.mode), 1.2**place)
            for place, one in enumerate(every)
        )),
        "one": of(timed[0]),
        "failed": of(*failed),
        "tied": of(*(replace(timed[0], strategy=item.strategy, mapper=item.mapper, mode=item.mode) for item in timed)),
        "noisy": of(*(paced(item, 0.5, 1.0, 2.0, 4.0) for item in timed[:3])),
        "cancelled": of(*begun(4), status="cancelled"),
        "interrupted": of(*begun(0), status="interrupted", stop_reason="the worker ended"),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["many", "one", "failed", "tied", "noisy", "cancelled", "interrupted"])
def test_a_comparison_however_it_ended(page: Page, app_server: AppServer, name: str):
    store, run = Store(app_server.home), replace(states()[name], id=ENDED)
    put(store, run)
    page.set_viewport_size(ZOOMED)
    open_page(page, app_server, f"?run={run.id}")
    expect(page.locator("svg.marks").first).to_be_visible()
    problems = serious(page)
    assert not problems, "\n".join(problems)
    for size in (ZOOMED, PHONE):
        page.set_viewport_size(size)
        page.wait_for_function(_FITS)
        eventually(lambda: page.evaluate(_OUTSIDE) == [], "nothing reaches beyond the screen")


def test_the_other_pages_in_light_and_dark_and_on_a_phone(page: Page, app_server: AppServer):
    kept = Store(app_server.home)
    put(kept, replace(synthetic.run(COMPARED), decision=decision.make("Title", "We take it", synthetic.HOSTILE, "Ann")))
    put(kept, synthetic.sweep(SWEPT))
    put(kept, synthetic.winners(MAPPED))
    kept.add(replace(decode((ROOT / "views/example_claims.json").read_bytes()), id=TRIED))
    claim = next(one for one in known.all_claims() if not one.needs_gpu and isinstance(one.needs[0], Compare))
    said = []
    for path, drawn in (
        ("", ".st-key-example_cards"),
        (f"sweep?run={SWEPT}", ".st-key-sweep_latency svg.marks"),
        (f"sweep?run={MAPPED}", ".st-key-sweep_map svg.marks"),
        (f"claims?run={TRIED}&claim={claim.id}", ".st-key-claims_back"),
        (f"?run={COMPARED}&with={COMPARED}", ".st-key-pair [data-testid=stDataFrame]"),
        (f"?run={COMPARED}&present=1", ".st-key-presentation .st-key-decision"),
        (f"sweep?run={SWEPT}&present=1", ".st-key-presentation svg.marks"),
    ):
        page.set_viewport_size(WIDE)
        page.emulate_media(color_scheme="light")
        open_page(page, app_server, path)
        expect(page.locator(drawn).first).to_be_visible()
        said += serious(page)
        darken(page)
        said += serious(page, runOnly=["color-contrast"])
        for size in (WIDE, PHONE):
            page.set_viewport_size(size)
            page.wait_for_function(_FITS)
            eventually(lambda: page.evaluate(_OUTSIDE) == [], "nothing reaches beyond the screen")
    assert not said, "\n".join(said)
