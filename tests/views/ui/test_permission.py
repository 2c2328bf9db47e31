"""Code of a visitor's own is executed for who has the token of this server, whatever page a visitor was drawn."""

import contextlib
import re
from unittest import mock

import pytest
import streamlit as st
from streamlit.runtime.context import ContextProxy

from measure import client
from measure.run.request import RequestError
from tests.browser import ROOT
from views.ui import permission
from workloads.functions import Given


def test_code_is_executed_for_who_has_the_token_unless_the_operator_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    name, value = permission.cookie()
    own, others = {name: value}, ({}, {name: ""}, {name: "0" * len(value)}, {name: value + "é"}, {f"{name}1": value})
    for address, cookies, variables, may in (
        *((address, own, {}, True) for address in ("localhost", "127.0.0.1", "::1")),
        *(("localhost", cookies, {}, False) for cookies in others),
        # Others reach the server.
        *((address, own, {}, False) for address in (None, "0.0.0.0", "example.org")),
        # Who starts the server has the last word, but on a hosted one and on a viewer.
        ("0.0.0.0", {}, {"OWN_CODE": "1"}, True),
        ("localhost", own, {"OWN_CODE": "0"}, False),
        *(("localhost", own, {"OWN_CODE": "1", name: "1"}, False) for name in ("HOSTED", "VIEWER")),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(st, "get_option", {"server.address": address, "server.port": 8501}.get)
            patch.setattr(ContextProxy, "cookies", property(lambda _, cookies=cookies: cookies))
            patch.setattr(client, "shared", taker := mock.Mock())
            for variable, content in variables.items():
                patch.setenv(f"MAPBENCH_{variable}", content)
            with contextlib.nullcontext() if may else pytest.raises(RequestError):
                permission.give(Given(code="", function="f", elems="x"))
            assert taker().give.called is permission.may_execute() is may, (address, cookies, variables)
    assert permission.token() not in value, "which servers on other ports have sent to them"


def test_code_of_pages_is_handed_over_where_permission_is_checked_and_nowhere_else() -> None:
    sources = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "views").rglob("*.py")}
    given = [name for name, text in sources.items() if re.search(r"(shared\(\)|client)\.give\(", text)]
    assert given == ["permission.py"]


def test_the_server_listens_to_this_machine_alone() -> None:
    assert st.get_option("server.address") == "localhost"
