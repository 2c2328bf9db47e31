"""The life of a link, in two browsers and on two servers: run, share, watch, measure again, export, import."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from measure.model.run_file import decode
from measure.store.store import Store
from tests.browser import AppServer, shot, wait_idle
from tests.steps import RUN_MS, finish, open_page, press, start, verdict

pytestmark = pytest.mark.slow

# Far apart, so that the verdict is the same every time; and long enough to be watched.
ASKED = "?size_batch=64&size_height=32&size_width=32&budget=10" + "".join(
    f"&strategies={slug}" for slug in ("batched.graph", "loop.eager", "map_fn.eager", "map_fn.graph")
)


def test_the_life_of_a_link(
    new_page: Callable[..., Page], start_app: Callable[..., AppServer], app_server: AppServer, tmp_path: Path
):
    page, other = (new_page(permissions=["clipboard-read", "clipboard-write"]) for _ in range(2))
    open_page(page, app_server, ASKED)
    run_id = start(page)

    # Shared while it runs: the second browser sees it live, and so does the first one after a reload.
    page.locator(f".st-key-share_{run_id} button").click()
    expect(page.get_by_text("Link copied").first).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == f"{app_server.url}/?run={run_id}"
    other.goto(link)
    expect(other.locator(".st-key-progress")).to_be_visible()
    page.reload()
    expect(page.locator(".st-key-progress")).to_be_visible()
    finish(page)
    finish(other)
    first = Store(app_server.home).load(run_id)
    assert verdict(page) == verdict(other) == first.verdict
    expect(other.locator(".st-key-about_run")).to_contain_text(f"Measured {first.created[:10]}")
    expect(other.locator(".st-key-about_run")).to_contain_text("TensorFlow")

    # What its maker compares with goes with the link.
    page.goto(f"{link}&baseline=map_fn.graph")
    wait_idle(page)
    page.locator(f".st-key-share_{run_id} button").click()
    expect(page.get_by_text("Link copied").first).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"{link}&baseline=map_fn.graph"

    # Measured again by whoever has the link: the answer comes with the result.
    press(other, "again")
    other.wait_for_url(re.compile(rf"run=(?!{run_id})[0-9a-f]{{24}}"))
    again_id = re.search("run=([0-9a-f]{24})", other.url)[1]
    finish(other)
    expect(other.locator(".st-key-reproduction")).to_contain_text("The verdict was reproduced", timeout=RUN_MS)
    again = Store(app_server.home).load(again_id)
    assert again.parent == run_id and again.request == first.request
    shot(other, "reproduced", whole=True)

    # Exported here, imported on another machine, exported there: the same bytes.
    exported = download(other, tmp_path / "here.json")
    assert decode(exported) == again
    elsewhere = start_app()
    third = new_page()
    open_page(third, elsewhere)
    third.get_by_role("link", name="Runs").click()
    wait_idle(third)
    third.locator("input[type=file]").set_input_files(tmp_path / "here.json")
    expect(third.get_by_text("here.json was imported")).to_be_visible()
    third.get_by_role("link", name="Open it").click()
    expect(third.locator(".st-key-about_run")).to_contain_text("imported")
    wait_idle(third)
    assert verdict(third) == again.verdict and f"run={again_id}" in third.url
    expect(third.get_by_text("It repeats a run that is not known here.")).to_be_visible()
    assert download(third, tmp_path / "there.json") == exported


def download(page: Page, path: Path) -> bytes:
    """The run file, by the button of the Export menu."""
    press(page, "export")
    with page.expect_download() as found:
        page.get_by_role("button", name="Run file (JSON)").click()
    found.value.save_as(path)
    return path.read_bytes()
