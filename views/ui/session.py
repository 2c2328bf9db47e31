"""The visitor of a page: whose runs are, what they are counted by, and which time it is there.

At home nobody is told from anybody; a hosted server knows its visitors again by a cookie, which holds a random token
and nothing else.
"""

import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from measure import hosting
from measure.admission import NOBODY, Visitor
from views.ui import look
from workloads import places

COOKIE = "mapbench_visitor"
_COOKIE_S = 180 * 86_400
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_LOOPBACK: Address = ipaddress.IPv4Address("127.0.0.1")
_MOST_HOPS = 16
# Addresses are known by this server alone, for as long as it lives.
_KEY = secrets.token_bytes(32)
# The session of all visitors that have neither a cookie nor an address.
_NO_COOKIE = "no cookie"
# Whoever has one IPv6 address has a network of them.
_IPV6_BITS = 64


def visitor() -> Visitor:
    if not places.hosted():
        return NOBODY
    address = address_of(st.context.ip_address, st.context.headers.get_all("X-Forwarded-For"))
    if address:
        address = hmac.new(_KEY, address.encode(), "sha256").hexdigest()
    token = st.context.cookies.get(COOKIE, "")
    if is_token(token):
        owner = hashlib.sha256(token.encode()).hexdigest()
        return Visitor(owner, owner, address)
    # A browser without cookies keeps its runs until it reloads, and counts as one with others like it at its address.
    own = st.session_state.setdefault("visitor", secrets.token_hex(32))
    return Visitor(own, address or _NO_COOKIE, address)


def may(owner: str) -> bool:
    """True if this visitor may end, explain and delete a run of this owner."""
    who = visitor()
    return who == NOBODY or who.owner == owner


def is_token(text: str) -> bool:
    return bool(re.fullmatch("[0-9a-f]{32}", text))


def is_secure(connection: HTTPConnection) -> bool:
    """True if the browser speaks TLS, with this server or with a proxy before it: its cookies are to stay there."""
    return "https" in (connection.url.scheme, connection.headers.get("x-forwarded-proto", ""))


class Cookie:
    """Gives a token to each browser that asks for a page of a hosted server and has none. It comes with the page's
    HTML, as no script of Streamlit can set one; no script of a page can read it, and no other site sends it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = HTTPConnection(scope) if scope["type"] == "http" and places.hosted() else None
        if connection is None or is_token(connection.cookies.get(COOKIE, "")):
            await self._app(scope, receive, send)
            return
        marks = f"Max-Age={_COOKIE_S}; Path=/; HttpOnly; SameSite=Lax" + "; Secure" * is_secure(connection)

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.append("set-cookie", f"{COOKIE}={secrets.token_hex(16)}; {marks}")
            await send(message)

        await self._app(scope, receive, with_cookie)


def address_of(peer: str | None, forwarded: Sequence[str]) -> str:
    """Return the address of who asks, as `source` does. ``forwarded``: headers of that name."""
    hops = [hop for hop in ",".join(forwarded).split(",") if hop.strip()]
    return source(peer, hops[-_MOST_HOPS:], hosting.proxies())


def source(peer: str | None, forwarded: Sequence[str], trusted: Sequence[hosting.Network]) -> str:
    """Return the address, or for IPv6 the network, of who asks; empty where that may be the address of a proxy, which
    all visitors have in common. ``peer``: the other end of the connection as the web server tells it;
    ``forwarded``: what proxies say of theirs, in their order; ``trusted``: who is believed."""
    hops = [_parsed(hop) for hop in forwarded]
    at = _parsed(peer or "") or _LOOPBACK
    # The web server believes whoever connects from this machine, and tells what that forwards. Here only those are
    # believed that the operator has named.
    if at == next((hop for hop in reversed(hops) if hop != _LOOPBACK), None):
        at = _LOOPBACK
    for hop in reversed(hops):
        if hop is None or not _is_in(at, trusted):
            break
        at = hop
    if at.is_loopback or _is_in(at, trusted) or (hops and not trusted):
        return ""
    return str(at if at.version == 4 else ipaddress.ip_network((at, _IPV6_BITS), strict=False))


def _is_in(address: Address, networks: Sequence[hosting.Network]) -> bool:
    return any(address in network for network in networks)


def _parsed(text: str) -> Address | None:
    """Return an address as proxies write it, with or without brackets and a port; None where it is none."""
    match = re.fullmatch(r"\s*(?:\[([^]]*)\](?::\d*)?|([^:]*):\d*|(.*?))\s*", text)
    try:
        address = ipaddress.ip_address(next(filter(None, match.groups()), "") if match else "")
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if address.version == 6 else address


def allowed(limits: hosting.Limits) -> tuple[str, str]:
    """The limits of a hosted server, as Markdown: the line that most visitors need, and all of them."""

    def mib(value: int | None) -> str:
        return f"{value / 1024:g} GiB" if value and value % 256 == 0 else f"{value or 0:,} MiB"

    runs = "1 run" if limits.session_runs == 1 else f"{limits.session_runs} runs"
    run, day = look.duration(limits.run_s), look.duration(limits.address_day_s)
    everything = {
        "A comparison": f"{run} from start to end, {look.duration(limits.budget_s)} of it as its time budget",
        "A sweep, or claims": f"{look.duration(limits.sweep_s)}, {limits.most_cells} cells (strategies × points)",
        "Any run": f"{limits.most_strategies} strategies, {limits.most_threads} threads, "
        f"{mib(limits.memory_mib)} of memory",
        "Going or waiting": f"{runs} of yours, {limits.address_runs} of your address, {limits.queue_length} of all",
        "In a day": f"{day} of measuring for an address, until midnight UTC",
        "An equal request": f"answered by a run of the last {look.duration(limits.recent_s)}, if there is one",
        "What is kept": f"{mib(limits.store_mib)} of runs, then the oldest go; a file to import has "
        f"{mib(limits.upload_mib)} at most",
    }
    line = f"This demo: {runs} at a time, {run} each, {day} a day"
    return line, "\n".join(f"- **{name}**: {words}" for name, words in everything.items())


# --- times of day ----------------------------------------------------------------------------------------------------


def local(time: str) -> str:
    """An ISO 8601 time in the reader's zone, to the minute; a text that is none as it is."""
    try:
        moment = datetime.fromisoformat(time)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.astimezone(ZoneInfo(zone())).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return time[:16].replace("T", " ")


def since(time: str | None) -> str:
    """How long ago an ISO 8601 time with its zone was, coarse: 40 s, 3 min."""
    try:
        passed_s = (datetime.now(UTC) - datetime.fromisoformat(time or "")).total_seconds()
    except (ValueError, TypeError):
        return look.MISSING
    return look.duration(passed_s if passed_s < 60 else passed_s // 60 * 60)


def zone() -> str:
    """The name of the reader's zone, as the browser has it; UTC where that is not one of this machine's."""
    try:
        return ZoneInfo(st.context.timezone or "UTC").key
    except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        return "UTC"
