"""Probes: how fast this device moves bytes, multiplies, and starts an op.

They run in a process of their own, on the device and with the threads of the case. A probe is to bound what a strategy
can reach, so each takes the best of a few ways to do the same, and of several samples of each.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from measure.machine import control_groups
from measure.run.roofline import Rates, Work

# Larger working sets are as slow as the largest: it is beyond the caches. On a GPU no smaller one is probed, for there
# an op that takes no longer than its launch shows the pace of launches, and so small a case is bounded by these.
MOST_BYTES, _LEAST_BYTES = 2**28, 2**13
# A case that reads this many times as much as it writes is probed by reading alone, and the other way round.
_ONE_SIDED = 2
# Sides of matrices, up to where one product would take longer than this.
SIDES = (512, 768, 1_024, 2_048, 4_096, 8_192)
_LONGEST_PRODUCT_S = 0.015
# Of samples, for each way. What uses several threads needs some 20 ms until they have spread over the processors.
_BANDWIDTH_S, _DISPATCH_S, _ARITHMETIC_S = 0.03, 0.005, 0.045
# Samples are as long as calls in a row need for the clock not to count, and on a GPU for the wait at the end, which
# takes some 20 µs.
_SAMPLE_S, _SAMPLE_OF_GPU_S = 0.3e-3, 3e-3
_LEAST_SAMPLES, _MOST_CALLS = 3, 1_000

Call = Callable[[], Any]


def measure(work: Work, device: str, synchronise: Callable[[], None]) -> Rates:
    """The rates that the limit of a case with this work needs. ``device`` is TensorFlow's name for it here;
    ``synchronise`` waits until it is done."""
    import tensorflow as tf

    on_cpu = device.startswith("CPU")
    sample_s = _SAMPLE_S if on_cpu else _SAMPLE_OF_GPU_S

    def quickest_s(budget_s: float, calls: Iterable[Call]) -> float:
        return min(least_s(call, budget_s, sample_s, synchronise) for call in calls)

    with tf.device(device):
        moved = min(MOST_BYTES, max(_LEAST_BYTES, work.read_bytes + work.written_bytes)) if on_cpu else MOST_BYTES
        bytes_per_s = moved / quickest_s(_BANDWIDTH_S, _passes(work, moved, with_numpy=on_cpu))
        dtype, flops_per_s = work.dtype if tf.as_dtype(work.dtype).is_floating else "float32", 0.0
        for side in SIDES:
            flops = 2 * side**3
            if flops_per_s and flops / flops_per_s > _LONGEST_PRODUCT_S:
                break
            matrix = tf.ones((side, side), dtype)
            products = [partial(tf.matmul, matrix, matrix)]
            flops_per_s = max(flops_per_s, flops / quickest_s(_ARITHMETIC_S, products))
        number, negative = tf.constant(1.0), tf.function(tf.negative, autograph=False)
        op_s = quickest_s(_DISPATCH_S, [lambda: tf.negative(number)])
        call_s = quickest_s(_DISPATCH_S, [lambda: negative(number)])
    return Rates(bytes_per_s=bytes_per_s, flops_per_s=flops_per_s, op_s=op_s, call_s=call_s)


def least_s(call: Call, budget_s: float, sample_s: float, synchronise: Callable[[], None]) -> float:
    """Seconds per call of the quickest sample in ``budget_s``, of calls in a row for at least ``sample_s``."""
    call()  # what the first call alone has to do
    synchronise()
    quickest_s, calls, samples, end_s = math.inf, 1, 0, time.perf_counter() + budget_s
    while samples < _LEAST_SAMPLES or time.perf_counter() < end_s:
        start_s = time.perf_counter()
        for _ in range(calls):
            call()
        synchronise()
        quickest_s = min(quickest_s, (time.perf_counter() - start_s) / calls)
        calls = max(calls, min(_MOST_CALLS, int(sample_s / max(quickest_s, 1e-9))))
        samples += 1
    return quickest_s


def _passes(work: Work, moved: int, *, with_numpy: bool) -> Iterator[Call]:
    """Ways to move so many bytes: by an op of TensorFlow's, and by NumPy on one thread and on all."""
    import tensorflow as tf

    reads = work.read_bytes >= _ONE_SIDED * work.written_bytes
    writes = not reads and work.written_bytes >= _ONE_SIDED * work.read_bytes
    length = moved // 4 if reads or writes else moved // 8
    source, shape, one = tf.fill([length], 1.0), tf.constant([length]), tf.constant(1.0)  # where they stay
    yield lambda: tf.reduce_sum(source) if reads else tf.fill(shape, one) if writes else tf.negative(source)
    if not with_numpy:
        return
    array, other = np.ones(length, np.float32), np.ones(0 if reads or writes else length, np.float32)

    def by_numpy(part: slice) -> Any:
        if reads:
            return np.dot(array[part], array[part])
        return array[part].fill(1) if writes else np.copyto(other[part], array[part])

    yield lambda: by_numpy(slice(length))
    threads = tf.config.threading.get_intra_op_parallelism_threads() or len(control_groups.processors())
    ends = [length * part // threads for part in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        yield lambda: list(pool.map(by_numpy, map(slice, ends, ends[1:])))
