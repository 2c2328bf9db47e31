"""Measurements and runs of hand-made samples."""

from measure.run.run import Measurement, Memory, Replica, Request, Run


def measurement(
    slug: str, processes: list[list[float]], twin_of: str | None = None, outcome: str = "ok"
) -> Measurement:
    """A strategy whose processes all took part in rounds 1, 2, 3 …"""
    replicas = [
        Replica(id=index, calls_per_sample=1, rounds=list(range(1, len(samples) + 1)), samples_s=samples)
        for index, samples in enumerate(processes)
    ]
    return Measurement(strategy=slug, mapper=slug, mode="graph", twin_of=twin_of, outcome=outcome, replicas=replicas)


def memory(peak_bytes: int, output_bytes: int = 0) -> Memory:
    return Memory(
        peak_bytes=peak_bytes, output_bytes=output_bytes, temporary_bytes=0, input_bytes=0, captured_bytes=0,
        method="events",
    )  # fmt: skip


def run_of(*measurements: Measurement) -> Run:
    request = Request(workload="w", size={"batch": 1}, dtype="float32", device="CPU:0", strategies=["a"], budget_s=1.0)
    return Run(id="0" * 24, created="2026-01-01T00:00:00Z", request=request, measurements=list(measurements))


def constant(value_s: float, processes: list[float]) -> list[list[float]]:
    """Processes with these factors, five equal samples each."""
    return [[value_s * factor] * 5 for factor in processes]


FACTORS = [0.98, 0.99, 1.0, 1.01, 1.02]
