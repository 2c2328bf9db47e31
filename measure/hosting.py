"""The limits of a server that strangers use, read from the environment in one place."""

import ipaddress
import os
import re
from dataclasses import dataclass, fields

from workloads import places

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
PROXIES = "MAPBENCH_TRUSTED_PROXIES"
METRICS = "MAPBENCH_METRICS"


class SettingError(ValueError):
    """A setting makes no sense: the message names it, the value that came in, and what is valid."""


@dataclass(frozen=True)
class Limits:
    """The limits of a server; None: none. The setting of a field is ``MAPBENCH_`` and its name in capitals."""

    run_s: int | None = None  # a comparison, from its start to its end
    sweep_s: int | None = None  # a sweep, or a run of claims
    budget_s: int | None = None  # asked for the latencies of a comparison
    most_threads: int | None = None
    most_strategies: int | None = None  # of a run
    memory_mib: int | None = None  # of a run
    most_cells: int | None = None  # of a sweep: strategies × points
    session_runs: int | None = None  # going or waiting at a time
    address_runs: int | None = None
    queue_length: int | None = None  # of all visitors
    address_day_s: int | None = None  # measured for an address, from midnight to midnight UTC
    recent_s: int | None = None  # so old at most is a run that answers an equal request
    store_mib: int | None = None  # runs that are kept, with their artifacts
    upload_mib: int | None = None  # a run file from elsewhere

    @property
    def store_bytes(self) -> int | None:
        return None if self.store_mib is None else self.store_mib * 2**20


@dataclass(frozen=True)
class _Setting:
    """The default of a hosted server, and from where to where a value is valid. ``of``: what is counted."""

    default: int
    least: int
    most: int
    of: str = ""


_DAY_S = 86_400
_SETTINGS = {
    "run_s": _Setting(60, 10, _DAY_S, "seconds"),
    "sweep_s": _Setting(300, 10, _DAY_S, "seconds"),
    "budget_s": _Setting(30, 1, _DAY_S, "seconds"),
    "most_threads": _Setting(16, 1, 1_024),
    "most_strategies": _Setting(80, 1, 100_000),  # a workload has 66 at most, without options
    "memory_mib": _Setting(2_048, 256, 2**24, "MiB"),  # a process alone takes 120
    "most_cells": _Setting(600, 2, 1_000_000),
    "session_runs": _Setting(1, 1, 1_000),
    "address_runs": _Setting(3, 1, 1_000),
    "queue_length": _Setting(12, 1, 10_000),
    "address_day_s": _Setting(1_800, 10, _DAY_S, "seconds"),
    "recent_s": _Setting(3_600, 0, 30 * _DAY_S, "seconds"),
    "store_mib": _Setting(2_048, 16, 2**24, "MiB"),
    "upload_mib": _Setting(16, 1, 80, "MiB"),
}
assert set(_SETTINGS) == {field.name for field in fields(Limits)}


def proxies() -> tuple[Network, ...]:
    """The networks of the proxies that are believed about who asks, as ``MAPBENCH_TRUSTED_PROXIES`` names them: with
    commas between addresses or networks. Raises `SettingError`."""
    text = os.environ.get(PROXIES, "")
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        raise SettingError(
            f"{PROXIES}={text!r} is not valid: addresses or networks with commas between them are needed, "
            "as 127.0.0.1, 10.0.0.0/8"
        ) from None


def metrics() -> tuple[str, int] | None:
    """The address and the port at which metrics are answered, as ``MAPBENCH_METRICS`` names them; None where it is not
    set. Raises `SettingError`."""
    text = os.environ.get(METRICS, "").strip()
    if not text:
        return None
    address, _, port = text.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 2**16 or not _is_address(address.strip("[]")):
        raise SettingError(
            f"{METRICS}={text!r} is not valid: an address of this machine and a port are needed, as 127.0.0.1:9464"
        )
    return address.strip("[]"), int(port)


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def check() -> None:
    """Read all settings, so that a wrong one is said before anything is started. Raises `SettingError`."""
    limits()
    proxies()
    metrics()


def limits() -> Limits:
    """The limits of this server: those that are set, and on a hosted one the defaults of the others. Raises
    `SettingError`."""
    return Limits(**{name: _read(name, setting) for name, setting in _SETTINGS.items()})


def _read(name: str, setting: _Setting) -> int | None:
    variable = f"MAPBENCH_{name.upper()}"
    text = os.environ.get(variable, "").strip()
    if not text:
        return setting.default if places.hosted() else None
    if not re.fullmatch(r"[0-9]{1,18}", text) or not setting.least <= int(text) <= setting.most:
        whole = f"a whole number of {setting.of}" if setting.of else "a whole number"
        raise SettingError(
            f"{variable}={text!r} is not valid: {whole} from {setting.least} to {setting.most} is needed"
        )
    return int(text)
