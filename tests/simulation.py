"""Comparisons and sweeps without processes: samples come from a model of what real runs show.

A strategy's latency, a lasting effect of each process, what the machine does in a round to whoever takes a turn, and
the scatter of single samples, with now and then one that was disturbed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from measure.engine.record import TWIN
from measure.engine.turns import FAR, FIRST_ROUNDS, ROUNDS
from measure.judge.levels import Order, levels_of
from measure.run.run import Analysis, Measurement, Replica

SAMPLES_A_TURN, TURN_S = 2, 0.01


@dataclass(frozen=True)
class Model:
    """Relative standard deviations of processes, of samples, and of what a round does to all that take their turn; the
    share of samples that are disturbed, and by which factor; the drift of the machine in a minute (0.2: 20 % slower),
    which is that of a sweep."""

    process: float = 0.02
    sample: float = 0.03
    round: float = 0.05
    disturbed_share: float = 0.03
    disturbed_factor: float = 1.5
    drift: float = 0.0


@dataclass
class Result:
    """What one simulated comparison ended with; ``order``: of its strategies, the twin left out."""

    measurements: list[Measurement]
    order: Order


def simulate(latencies_s: Mapping[str, float], model: Model, seed: int) -> Result:
    """One comparison of strategies with the given true latencies, in seconds: who is far behind has one process, all
    others two."""
    rng = np.random.default_rng(seed)
    rounds = FIRST_ROUNDS + ROUNDS
    paces = rng.normal(0.0, model.round, rounds)
    fastest = min(latencies_s, key=lambda slug: latencies_s[slug])
    measurements = []
    for slug, latency_s in [*latencies_s.items(), (fastest + TWIN, latencies_s[fastest])]:
        is_twin, is_far = slug not in latencies_s, latency_s > FAR * latencies_s[fastest]
        turns = [range(FIRST_ROUNDS, rounds)] * 2 if is_twin else [range(rounds)]
        turns += [range(FIRST_ROUNDS, rounds)] * (not is_twin and not is_far)
        replicas = [replica(number, latency_s, paces[its], its, model, rng) for number, its in enumerate(turns)]
        twin_of = fastest if is_twin else None
        measurements.append(
            Measurement(strategy=slug, mapper=slug, mode="graph", twin_of=twin_of, outcome="ok", replicas=replicas)
        )
    by_slug = levels_of(measurements).by_slug
    return Result(measurements, Order({slug: by_slug[slug] for slug in latencies_s}, Analysis(seed=seed)))


def replica(
    number: int, latency_s: float, paces: np.ndarray, turns: Sequence[int], model: Model, rng: np.random.Generator,
    samples: int = SAMPLES_A_TURN, turn_s: float = TURN_S,
) -> Replica:  # fmt: skip
    """A process that took these turns, each of so many samples, when the machine had these paces, as logarithms."""
    shape = (len(turns), samples)
    logs = rng.normal(rng.normal(0.0, model.process), model.sample, shape) + paces[:, np.newaxis]
    logs += math.log(model.disturbed_factor) * (rng.random(shape) < model.disturbed_share)
    return Replica(
        id=number,
        calls_per_sample=1,
        rounds=[turn + 1 for turn in turns for _ in range(samples)],
        at_s=[turn_s * turn for turn in turns for _ in range(samples)],
        samples_s=(latency_s * np.exp(logs)).ravel().tolist(),
        ended="done",
    )
