"""Made-up runs with known figures, for tests of charts, tables and the page: nothing here was measured."""

import functools
from typing import Any

import numpy as np
from msgspec.structs import replace

from measure.judge import sweep_findings
from measure.judge.analysis import analyse
from measure.judge.findings import findings
from measure.judge.verdict import verdict
from measure.run.run import (
    Analysis,
    AtPeak,
    Axis,
    Code,
    Correctness,
    Error,
    Latency,
    LeafCheck,
    Limit,
    Measurement,
    Memory,
    Point,
    Replica,
    Request,
    Run,
    Timeline,
    Warning,
)
from workloads.functions import Facts, Given, OwnFunction

MIB = 2**20
OUTPUT = 4_915_200  # 100 × 64 × 64 × 3 float32
HOSTILE = '</script><img src=x onerror=alert(1)> **bold** $x$ :red[red] :smile: `code` & "quotes" [a](http://b)'
# By construction, two ties among them.
RANKING = [
    ["batched.xla", "batched.graph"],
    ["vectorized_map.xla", "batched.eager"],
    *([slug] for slug in ("vectorized_map.graph", "loop.graph", "map_fn.xla", "map_fn.graph", "vectorized_map.eager")),
    ["loop.eager"],
    ["map_fn.eager"],
]
# slug: seconds per call, seconds of the first call, temporary bytes
TIMED = {
    "batched.xla": (0.00142, 0.081, 0),
    "batched.graph": (0.00144, 0.034, 0),
    "batched.eager": (0.00151, 0.0031, 0),
    "vectorized_map.xla": (0.00147, 0.112, 0),
    "vectorized_map.graph": (0.00162, 0.061, 0),
    "vectorized_map.eager": (0.0172, 0.055, 0),
    "map_fn.xla": (0.0083, 0.27, 2 * OUTPUT),
    "map_fn.graph": (0.0114, 0.092, OUTPUT),
    "loop.graph": (0.0032, 0.51, OUTPUT),
    "loop.eager": (0.0189, 0.021, OUTPUT),
    "map_fn.eager": (0.0526, 0.058, OUTPUT),
}


def _replicas(seconds: float, first_call_s: float, rng: np.random.Generator, count: int = 5) -> list[Replica]:
    replicas = []
    rounds = list(range(1, 13 if seconds < 0.01 else 6))
    for number in range(count):
        level = seconds * float(np.exp(rng.normal(0, 0.008)))
        samples_s = [level * float(np.exp(abs(rng.normal(0, 0.02)))) for _ in rounds]
        at_s = [2.0 + 0.4 * round_ + 0.01 * number for round_ in rounds]
        replica = Replica(
            id=number, calls_per_sample=max(1, int(0.02 / seconds)), rounds=rounds, at_s=at_s, samples_s=samples_s,
            first_call_s=first_call_s * float(np.exp(rng.normal(0, 0.1))), ended="decided",
        )  # fmt: skip
        replicas.append(replica)
    return replicas


def _memory(temporary: int, seconds: float) -> Memory:
    steps = np.linspace(0, 1, 41)
    live = np.minimum(1, steps * 1.25) * (temporary or OUTPUT)
    live[30:] += np.where(steps[30:] < 1, OUTPUT if temporary else 0, 0)
    live[-1] = OUTPUT
    peak = OUTPUT + temporary
    at_peak = (("TensorListStack", OUTPUT), ("Sqrt", temporary)) if temporary else (("Sqrt", peak),)
    live = live * peak / live.max()
    return Memory(
        peak_bytes=peak, output_bytes=OUTPUT, temporary_bytes=temporary, input_bytes=OUTPUT, captured_bytes=0,
        method="events", process_peak_bytes=peak + 300_000,
        at_peak=[AtPeak(op=op, bytes=size) for op, size in at_peak if size],
        timeline=Timeline(t_s=(steps * seconds).tolist(), live_bytes=[int(value) for value in live]),
    )  # fmt: skip


def _checked(**errors: Any) -> Correctness:
    """Right where no errors are given."""
    worst = {"max_abs": 1.19e-7, "max_rel": 8.3e-8, "max_ulp": 1.0} | errors
    leaf = LeafCheck(
        path="output", dtype="float32", shape=[100, 64, 64, 3], worst_index=[17, 3, 60, 2],
        tolerance={"relative": 1.2e-6, "absolute": 0.0}, **worst,
    )  # fmt: skip
    worst.pop("mismatch_share", None)
    return Correctness(ok=not errors, leaves=[leaf], **worst)


