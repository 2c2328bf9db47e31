"""A website whose name resolves to this machine gets no code executed (DNS rebinding)."""

import pytest

from tests.browser import AppServer
from tests.streamlit_client import opened


@pytest.mark.parametrize(("name", "may"), [("localhost", True), ("evil.example", False)])
def test_the_editor_is_drawn_for_a_name_of_this_machine_alone(app_server: AppServer, name: str, may: bool) -> None:
    host = f"{name}:{app_server.url.rpartition(':')[2]}"
    with opened(app_server.url, {"Host": host, "Origin": f"http://{host}"}) as page:
        page.click("own_window")
        assert ("own_check" in page.widgets) is ("own_function" in page.widgets) is may
