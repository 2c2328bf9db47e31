"""Writes what the golden tests compare with anew, from the code as it is: `python -m tests.golden.renew`.

Only where another behaviour is meant: the difference that git shows is what changes for users. By hand are written
``refused.txt`` and the links of ``links.json``; ``store.sql`` is a frozen database.
"""

import json
import math
import os
import tempfile
from typing import Any

from tests.browser import ROOT

FOLDER = ROOT / "tests/data/golden"


def golden(name: str) -> Any:
    """What was written of this name."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def differences(then: Any, now: Any, tolerance: float = 0.0, path: str = "$") -> list[str]:
    """The paths at which two documents differ, numbers by more than this relatively."""
    if isinstance(then, dict) and isinstance(now, dict):
        pairs = [(f".{name}", then.get(name, ...), now.get(name, ...)) for name in {**then, **now}]
    elif isinstance(then, list | tuple) and isinstance(now, list | tuple) and len(then) == len(now):
        pairs = [(f"[{place}]", *pair) for place, pair in enumerate(zip(then, now, strict=True))]
    elif isinstance(then, float) and isinstance(now, float):
        # An end of an interval near zero is the difference of larger figures.
        same = math.isclose(then, now, rel_tol=tolerance, abs_tol=1e-4 * tolerance)
        return [] if same else [f"{path} was {then!r} and is {now!r}"]
    else:
        how = "is new" if then is ... else "is lost" if now is ... else f"was {then!r:.60} and is {now!r:.60}"
        return [] if then == now else [f"{path} {how}"]
    return [each for key, *pair in pairs for each in differences(*pair, tolerance, path + key)]


def main() -> None:
    os.environ["MAPBENCH_HOME"] = tempfile.mkdtemp()  # where nobody has workloads of their own
    from tests.golden import test_command_line, test_links, test_ranks, test_run_files, test_scripts

    for name, made in (
        ("fields", test_run_files.fields()),
        ("scripts", test_scripts.digests()),
        ("options", test_command_line.options()),
        ("columns", test_command_line.columns()),
        ("links", test_links.links()),
        ("ranks", test_ranks.figures()),
        ("python", test_scripts.signatures()),
    ):
        text = json.dumps(made, indent=1, ensure_ascii=False)
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
