"""The same samples give the same figures, ranks and crossings: made-up runs of every kind, as run files.

A change of the method changes ``analysis.version`` and these figures (`python -m tests.golden.renew`).
"""

import math
from typing import Any

import numpy as np

from tests.golden import present
from tests.golden.renew import differences, golden

TURNS, SAMPLES, MIB = 12, 3, 2**20
# Relative standard deviations of processes, of samples, and of rounds, which all that take their turn share.
PROCESS, SAMPLE, ROUND = 0.02, 0.03, 0.05
B, M, L = "batched.graph", "map_fn.graph", "loop.eager"
MEMORY = {"peak_bytes": 4 * MIB, "output_bytes": MIB, "temporary_bytes": 3 * MIB, "input_bytes": MIB,
          "captured_bytes": 0, "method": "events"}  # fmt: skip
RUN = {"schema": "mapbench.run/1", "id": "0" * 24, "created": "2026-01-01T00:00:00Z", "status": "complete"}
REQUEST = {"workload": "square", "size": {"batch": 100}, "dtype": "float32", "device": "CPU:0", "budget_s": 30.0}


def measured(
    seed: int, latencies_s: dict[str, float], processes: int = 2, noise: float = 1.0, drift: float = 0.0, **more: Any
) -> list[dict[str, Any]]:
    """Measurements of strategies with these true latencies, in seconds; one without has failed. ``noise``: in multiples
    of the usual; ``drift``: how much slower the machine is at the end. A name with a # is a twin. ``more``: mapper →
    fields of its own."""
    random = np.random.RandomState(seed)  # its stream is frozen
    paces = random.normal(0.0, noise * ROUND, TURNS) + np.linspace(0.0, math.log1p(drift), TURNS)
    rounds = [turn + 1 for turn in range(TURNS) for _ in range(SAMPLES)]
    items = []
    for slug, latency_s in latencies_s.items():
        own, mark, _ = slug.partition("#")
        mapper, mode = own.partition("?")[0].split(".")
        replicas = []
        for number in range(processes if latency_s else 0):
            logs = random.normal(random.normal(0.0, noise * PROCESS), noise * SAMPLE, (TURNS, SAMPLES))
            logs += paces[:, np.newaxis] + math.log(1.5) * (random.random_sample(logs.shape) < 0.03)
            samples_s = [float(f"{sample:.6e}") for sample in (latency_s * np.exp(logs)).ravel()]
            replica = {"id": number, "calls_per_sample": 1, "rounds": rounds, "at_s": [0.01 * turn for turn in rounds]}
            replicas.append({**replica, "samples_s": samples_s, "first_call_s": 0.05 + number / 100})
        item = {"strategy": slug, "mapper": mapper, "mode": mode, "twin_of": own if mark else None,
                "outcome": "ok" if latency_s else "failed", "replicas": replicas, "first_call_s": 0.05,
                "memory": MEMORY}  # fmt: skip
        items.append({**item, **more.get(mapper, {})})
    return items


def run(*arguments: Any, **more: Any) -> dict[str, Any]:
    items = measured(*arguments, **more)
    slugs = [item["strategy"] for item in items if not item["twin_of"]]
    return {**RUN, "request": {**REQUEST, "strategies": slugs}, "measurements": items}


def sweep(seed: int, points: list[tuple[dict[str, int], dict[str, float]]], **more: Any) -> dict[str, Any]:
    """Points of these latencies, each in one process."""
    axes = [{"kind": "option" if name == "chunk" else "size", "name": name, "scale": "log",
             "values": sorted({at[name] for at, _ in points})} for name in points[0][0]]  # fmt: skip
    bodies = [{"at": at, "status": "complete", "measurements": measured(seed + place, latencies_s, 1, **more)}
              for place, (at, latencies_s) in enumerate(points)]  # fmt: skip
    request = {**REQUEST, "strategies": list(dict.fromkeys(slug.partition("?")[0] for slug in points[0][1]))}
    return {**RUN, "kind": "sweep", "request": request, "axes": axes, "points": bodies}


