"""The permission to execute code that a visitor's browser sends."""

import ipaddress
import os

import streamlit as st

from workloads import places

# Set by a proxy in front of the server: then somebody else's machine may be the one that asks.
_OF_PROXIES = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via")


def may_execute() -> bool:
    """True if this visitor's code may be executed here: never on a hosted server or a viewer; as ``MAPBENCH_OWN_CODE``
    says, where it is set; else where the server listens to this machine alone, without a proxy."""
    if places.hosted() or places.viewer():
        return False
    if chosen := os.environ.get("MAPBENCH_OWN_CODE", ""):
        return chosen.lower() not in ("0", "false", "no")
    return _is_this_machine(st.get_option("server.address")) and not any(
        name in st.context.headers for name in _OF_PROXIES
    )


def _is_this_machine(address: str | None) -> bool:
    """True for the name or an address of the loopback interface; a server without an address listens to all."""
    if not address:
        return False
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
