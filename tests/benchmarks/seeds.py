"""The best that is offered against the techniques of well-known texts; and what saves memory against the rest.

``python -m tests.benchmarks.seeds [--only WORKLOAD …] [--budget 8]``; about six minutes.

The texts are five pages on speed and memory of ``tf.map_fn``: «How can I optimize tf.map_fn for speed?», «Why is
TensorFlow's map_fn slower than Python for loops?», «Can TensorFlow's map_fn be executed on a GPU?», «How can I reduce
TensorFlow memory consumption when using tf.map_fn?», and the documentation of ``tf.vectorized_map``. For each of their
workloads, `TECHNIQUES` has what they do with it, in the form that runs today (what ran in a session is in graph mode),
and each technique inside a ``tf.function`` too.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import strategies
from measure.engine.bench import Settings
from measure.model import text
from measure.model.run import Measurement, Run
from measure.runner import Runner
from measure.statistics import intervals
from measure.statistics.intervals import Ratio
from measure.statistics.levels import levels_of
from tests.benchmarks import common
from tests.benchmarks.common import Problem, say

_LOOP = ("loop.eager", "numpy.eager")
_MAP_FN = ("map_fn.eager", "map_fn.graph")
_VECTORIZED = ("vectorized_map.eager", "vectorized_map.graph")
_WHOLE = ("batched.eager", "batched.graph")
_COMPILED = ("loop_compiled.eager", "loop_compiled.eager?jit_compile=true")
_DATASET = ("dataset.eager", "dataset.graph", "dataset.graph?jit_compile=true")

TECHNIQUES = {
    "pixel_loop": (*_MAP_FN, *_VECTORIZED),
    "image_sqrt": (*_MAP_FN, *_VECTORIZED),
    "image_sqrt_uint8": (*_MAP_FN, *_VECTORIZED),
    "square": (*_LOOP, *_MAP_FN),
    "trig_exp": (*_LOOP, *_COMPILED, *_MAP_FN),
    "python_sum": _MAP_FN,
    "polynomial": (*_MAP_FN, *_WHOLE),
    "repeat_sum": (*_DATASET, *_MAP_FN),
    "outer_product": _VECTORIZED,
    "per_example_gradients": _VECTORIZED,
}

# Workloads with large temporaries, at sizes where there is something to save; the rewrite that maps in parts, or None
# where a mapper that leaves the function as it is does. In graph mode: where XLA compiles the whole batch, it often
# makes no temporaries at all.
THRIFTY = {"outer_reduce": None, "repeat_sum": None, "dp_sgd": "accumulate"}
SIZES = {"dp_sgd": {"batch": 4_096}}
MODE = "graph"
# It may be this much slower than the fastest mapper that leaves the function as it is, and take this share of the
# memory of tf.vectorized_map.
SLOWER = 1.10
SHARE = 1 / 10
# What is forecast to take longer is left out, unless a text does it: unrolled loops, which are not the fastest either.
LONGEST_FIRST_CALL_S = 3.0


@dataclass(frozen=True)
class Compared:
    """One strategy's latency over another's in one run."""

    run: Run
    slug: str
    against: str

    @property
    def ratio(self) -> Ratio:
        levels = levels_of(self.run.measurements).by_slug
        return intervals.ratio(levels[self.slug], levels[self.against], self.run.analysis.confidence)

    @property
    def resolution(self) -> float:
        return self.run.control.resolution if self.run.control else 0.0

    def resolved(self) -> str:
        return text.percent(self.resolution) if self.run.control else "not known"

    def shown(self) -> str:
        ratio = self.ratio
        return f"{ratio.ratio:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def latency_s(item: Measurement) -> float:
    return item.latency.median_s if item.latency else float("inf")


def fastest(run: Run, among: Iterable[str] | None = None) -> str:
    """The fastest of the right strategies."""
    chosen = [item for item in run.measurements if item.outcome == "ok" and item.latency and not item.twin_of]
    if among is not None:
        chosen = [item for item in chosen if item.strategy in set(among)]
    return min(chosen, key=latency_s).strategy


def quick(case: Problem, words: str | Sequence[str]) -> list[str]:
    """Those strategies that need not be waited for."""
    request = case.request(words)
    estimates = common.forecast_of(request).per_strategy
    return [slug for slug in request.strategies if estimates[slug].first_call_s <= LONGEST_FIRST_CALL_S]


def of_seeds(runner: Runner, workload: str, budget_s: float) -> tuple[str, ...]:
    """A row of the first table."""
    case = Problem(workload, {})
    seeds = TECHNIQUES[workload]
    run = common.compare(runner, case.request([*quick(case, "default"), *seeds], budget_s=budget_s))
    compared = Compared(run, fastest(run), fastest(run, seeds))
    # Slower only where the interval says so, beyond what the run can tell.
    slower = compared.ratio.low > 1 + compared.resolution
    return (
        *(workload, size(run), timed(run, compared.against), timed(run, compared.slug)),
        *(compared.shown(), compared.resolved(), "SLOWER" if slower else "not slower"),
    )


def of_parts(runner: Runner, workload: str, budget_s: float) -> tuple[str, ...]:
    """A row of the second table."""
    case = Problem(workload, SIZES.get(workload, {}))
    unchanged = {each.slug for each in strategies.mappers() if each.rewrite is None and each.element == "element"}
    rewrite, whole = THRIFTY[workload], f"vectorized_map.{MODE}"
    others = [slug for slug in quick(case, MODE) if strategies.parse(slug).mapper in unchanged]
    offered = [f"{rewrite}.{MODE}"] if rewrite else others
    run = common.compare(runner, case.request(list(dict.fromkeys([*others, *offered])), budget_s=budget_s))
    most_bytes = SHARE * peak_bytes(run, whole)
    measured = [slug for slug in offered if run.measurement(slug).memory is not None]
    thrifty = fastest(run, [slug for slug in measured if peak_bytes(run, slug) <= most_bytes] or offered)
    compared = Compared(run, thrifty, fastest(run, others))
    share = peak_bytes(run, thrifty) / peak_bytes(run, whole)
    holds = compared.ratio.low <= SLOWER and share <= SHARE
    return (
        *(
            workload,
            size(run),
            timed(run, compared.against),
            timed(run, thrifty),
            compared.shown(),
            compared.resolved(),
        ),
        *(text.size(peak_bytes(run, each)) for each in (whole, thrifty)),
        *(f"1/{1 / share:.0f}", "holds" if holds else "DOES NOT HOLD"),
    )


def timed(run: Run, slug: str) -> str:
    return f"{slug} {text.seconds(latency_s(run.measurement(slug)))}"


def peak_bytes(run: Run, slug: str) -> int:
    memory = run.measurement(slug).memory
    assert memory is not None, slug
    return memory.peak_bytes


def size(run: Run) -> str:
    return " ".join(f"{name}={value}" for name, value in run.request.size.items())


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = list(dict.fromkeys([*TECHNIQUES, *THRIFTY]))
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="WORKLOAD", help="only these")
    parser.add_argument("--budget", type=float, default=8.0, metavar="SECONDS", help="of timing for each run (8)")
    arguments = parser.parse_args()
    common.start("The best that is offered against well-known techniques, and what saves memory")
    seeds, parts = [], []
    with common.own_folders(), common.engine(Settings(probes=False, process_peaks_s=0.0)) as runner:
        for workload in arguments.only:
            if workload in TECHNIQUES:
                seeds.append(of_seeds(runner, workload, arguments.budget))
                say(" | ".join(seeds[-1]))
            if workload in THRIFTY:
                parts.append(of_parts(runner, workload, arguments.budget))
                say(" | ".join(parts[-1]))
    head = ("workload", "size", "best of the texts", "best offered", "ratio", "resolution", "")
    print(markdown(head, seeds))
    head = (
        *("workload", "size", "fastest that keeps the function", "with little memory", "ratio", "resolution"),
        *("memory of vectorized_map", "of that", "share", ""),
    )
    print("\n" + markdown(head, parts))


if __name__ == "__main__":
    main()
