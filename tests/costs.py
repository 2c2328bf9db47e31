"""A sweep without processes: latencies of a + b·n, and what processes, their samples and the machine add to them."""

import math
from collections.abc import Iterable, Mapping

import numpy as np
from scipy import special

from measure.run.run import Axis, Measurement, Point
from tests.simulation import Model, replica

# slug → (seconds per call, seconds per element)
Costs = Mapping[str, tuple[float, float]]
# Processes of a strategy at a point are sampled one round after the other, so often.
_ROUND_S, _SAMPLES = 5.0, 13
# A third to three times as much scatter between processes as within them, and drifts of the machine.
MODELS = [
    Model(process=process, sample=sample, disturbed_share=0.1, drift=drift)
    for process, sample, drift in ((0.02, 0.03, 0.0), (0.04, 0.02, 0.2), (0.06, 0.03, 0.0), (0.015, 0.05, -0.1))
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
    name: str = "batch",
) -> Point:
    """A complete point before it is analysed: in each round one process of every strategy. ``latencies_s``: the lower
    quartile of each strategy's samples, at the machine's pace in the middle of the rounds."""
    # The disturbed ones are all above it.
    quartile = model.sample * float(special.ndtri(0.25 / (1 - model.disturbed_share)))
    paces = math.log1p(model.drift) * _ROUND_S / 60 * (np.arange(processes) - (processes - 1) / 2)
    measurements = []
    for slug, seconds in latencies_s.items():
        mapper, _, mode = slug.partition("?")[0].partition(".")
        options = dict(pair.split("=") for pair in slug.partition("?")[2].split("&") if pair)
        level_s = seconds * math.exp(-quartile)
        replicas = [
            replica(number, level_s, paces[number : number + 1], [number], model, rng, _SAMPLES, _ROUND_S)
            for number in range(processes)
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
