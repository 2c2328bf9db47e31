"""The visitor of a page: whose runs are, and what they are counted by. At home nobody is told from anybody."""

import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Sequence

import streamlit as st

from measure import hosting
from measure.admission import NOBODY, Visitor
from measure.hosting import Network
from workloads import places

# Set with the page's HTML, since no script of Streamlit can set one; it outlives a reload and a restart.
COOKIE = "mapbench_visitor"
_TOKEN = re.compile(r"[0-9a-f]{32}")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_LOOPBACK: Address = ipaddress.IPv4Address("127.0.0.1")
_MOST_HOPS = 16
# Addresses are known by this server alone, for as long as it lives.
_KEY = secrets.token_bytes(32)
# Whoever has one IPv6 address has a network of them.
_IPV6_BITS = 64


def visitor() -> Visitor:
    """Return who looks at this page."""
    if not places.hosted():
        return NOBODY
    # That of this machine stands for one that is not told.
    forwarded = ",".join(st.context.headers.get_all("X-Forwarded-For")).split(",")[-_MOST_HOPS:]
    address = source(st.context.ip_address, forwarded, hosting.proxies())
    address = hmac.new(_KEY, address.encode(), "sha256").hexdigest()
    token = st.context.cookies.get(COOKIE, "")
    if is_token(token):
        owner = hashlib.sha256(token.encode()).hexdigest()
        return Visitor(owner, owner, address)
    # A browser without cookies has its runs until it reloads, and is not told from others of its address.
    own = st.session_state.setdefault("visitor", secrets.token_hex(32))
    return Visitor(own, address, address)


def may(owner: str) -> bool:
    """True if this visitor may end, explain and delete a run of this owner."""
    who = visitor()
    return who == NOBODY or who.owner == owner


def new_token() -> str:
    """Return the value of a cookie, which nobody can guess."""
    return secrets.token_hex(16)


def is_token(text: str) -> bool:
    """True if a cookie has the form of a token."""
    return bool(_TOKEN.fullmatch(text))


def source(peer: str | None, forwarded: Sequence[str], trusted: Sequence[Network]) -> str:
    """Return the address, or for IPv6 the network, of who asks. ``peer``: the other end of the connection as the web
    server tells it; ``forwarded``: what proxies say of theirs, in their order; ``trusted``: who is believed."""
    hops = [_parsed(hop) for hop in forwarded]
    at = _parsed(peer or "") or _LOOPBACK
    # The web server believes whoever connects from this machine, and tells what that forwards. Here only those are
    # believed that the operator has named.
    if at == next((hop for hop in reversed(hops) if hop != _LOOPBACK), None):
        at = _LOOPBACK
    for hop in reversed(hops):
        if hop is None or not any(at in network for network in trusted):
            break
        at = hop
    return str(at if at.version == 4 else ipaddress.ip_network((at, _IPV6_BITS), strict=False))


def _parsed(text: str) -> Address | None:
    """Return an address as proxies write it, with or without brackets and a port; None where it is none."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if address.version == 6 else address
