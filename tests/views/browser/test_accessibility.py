"""What axe-core has to say about each page: nothing serious, in light and in dark."""

import re
from collections.abc import Callable

from axe_playwright_python.sync_playwright import Axe
from msgspec.structs import replace
from playwright.sync_api import Page

from measure.claims import known
from measure.claims.spec import Claim, Compare, Script
from measure.model.run_file import decode
from measure.store.store import Store
from tests import synthetic
from tests.browser import ROOT, AppServer, Watch, wait_idle
from tests.steps import open_page

COMPARED, SWEPT, MAPPED, TRIED = "c" * 24, "d" * 24, "e" * 24, "f" * 24


def claim_with(kind: type) -> Claim:
    """A claim that rests on evidence of one kind."""
    return next(c for c in known.all_claims() if not c.needs_gpu and all(isinstance(need, kind) for need in c.needs))


PAGES = (
    f"?run={COMPARED}&tab=Code",
    f"sweep?run={SWEPT}",
    f"sweep?run={MAPPED}",
    "sweep",
    "runs",
    f"claims?run={TRIED}",
    f"claims?run={TRIED}&claim={claim_with(Script).id}",
    f"claims?run={TRIED}&claim={claim_with(Compare).id}",
    "claims",
    "",
)


def contrast_of_run(page: Page) -> float:
    """The contrast of the words on the button Run, as WCAG has it."""
    style = "button => { const {color, backgroundColor} = getComputedStyle(button); return [color, backgroundColor]; }"
    texts = page.locator(".st-key-run button").first.evaluate(style)
    light, dark = sorted((luminance(text) for text in texts), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """The relative luminance of ``rgb(…)``."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def serious(page: Page, path: str, **options: object) -> list[str]:
    """Everything serious that axe-core says about a page."""
    # What passes is not reported in full, which takes longer than the rules themselves.
    options["resultTypes"] = ["violations"]
    return [
        f"{path}: {violation['impact']} {violation['id']}: {violation['nodes'][0]['html']}"
        for violation in Axe().run(page, options=options).response["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


def test_nothing_serious_on_any_page(new_page: Callable[..., Page], app_server: AppServer, watch: Watch):
    Store(app_server.home).save(synthetic.run(COMPARED))
    Store(app_server.home).save(synthetic.sweep(SWEPT))
    Store(app_server.home).save(synthetic.winners(MAPPED))
    # As one from elsewhere: the newest verdicts of this server are those of other tests.
    Store(app_server.home).add(replace(decode((ROOT / "views/example_claims.json").read_bytes()), id=TRIED))
    page = new_page()
    said = []
    for path in PAGES:
        page.emulate_media(color_scheme="light")
        open_page(page, app_server, path)
        said += serious(page, path)
        page.emulate_media(color_scheme="dark")
        wait_idle(page)
        said += serious(page, f"{path} in the dark", runOnly=["color-contrast"])
    assert contrast_of_run(page) >= 4.5, "axe-core leaves buttons with an icon out"
    watch.forgive("_stcore")  # Streamlit looks for its server beside the page first
    assert not said, "\n".join(said)
