"""Probes: how fast this device moves bytes, multiplies, and starts an op.

They run in a process of their own, on the device and with the threads of the case. A probe is to bound what a strategy
can reach, so each takes the best of a few ways to do the same, and of several samples of each. Nothing here needs
TensorFlow before `measure` is called.
"""

import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from measure.machine import processor
from measure.model.roofline import Rates, Work

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

    dtype = work.dtype if tf.as_dtype(work.dtype).is_floating else "float32"
    on_cpu = device.startswith("CPU")
    sample_s = _SAMPLE_S if on_cpu else _SAMPLE_OF_GPU_S

    def quickest_s(budget_s: float, *calls: Call) -> float:
        return min(least_s(call, budget_s, sample_s, synchronise) for call in calls)

    with tf.device(device), ThreadPoolExecutor(_threads()) as pool:
        number, negative = tf.constant(1.0), tf.function(tf.negative, autograph=False)
        moved = min(MOST_BYTES, max(_LEAST_BYTES, work.read_bytes + work.written_bytes)) if on_cpu else MOST_BYTES
        return Rates(
            bytes_per_s=moved / quickest_s(_BANDWIDTH_S, *_passes(work, moved, pool if on_cpu else None)),
            flops_per_s=_flops_per_s(dtype, quickest_s),
            op_s=quickest_s(_DISPATCH_S, lambda: tf.negative(number)),
            call_s=quickest_s(_DISPATCH_S, lambda: negative(number)),
        )


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


def _passes(work: Work, moved: int, pool: ThreadPoolExecutor | None) -> Iterable[Call]:
    """Ways to move so many bytes: by an op of TensorFlow's, and with a pool by NumPy on one thread and on all."""
    import tensorflow as tf

    count = moved // 4
    half = count // 2
    array = np.ones(count if pool else 0, np.float32)
    by_numpy: Callable[[slice], Any]
    if work.read_bytes >= _ONE_SIDED * work.written_bytes:
        source = tf.fill([count], 1.0)  # made on a GPU, where it stays
        yield lambda: tf.reduce_sum(source)
        by_numpy, length = lambda part: np.dot(array[part], array[part]), count
    elif work.written_bytes >= _ONE_SIDED * work.read_bytes:
        shape, one = tf.constant([count]), tf.constant(1.0)
        yield lambda: tf.fill(shape, one)
        by_numpy, length = lambda part: array[part].fill(1), count
    else:
        source = tf.fill([half], 1.0)
        yield lambda: tf.negative(source)
        by_numpy, length = lambda part: np.copyto(array[half:][part], array[:half][part]), half
    if pool is not None:
        threads = _threads()
        parts = [slice(length * part // threads, length * (part + 1) // threads) for part in range(threads)]
        yield lambda: by_numpy(slice(length))
        yield lambda: list(pool.map(by_numpy, parts))


def _flops_per_s(dtype: str, quickest_s: Callable[..., float]) -> float:
    """Multiplications and additions per second of the best matrix product."""
    import tensorflow as tf

    best = 0.0
    for side in SIDES:
        flops = 2 * side**3
        if best and flops / best > _LONGEST_PRODUCT_S:
            break
        matrix = tf.ones((side, side), dtype)
        best = max(best, flops / quickest_s(_ARITHMETIC_S, lambda: tf.matmul(matrix, matrix)))  # noqa: B023
    return best


def _threads() -> int:
    import tensorflow as tf

    return tf.config.threading.get_intra_op_parallelism_threads() or processor.affinity()
