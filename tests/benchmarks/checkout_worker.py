"""Measures with the code of one checkout: a request a line of JSON on standard input, an answer a line on its output.

`sharpness` starts it with the checkout's folder as working directory and on Python's path, so that the code is the
checkout's. It uses only what every checkout has.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import measure
from measure.engine.record import View
from measure.local import Local
from measure.model.run_file import decode, encode
from measure.statistics.intervals import ratio
from measure.statistics.levels import shown_levels
from tests.benchmarks import common

# A strategy is quick if it takes at most so many times as long as the fastest: who is slower need not be in the first
# order.
_QUICK = 3.0


class Watch:
    """Notes the seconds after the request when a figure of each strategy is there to be seen, a rough one or its
    latency, and the milestones."""

    def __init__(self) -> None:
        self.milestones, self.seen_s = common.Milestones(), dict[str, float]()

    def look(self, at_s: float, view: View, ended: bool) -> None:
        self.milestones.look(at_s, view, ended)
        for item in view.run.measurements:
            if item.latency is not None or item.strategy in view.rough_s:
                self.seen_s.setdefault(item.strategy, at_s)


def compare(local: Local, workload: str, size: dict[str, int], strategies: Any, file: str) -> list[float | None]:
    """One comparison, written to ``file``: seconds until each quick strategy had a figure, the verdict, the end."""
    watch = Watch()
    run = common.compare(local, common.Problem(workload, size).request(strategies), watch.look)
    Path(file).write_bytes(encode(run))
    took_s = {item.strategy: item.latency.median_s for item in run.measurements if item.latency and not item.twin_of}
    quick = [slug for slug, seconds in took_s.items() if seconds <= _QUICK * min(took_s.values())]
    first_s = max((watch.seen_s[slug] for slug in quick), default=None)
    return [first_s, watch.milestones.verdict_s, watch.milestones.end_s]


def ratios(file: str, reference: str) -> dict[str, Any]:
    """The latencies of the run in ``file`` over that of ``reference``, each with its interval; none without it."""
    run = decode(Path(file).read_bytes())
    levels, shown = shown_levels(run), [item.strategy for item in run.measurements if item.latency and not item.twin_of]
    if reference not in shown:
        return {}
    found = {
        slug: ratio(levels[slug], levels[reference], run.analysis.confidence) for slug in shown if slug != reference
    }
    # JSON has no infinite numbers.
    least, most = sys.float_info.min, sys.float_info.max
    return {
        slug: {"ratio": each.ratio, "low": max(each.low, least), "high": min(each.high, most)}
        for slug, each in found.items()
    }


def main() -> None:
    if not Path(str(measure.__file__)).is_relative_to(Path.cwd()):
        raise SystemExit(f"{measure.__file__} is not the code in {Path.cwd()}")
    # What anybody else prints is no answer.
    with os.fdopen(os.dup(1), "w") as answers, common.own_folders(), common.engine() as local:
        os.dup2(2, 1)
        for line in sys.stdin:
            asked = json.loads(line)
            answer = ratios(**asked) if "reference" in asked else compare(local, **asked)
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
