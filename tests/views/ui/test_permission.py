"""Code of a visitor's own is executed for this machine alone, whatever page a visitor was drawn."""

import pytest
import streamlit as st
from streamlit.runtime.context import ContextProxy

from measure import client
from measure.run.request import RequestError
from views.ui import permission
from workloads.functions import Given

GIVEN = Given(code="", function="f", elems="x")


@pytest.mark.parametrize(
    ("address", "headers", "variables", "may"),
    [
        ("localhost", {"Host": "localhost:8501"}, {}, True),
        ("127.0.0.1", {"Host": "127.0.0.1"}, {}, True),
        ("::1", {"Host": "[::1]:8501"}, {}, True),
        ("localhost", {"Host": "LOCALHOST"}, {}, True),
        # A website's name that resolves to this machine.
        ("localhost", {"Host": "evil.example:8501"}, {}, False),
        ("localhost", {"Host": "localhost.evil.example"}, {}, False),
        ("localhost", {"Host": "127.0.0.1.evil.example"}, {}, False),
        ("localhost", {"Host": "[::1].evil.example"}, {}, False),
        ("localhost", {"Host": "evil.example@localhost"}, {}, False),
        ("localhost", {}, {}, False),
        # Others reach the server, or ask through a proxy.
        (None, {"Host": "localhost:8501"}, {}, False),
        ("0.0.0.0", {"Host": "localhost:8501"}, {}, False),
        ("example.org", {"Host": "localhost:8501"}, {}, False),
        ("localhost", {"Host": "localhost:8501", "X-Forwarded-For": "10.0.0.1"}, {}, False),
        # Who starts the server has the last word, but on a hosted one.
        ("0.0.0.0", {"Host": "box:8501"}, {"MAPBENCH_OWN_CODE": "1"}, True),
        ("localhost", {"Host": "localhost:8501"}, {"MAPBENCH_OWN_CODE": "0"}, False),
        ("localhost", {"Host": "localhost"}, {"MAPBENCH_OWN_CODE": "1", "MAPBENCH_HOSTED": "1"}, False),
    ],
)
def test_code_is_executed_for_this_machine_alone_unless_the_operator_says_so(
    monkeypatch: pytest.MonkeyPatch, address: str, headers: dict[str, str], variables: dict[str, str], may: bool
) -> None:
    taken: list[Given] = []

    class Taker:
        def give(self, given: Given, size: object, seed: int, waiting: object) -> str:
            taken.append(given)
            return "own_f"

    monkeypatch.setattr(st, "get_option", {"server.address": address}.get)
    monkeypatch.setattr(ContextProxy, "headers", property(lambda _: headers))
    monkeypatch.setattr(client, "shared", Taker)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert permission.may_execute() is may
    if may:
        assert permission.give(GIVEN) == "own_f"
    else:
        with pytest.raises(RequestError, match="only on a server that others cannot reach, opened as http://localhost"):
            permission.give(GIVEN)
    assert taken == [GIVEN] * may


def test_the_server_listens_to_this_machine_alone() -> None:
    assert st.get_option("server.address") == "localhost"
