"""One fresh process of a script as it is copied: prints the seconds that a call takes. Nothing of Mapbench is used."""

import importlib.util
import sys
import time
import timeit

import numpy as np

# Calls before the first sample; a sample is of calls in a row that take so long; samples are taken for a while, and
# there are at least so many.
_WARM_S, _SAMPLE_S, _SAMPLING_S, _LEAST = 0.3, 0.003, 0.6, 5
# Other programs make samples longer, never shorter: the lower quartile.
_QUANTILE = 0.25


def main() -> None:
    spec = importlib.util.spec_from_file_location("copied", sys.argv[1])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    timer = timeit.Timer(lambda: module.strategy(module.elems))
    timer.timeit(1)  # the first call traces and compiles
    quickest_s, begun_s = timer.timeit(1), time.perf_counter()
    while time.perf_counter() < begun_s + _WARM_S:
        quickest_s = min(quickest_s, timer.timeit(1))
    calls = max(1, round(_SAMPLE_S / quickest_s))
    samples_s: list[float] = []
    begun_s = time.perf_counter()
    while len(samples_s) < _LEAST or time.perf_counter() < begun_s + _SAMPLING_S:
        samples_s.append(timer.timeit(calls) / calls)
    print(float(np.quantile(samples_s, _QUANTILE)))


if __name__ == "__main__":
    main()
