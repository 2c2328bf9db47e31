"""The permission to execute code that a visitor's browser sends."""

import ipaddress
import os
import re
from collections.abc import Callable, Mapping

import streamlit as st

from measure import client
from measure.run.request import RequestError
from measure.store.store import Snapshot
from workloads import places
from workloads.functions import Given

# Set by a proxy in front of the server: then somebody else's machine may be the one that asks.
_OF_PROXIES = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via")
# An IPv6 address in brackets, or a name or an IPv4 address; then perhaps a port.
_HOST = re.compile(r"(?:\[([0-9a-fA-F:]+)\]|([A-Za-z0-9.-]+))(?::\d*)?")


def may_execute() -> bool:
    """True if this visitor's code may be executed here: never on a hosted server or a viewer; as ``MAPBENCH_OWN_CODE``
    says, where it is set; else where the server listens to this machine alone, without a proxy, and was asked for by
    one of this machine's own names.

    A website in another tab can have its name resolve to this machine (DNS rebinding): then its pages may talk to the
    server, and ``Host`` holds the website's name.
    """
    if places.hosted() or places.viewer():
        return False
    if chosen := os.environ.get("MAPBENCH_OWN_CODE", ""):
        return chosen.lower() not in ("0", "false", "no")
    headers = st.context.headers
    host = _HOST.fullmatch(headers.get("Host", ""))
    return (
        _is_this_machine(st.get_option("server.address"))
        and host is not None
        and _is_this_machine(host[1] or host[2])
        and not any(name in headers for name in _OF_PROXIES)
    )


def _is_this_machine(name: str | None) -> bool:
    """True for the name or an address of the loopback interface; a server without an address listens to all."""
    try:
        return name is not None and (name.lower() == "localhost" or ipaddress.ip_address(name).is_loopback)
    except ValueError:
        return False


def give(
    given: Given, size: Mapping[str, int] | None = None, seed: int = 0,
    waiting: Callable[[Snapshot], None] | None = None,
) -> str:  # fmt: skip
    """Hand this visitor's code over to be executed (`Client.give`), and return its slug. RequestError where it cannot
    be measured, or this visitor may not have code executed: the editor may have been drawn for somebody else."""
    if not may_execute():
        raise RequestError(
            "code of yours can be run only on a server that others cannot reach, opened as http://localhost or "
            "http://127.0.0.1"
        )
    return client.shared().give(given, size, seed, waiting)
