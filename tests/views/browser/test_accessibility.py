"""What axe-core has to say about each page: nothing serious, in light and in dark."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from measure.store.store import Store
from tests import synthetic
from tests.browser import AppServer, Watch
from tests.steps import open_page

pytestmark = pytest.mark.slow

COMPARED, SWEPT = "c" * 24, "d" * 24
PAGES = ("", f"?run={COMPARED}&tab=Code", "sweep", f"sweep?run={SWEPT}", "runs")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_on_any_page(new_page: Callable[..., Page], app_server: AppServer, watch: Watch, scheme: str):
    Store(app_server.home).save(synthetic.run(COMPARED))
    Store(app_server.home).save(synthetic.sweep(SWEPT))
    page = new_page(color_scheme=scheme)
    said = []
    for path in PAGES:
        open_page(page, app_server, path)
        said += [
            f"{path}: {violation['impact']} {violation['id']}: {violation['nodes'][0]['html']}"
            for violation in Axe().run(page).response["violations"]
            if violation["impact"] in ("serious", "critical")
        ]
    watch.forgive("_stcore")  # Streamlit looks for its server beside the page first
    assert not said, "\n".join(said)
