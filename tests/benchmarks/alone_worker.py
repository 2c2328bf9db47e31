"""One fresh process of a strategy's script: prints seconds per call as a visit of Mapbench gives them, as JSON."""

import math
import sys
import time
from pathlib import Path

import msgspec

from measure.statistics.levels import log_quartile
from measure.subject.roles import load
from measure.subject.timing import Clock
from tests.benchmarks.sharp_figures import Alone


def main() -> None:
    module = load(Path(sys.argv[1]).read_text(encoding="utf-8"), "strategy")
    clock = Clock(module.strategy, module.elems, lambda: None)
    clock.call()  # the first call traces and compiles
    begun_s, used_s = time.perf_counter(), time.process_time()
    samples = [seconds for sampled in clock.samples() for seconds in sampled.seconds]
    cores = (time.process_time() - used_s) / (time.perf_counter() - begun_s)
    print(msgspec.json.encode(Alone(math.exp(log_quartile(samples)), cores)).decode())


if __name__ == "__main__":
    main()