def measurement(slug: str, rng: np.random.Generator) -> Measurement:
    seconds, first_call_s, temporary = TIMED[slug]
    mapper, mode = slug.split(".")
    warnings = []
    if slug == "vectorized_map.eager":
        warnings.append(Warning(code="retraces", message="tf.vectorized_map in eager mode traces anew at every call."))
    source = f"import tensorflow as tf\n\n\ndef strategy(elems):\n    return tf.sqrt(elems)  # {slug}\n"
    return Measurement(
        strategy=slug, mapper=mapper, mode=mode, outcome="ok", stage="done", warnings=warnings,
        first_call_s=first_call_s, replicas=_replicas(seconds, first_call_s, rng), memory=_memory(temporary, seconds),
        correctness=_checked(), code=Code(source=source, sha256="0" * 64),
    )  # fmt: skip


def failure(mapper: str, mode: str, outcome: str, message: str, detail: str = "", stage: str = "memory") -> Measurement:
    error = Error(type="Error", message=message, detail=detail or message)
    return Measurement(strategy=f"{mapper}.{mode}", mapper=mapper, mode=mode, outcome=outcome, stage=stage, error=error)


def failures(rng: np.random.Generator) -> list[Measurement]:
    """One strategy of each unhappy outcome; the texts hold what could break a page."""
    return [
        replace(
            measurement("vectorized_map.xla", rng), strategy="dataset.graph", mapper="dataset", mode="graph",
            outcome="wrong",
            correctness=_checked(max_abs=0.53, max_rel=0.71, max_ulp=5.1e6, mismatch_share=0.12, nan_mismatches=3),
            error=Error(type="Wrong", message="12% of the values differ from the reference.", detail=""),
        ),
        failure("loop", "xla", "timeout", "The first call did not end within 10 s.", stage="first call"),
        failure("while_loop", "xla", "out_of_memory", "It asked for 512.0 MiB more than the limit of 256 MiB.",
                "ResourceExhaustedError: OOM when allocating tensor with shape[100,64,64,3]\n" * 40),
        failure("numpy_function", "graph", "failed", HOSTILE, HOSTILE + "\n" + "  at node: foo/bar:0\n" * 30),
        failure("numpy_function", "xla", "unsupported", "XLA cannot compile tf.numpy_function."),
        failure("chunked", "xla", "cancelled", "Cancelled before it was sampled.", stage="sampling"),
    ]  # fmt: skip


@functools.cache
def run(
    run_id: str = "0123456789abcdef01234567", slugs: tuple[str, ...] = tuple(TIMED), unhappy: bool = True, seed: int = 0
) -> Run:
    """A finished comparison of image_sqrt: eleven timed strategies with ties and, if wanted, six unhappy ones."""
    rng = np.random.default_rng(seed)
    measurements = [measurement(slug, rng) for slug in slugs]
    twin = replace(measurement(slugs[0], rng), strategy=f"{slugs[0]}#twin", twin_of=slugs[0])
    everything = [*measurements, *(failures(rng) if unhappy else []), twin]
    finished = Run(
        id=run_id, created="2025-01-15T09:30:00Z", started="2025-01-15T09:30:00Z", finished="2025-01-15T09:30:09Z",
        status="complete", stop_reason="the ranking is decided",
        request=Request(
            workload="image_sqrt", size={"batch": 100, "height": 64, "width": 64, "channels": 3}, dtype="float32",
            device="CPU:0", strategies=[m.strategy for m in everything if m.twin_of is None], budget_s=30.0,
        ),
        environment={"tensorflow": "2.21.0", "cpu": "A made-up CPU", "cores": 2},
        analysis=Analysis(),
        limit=Limit(
            seconds=0.00071, bytes=2 * OUTPUT, flops=1_228_800, bandwidth_bytes_per_s=1.4e10, flops_per_s=5e10,
            dispatch_s=0.0003,
        ),
        measurements=everything,
    )  # fmt: skip
    finished = replace(analyse(finished), ranking=[[slug for slug in group if slug in slugs] for group in RANKING])
    finished = replace(finished, ranking=[group for group in finished.ranking if group])
    return replace(finished, verdict=verdict(findings(finished)))


