"""The life of a link, in three tabs: run, share, watch, go back, measure again, export, import."""

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from measure.model.run_file import decode
from measure.store.store import Store
from tests.browser import AppServer, shot, wait_idle
from tests.simulated_server import HELD_BATCH
from tests.steps import download, finish, going_on, open_page, press, run_id_of, start, verdict

ASKED = "?size_batch=64&size_height=32&size_width=32&budget=10" + "".join(
    f"&strategies={slug}" for slug in ("batched.graph", "loop.eager", "map_fn.eager", "map_fn.graph")
)


def _shows_batch(page: Page, batch: str) -> None:
    """Waits for a page whose one field for the batch holds ``batch``; the field of the page before may still stand."""
    page.wait_for_function(
        """batch => {
            const boxes = document.querySelectorAll(".st-key-size_batch input");
            return boxes.length === 1 && boxes[0].value === batch;
        }""",
        arg=batch,
    )


def test_the_life_of_a_link(new_page: Callable[..., Page], app_server: AppServer, tmp_path: Path):
    page = new_page()
    open_page(page, app_server, ASKED)
    box = page.locator(".st-key-size_batch input")
    box.fill(str(HELD_BATCH))
    box.press("Enter")
    wait_idle(page)
    assert f"size_batch={HELD_BATCH}" in page.url and "run=" not in page.url, "a link starts nothing"
    steps = page.evaluate("history.length")
    cell = page.locator(".st-key-cell_map_fn_xla")
    for checked in (True, False):
        cell.locator("label").click()
        expect(cell.locator("input")).to_be_checked(checked=checked)
        wait_idle(page)
    chosen_at = page.url
    run_id = start(page)
    page.wait_for_url(f"{app_server.url}/?run={run_id}")
    assert page.evaluate("history.length") == steps + 1, "a choice is no step, a run is one"

    # Shared while it runs: the second browser sees it live, and so does the first one after a reload.
    page.locator(f".st-key-share_{run_id} button").click()
    expect(page.get_by_text("Link copied").first).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == f"{app_server.url}/?run={run_id}"
    other = new_page()
    other.goto(link)
    expect(other.locator(".st-key-progress")).to_be_visible()
    page.reload()
    expect(page.locator(".st-key-progress")).to_be_visible()
    with going_on(app_server):
        finish(page)
        finish(other)
    first = Store(app_server.home).load(run_id)
    # In a chat, where no script runs, a link is called what its page is.
    assert f"<title>{page.title()}</title>" in page.request.get(link).text()
    assert verdict(page) == verdict(other) == first.verdict
    expect(other.locator(".st-key-about_run")).to_contain_text(re.compile(r"Measured [\d-]{10} \d\d:\S?\d\d \("))
    expect(other.locator(".st-key-about_run")).to_contain_text("TensorFlow")
    # With the result come the choices that it was measured with.
    expect(other.locator(".st-key-size_batch input")).to_have_value(str(HELD_BATCH))
    expect(other.locator(".st-key-cell_map_fn_eager input")).to_be_checked()
    expect(other.locator(".st-key-cell_vectorized_map_graph input")).not_to_be_checked()

    # One step back are the choices without the run, one forward is the run, with what was changed beside it.
    expect(box).not_to_be_visible()
    run_button = page.locator(".st-key-run button").first
    for end in ("m.scrollHeight", "0"):
        page.locator("[data-testid=stMain]").evaluate(f"m => m.scrollTo(0, {end})")
        expect(run_button).to_be_in_viewport(ratio=1)
    page.locator("[data-testid=stMain]").evaluate("m => m.scrollTo(0, m.scrollHeight)")
    press(page, "fold")
    wait_idle(page)
    expect(box).to_be_in_viewport()  # which is at the top
    for end in ("m.scrollHeight", "0"):
        page.locator("[data-testid=stMain]").evaluate(f"m => m.scrollTo(0, {end})")
        expect(run_button).to_be_in_viewport(ratio=1)
    box.fill("9")
    box.press("Enter")
    other_choices = page.locator(".st-key-agreement")
    expect(other_choices).to_contain_text(f"These are results of other choices: batch {HELD_BATCH}.")
    changed_at = f"{app_server.url}/?run={run_id}&size_batch=9"
    for step, address, batch in (
        (page.reload, changed_at, "9"), (page.go_back, chosen_at, str(HELD_BATCH)), (page.go_forward, changed_at, "9"),
    ):  # fmt: skip
        step()
        wait_idle(page)
        assert page.url == address
        _shows_batch(page, batch)
        expect(page.get_by_text("An example, measured before.")).to_have_count(int(address == chosen_at))
    assert verdict(page) == first.verdict
    press(page, "take")
    expect(other_choices).to_have_count(0)
    wait_idle(page)
    assert page.url == f"{app_server.url}/?run={run_id}"

    # What its maker compares with goes with the link.
    page.locator(".st-key-against input").click()
    page.get_by_role("option", name="loop.eager", exact=True).click()
    wait_idle(page)
    page.locator(f".st-key-share_{run_id} button").click()
    expect(page.get_by_text("Link copied").first).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"{link}&baseline=loop.eager"

    # Measured again by whoever has the link: the answer comes with the result.
    with going_on(app_server):
        press(other, "again")
        other.wait_for_url(re.compile(rf"run=(?!{run_id})[0-9a-f]{{24}}"))
        again_id = run_id_of(other)
        expect(other.locator(".st-key-reproduction")).to_contain_text("The verdict was reproduced")
        finish(other)
    again = Store(app_server.home).load(again_id)
    assert again.parent == run_id and again.request == first.request
    shot(other, "reproduced", whole=True)

    # Exported, imported where neither of both is known, and exported there: the same bytes.
    exported = download(other, tmp_path / "here.json")
    assert decode(exported) == again
    Store(app_server.home).delete([run_id, again_id])
    third = new_page()
    open_page(third, app_server)
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
