"""A sweep without processes: latencies of a + b·n, and what processes, their samples and the machine add to them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from measure.run.run import Axis, Measurement, Point, Replica

# slug → (seconds per call, seconds per element)
Costs = Mapping[str, tuple[float, float]]
# Processes of a strategy at a point are sampled one round after the other.
_ROUND_S = 5.0


@dataclass(frozen=True)
class Model:
    """The scatter of a sweep: relative standard deviations between processes and between samples of one; the share of
    samples that are disturbed, and by which factor; the machine's drift in a minute (0.2: 20 % slower)."""

    process: float = 0.02
    sample: float = 0.03
    disturbed_share: float = 0.1
    disturbed_factor: float = 1.5
    drift: float = 0.0


# A third to three times as much scatter between processes as within them, and drifts of the machine.
MODELS = [
    Model(process=0.02, sample=0.03),
    Model(process=0.04, sample=0.02, drift=0.2),
    Model(process=0.06, sample=0.03),
    Model(process=0.015, sample=0.05, drift=-0.1),
]
QUIET = Model(process=0.0, sample=0.0, disturbed_share=0.0)


def axis(values: Iterable[int], name: str = "batch") -> Axis:
    return Axis(kind="size", name=name, values=sorted(values), scale="log")


def point(
    value: int,
    latencies_s: Mapping[str, float],
    rng: np.random.Generator,
    model: Model = MODELS[0],
    processes: int = 3,
    samples: int = 13,
    name: str = "batch",
) -> Point:
    """A complete point before it is analysed: in each round one process of every strategy. ``latencies_s``: the lower
    quartile of each strategy's samples, at the machine's pace in the middle of the rounds."""
    # The disturbed ones are all above it.
    quartile = float(special.ndtri(0.25 / (1 - model.disturbed_share)))
    rounds = np.arange(processes)[:, np.newaxis] - (processes - 1) / 2
    measurements = []
    for slug, seconds in latencies_s.items():
        noise = model.sample * (rng.normal(0.0, 1.0, (processes, samples)) - quartile)
        noise += np.where(rng.random(noise.shape) < model.disturbed_share, math.log(model.disturbed_factor), 0.0)
        pace = rng.normal(0.0, model.process, (processes, 1)) + math.log1p(model.drift) * _ROUND_S * rounds / 60
        samples_s = seconds * np.exp(pace + noise)
        mapper, _, mode = slug.partition("?")[0].partition(".")
        options = dict(pair.split("=") for pair in slug.partition("?")[2].split("&") if pair)
        replicas = [
            Replica(
                id=number,
                calls_per_sample=1,
                rounds=[number + 1] * samples,
                at_s=[_ROUND_S * number] * samples,
                samples_s=of_process.tolist(),
                ended="done",
            )
            for number, of_process in enumerate(samples_s)
        ]
        measurements.append(
            Measurement(
                strategy=slug, mapper=mapper, mode=mode, outcome="ok", stage="done", options=options, replicas=replicas
            )
        )
    return Point(at={name: value}, status="complete", measurements=measurements)


def points(
    values: Iterable[int], costs: Costs, rng: np.random.Generator, model: Model = MODELS[0], processes: int = 3
) -> list[Point]:
    return [
        point(value, {slug: fixed + each * value for slug, (fixed, each) in costs.items()}, rng, model, processes)
        for value in values
    ]
