"""Visitors: known by a cookie, and counted by an address that trusted proxies have told."""

from types import SimpleNamespace

import pytest
import streamlit as st
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from measure import hosting
from measure.admission import NOBODY, Visitor
from tests.asgi import ask
from views.ui import session
from views.ui.session import Cookie

TOKEN = "0123456789abcdef0123456789abcdef"


def test_the_address_is_that_of_the_nearest_one_who_is_not_trusted(monkeypatch):
    for peer, forwarded, trusted, source in (
        ("198.51.100.7", [], "", "198.51.100.7"),
        # Whoever connects from this machine, and tells of nobody, stands before all visitors.
        (None, [], "", ""),
        ("127.0.0.1", [], "127.0.0.1", ""),
        # Whoever is not among those that were named is not believed: that would be a new address for each request.
        ("198.51.100.7", ["203.0.113.9"], "10.0.0.0/8", "198.51.100.7"),
        # Where none was named, it may be a proxy, whose address all visitors have.
        ("198.51.100.7", ["203.0.113.9"], "", ""),
        # The web server believes this machine, and tells what it forwards: not so here, unless it is named.
        ("203.0.113.9", ["203.0.113.9"], "", ""),
        ("203.0.113.9", ["203.0.113.9"], "127.0.0.1", "203.0.113.9"),
        # Of a chain, the last one that is not a proxy of ours; what stands before it anybody may have written.
        ("10.0.0.5", ["1.1.1.1", "203.0.113.9", "10.1.2.3"], "10.0.0.0/8", "203.0.113.9"),
        ("10.0.0.5", ["203.0.113.9:4711"], "10.0.0.0/8", "203.0.113.9"),
        ("10.0.0.5", ["garbage"], "10.0.0.0/8", ""),
        # Whoever has one IPv6 address has the network.
        ("10.0.0.5", ["[2001:db8:1:2::9]:443"], "10.0.0.0/8", "2001:db8:1:2::/64"),
        ("::ffff:198.51.100.7", [], "", "198.51.100.7"),
    ):
        monkeypatch.setenv("MAPBENCH_TRUSTED_PROXIES", trusted)
        assert session.source(peer, forwarded, hosting.proxies()) == source, (peer, forwarded, trusted)


@pytest.fixture
def visit(monkeypatch):
    """``visit(cookie, address, *forwarded)``: the visitor of a new session with them."""
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    monkeypatch.delenv("MAPBENCH_TRUSTED_PROXIES", raising=False)

    def visitor(cookie: str | None = None, address: str = "198.51.100.7", *forwarded: str) -> Visitor:
        headers = SimpleNamespace(get_all=lambda name: forwarded)
        cookies = {} if cookie is None else {session.COOKIE: cookie}
        monkeypatch.setattr(st, "context", SimpleNamespace(cookies=cookies, headers=headers, ip_address=address))
        monkeypatch.setattr(st, "session_state", {})
        return session.visitor()

    return visitor


def test_a_cookie_makes_the_same_visitor_in_every_session_and_another_cookie_another_one(visit, monkeypatch):
    first = visit(TOKEN)
    assert visit(TOKEN) == first and session.may(first.owner)
    other = visit(TOKEN[::-1])
    assert other.owner != first.owner and other.address == first.address and not session.may(first.owner)
    assert not session.may(""), "what nobody has started is nobody's"
    monkeypatch.delenv("MAPBENCH_HOSTED")
    assert session.visitor() == NOBODY and session.may("somebody"), "at home nobody is told from anybody"
    assert TOKEN not in repr(first) and "198.51.100.7" not in repr(first), "neither stands in what is stored"


def test_without_a_cookie_runs_are_the_sessions_own_and_it_counts_as_its_address(visit):
    for cookie in (None, "", TOKEN.upper(), TOKEN + "0", "<script>"):
        first, second = visit(cookie), visit(cookie)
        assert first.owner != second.owner and first.session == second.session == first.address
        assert visit(cookie, "198.51.100.8").session != first.session
    # Behind a proxy that was not named all addresses are one.
    first, second = visit(None, "198.51.100.7", "203.0.113.9"), visit(None, "198.51.100.8", "203.0.113.10")
    assert first.address == second.address == "" != first.session == second.session and first.owner != second.owner
    assert len({visit(cookie, "198.51.100.7", "203.0.113.9").session for cookie in (None, TOKEN, TOKEN[::-1])}) == 3


def set_by(answered: Response | None = None, scheme: str = "http", **headers: str) -> str:
    """The cookie that an answer sets, a page's where none is named."""
    served = Cookie(answered or HTMLResponse("<p>text</p>"))
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return ask(served, "/", headers=sent, scheme=scheme).headers.get("set-cookie", "")


def test_a_page_of_a_hosted_server_sets_a_cookie_that_no_script_reads_and_no_other_site_sends(monkeypatch):
    monkeypatch.delenv("MAPBENCH_HOSTED", raising=False)
    assert not set_by(), "at home there is none"
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    first, *marks = set_by().split("; ")
    assert session.is_token(first.removeprefix(f"{session.COOKIE}="))
    assert marks[1:] == ["Path=/", "HttpOnly", "SameSite=Lax"]
    assert first not in set_by(), "another browser has another token"
    for told in (set_by(scheme="https"), set_by(x_forwarded_proto="https")):
        assert told.endswith("; Secure"), "behind TLS it stays there"
    assert not set_by(cookie=f"{session.COOKIE}={TOKEN}"), "who has a token keeps it"
    assert set_by(cookie=f"{session.COOKIE}=forged; other=1") and not set_by(PlainTextResponse("ok"))


def test_a_time_is_in_the_readers_zone_which_is_named(monkeypatch):
    for zone, told, named in (
        ("Asia/Kolkata", "2025-01-15 15:00", "Asia/Kolkata"),
        ("America/New_York", "2025-01-15 04:30", "America/New_York"),
        (None, "2025-01-15 09:30", "UTC"),
        ("../etc", "2025-01-15 09:30", "UTC"),
    ):
        monkeypatch.setattr(st, "context", SimpleNamespace(timezone=zone))
        assert [session.local(f"2025-01-15T09:30:12{ending}") for ending in ("Z", "+00:00", "")] == [told] * 3
        assert session.zone() == named
    assert session.local("some day") == "some day", "a text that is no time stays"
