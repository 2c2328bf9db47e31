"""The choice of the launcher that starts subjects on this platform."""

import os
import sys
from pathlib import Path

from measure.engine.fresh_launcher import FreshLauncher
from measure.engine.host_launcher import HostLauncher
from measure.engine.launcher import Launcher
from measure.engine.no_launcher import NoLauncher
from workloads import places


def launcher(log_path: Path, delay_s: float = 0.0) -> Launcher:
    """Return the kind of launcher that this platform allows; ``MAPBENCH_START=fresh`` or ``fork`` chooses by hand.

    ``delay_s``: how long a host's start may wait for somebody to need it. macOS has `fork`, but its system libraries
    may abort in a forked child; Windows has none. A viewer has a launcher that starts nothing.
    """
    if places.viewer():
        return NoLauncher()
    chosen = os.environ.get("MAPBENCH_START") or ("fork" if sys.platform.startswith("linux") else "fresh")
    return HostLauncher(log_path, delay_s) if chosen == "fork" else FreshLauncher()
