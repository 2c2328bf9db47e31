"""The page on a server that measures for real a function of one's own."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import psutil
from playwright.sync_api import Page, expect

from tests.browser import TOKEN, AppServer, wait_idle
from tests.deadlines import RUN_S
from tests.steps import click, ended, finish, headline, open_page, press, shown, start

CODE = """import numpy as np
import tensorflow as tf


def rows(batch=64, width=16):
    return np.random.default_rng(0).random((batch, width), dtype=np.float32)


def softened(row):
    return tf.nn.softmax(row)
"""


def libraries(pid: int) -> set[str]:
    """Of TensorFlow's libraries, those that a process has loaded."""
    return {mapped.path for mapped in psutil.Process(pid).memory_maps() if "/tensorflow/" in mapped.path}


def test_a_function_of_ones_own_is_checked_and_measured(page: Page, start_app: Callable[..., AppServer]):
    server = start_app()
    open_page(page, server, f"?token={TOKEN}&budget=60&strategies=loop.eager")
    assert TOKEN not in page.url
    click(page, "button", "Write your own function")
    # A page that is drawn anew may have two for a while.
    editor = page.locator("iframe[title*=streamlit_ace]").last.content_frame
    expect(editor.get_by_text("standardize")).to_be_visible()

    def check(code: str, elems: str) -> None:
        """Replace the text in the editor, as by the clipboard, and press Check once the page knows what is mapped."""
        mapped = page.get_by_role("combobox", name="Mapped over").last
        for _ in range(5):  # a page that is drawn anew just then takes the focus, and the text is nowhere
            wait_idle(page)
            editor.locator(".ace_text-input").focus()
            page.keyboard.press("Control+A")
            page.keyboard.insert_text(code)
            wait_idle(page)
            with contextlib.suppress(AssertionError):
                expect(mapped).to_have_value(elems, timeout=5_000)
                break
        expect(mapped).to_have_value(elems)
        wait_idle(page)
        press(page, "own_check")

    # A fault is said with its line, and marked in it; what was written stays.
    check(CODE.replace("tf.nn.softmax(row)", "tf.nn.softmax(rwo)"), "rows")
    expect(page.get_by_text("Line 10: NameError: name 'rwo' is not defined.").last).to_be_visible(timeout=1000 * RUN_S)
    expect(editor.locator(".ace_gutter-cell.ace_error")).to_have_text("10")
    expect(editor.get_by_text("rwo")).to_be_visible()
    check(CODE.replace("rows(", "lines("), "lines")
    expect(page.locator(".own-facts").last).to_contain_text("16 float32", timeout=1000 * RUN_S)

    # From here on it is a workload like any other.
    press(page, "own_use")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(shown(page, "size_width", "input")).to_have_value("16")
    run_id = start(page)
    finish(page)
    run = ended(server, run_id)
    item = run.measurement("loop.eager")
    assert item.outcome == "ok" and item.memory.output_bytes == 64 * 16 * 4
    expect(headline(page)).to_have_text(run.verdict)
    expect(page.get_by_role("heading", level=1).last).to_contain_text("softened")
    click(page, "tab", "Code")
    expect(page.locator("[data-testid=stCode]").last).to_contain_text("def softened(row):")

    # It was measured in one process beside the server.
    [host] = [child for child in server.children() if "measure.pool.host" in " ".join(child.cmdline())]
    assert libraries(host.pid) and not libraries(server.process.pid)
    pids = (server.process.pid, psutil.Process(host.pid).ppid())
    pages, worker = (int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in pids)
    assert worker == max(250, pages), "where memory runs out pages are the last to end"
