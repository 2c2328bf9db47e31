"""A sweep without processes: latencies of a + b·n, and what real processes and rounds add to them."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from measure.model.run import Axis, Latency, Measurement, Point, Replica
from measure.statistics import intervals
from measure.statistics.levels import levels_of
from tests.simulation import Model

# slug → (seconds per call, seconds per element)
Costs = Mapping[str, tuple[float, float]]
# A third to three times as much scatter between processes as within them, and drifts of the machine.
MODELS = [
    Model(process=0.02, sample=0.03),
    Model(process=0.04, sample=0.02, drift=0.2),
    Model(process=0.06, sample=0.03),
    Model(process=0.01, sample=0.05, drift=-0.1),
]


def axis(values: Iterable[int], name: str = "batch") -> Axis:
    return Axis(kind="size", name=name, values=sorted(values), scale="log")


def point(
    value: int, latencies_s: Mapping[str, float], rng: np.random.Generator, model: Model = MODELS[0],
    replicas: int = 3, rounds: int = 8, name: str = "batch",
) -> Point:  # fmt: skip
    """A complete point: ``replicas`` processes of each strategy in the same rounds, and the fastest as its ranking."""
    common = rng.normal(0.0, model.round, rounds) + model.drift * np.arange(rounds) / 60
    measurements = []
    for slug, seconds in latencies_s.items():
        noise = rng.normal(0.0, model.sample, (replicas, rounds))
        noise += np.where(rng.random(noise.shape) < model.disturbed_share, math.log(model.disturbed_factor), 0.0)
        samples = seconds * np.exp(rng.normal(0.0, model.process, (replicas, 1)) + common + noise)
        mapper, _, mode = slug.partition("?")[0].partition(".")
        options = dict(pair.split("=") for pair in slug.partition("?")[2].split("&") if pair)
        measurements.append(
            Measurement(
                strategy=slug, mapper=mapper, mode=mode, outcome="ok", stage="done", latency=Latency(
                    median_s=float(np.median(samples)), low_s=float(samples.min()), high_s=float(samples.max())
                ),
                options=options, replicas=[
                    Replica(id=number, calls_per_sample=1, rounds=list(range(1, rounds + 1)), samples_s=each.tolist())
                    for number, each in enumerate(samples)
                ],
            )
        )  # fmt: skip
    return Point(at={name: value}, status="complete", measurements=measurements, ranking=ranking(measurements))


def ranking(measurements: Sequence[Measurement]) -> list[list[str]]:
    """Every strategy that is not clearly slower than the fastest leads."""
    found = levels_of(measurements).by_slug
    best = min(found, key=lambda slug: found[slug].log_mean)
    return [[slug for slug in found if intervals.ratio(found[slug], found[best], 0.95).p >= 0.05 or slug == best]]


def points(values: Iterable[int], costs: Costs, rng: np.random.Generator, model: Model = MODELS[0]) -> list[Point]:
    return [
        point(value, {slug: fixed + each * value for slug, (fixed, each) in costs.items()}, rng, model)
        for value in values
    ]
