"""One fresh process of a strategy's script: prints seconds per call as a visit of Mapbench gives them, as JSON."""

import json
import math
import sys
from pathlib import Path

from measure.statistics.levels import log_quartile
from measure.subject.roles import load
from measure.subject.timing import Clock


def main() -> None:
    module = load(Path(sys.argv[1]).read_text(encoding="utf-8"), "strategy")
    clock = Clock(module.strategy, module.elems, lambda: None)
    clock.call()  # the first call traces and compiles
    samples = [seconds for sampled in clock.samples() for seconds in sampled.seconds]
    print(json.dumps(math.exp(log_quartile(samples))))


if __name__ == "__main__":
    main()
