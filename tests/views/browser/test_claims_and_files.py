"""In a browser: a claim that is tried from its page, and a run that leaves a server as a file and comes back."""

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from measure.claims import known, verdicts
from measure.claims.spec import Compare
from measure.model.run_file import decode
from measure.store.store import Store
from tests import synthetic
from tests.browser import AppServer
from tests.deadlines import RUN_S
from tests.keeping import put
from tests.steps import click, download, ended, finish, headline, open_page, press, run_id_of, shown


def test_a_claim_is_tried_and_its_evidence_opened(page: Page, app_server: AppServer):
    claim = next(
        claim
        for claim in known.all_claims()
        if all(isinstance(need, Compare) for need in claim.needs) and not claim.needs_gpu
    )
    open_page(page, app_server, "claims")
    press(page, f"try_{claim.id}")
    expect(page).to_have_url(re.compile(r"claims\?run=[0-9a-f]{24}$"))
    row = shown(page, f"claim_{claim.id}")
    expect(row).not_to_contain_text("not tried here yet", timeout=1000 * RUN_S)
    run = ended(app_server, run_id_of(page))
    assert run.claims == [claim.id]
    word = verdicts.of_run(claim, run).word
    expect(row).to_contain_text(word)
    finish(page)
    press(page, f"open_{claim.id}")
    expect(page).to_have_url(re.compile(f"claim={claim.id}"))
    # The comparison itself: its charts, and the code of its strategies.
    expect(row).to_have_count(0)
    expect(page.get_by_text(word, exact=True).last).to_be_visible()
    expect(page.locator("[data-testid=stVegaLiteChart] svg.marks").first).to_be_visible()
    click(page, "tab", "Code")
    expect(page.locator("[data-testid=stCode]").last).to_contain_text("import tensorflow as tf")
    page.reload()
    expect(page.get_by_text(word, exact=True).last).to_be_visible()
    press(page, "claims_back")
    expect(row).to_contain_text(word)


def test_a_run_that_was_exported_and_is_imported_is_the_same_to_the_byte(
    page: Page, app_server: AppServer, tmp_path: Path
):
    run, kept = synthetic.run("7" * 24), Store(app_server.home)
    put(kept, run)
    open_page(page, app_server, f"?run={run.id}")
    exported = download(page)
    assert decode(exported).measurements == run.measurements
    (tmp_path / "here.json").write_bytes(exported)
    kept.delete([run.id])
    open_page(page, app_server)
    click(page, "link", "Runs")
    page.locator("input[type=file]").set_input_files(tmp_path / "here.json")
    expect(page.get_by_text("here.json was imported").last).to_be_visible()
    click(page, "link", "Open it")
    expect(shown(page, "about_run")).to_contain_text("imported")
    expect(headline(page)).to_have_text(run.verdict)
    assert download(page) == exported
