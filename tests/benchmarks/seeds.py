"""The best that is offered against the techniques of well-known texts; and chunks against the fastest mapper.

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
import workloads
from measure import statistics, text
from measure.comparison import Settings
from measure.run import Measurement, Run
from measure.runner import Runner
from tests.benchmarks import common
from tests.benchmarks.common import Case, say

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

# What maps in parts, with the workloads that it is there for. It may be this much slower than the fastest mapper of the
# same mode that leaves the function as it is, and take this share of the memory of tf.vectorized_map.
THRIFTY = {"outer_reduce": "chunked", "repeat_sum": "chunked", "dp_sgd": "accumulate"}
MODES = ("graph", "xla")
SLOWER = 1.10
SHARE = 1 / 10


@dataclass(frozen=True)
class Compared:
    """One strategy's latency over another's in one run."""

    run: Run
    slug: str
    against: str

    @property
    def ratio(self) -> statistics.Ratio:
        levels = statistics.levels(self.run.measurements).by_slug
        return statistics.ratio(levels[self.slug], levels[self.against], self.run.analysis.confidence)

    @property
    def resolution(self) -> float:
        return self.run.control.resolution if self.run.control else 0.0

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


def of_seeds(runner: Runner, workload: str, budget_s: float) -> tuple[str, ...]:
    """A row of the first table."""
    case = Case(workload, {})
    seeds = TECHNIQUES[workload]
    run = common.compare(runner, case.request(["default", *seeds], budget_s=budget_s))
    compared = Compared(run, fastest(run), fastest(run, seeds))
    best, other = (run.measurement(slug) for slug in (compared.slug, compared.against))
    # Slower only where the interval says so, beyond what the run can tell.
    slower = compared.ratio.low > 1 + compared.resolution
    return (
        workload,
        size(run),
        f"{other.strategy} {text.seconds(latency_s(other))}",
        f"{best.strategy} {text.seconds(latency_s(best))}",
        compared.shown(),
        text.percent(compared.resolution),
        "SLOWER" if slower else "not slower",
    )


def of_chunks(runner: Runner, workload: str, budget_s: float) -> list[tuple[str, ...]]:
    """Rows of the second table, one a mode."""
    thrifty = THRIFTY[workload]
    unchanged = [each.slug for each in strategies.mappers() if each.rewrite is None and each.element == "element"]
    offered = strategies.all_strategies(workloads.get(workload))
    wanted = [each.slug for each in offered if each.mode in MODES and each.mapper in (*unchanged, thrifty)]
    # Unrolled loops compile for minutes, and are not what is fastest here.
    wanted = [slug for slug in wanted if not slug.startswith(("loop", "dataset.", "dataset_batched."))]
    run = common.compare(runner, Case(workload, {}).request(wanted, budget_s=budget_s))
    rows = []
    for mode in MODES:
        slug, whole = f"{thrifty}.{mode}", f"vectorized_map.{mode}"
        compared = Compared(run, slug, fastest(run, [f"{each}.{mode}" for each in unchanged if each != thrifty]))
        share = peak_bytes(run, slug) / peak_bytes(run, whole)
        fast = compared.ratio.low <= SLOWER
        rows.append(
            (
                workload,
                size(run),
                f"{compared.against} {text.seconds(latency_s(run.measurement(compared.against)))}",
                f"{slug} {text.seconds(latency_s(run.measurement(slug)))}",
                compared.shown(),
                f"{text.size(peak_bytes(run, slug))} of {text.size(peak_bytes(run, whole))}: 1/{1 / share:.0f}",
                text.percent(compared.resolution),
                f"{'fast' if fast else 'SLOW'}, {'thrifty' if share <= SHARE else 'NOT THRIFTY'}",
            )
        )
    return rows


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
    common.start("The best that is offered, and chunks")
    seeds, chunks = [], []
    with common.own_folders(), common.engine(Settings(process_peaks_s=0.0)) as runner:
        for workload in arguments.only:
            if workload in TECHNIQUES:
                seeds.append(of_seeds(runner, workload, arguments.budget))
                say(" | ".join(seeds[-1]))
            if workload in THRIFTY:
                chunks += of_chunks(runner, workload, arguments.budget)
                say(" | ".join(map(" | ".join, chunks[-len(MODES) :])))
    head = ("workload", "size", "best of the texts", "best offered", "ratio", "resolution", "")
    print(markdown(head, seeds))
    head = (
        "workload",
        "size",
        "fastest that keeps fn",
        "in parts",
        "ratio",
        "memory of vectorized_map",
        "resolution",
        "",
    )
    print("\n" + markdown(head, chunks))


if __name__ == "__main__":
    main()
