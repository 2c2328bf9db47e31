"""Measures with the code of one checkout: a request a line of JSON on standard input, an answer a line on its output.

`sharpness` starts it with the checkout's folder as working directory and on Python's path, so that the code is the
checkout's. It uses only what every checkout has.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import measure
from measure.engine.record import View
from measure.local import Local
from measure.run.encoding import encode
from measure.run.request import parse

# A strategy is quick if it takes at most so many times as long as the fastest: who is slower need not be in the first
# order.
_QUICK = 3.0


def compare(local: Local, workload: str, size: dict[str, int], strategies: Any, file: str) -> list[float]:
    """One comparison, written to ``file``: seconds until each quick strategy had a figure, rough or not; until the
    verdict; until the end, which the process peaks make later."""
    seen_s: dict[str, float] = {}
    verdict_s: list[float] = []
    begun_s = time.perf_counter()

    def look(view: View) -> None:
        at_s = time.perf_counter() - begun_s
        for item in view.run.measurements:
            # Before version 6 of the analysis, rough latencies were the view's.
            has_rough = getattr(item, "rough_s", None) or item.strategy in getattr(view, "rough_s", {})
            if item.latency is not None or has_rough:
                seen_s.setdefault(item.strategy, at_s)
        # After the last turn everything is done, until a process peak is measured.
        if view.run.verdict and set(view.stages.values()) <= {"done", "process peak"}:
            verdict_s.append(at_s)

    run, _ = local.measure(parse({"workload": workload, "size": size, "strategies": strategies}), look)
    end_s = time.perf_counter() - begun_s
    if run.status in ("interrupted", "cancelled"):
        raise RuntimeError(f"{workload} was {run.status}: {run.stop_reason}")
    Path(file).write_bytes(encode(run))
    took_s = {item.strategy: item.latency.median_s for item in run.measurements if item.latency and not item.twin_of}
    quick = [slug for slug, seconds in took_s.items() if seconds <= _QUICK * min(took_s.values())]
    return [max(seen_s.get(slug, end_s) for slug in quick), [*verdict_s, end_s][0], end_s]


def main() -> None:
    if not Path(str(measure.__file__)).is_relative_to(Path.cwd()):
        raise SystemExit(f"{measure.__file__} is not the code in {Path.cwd()}")
    # What anybody else prints is no answer.
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        local = Local("a benchmark")
        try:
            local.host()
            for line in sys.stdin:
                print(json.dumps(compare(local, **json.loads(line))), file=answers, flush=True)
        finally:
            local.close()


if __name__ == "__main__":
    main()
