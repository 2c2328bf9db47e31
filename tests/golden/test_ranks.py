"""The same samples give the same figures, ranks and crossings: those of the frozen run files, of every kind.

A change of the method changes ``analysis.version`` and these figures (`python -m tests.golden.renew`).
"""

import json
from typing import Any

from tests.golden import present
from tests.golden.renew import differences, golden
from tests.golden.test_run_files import FILES


def derived(whole: dict[str, Any]) -> dict[str, Any]:
    """What is computed of a run or a point, but for sentences."""
    items = {item["strategy"]: {"latency": item["latency"], "break_even": item["break_even"]}
             for item in whole["measurements"] if item["latency"]}  # fmt: skip
    made = {"ranking": whole["ranking"], "control": whole["control"], "measurements": items}
    made["points"] = [derived(point) for point in whole.get("points", [])]
    made["crossovers"] = [{**each, "none": each["none"] is not None} for each in whole.get("crossovers", [])]
    made["fits"] = [{name: value for name, value in fit.items() if name != "note"} for fit in whole.get("fits", [])]
    return {name: figures for name, figures in made.items() if figures}


def figures() -> dict[str, Any]:
    """File → what is derived of its samples."""
    return {path.name: derived(present.recompute(json.loads(path.read_bytes()))) for path in FILES}


def test_the_same_samples_give_the_same_figures_and_ranks() -> None:
    assert differences(golden("ranks"), figures(), 1e-6) == []
