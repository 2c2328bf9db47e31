"""The place of files of a person's own, the switch that says that none of them may be used, and that of a viewer."""

import os
from pathlib import Path

# The folder that holds the packages: what a process of its own is started in.
PROJECT = Path(__file__).resolve().parent.parent


def home() -> Path:
    """Return the folder of everything that is kept: ``MAPBENCH_HOME``, or ``.mapbench`` in the user's home."""
    return Path(os.environ.get("MAPBENCH_HOME") or Path.home() / ".mapbench")


def hosted() -> bool:
    """True if strangers use this server (``MAPBENCH_HOSTED=1``): then no file but the project's own is executed."""
    return _is_on("MAPBENCH_HOSTED")


def viewer() -> bool:
    """True if this server shows runs and measures none (``MAPBENCH_VIEWER=1``): it needs no TensorFlow."""
    return _is_on("MAPBENCH_VIEWER")


def _is_on(switch: str) -> bool:
    return os.environ.get(switch, "").lower() not in ("", "0", "false", "no")
