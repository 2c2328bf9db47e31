"""Probes: how fast this device moves bytes, multiplies, computes functions such as ``sin``, and starts an op.

They run in a process of their own, on the device and with the threads of the case. A probe is to bound what a strategy
can reach, so each takes the best of a few ways to do the same, and of several samples of each. Nothing here needs
TensorFlow before `measure` is called.

On a GPU an op that takes less than its launch shows the pace of launches. What is probed for bandwidth is therefore how
much longer twice the bytes take, of ops that run eagerly, back to back. Several in one graph would cost less each, but
could not be kept apart: grappler removes ``-(-x)``, folds what has constant factors and computes equal nodes once; XLA
fuses a chain over elements into one kernel that reads and writes memory once, whatever its length.
"""

import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from measure.machine import processor
from measure.model.roofline import Rates, Work

# Larger working sets are as slow as this one: it is beyond the caches.
MOST_BYTES = 2**28
_LEAST_BYTES = 2**13
# The caches of a GPU are larger, and its memory may move this much in the time of a few launches.
_MOST_BYTES_OF_GPU = 2**30
# Samples are as long as calls in a row need for the clock not to count, and on a GPU for the wait at the end, which
# takes some 20 µs.
_SAMPLE_S, SAMPLE_OF_GPU_S = 0.3e-3, 3e-3
_LEAST_SAMPLES = 3
_LEAST_S = 1e-9
# Ops in a row that take this many times as long as those on next to nothing are not waited for by the GPU: the next one
# is launched while it works.
_BEYOND_LAUNCHES = 1.5
# Of samples, for each way. What uses several threads needs some 20 ms until they have spread over the processors.
_BANDWIDTH_S, _DISPATCH_S, _ARITHMETIC_S, _FUNCTION_S = 0.03, 0.005, 0.045, 0.03
# The same for what uses one thread.
_ONE_THREAD_S = 0.005
# Sides of matrices, up to where one product would take longer than this.
SIDES = (512, 768, 1_024, 2_048, 4_096, 8_192)
_LONGEST_PRODUCT_S = 0.015
# In the cache of one core, and enough for several; a GPU has to be filled.
_NUMBERS, NUMBERS_OF_GPU = (2**15, 2**18), 2**24
# On a GPU a function by itself is as slow as its memory, so that many are put into one kernel.
_CHAIN = 16
# XLA's program on a CPU: results for each number, and what its samples may take beside compiling it, some 60 ms.
_AT_ONCE, _COMPILED_S = 4, 0.02
# How long each thread of a pool has to do before it is handed more, so that handing over does not count.
_TURN_S = 1e-3
_ENDS = (0.1, 1.4)


def measure(work: Work, device: str, synchronise: Callable[[], None]) -> Rates:
    """The rates that the limit of a case with this work needs. ``device`` is TensorFlow's name for it here;
    ``synchronise`` waits until it is done."""
    import tensorflow as tf

    dtype = work.dtype if tf.as_dtype(work.dtype).is_floating else "float32"
    on_cpu = device.startswith("CPU")
    clock = Stopwatch(synchronise, _SAMPLE_S if on_cpu else SAMPLE_OF_GPU_S)
    with tf.device(device):
        op_s, call_s = _dispatch(clock)
        copy, read, write = (_bandwidth if on_cpu else _bandwidth_of_gpu)(work, clock)
        return Rates(
            copy_bytes_per_s=copy,
            read_bytes_per_s=read,
            write_bytes_per_s=write,
            flops_per_s=_arithmetic(dtype, clock),
            functions_per_s={
                name: (function_rate if on_cpu else _function_of_gpu)(name, dtype, clock) for name in work.functions
            },
            op_s=op_s,
            call_s=call_s,
        )


@dataclass(frozen=True)
class Stopwatch:
    """A clock for calls in a row, at least ``sample_s`` of them in each sample; ``synchronise`` waits for their end."""

    synchronise: Callable[[], None]
    sample_s: float

    def least_s(self, ways: Iterable[Callable[[], Any]], budget_s: float) -> float:
        """Seconds per call of the quickest of these, each sampled for ``budget_s``."""
        least_s = math.inf
        for call in ways:
            call()  # what the first call alone has to do
            self.synchronise()
            calls = 1
            end, samples = time.perf_counter() + budget_s, 0
            while samples < _LEAST_SAMPLES or time.perf_counter() < end:
                start = time.perf_counter()
                for _ in range(calls):
                    call()
                self.synchronise()
                sample_s = time.perf_counter() - start
                least_s = min(least_s, sample_s / calls)
                calls = max(calls, min(1_000, int(self.sample_s / max(sample_s / calls, _LEAST_S))))
                samples += 1
        return least_s


