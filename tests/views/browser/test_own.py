"""A function of one's own on the page: written, checked, run, swept, shared, exported, and opened by somebody else."""

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from measure.model.run import Run
from measure.model.run_file import decode
from measure.store.store import Store
from tests.browser import AppServer, Watch, shot, wait_idle
from tests.steps import RUN_MS, download, finish, open_page, press, run_id_of, start, verdict

CODE = """import numpy as np
import tensorflow as tf


def rows(batch=64, width=16):
    return np.random.default_rng(0).random((batch, width), dtype=np.float32)


def softened(row):
    return tf.nn.softmax(row)
"""


def write(page: Page, code: str) -> None:
    """Replace the text in the editor, as by the clipboard."""
    wait_idle(page)  # a page that is drawn anew may take the focus
    page.frame_locator("iframe[title*=streamlit_ace]").locator(".ace_text-input").focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(code)


def outcomes(run: Run) -> set[str]:
    return {item.outcome for item in run.measurements if item.twin_of is None}


def check(page: Page) -> None:
    expect(page.get_by_text("Function", exact=True)).to_be_visible()
    wait_idle(page)
    press(page, "own_check")
    wait_idle(page, timeout_ms=RUN_MS)


def test_a_function_of_ones_own_from_the_editor_to_somebody_elses_server(
    new_page: Callable[..., Page], start_app: Callable[..., AppServer], watch: Watch, tmp_path: Path
):
    server, page = start_app(), new_page()
    open_page(page, server, "?budget=2")
    page.get_by_role("button", name="Write your own function").click()
    editor = page.frame_locator("iframe[title*=streamlit_ace]")
    expect(editor.get_by_text("standardize")).to_be_visible()
    wait_idle(page)
    shot(page, "own-window")

    # A fault is said with its line, and marked in it; what was written stays.
    write(page, CODE.replace("tf.nn.softmax(row)", "tf.nn.softmax(rwo)"))
    check(page)
    expect(page.get_by_text("Line 10: NameError: name 'rwo' is not defined.")).to_be_visible()
    expect(editor.locator(".ace_gutter-cell.ace_error")).to_have_text("10")
    expect(editor.get_by_text("rwo")).to_be_visible()
    shot(page, "own-fault")
    write(page, CODE)
    expect(page.get_by_text("Changed since the last check.")).to_be_visible()
    check(page)
    expect(page.locator(".own-facts")).to_contain_text("16 float32")
    expect(page.locator(".own-facts")).to_contain_text("run slice by slice in float64")
    expect(editor.locator(".ace_gutter-cell.ace_error")).to_have_count(0)
    shot(page, "own-checked")

    # From here on it is a workload like any other.
    press(page, "own_use")
    expect(page.get_by_role("dialog")).to_have_count(0)
    wait_idle(page)
    expect(page.locator(".st-key-size_width input")).to_have_value("16")
    width = page.locator(".st-key-size_width input")
    width.fill("8")
    width.press("Enter")
    expect(page.get_by_text("64 × 8").first).to_be_visible()
    page.locator(".st-key-strategy_preset").get_by_text("The usual four").click()
    wait_idle(page)
    run_id = start(page)
    finish(page)
    run = Store(server.home).load(run_id)
    assert run.request.size == {"batch": 64, "width": 8}
    assert outcomes(run) == {"ok"}
    assert verdict(page) == run.verdict
    expect(page.get_by_text("agree with your function run slice by slice in float64 within")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_contain_text("softened")
    shot(page, "own-run", whole=True)
    page.get_by_role("tab", name="Code").click()
    expect(page.locator("[data-testid=stCode]").last).to_contain_text("def softened(row):")
    page.locator(f".st-key-share_{run_id} button").click()
    expect(page.get_by_text("Link copied").first).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    data = download(page, tmp_path / "own.json")
    assert decode(data) == run

    # Swept over the batch.
    slug = run.request.workload
    open_page(page, server, f"sweep?workload={slug}&sweep=batch&from=1&to=64&points=2&budget=4&strategies=map_fn.graph")
    swept = start(page)
    finish(page)
    points = Store(server.home).load(swept).points
    assert [item.outcome for point in points for item in point.measurements] == ["ok", "ok"]
    shot(page, "own-sweep", whole=True)

    # A link on the same server starts nothing; on another one nothing of the code is executed unasked.
    linked = new_page()
    linked.goto(link)
    wait_idle(linked)
    expect(linked.locator(".st-key-trust")).to_have_count(0)
    elsewhere, there = start_app(), new_page()
    open_page(there, elsewhere, "runs")
    there.locator("input[type=file]").set_input_files(tmp_path / "own.json")
    there.get_by_role("link", name="Open it").click()
    expect(there.locator(".st-key-trust")).to_contain_text("Nothing of it was executed")
    expect(there.locator(".st-key-again")).to_have_count(0)
    wait_idle(there)
    assert verdict(there) == run.verdict
    shot(there, "own-strange", whole=True)
    press(there, "trust_it")
    there.wait_for_url(re.compile(rf"run=(?!{run_id})[0-9a-f]{{24}}"), timeout=RUN_MS)
    expect(there.locator(".st-key-progress")).to_be_visible()
    finish(there)
    again = Store(elsewhere.home).load(run_id_of(there))
    assert again.parent == run_id
    watch.forgive("_stcore")  # Streamlit looks for its server beside the page first
    assert outcomes(again) == {"ok"}
