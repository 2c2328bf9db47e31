"""A report of runs of every kind in a browser without a network."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, expect

from measure import __main__ as command_line
from measure.claims import known
from measure.run.encoding import encode
from measure.run.run import Run
from tests import claims, synthetic
from tests.browser import Watch
from tests.measure.output.test_export import hostile
from tests.synthetic import HOSTILE
from tests.views.browser.test_shown import PHONE, WIDE, serious, states

_FITS = "() => document.documentElement.scrollWidth <= window.innerWidth"


def runs() -> list[Run]:
    few, ended, tried = ("batched.xla", "map_fn.graph"), states(), known.all_claims()[:6]
    kinds = [
        synthetic.run(slugs=few), synthetic.run(slugs=few, seed=1), ended["cancelled"], ended["failed"], ended["one"],
        synthetic.sweep(), synthetic.winners(),
        claims.run(tried, *(claims.evidence(test, True) for claim in tried for test in claim.tests)),
        *(hostile(HOSTILE, axes) for axes in range(3)),
    ]  # fmt: skip
    return [replace(run, id=f"{number:024x}") for number, run in enumerate(kinds)]


@pytest.mark.usefixtures("live")
def test_a_report_opens_without_a_network(browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    files = {tmp_path / f"{run.id}.json": encode(run) for run in runs()}
    for file, data in files.items():
        file.write_bytes(data)
    report = tmp_path / "report.html"
    assert command_line.main(["report", *map(str, files), "--out", str(report)]) == 0
    assert capsys.readouterr().out == f"{report}\n"
    assert report.stat().st_size < 1.5 * 2**20 + 2 * sum(map(len, files.values()))

    watch, asked = Watch(), list[str]()
    with browser.new_context(offline=True, viewport=WIDE, permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        watch.follow(page)
        page.on("request", lambda request: asked.append(request.url))
        page.goto(report.as_uri())
        expect(page.locator("svg.marks")).to_have_count(page.locator("script.drawn").count())
        expect(page.locator(".chart[role=img][aria-label]")).to_have_count(page.locator("script.drawn").count())
        said = serious(page)
        page.emulate_media(color_scheme="dark")
        said += serious(page, runOnly=["color-contrast"])
        assert not said, "\n".join(said)

        page.locator("summary", has_text="batched.xla").first.click()
        page.locator("details[open] button").click()
        expect(page.locator("details[open] button")).to_have_text("Copied")
        code = page.locator("details[open] pre").text_content()
        assert page.evaluate("() => navigator.clipboard.readText()") == code and "# batched.xla" in (code or "")
        page.locator("svg.marks").first.hover()
        expect(page.locator("#vg-tooltip-element")).to_contain_text("first call")
        page.set_viewport_size(PHONE)
        assert page.evaluate(_FITS)
    assert watch.problems == [] and asked == [report.as_uri()]
