"""The limit: whether the probes find what the device can do, and how near strategies come to it.

``python -m tests.benchmarks.limit`` prints each probe beside an independent measurement of the same: copies in NumPy on
one and on all cores at three working sets, and the best of many matrix products, by TensorFlow with and without XLA.
``--large [WORKLOAD …]``: the best strategy of each workload, in all its variants, at a large size over its limit, as
the app times it and with another allocator. ``--grid [WORKLOAD …]``: all strategies at the default and at the large
size; none may be faster than its limit without a sentence. ``--dtype`` takes another than each workload's default.
"""

import argparse
import concurrent.futures
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

import workloads
from measure.engine.bench import Settings
from measure.engine.race import Rules
from measure.judge import limit
from measure.machine import processor, system
from measure.model.request import Request
from measure.model.roofline import Rates, Work
from measure.model.run import Measurement, Run
from measure.subject.messages import Spec
from strategies import script
from tests import engine
from tests.benchmarks import common
from tests.benchmarks.common import Figure, Problem, say

WITHIN = 0.15
MIB = 2**20
# In a core's second-level cache, in the last level, in memory.
WORKING_SETS = (MIB, 16 * MIB, 256 * MIB)
SIDES = (128, 256, 384, 512, 768, 1_024, 1_536, 2_048)
DTYPES = ("float32", "float64", "bfloat16")
NEED, AIM = 1.5, 1.25
# Sizes at which the bytes or the arithmetic of a call are worth far more than its dispatch. Any other workload has
# its default size.
LARGE: dict[str, dict[str, int]] = {
    "image_sqrt": {"batch": 32, "height": 512, "width": 512},
    "image_sqrt_uint8": {"batch": 32, "height": 512, "width": 512},
    "outer_product": {"batch": 50, "side": 32},
    "polynomial": {"batch": 20_000_000},
    "square": {"batch": 20_000_000},
    "trig_exp": {"batch": 4_000_000},
    "repeat_sum": {"batch": 4_000, "repeats": 1_000},
    "python_sum": {"batch": 10_000_000, "terms": 4},
    "outer_reduce": {"batch": 10_000},
    "per_example_gradients": {"batch": 4_000, "features": 4_096},
    "batch_jacobian": {"batch": 4_000, "features": 64, "hidden": 64, "outputs": 16},
    "dp_sgd": {"batch": 8_000, "features": 512, "hidden": 64},
    "gradient_through_map": {"batch": 64, "width": 32_768},
    "matmul_chain": {"batch": 64, "side": 256},
    "attention": {"batch": 256, "length": 64, "width": 64},
    "branch": {"batch": 300, "width": 65_536},
    "variable_shape": {"batch": 100, "width": 40_000},
    "top_k": {"batch": 10_000, "width": 1_024},
    "random": {"batch": 100, "draws": 40_000},
    "counter": {"batch": 2_000, "width": 8_192},
    "inner_while": {"batch": 100, "width": 40_000},
    "pixel_loop": {"batch": 5_000, "height": 64, "width": 64},
}
# The same of variants that need others: by the workload and the value of its option.
LARGE_VARIANTS: dict[tuple[str, Any], dict[str, int]] = {
    ("per_example_gradients", "mlp"): {"batch": 1_000, "features": 1_024},
    ("per_example_gradients", "cnn"): {"batch": 1_000, "features": 1_024},
}
# Makes TensorFlow allocate by its own pool.
_POOL = "TF_CPU_ALLOCATOR_USE_BFC"
AS_TIMED, POOLED = "as timed", "with TensorFlow's pool"
QUICK = Rules(contender=2, most=2, most_per_s=0.0, behind=1)


@dataclass(frozen=True)
class Variant(Problem):
    """A case of a variant of a workload, in a dtype of its own where one is named."""

    options: Mapping[str, Any] = field(default_factory=dict)
    dtype: str | None = None

    def __str__(self) -> str:
        chosen = [*(f"{name}={value}" for name, value in self.options.items()), *filter(None, (self.dtype,))]
        return " ".join([super().__str__(), *chosen])

    def request(self, strategies: str | Sequence[str] = "default", **more: Any) -> Request:
        more |= {"dtype": self.dtype} if self.dtype else {}
        return super().request(strategies, workload_options=dict(self.options), **more)


def variants(names: Sequence[str], dtype: str | None = None, *, default: bool = False) -> Iterator[Variant]:
    """Every variant of these workloads (of all, where none is named) at its large or at its default size; without
    those that do not have the ``dtype``."""
    for name in names or workloads.names():
        workload = workloads.get(name)
        if dtype is not None and dtype not in workload.dtypes:
            continue
        others = [(option.name, value) for option in workload.options for value in option.values or ()
                  if value != option.default]  # fmt: skip
        for options in ({}, *({option: value} for option, value in others)):
            large = LARGE_VARIANTS.get((name, *options.values()), LARGE.get(name, {}))
            yield Variant(name, {} if default else large, options, dtype)


