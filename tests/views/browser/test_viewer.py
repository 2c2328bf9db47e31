"""A viewer's server in an interpreter that has no TensorFlow: links of runs, imports, and no process below it."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from measure.store.store import Store
from tests import synthetic
from tests.browser import ROOT, TRACEBACK, AppServer, Watch, shot, wait_idle

KEPT = "a" * 24
# Python imports it when it starts: neither the package nor what is known of it can be found.
_WITHOUT_TENSORFLOW = """
import importlib.metadata, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "keras"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
version = importlib.metadata.version

def version_of_others(name):
    if name.startswith(("tensorflow", "keras", "tf-")):
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)

importlib.metadata.version = version_of_others
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    folder = tmp_path_factory.mktemp("viewer")
    (folder / "sitecustomize.py").write_text(_WITHOUT_TENSORFLOW)
    kept = Store(folder / "home")
    kept.add(synthetic.run(KEPT), "")
    kept.close()
    server = AppServer.start(ROOT / "app.py", folder / "home", {"MAPBENCH_VIEWER": "1", "PYTHONPATH": str(folder)})
    yield server
    assert server.children() == [], "a viewer starts no process"
    server.stop()
    assert TRACEBACK not in server.log()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_the_link_of_a_run_is_shown_without_tensorflow(
    new_page: Callable[..., Page], server: AppServer, width: int, scheme: str
):
    page = new_page(width=width, color_scheme=scheme)
    page.goto(f"{server.url}/?run={KEPT}")
    wait_idle(page)
    expect(page.get_by_text("This server shows runs and measures none.")).to_be_visible()
    expect(page.locator(".st-key-body")).to_contain_text("vectorized_map.graph")
    expect(page.get_by_role("button", name="Measure again here")).to_have_count(0)
    shot(page, f"viewer-{width}-{scheme}")


def test_a_run_file_is_imported_without_tensorflow(new_page: Callable[..., Page], server: AppServer):
    page = new_page()
    page.goto(f"{server.url}/?run={KEPT}")
    wait_idle(page)
    page.get_by_role("link", name="Runs").click()
    wait_idle(page)
    page.locator("input[type=file]").set_input_files(ROOT / "tests/data/sweep_1.json")
    page.get_by_role("link", name="Open it").click()
    page.wait_for_url("**/sweep?run=*")
    wait_idle(page)
    expect(page.get_by_text("This server shows runs and measures none.")).to_be_visible()
    shot(page, "viewer-sweep")


@pytest.mark.parametrize("path", ["", "sweep", "claims", "runs"])
def test_a_first_visitors_page_is_drawn_without_tensorflow(
    new_page: Callable[..., Page], server: AppServer, watch: Watch, path: str
):
    page = new_page()
    page.goto(f"{server.url}/{path}")
    wait_idle(page)
    expect(page.locator("[data-testid=stAlertContentError]")).to_have_count(0)
    shot(page, f"viewer-first-{path or 'compare'}")
    watch.forgive("_stcore")  # Streamlit looks for its server beside the page first