def _dispatch(clock: Stopwatch) -> tuple[float, float]:
    import tensorflow as tf

    number = tf.constant(1.0)

    @tf.function(autograph=False)
    def call(number: Any) -> Any:
        return tf.negative(number)

    op_s = clock.least_s([lambda: tf.negative(number)], _DISPATCH_S)
    return op_s, clock.least_s([lambda: call(number)], _DISPATCH_S)


def _bandwidth(work: Work, clock: Stopwatch) -> tuple[float, float | None, float | None]:
    """Bytes per second of copying, and of reading or writing alone where the case does more of one of them."""
    import tensorflow as tf

    moved = min(MOST_BYTES, max(_LEAST_BYTES, work.read_bytes + work.written_bytes))
    array = np.ones(moved // 4, np.float32)
    half = array.size // 2
    source, target = array[:half], array[half : 2 * half]
    threads = _threads()
    with ThreadPoolExecutor(threads) as pool:

        def rate(count: int, by_tensorflow: Callable[[], Any], by_numpy: Callable[[slice], Any]) -> float:
            """Bytes per second of what goes over ``count`` numbers: in NumPy on one thread, and on all of them."""
            parts = [slice(count * part // threads, count * (part + 1) // threads) for part in range(threads)]
            ways = [by_tensorflow, lambda: by_numpy(slice(count)), lambda: list(pool.map(by_numpy, parts))]
            return count * array.itemsize / clock.least_s(ways, _BANDWIDTH_S)

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


def _bandwidth_of_gpu(work: Work, clock: Stopwatch) -> tuple[float, float | None, float | None]:
    """Measure what `_bandwidth` does, of a GPU, by ops that run eagerly: nothing folds or fuses these (see above)."""
    import tensorflow as tf

    moved = min(MOST_BYTES, max(_LEAST_BYTES, work.read_bytes + work.written_bytes))

    def rate(prepare: Callable[[int], Callable[[], Any]]) -> float:
        """Bytes per second of what ``prepare`` makes for a number of bytes."""

        def pass_s(count: int) -> float:
            return clock.least_s([prepare(max(1, count // 4))], _BANDWIDTH_S)

        return beyond_launches(pass_s, moved)

    def copying(numbers: int) -> Callable[[], Any]:
        source = tf.fill([max(1, numbers // 2)], 1.0)  # made on the GPU, where it stays
        return lambda: tf.negative(source)

    def reading(numbers: int) -> Callable[[], Any]:
        source = tf.fill([numbers], 1.0)
        return lambda: tf.reduce_sum(source, 0)

    def writing(numbers: int) -> Callable[[], Any]:
        shape, one = tf.constant([numbers]), tf.constant(1.0)
        return lambda: tf.fill(shape, one)

    copy = rate(copying)
    read = rate(reading) if work.read_bytes > work.written_bytes else None
    write = rate(writing) if work.written_bytes > work.read_bytes else None
    return copy, read, write


def beyond_launches(pass_s: Callable[[int], float], moved: int) -> float:
    """Bytes per second of a pass over ``moved`` bytes, without what a pass over next to nothing takes too.

    ``pass_s``: seconds of a pass over so many bytes, one of several in a row: a launch, or where that is longer, some
    fixed time with what the bytes take. Of two that are longer than a launch, the difference is that of the bytes
    alone. Where half of ``moved`` takes no longer than its launch, its own rate cannot be seen, nor does it matter, for
    dispatch bounds such a case: then it is that of the next larger working set that shows one.
    """
    launch_s = pass_s(_LEAST_BYTES)
    half_s = pass_s(moved // 2)
    while half_s < _BEYOND_LAUNCHES * launch_s and 2 * moved <= _MOST_BYTES_OF_GPU:
        half_s, moved = pass_s(moved), 2 * moved
    whole_s = pass_s(moved)
    if half_s < _BEYOND_LAUNCHES * launch_s:  # at least so fast, and more cannot be seen
        return moved / whole_s
    # What is fixed in a pass is between nothing and a launch, whatever the noise of two samples says.
    return moved / min(whole_s, max(2 * (whole_s - half_s), whole_s - launch_s))


def _arithmetic(dtype: str, clock: Stopwatch) -> float:
    """Multiplications and additions per second of the best matrix product."""
    import tensorflow as tf

    best = 0.0
    for side in SIDES:
        flops = 2 * side**3
        if best and flops / best > _LONGEST_PRODUCT_S:
            break
        matrix = tf.ones((side, side), dtype)
        best = max(best, flops / clock.least_s([lambda: tf.matmul(matrix, matrix)], _ARITHMETIC_S))  # noqa: B023
    return best


def function_rate(name: str, dtype: str, clock: Stopwatch) -> float:
    """Results per second of one of ``tf.math``'s functions on all threads: by TensorFlow's kernel, by a program of
    XLA's or by NumPy, whichever is the quickest here."""
    import tensorflow as tf

    function = getattr(tf.math, name)
    rates = [_by_xla(function, dtype, clock)]
    for count in _NUMBERS:
        numbers = _between(count, dtype)
        budget_s = _ONE_THREAD_S if count == min(_NUMBERS) else _FUNCTION_S
        rates.append(count / clock.least_s([lambda: function(numbers)], budget_s))  # noqa: B023
    # NumPy has its own functions for the wider types, and for several of these they are the quicker ones.
    if dtype in ("float32", "float64") and (ufunc := getattr(np, name, None)) is not None:
        rates.append(by_numpy(ufunc, dtype, _threads(), clock))
    return max(rates)


def _by_xla(function: Callable[[Any], Any], dtype: str, clock: Stopwatch) -> float:
    numbers = _between(max(_NUMBERS), dtype)
    program = in_one_program(function)
    return _AT_ONCE * max(_NUMBERS) / clock.least_s([lambda: program(numbers)], _COMPILED_S)


def in_one_program(function: Callable[[Any], Any]) -> Any:
    """A program of XLA's that computes a function several times for each number, which it reads once: what a call
    takes, and memory, count for the less. No result needs another's, so that a core can work on several at once."""
    import tensorflow as tf

    @tf.function(jit_compile=True, autograph=False)
    def program(numbers: Any) -> Any:
        return tf.add_n([function(numbers * (1 + step / 16)) for step in range(_AT_ONCE)])

    return program


def by_numpy(ufunc: Any, dtype: str, threads: int, clock: Stopwatch) -> float:
    """Results per second of a function of NumPy's, on one thread or on so many, whichever is quicker."""
    array = np.linspace(*_ENDS, min(_NUMBERS)).astype(dtype)
    pairs = [(array.copy(), np.empty_like(array)) for _ in range(threads)]
    alone_s = clock.least_s([lambda: ufunc(array, out=pairs[0][1])], _ONE_THREAD_S)
    if threads == 1:
        return array.size / alone_s
    passes = max(1, round(_TURN_S / alone_s))

    def turn(pair: tuple[Any, Any]) -> None:
        for _ in range(passes):
            ufunc(pair[0], out=pair[1])

    with ThreadPoolExecutor(threads) as pool:
        together_s = clock.least_s([lambda: list(pool.map(turn, pairs))], _FUNCTION_S)
    return array.size * max(1 / alone_s, threads * passes / together_s)


def _function_of_gpu(name: str, dtype: str, clock: Stopwatch) -> float:
    """Measure what `function_rate` does, of a GPU."""
    import tensorflow as tf

    function = getattr(tf.math, name)

    @tf.function(jit_compile=True, autograph=False)
    def chain(numbers: Any) -> Any:
        for _ in range(_CHAIN):
            numbers = function(numbers / 8)
        return numbers

    numbers = tf.fill([NUMBERS_OF_GPU], tf.cast(0.7, dtype))
    return _CHAIN * NUMBERS_OF_GPU / clock.least_s([lambda: chain(numbers)], _FUNCTION_S)


def _between(count: int, dtype: str) -> Any:
    """So many numbers for which every function is defined."""
    import tensorflow as tf

    return tf.cast(tf.constant(np.linspace(*_ENDS, count, dtype=np.float32)), dtype)


def _threads() -> int:
    import tensorflow as tf

    return tf.config.threading.get_intra_op_parallelism_threads() or processor.affinity()
