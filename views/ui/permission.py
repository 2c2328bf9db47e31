"""The permission to execute code that a visitor's browser sends.

As in Jupyter: a random token stands in the address that is printed as the server starts, and a browser that has opened
it has a cookie. Pages open without; other accounts of the machine, and websites, have neither.
"""

import functools
import hashlib
import hmac
import ipaddress
import os
import secrets
from collections.abc import Callable, Mapping
from typing import Literal

import streamlit as st

from measure import client, hosting
from measure.run.request import RequestError
from measure.store.store import Snapshot
from workloads import places
from workloads.functions import Given

LOCKED = "open the address with the token that the terminal printed when this server was started"


@functools.cache
def token() -> str:
    """The token of this server, for as long as it lives. Raises `SettingError`."""
    return hosting.token() or secrets.token_urlsafe(24)


def policy() -> Literal["nobody", "everybody", "token"]:
    """Return whose code may be executed here: on a hosted server or a viewer nobody's; else as ``MAPBENCH_OWN_CODE``
    says; where it says nothing, that of whoever has the token if the server listens to this machine alone."""
    if places.hosted() or places.viewer():
        return "nobody"
    if chosen := os.environ.get("MAPBENCH_OWN_CODE", ""):
        return "nobody" if chosen.lower() in ("0", "false", "no") else "everybody"
    return "token" if is_this_machine(st.get_option("server.address")) else "nobody"


def may_execute() -> bool:
    name, value = cookie()
    allowed = policy()
    return allowed == "everybody" or (allowed == "token" and _equal(st.context.cookies.get(name, ""), value))


def is_token(text: str) -> bool:
    return _equal(text, token())


def cookie() -> tuple[str, str]:
    """Name and value of the cookie of a browser that has opened the address with the token. Browsers send it to servers
    on other ports of this machine too, and whoever has it may execute code: so it is gone when the browser is closed.
    """
    return f"mapbench_token_{st.get_option('server.port')}", hashlib.sha256(token().encode()).hexdigest()


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def is_this_machine(name: str | None) -> bool:
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
            f"your code is locked: {LOCKED}" if policy() == "token" else "no code of yours is run on this server"
        )
    return client.shared().give(given, size, seed, waiting)