def of_function(run: Run, *notes: str) -> Run:
    """The same of a function of somebody's own called ``softened``, on which there are these sentences to say."""
    leaf = ["leaf", {"shape": [8], "dtype": "float32"}]
    facts = Facts(
        size={"batch": 100}, element=leaf, result=leaf, dtype="float32", reference="float64", notes=list(notes)
    )
    own = OwnFunction(given=Given(code="def softened(x): return x", function="softened", elems="rows"), facts=facts)
    return replace(run, request=replace(run.request, workload=own.given.slug, own=own))


def partial(done: int, run_id: str = "0123456789abcdef01234567") -> Run:
    """The same comparison while it runs: memory of all is known, ``done`` strategies have a first latency."""
    whole = run(run_id, unhappy=False)
    left = {"outcome": "not_run", "stage": "sampling", "latency": None, "replicas": [], "break_even": []}
    measurements = [*whole.measurements[:done], *(replace(item, **left) for item in whole.measurements[done:])]
    return replace(whole, measurements=measurements, ranking=[], verdict="", finished=None, control=None)


SWEPT = ("loop.eager", "vectorized_map.graph", "batched.graph")


@functools.cache
def sweep(run_id: str = "0123456789abcdef01234567", seed: int = 0) -> Run:
    """A finished sweep of image_sqrt over the batch: the loop is overtaken at batch 3; it runs into the time limit at
    the largest point but one, and nothing fits at the largest."""
    rng = np.random.default_rng(seed)
    whole = run(run_id, SWEPT, unhappy=False)
    per_call = {"loop.eager": 20e-6, "vectorized_map.graph": 300e-6, "batched.graph": 400e-6}
    per_element = {"loop.eager": 100e-6, "vectorized_map.graph": 1e-6, "batched.graph": 1.5e-6}
    points = []
    for batch in (1, 10, 100, 1_000):
        measurements = []
        for slug in SWEPT:
            item = measurement(slug, rng)
            seconds = per_call[slug] + per_element[slug] * batch
            memory = replace(item.memory, timeline=None) if item.memory else None
            item = replace(item, memory=memory, replicas=_replicas(seconds, item.first_call_s or 0.1, rng, 3))
            measurements.append(item)
        if batch == 1_000:
            measurements[0] = failure("loop", "eager", "timeout", "no answer within 10 s, so the process was ended")
        body = analyse(replace(whole, measurements=measurements, control=None, ranking=[]))
        points.append(sweep_findings.settled(Point(at={"batch": batch}, status="complete"), body))
    points.append(Point(at={"batch": 10_000}, status="skipped", reason="This cannot fit: it needs about 1.20 TiB."))
    return sweep_findings.analyse(
        replace(
            whole,
            kind="sweep",
            measurements=[],
            ranking=[],
            control=None,
            axes=[Axis(kind="size", name="batch", values=[1, 10, 100, 1_000, 10_000], scale="log")],
            points=points,
            stop_reason="every point is measured",
        )
    )


@functools.cache
def winners(run_id: str = "0123456789abcdef01234567") -> Run:
    """A finished map of winners over batch × height, 3 × 3, with its middle inferred."""
    line = sweep(run_id)
    points = []
    for batch in (1, 10, 100):
        measured_at = next(point for point in line.points if point.at["batch"] == batch)
        for height in (8, 16, 32):
            at = {"batch": batch, "height": height}
            if (batch, height) == (10, 16):
                winner = measured_at.ranking[0][0]
                reason = f"inferred: all around it {winner} wins"
                points.append(Point(at=at, status="skipped", reason=reason, ranking=[[winner]]))
            else:
                points.append(replace(measured_at, at=at))
    axes = [
        Axis(kind="size", name="batch", values=[1, 10, 100], scale="log"),
        Axis(kind="size", name="height", values=[8, 16, 32], scale="log"),
    ]
    return sweep_findings.analyse(replace(line, axes=axes, points=points))


def latency(median_s: float, half: float = 0.02) -> Latency:
    return Latency(median_s=median_s, low_s=median_s * (1 - half), high_s=median_s * (1 + half))
