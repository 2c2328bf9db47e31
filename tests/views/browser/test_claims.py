"""A claim tried from its page, to a verdict with its evidence open."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from measure.claims import known, verdicts
from measure.claims.spec import Compare
from measure.model.run_file import decode
from measure.store.store import Store
from tests.browser import AppServer, Watch, shot, wait_idle
from tests.steps import RUN_MS, download, finish, open_page, press, run_id_of


def test_a_claim_is_tried_and_its_evidence_opened(
    new_page: Callable[..., Page], app_server: AppServer, watch: Watch, tmp_path
):
    claim = next(
        claim
        for claim in known.all_claims()
        if all(isinstance(need, Compare) for need in claim.needs) and not claim.needs_gpu
    )
    page = new_page()
    open_page(page, app_server, "claims")
    expect(page.get_by_text("An example, measured before.")).to_be_visible()
    shot(page, "claims-first")
    press(page, f"try_{claim.id}")
    page.wait_for_url(re.compile(r"claims\?run=[0-9a-f]{24}$"))
    expect(page.locator(".st-key-claims_all")).to_be_visible()
    row = page.locator(f".st-key-claim_{claim.id}")
    expect(row).not_to_contain_text("not tried here yet", timeout=RUN_MS)
    finish(page)
    run = Store(app_server.home).load(run_id_of(page))
    assert run.claims == [claim.id]
    verdict = verdicts.of_run(claim, run)
    expect(row).to_contain_text(verdict.word)
    shot(page, "claims-run")
    press(page, f"open_{claim.id}")
    wait_idle(page)
    assert f"claim={claim.id}" in page.url
    expect(page.get_by_text(verdict.word, exact=True)).to_be_visible()
    # The comparison itself: its charts, and the code of its strategies.
    expect(page.locator("[data-testid=stVegaLiteChart] svg.marks").first).to_be_visible()
    page.get_by_role("tab", name="Code").click()
    expect(page.locator("[data-testid=stCode]").last).to_contain_text("import tensorflow as tf")
    shot(page, "claims-evidence", whole=True)
    link = page.url

    # A link shows the same to whoever has it; back leads to the list.
    other = new_page(width=390, color_scheme="dark")
    other.goto(link)
    expect(other.get_by_text(verdict.word, exact=True)).to_be_visible()
    wait_idle(other)
    shot(other, "claims-phone")
    press(other, "claims_back")
    expect(other.locator(f".st-key-claim_{claim.id}")).to_be_visible()
    assert decode(download(other, tmp_path / "claims.json")) == run
    watch.forgive("_stcore")  # Streamlit looks for its server beside the page first
