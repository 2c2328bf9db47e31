"""Probes: how fast this device moves bytes, multiplies, computes functions such as ``sin``, and starts an op.

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

from measure import processor
from measure.run import Struct

# Larger working sets are as slow as this one: it is beyond the caches.
MOST_BYTES = 2**28
_LEAST_BYTES = 2**13
# Samples are as long as calls in a row need for the clock, and on a GPU for the wait at the end, not to count.
_SAMPLE_S = 0.3e-3
_LEAST_SAMPLES = 3
# Of samples, for each way. What uses several threads needs some 20 ms until they have spread over the processors.
_BANDWIDTH_S, _DISPATCH_S, _ARITHMETIC_S, _FUNCTION_S = 0.03, 0.005, 0.045, 0.005
# Sides of matrices, up to where one product would take longer than this.
_SIDES = (512, 768, 1_024, 2_048, 4_096, 8_192)
_LONGEST_PRODUCT_S = 0.015
# In the cache of one core, and enough for several; a GPU has to be filled.
_NUMBERS, _NUMBERS_OF_GPU = (2**15, 2**18), 2**24
# On a GPU a function by itself is as slow as its memory, so that many are put into one kernel.
_CHAIN = 16


class Work(Struct, frozen=True, kw_only=True):
    """What one call asks of a device: bytes read (inputs and variables, each once) and written (outputs, once),
    floating-point operations, and results of functions such as ``sin``, by their names in ``tf.math``."""

    read_bytes: int
    written_bytes: int
    flops: int
    functions: dict[str, int] = {}
    dtype: str = "float32"


class Rates(Struct, frozen=True, kw_only=True):
    """What a device can do. Bytes per second are those of a working set as large as the case's: of a copy, what is
    read and what is written together; of reading and of writing alone, where the case does more of one than of the
    other. ``op_s``: an eager op on a number; ``call_s``: a call of a ``tf.function`` of one op."""

    copy_bytes_per_s: float
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    flops_per_s: float
    functions_per_s: dict[str, float] = {}
    op_s: float
    call_s: float


def measure(work: Work, device: str, synchronise: Callable[[], None]) -> Rates:
    """The rates that the limit of a case with this work needs. ``device`` is TensorFlow's name for it here;
    ``synchronise`` waits until it is done."""
    import tensorflow as tf

    dtype = work.dtype if tf.as_dtype(work.dtype).is_floating else "float32"
    on_cpu = device.startswith("CPU")
    with tf.device(device):
        op_s, call_s = _dispatch(synchronise)
        copy, read, write = _bandwidth(work, on_cpu, synchronise)
        return Rates(
            copy_bytes_per_s=copy,
            read_bytes_per_s=read,
            write_bytes_per_s=write,
            flops_per_s=_arithmetic(dtype, synchronise),
            functions_per_s={name: _function(name, dtype, on_cpu, synchronise) for name in work.functions},
            op_s=op_s,
            call_s=call_s,
        )


def _dispatch(synchronise: Callable[[], None]) -> tuple[float, float]:
    import tensorflow as tf

    number = tf.constant(1.0)

    @tf.function(autograph=False)
    def call(number: Any) -> Any:
        return tf.negative(number)

    op_s = _least_s([lambda: tf.negative(number)], synchronise, _DISPATCH_S)
    return op_s, _least_s([lambda: call(number)], synchronise, _DISPATCH_S)


def _bandwidth(work: Work, on_cpu: bool, synchronise: Callable[[], None]) -> tuple[float, float | None, float | None]:
    """Bytes per second of copying, and of reading or writing alone where the case does more of one of them."""
    import tensorflow as tf

    moved = min(MOST_BYTES, max(_LEAST_BYTES, work.read_bytes + work.written_bytes))
    array = np.ones(moved // 4, np.float32)
    half = array.size // 2
    source, target = array[:half], array[half : 2 * half]
    threads = tf.config.threading.get_intra_op_parallelism_threads() or processor.affinity()
    with ThreadPoolExecutor(threads) as pool:

        def rate(count: int, by_tensorflow: Callable[[], Any], by_numpy: Callable[[slice], Any]) -> float:
            """Bytes per second of what goes over ``count`` numbers: in NumPy on one thread, and on all of them."""
            ways = [by_tensorflow]
            if on_cpu:
                parts = [slice(count * each // threads, count * (each + 1) // threads) for each in range(threads)]
                ways += [lambda: by_numpy(slice(count)), lambda: list(pool.map(by_numpy, parts))]
            return count * array.itemsize / _least_s(ways, synchronise, _BANDWIDTH_S)

        tensor = tf.constant(source)
        copy = 2 * rate(half, lambda: tf.negative(tensor), lambda part: np.copyto(target[part], source[part]))
        read = write = None
        if work.read_bytes > work.written_bytes:
            whole = tf.constant(array)
            read = rate(array.size, lambda: tf.reduce_sum(whole), lambda part: np.dot(array[part], array[part]))
        elif work.written_bytes > work.read_bytes:
            shape, one = tf.constant([array.size]), tf.constant(1.0)
            write = rate(array.size, lambda: tf.fill(shape, one), lambda part: array[part].fill(1))
    return copy, read, write


def _arithmetic(dtype: str, synchronise: Callable[[], None]) -> float:
    """Multiplications and additions per second of the best matrix product."""
    import tensorflow as tf

    best = 0.0
    for side in _SIDES:
        flops = 2 * side**3
        if best and flops / best > _LONGEST_PRODUCT_S:
            break
        matrix = tf.ones((side, side), dtype)
        best = max(best, flops / _least_s([lambda: tf.matmul(matrix, matrix)], synchronise, _ARITHMETIC_S))  # noqa: B023
    return best


def _function(name: str, dtype: str, on_cpu: bool, synchronise: Callable[[], None]) -> float:
    """Results per second of one of ``tf.math``'s functions."""
    import tensorflow as tf

    function = getattr(tf.math, name)
    if not on_cpu:

        @tf.function(jit_compile=True, autograph=False)
        def chain(numbers: Any) -> Any:
            for _ in range(_CHAIN):
                numbers = function(numbers / 8)
            return numbers

        numbers = tf.fill([_NUMBERS_OF_GPU], tf.cast(0.7, dtype))
        return _CHAIN * _NUMBERS_OF_GPU / _least_s([lambda: chain(numbers)], synchronise, _FUNCTION_S)
    best = 0.0
    for count in _NUMBERS:
        tensor = tf.cast(tf.constant(np.linspace(0.1, 1.4, count, dtype=np.float32)), dtype)
        ways: list[Callable[[], Any]] = [lambda: function(tensor)]  # noqa: B023
        # NumPy has its own functions for the wider types, and for several of these they are the quicker ones.
        if dtype in ("float32", "float64") and (ufunc := getattr(np, name, None)) is not None:
            array = tensor.numpy()
            result = np.empty_like(array)
            ways.append(lambda: ufunc(array, out=result))  # noqa: B023
        best = max(best, count / _least_s(ways, synchronise, _FUNCTION_S))
    return best


def _least_s(ways: Iterable[Callable[[], Any]], synchronise: Callable[[], None], budget_s: float) -> float:
    """Seconds per call of the quickest of these, each sampled for ``budget_s``."""
    least_s = math.inf
    for call in ways:
        call()  # what the first call alone has to do
        synchronise()
        calls = 1
        end, samples = time.perf_counter() + budget_s, 0
        while samples < _LEAST_SAMPLES or time.perf_counter() < end:
            start = time.perf_counter()
            for _ in range(calls):
                call()
            synchronise()
            sample_s = time.perf_counter() - start
            least_s = min(least_s, sample_s / calls)
            calls = max(calls, min(1_000, int(_SAMPLE_S / max(sample_s / calls, 1e-9))))
            samples += 1
    return least_s
