"""The limits of a server that strangers use, read from the environment in one place."""

import ipaddress
import os
import re
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from typing import Any

from workloads import places

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
PROXIES = "MAPBENCH_TRUSTED_PROXIES"
METRICS = "MAPBENCH_METRICS"
NO_DASK = "Dask is needed, which is not installed here: pip install distributed"


class SettingError(ValueError):
    """A setting makes no sense: the message names it, the value that came in, and what is valid."""


_DAY_S = 86_400


def _limit(hosted: int, least: int, most: int) -> Any:
    """A limit that only a hosted server has by default; a setting is valid from ``least`` to ``most``."""
    return field(default=None, metadata={"hosted": hosted, "least": least, "most": most})


@dataclass(frozen=True)
class Limits:
    """The limits of a server; None: none. The setting of a field is ``MAPBENCH_`` and its name in capitals."""

    # A comparison, from its start to its end; a sweep, or a run of claims; what is asked for one comparison.
    run_s: int | None = _limit(60, 10, _DAY_S)
    sweep_s: int | None = _limit(300, 10, _DAY_S)
    budget_s: int | None = _limit(30, 1, _DAY_S)
    # Of a run. A workload has 66 strategies at most, without options; a process alone takes 120 MiB.
    most_threads: int | None = _limit(16, 1, 1_024)
    most_strategies: int | None = _limit(80, 1, 100_000)
    memory_mib: int | None = _limit(2_048, 256, 2**24)
    most_cells: int | None = _limit(600, 2, 1_000_000)  # of a sweep: strategies × points
    # Going or waiting at a time.
    session_runs: int | None = _limit(1, 1, 1_000)
    address_runs: int | None = _limit(3, 1, 1_000)
    queue_length: int | None = _limit(30, 1, 10_000)
    address_day_s: int | None = _limit(1_800, 10, _DAY_S)  # measured, from midnight to midnight UTC
    recent_s: int | None = _limit(3_600, 0, 30 * _DAY_S)  # so old may a run be that answers an equal request
    store_mib: int | None = _limit(2_048, 16, 2**24)  # runs that are kept, with their artifacts
    upload_mib: int | None = _limit(16, 1, 80)  # a run file from elsewhere

    @property
    def memory_bytes(self) -> int | None:
        return None if self.memory_mib is None else self.memory_mib * 2**20

    @property
    def store_bytes(self) -> int | None:
        return None if self.store_mib is None else self.store_mib * 2**20


def proxies() -> tuple[Network, ...]:
    """The networks of the proxies that are believed about who asks. Raises `SettingError`."""
    text = os.environ.get(PROXIES, "")
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        needed = "addresses or networks with commas between them are needed, as 127.0.0.1, 10.0.0.0/8"
        raise SettingError(f"{PROXIES}={text!r} is not valid: {needed}") from None


def metrics() -> tuple[str, int] | None:
    """The address and the port at which metrics are answered; None where they are not set. Raises `SettingError`."""
    text = os.environ.get(METRICS, "").strip()
    if not text:
        return None
    address, _, port = text.rpartition(":")
    try:
        host = str(ipaddress.ip_address(address.strip("[]")))
        if not 0 < int(port) < 2**16:
            raise ValueError(port)
    except ValueError:
        needed = "an address of this machine and a port are needed, as 127.0.0.1:9464"
        raise SettingError(f"{METRICS}={text!r} is not valid: {needed}") from None
    return host, int(port)


def frame_ancestors() -> str:
    """The sites that may show this server in a frame, beside itself. Raises `SettingError`."""
    return _text(
        "MAPBENCH_FRAME_ANCESTORS",
        r"[!-+\--:<-~ ]*",  # no comma and no semicolon, which would end the directive
        "sites with spaces between them are needed, as https://example.org",
    )


def token() -> str:
    """The token that unlocks code of a person's own; empty: a random one. Raises `SettingError`."""
    return _text("MAPBENCH_TOKEN", r"(?:[!-~]{16,})?", "at least 16 letters, digits or signs are needed", quote=False)


def _text(variable: str, form: str, needed: str, *, quote: bool = True) -> str:
    text = os.environ.get(variable, "").strip()
    if not re.fullmatch(form, text):
        raise SettingError(f"{variable}{f'={text!r}' if quote else ''} is not valid: {needed}")
    return text


def scheduler() -> str:
    """The address of Dask's scheduler, by which other machines measure; empty: none do. Raises `SettingError`."""
    form = r"(?:(?:tcp|tls)://[\w.\[\]:-]+:\d+)?"
    address = _text("MAPBENCH_SCHEDULER", form, "the address of a Dask scheduler is needed, as tcp://127.0.0.1:8786")
    if address and find_spec("distributed") is None:
        raise SettingError(f"MAPBENCH_SCHEDULER={address!r} is not valid: {NO_DASK}")
    return address


def check() -> None:
    """Read all settings, so that a wrong one is said before anything is started. Raises `SettingError`."""
    limits()
    proxies()
    metrics()
    frame_ancestors()
    token()
    scheduler()


def limits() -> Limits:
    """The limits of this server: those that are set, and on a hosted one the defaults of the others. Raises
    `SettingError`."""
    return Limits(**{one.name: _read(f"MAPBENCH_{one.name.upper()}", **one.metadata) for one in fields(Limits)})


def _read(variable: str, hosted: int, least: int, most: int) -> int | None:
    text = os.environ.get(variable, "").strip()
    if not text:
        return hosted if places.hosted() else None
    if not re.fullmatch(r"[0-9]{1,18}", text) or not least <= int(text) <= most:
        raise SettingError(f"{variable}={text!r} is not valid: a whole number from {least} to {most} is needed")
    return int(text)