_PRODUCTS = """
import json, sys, time
import tensorflow as tf
best = {}
for dtype in sys.argv[1].split(","):
    for side in map(int, sys.argv[2].split(",")):
        matrix = tf.ones((side, side), dtype)
        for way in (tf.matmul, tf.function(tf.matmul, jit_compile=True)):
            way(matrix, matrix)
            least, end = float("inf"), time.perf_counter() + 0.25
            while time.perf_counter() < end:
                start = time.perf_counter()
                way(matrix, matrix)
                least = min(least, time.perf_counter() - start)
            best[dtype] = max(best.get(dtype, [0, 0]), [2 * side**3 / least, side])
print(json.dumps(best))
"""


def best_products() -> dict[str, tuple[float, int]]:
    """FLOP/s of the best matrix product of each dtype, and its side."""
    command = [sys.executable, "-c", _PRODUCTS, ",".join(DTYPES), ",".join(map(str, SIDES))]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=quiet).stdout
    return {dtype: tuple(best) for dtype, best in json.loads(printed.splitlines()[-1]).items()}


def best_copy(working_set: int) -> float:
    """Bytes read and written per second by NumPy's copy, on one core or on all of them, whichever is quicker."""
    import numpy as np

    cores = max(1, int(processor.granted(system.ROOT)))
    source, target = np.ones(working_set // 8, np.float32), np.empty(working_set // 8, np.float32)
    parts = [slice(len(source) * number // cores, len(source) * (number + 1) // cores) for number in range(cores)]

    def copy(part: slice) -> None:
        np.copyto(target[part], source[part])

    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        ways: list[Callable[[], Any]] = [lambda: copy(slice(None)), lambda: list(pool.map(copy, parts))]
        least_s = min(_least_s(way) for way in ways)
    return 2 * source.nbytes / least_s


def _least_s(call: Callable[[], Any], budget_s: float = 0.3) -> float:
    call()
    least_s, end = float("inf"), time.perf_counter() + budget_s
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        least_s = min(least_s, time.perf_counter() - start)
    return least_s


def probe(launcher: Any, work: Work) -> tuple[Rates, float]:
    """Return what the probes of a run find, in a subject of their own as there, and the seconds that it took."""
    begun = time.perf_counter()
    (said,) = engine.talk(launcher, [Spec(role="probes", script=script.build_settings("CPU:0"), work=work)])
    seconds = time.perf_counter() - begun
    (rates,) = [message["rates"] for message in said.messages if message["event"] == "rates"]
    return msgspec.convert(rates, Rates), seconds


def probes() -> None:
    rows, furthest, longest_s = [], 0.0, 0.0

    def add(name: str, probed: float, reference: float, unit: str, about: str = "") -> None:
        nonlocal furthest
        # Of products the best that was found counts, and it may be the probe's.
        furthest = max(furthest, abs(probed / reference - 1) if unit == "GB/s" else 1 - probed / reference)
        rows.append(
            (name, f"{probed / 1e9:.1f} {unit}", f"{reference / 1e9:.1f} {unit}{about}", f"{probed / reference:.2f}")
        )

    with common.own_folders() as folder, engine.running_host(folder) as launcher:
        for size in WORKING_SETS:
            say(f"copies of {size // MIB} MiB")
            work = Work(read_bytes=size // 2, written_bytes=size // 2, flops=1)
            # In turn, so that both see the machine in the same state.
            probed, reference = 0.0, 0.0
            for _ in range(3):
                rates, seconds = probe(launcher, work)
                probed, reference = max(probed, rates.copy_bytes_per_s), max(reference, best_copy(size))
            longest_s = max(longest_s, seconds)
            add(f"copy, {size // MIB} MiB", probed, reference, "GB/s")
        say("matrix products")
        best = best_products()
        for dtype in DTYPES:
            work = Work(read_bytes=MIB, written_bytes=MIB, flops=1, dtype=dtype)
            probed = max(probe(launcher, work)[0].flops_per_s for _ in range(3))
            add(f"matrix product, {dtype}", probed, best[dtype][0], "GFLOP/s", f" at {best[dtype][1]}")
        rates, seconds = probe(
            launcher, Work(read_bytes=4_915_200, written_bytes=4_915_200, flops=1, functions={"sqrt": 1})
        )
    print(common.table(("probe", "found", "reference", "ratio"), rows))
    print(f"\nan eager op {1e6 * rates.op_s:.1f} µs, a call of a tf.function {1e6 * rates.call_s:.0f} µs\n")
    share = lambda value: f"{100 * value:.0f} %"  # noqa: E731
    print(common.figures([
        Figure("farthest probe from its reference", furthest, WITHIN, show=share),
        Figure("probes of image_sqrt at its default size", seconds, show=common.whole_seconds),
        Figure("probes at the largest working set", longest_s, show=common.whole_seconds),
    ]))  # fmt: skip


def timed(run: Run) -> list[Measurement]:
    right = [item for item in run.measurements if item.outcome == "ok" and item.latency and not item.twin_of]
    return sorted(right, key=lambda item: item.latency.median_s if item.latency else 0.0)


def multiples(item: Measurement) -> str:
    times = limit.multiple(item)
    return f"{times:.2f} ×" if times is not None else limit.note(item)


@contextlib.contextmanager
def pool() -> Iterator[None]:
    """Hosts that are started meanwhile have TensorFlow's own pool in place of oneDNN's and the C library's: whatever is
    freed stays in the process, pages and all."""
    os.environ[_POOL] = "true"
    try:
        yield
    finally:
        del os.environ[_POOL]


def rewrites_and_vectorised(case: Variant) -> str:
    """The strategies that a person who wants the last factor would take."""
    offered = workloads.get(case.workload).variant(case.options).rewrites
    wanted = {"batched": "batched", "numpy": "numpy_batched"}
    own = [slug for name, slug in wanted.items() if name in offered]
    return ",".join([*own, "vectorized_map.graph", "vectorized_map.xla"])


def large(cases: Sequence[Variant]) -> None:
    """The best of each case over its limit: as the app times it, and where TensorFlow has its own pool."""
    bound: dict[str, list[float]] = {AS_TIMED: [], POOLED: []}
    settings = Settings(rules=QUICK, process_peaks_s=0.0)
    with common.own_folders(), contextlib.ExitStack() as hosts:
        default = hosts.enter_context(common.engine(settings))
        with pool():
            pooled = hosts.enter_context(common.engine(settings))
        for case in cases:
            say(str(case))
            chosen = rewrites_and_vectorised(case)
            told = []
            for name, runner in zip(bound, (default, pooled), strict=True):
                run = common.compare(runner, case.request(chosen, budget_s=2.0))
                fastest = timed(run)
                if run.limit is None or not fastest:
                    told.append(f"{name} nothing")
                    continue
                if not told:
                    told += [limit.describe(run.limit), limit.fresh_pages(run)]
                told.append(f"{name} {fastest[0].strategy} {multiples(fastest[0])}")
                if run.limit.term == "memory-bound" and fastest[0].latency is not None:
                    bound[name].append(fastest[0].latency.median_s / run.limit.seconds)
            print(f"{case}: {'; '.join(filter(None, told))}", flush=True)
    print("", *judgements(bound), sep="\n")


def judgements(bound: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Say how many of the best multiples of memory-bound cases reach the aim, and how many miss what is needed, under
    each of the configurations that they were measured in."""
    for name, shares in bound.items():
        near, far = sum(share <= AIM for share in shares), sum(share > NEED for share in shares)
        yield f"memory-bound {name}: {len(shares)}, within {AIM} ×: {near}, beyond {NEED} ×: {far}"


def faults(run: Run) -> Iterator[str]:
    """Strategies with a figure below 1, or with neither a figure nor the sentence that stands in its place."""
    for item in timed(run):
        times, said = limit.multiple(item), limit.note(item)
        if run.limit is None:
            yield f"{run.request.workload} {item.strategy}: the run has no limit"
        elif times is None and not said:
            yield f"{run.request.workload} {item.strategy}: neither a figure nor a sentence"
        elif times is not None and (times < 1 or said or beats(item, run)):
            yield f"{run.request.workload} {item.strategy}: {times:.3f} × {said}".rstrip()


def beats(item: Measurement, run: Run) -> bool:
    """True if a strategy is faster than the limit by more than probes may be off."""
    assert run.limit is not None and item.latency is not None
    return item.latency.median_s < (1 - limit.RESOLUTION) * run.limit.seconds


def grid(cases: Sequence[Variant]) -> int:
    faulty: list[str] = []
    strategies = sentences = 0
    with common.own_folders(), common.engine(Settings(rules=QUICK, process_peaks_s=0.0)) as runner:
        for case in cases:
            say(str(case))
            run = common.compare(runner, case.request("default", budget_s=5.0))
            faulty += faults(run)
            for item in timed(run):
                strategies += 1
                if run.limit is not None and beats(item, run):
                    sentences += 1
                    share = item.latency.median_s / run.limit.seconds if item.latency else 0.0
                    print(f"  {item.strategy}: {share:.2f}: {limit.note(item)}", flush=True)
            best = next(iter(timed(run)), None)
            told = f"{best.strategy} {multiples(best)}" if best is not None else "nothing was timed"
            print(f"{case}: {limit.describe(run.limit) if run.limit is not None else 'no limit'}; {told}", flush=True)
    print(
        f"\n{len(cases)} cases, {strategies} strategies, {sentences} with a sentence; "
        f"a figure below 1, or none and no sentence: {len(faulty)}",
        *faulty,
        sep="\n",
    )
    return 1 if faulty else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", nargs="*", metavar="WORKLOAD")
    parser.add_argument("--grid", nargs="*", metavar="WORKLOAD")
    parser.add_argument("--dtype", help="of --large and --grid; without it each workload's default")
    arguments = parser.parse_args()
    common.start("How near to what the device can do")
    if arguments.grid is not None:
        both = [variants(arguments.grid, arguments.dtype, default=default) for default in (True, False)]
        return grid(list(itertools.chain(*both)))
    if arguments.large is not None:
        large(list(variants(arguments.large, arguments.dtype)))
    else:
        probes()
    return 0


if __name__ == "__main__":
    sys.exit(main())