def line(batches: tuple[int, ...], element_s: float = 1e-6) -> list[tuple[dict[str, int], dict[str, float]]]:
    """A loop of 20 µs and 10 µs an element beside a call of 300 µs and ``element_s`` an element."""
    return [({"batch": batch}, {L: 20e-6 + 10e-6 * batch, B: 300e-6 + element_s * batch}) for batch in batches]


def of_peak(mib: int) -> dict[str, Any]:
    return {"memory": {**MEMORY, "peak_bytes": mib * MIB}}


BATCHES = (1, 4, 16, 64, 256, 1_024)
WRONG = {"outcome": "wrong", "correctness": {"ok": False}}
CASES = {
    "clear": run(1, {B: 1e-3, M: 2e-3, L: 5e-3}),
    "tie": run(2, {B: 1e-3, M: 1e-3, L: 1.002e-3}),
    "close": run(3, {B: 1e-3, M: 1.08e-3}, 3),
    "one process": run(4, {B: 1e-3, M: 3e-3}, 1),
    "noisy": run(5, {B: 1e-3, M: 1.1e-3, L: 4e-3}, noise=4.0),
    "drift": run(6, {B: 1e-3, M: 1.2e-3}, drift=0.3),
    "control": run(7, {B: 1e-3, M: 1.5e-3, f"{B}#twin": 1e-3}),
    "control that is off": run(8, {B: 1e-3, M: 1.02e-3, f"{B}#twin": 1.3e-3}),
    "default memory": run(9, {B: 1e-3, M: 2e-3, f"{B}#default": 1.8e-3, f"{M}#default": 2e-3}),
    "wrong and failed": run(10, {B: 1e-3, M: 2e-3, L: 3e-3, "loop.xla": 0.0}, batched=WRONG),
    "nothing works": run(11, {B: 1e-3, M: 0.0}, batched=WRONG),
    "memory decides": run(12, {B: 1e-3, M: 1e-3, L: 1e-3}, batched=of_peak(9), map_fn=of_peak(2), loop=of_peak(5)),
    "first calls": run(13, {B: 1e-3, M: 3e-3, L: 9e-3}, batched={"first_call_s": 2.0}, map_fn={"first_call_s": 0.2}),
    "crossing": sweep(20, line(BATCHES)),
    "crossing in noise": sweep(30, line(BATCHES), noise=4.0),
    "no crossing": sweep(40, line((100, 200, 400, 800))),
    "parallel": sweep(50, line(BATCHES, 11e-6)),
    "option": sweep(60, [({"chunk": n}, {f"chunked.graph?chunk={n}": 1e-3 + abs(n - 8) * 1e-4}) for n in (2, 8, 32)]),
    "map": sweep(70, [({"batch": n, "side": m}, {L: 1e-5 * n * m, B: 1e-4 + 1e-6 * n * m})
                      for n in (1, 10, 100) for m in (1, 8)]),
}  # fmt: skip


def derived(whole: dict[str, Any]) -> dict[str, Any]:
    """What is computed of a run or a point, but for sentences."""
    items = {item["strategy"]: {"latency": item["latency"], "break_even": item["break_even"]}
             for item in whole["measurements"] if item["latency"]}  # fmt: skip
    made = {"ranking": whole["ranking"], "control": whole["control"], "measurements": items}
    made["points"] = [derived(point) for point in whole.get("points", [])]
    made["crossovers"] = [{**each, "none": each["none"] is not None} for each in whole.get("crossovers", [])]
    made["fits"] = [{name: value for name, value in fit.items() if name != "note"} for fit in whole.get("fits", [])]
    return {name: figures for name, figures in made.items() if figures}


def figures() -> dict[str, Any]:
    """Name of a run → what is derived of its samples."""
    return {name: derived(present.recompute(case)) for name, case in CASES.items()}


def test_the_same_samples_give_the_same_figures_and_ranks() -> None:
    assert differences(golden("ranks"), figures(), 1e-6) == []
