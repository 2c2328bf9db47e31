"""A comparison without processes: samples come from a model, and the race's own rules decide who is visited next.

The model has the levels that real runs have: a strategy's latency, a lasting effect of each process, what the machine
does at that time to whoever runs, and the scatter of single samples, with now and then one that was disturbed.
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from measure.engine import race
from measure.model.run import Analysis, Measurement, Replica
from measure.statistics import levels
from measure.statistics.intervals import Level
from measure.statistics.levels import levels_of

# From one visit's start to the next one's, and how long each is sampled.
VISIT_S, SAMPLING_S = 0.4, 0.09
# Fewer than real visits give, which makes a simulation cheap and levels no better.
SAMPLES = 9
# For so long a load comes and goes, at the most; a race is shorter.
_LOADED_S = 120.0


@dataclass(frozen=True)
class Model:
    """Relative standard deviations of processes, of samples, and of what a round does to all that are visited in it;
    the share of samples that are disturbed and of processes that are slow as a whole, each with its factor.

    ``drift``: how much slower everything is after ``drift_s`` seconds than at first (0.3: 30 %), growing evenly.
    ``load``: the share of time in stretches of 0.3 to 5 s in which everything takes 1.3 to 2 times as long.
    """

    process: float = 0.02
    sample: float = 0.03
    round: float = 0.01
    disturbed_share: float = 0.03
    disturbed_factor: float = 1.5
    slow_share: float = 0.0
    slow_factor: float = 1.7
    drift: float = 0.0
    drift_s: float = 12.0
    load: float = 0.0

    def pace(self, at_s: float) -> float:
        """How long everything takes at a time, of what it takes at first, stretches of load left out."""
        return 1 + self.drift * at_s / self.drift_s


@dataclass
class Result:
    """What one simulated comparison ended with. ``seconds``: from the first visit's start to the last one's end."""

    levels: Mapping[str, Level]
    control_resolution: float
    measurements: list[Measurement]
    seconds: float


@dataclass
class _Entry:
    """A strategy, or its twin, while the simulation goes on."""

    latency_s: float
    twin_of: str | None = None
    replicas: list[Replica] = field(default_factory=list)


def simulate(latencies_s: Mapping[str, float], model: Model, seed: int) -> Result:
    """One comparison of strategies with the given true latencies, in seconds, racing included."""
    rng = np.random.default_rng(seed)
    slowed_at = _load(model, rng)
    analysis = Analysis(seed=seed)
    entries = {slug: _Entry(latency_s) for slug, latency_s in latencies_s.items()}
    visits = 0

    def visit(slug: str, round_number: int, of_round: float) -> None:
        nonlocal visits
        entry, start_s = entries[slug], visits * VISIT_S
        visits += 1
        at_s = start_s + SAMPLING_S * np.arange(1, SAMPLES + 1) / SAMPLES
        logs = rng.normal(of_round + rng.normal(0.0, model.process), model.sample, SAMPLES)
        logs += math.log(model.disturbed_factor) * (rng.random(SAMPLES) < model.disturbed_share)
        logs += math.log(model.slow_factor) * (rng.random() < model.slow_share)
        logs += [math.log(model.pace(moment_s) * slowed_at(moment_s)) for moment_s in at_s]
        entry.replicas.append(
            Replica(
                id=len(entry.replicas),
                calls_per_sample=1,
                rounds=[round_number] * SAMPLES,
                at_s=at_s.round(4).tolist(),
                samples_s=(entry.latency_s * np.exp(logs)).tolist(),
                ended="done",
            )
        )

    def measurements() -> list[Measurement]:
        return [
            Measurement(
                strategy=slug,
                mapper=slug,
                mode="graph",
                twin_of=entry.twin_of,
                outcome="ok",
                replicas=list(entry.replicas),
            )
            for slug, entry in entries.items()
        ]

    @functools.cache
    def standing_after(visits: int) -> race.Standing:
        items = measurements()
        evidence = levels_of(items)
        control = levels.control(items, evidence, analysis.confidence)
        ranked = {slug: evidence.by_slug[slug] for slug in latencies_s}
        return race.Standing(ranked, levels.resolution(control, evidence, analysis.confidence), analysis)

    def standing() -> race.Standing:
        return standing_after(visits)

    def enter_twin(slug: str) -> str:
        twin = f"{slug}#twin"
        entries[twin] = _Entry(entries[slug].latency_s, slug)
        return twin

    def visit_all(slugs: list[str], round_number: int) -> None:
        of_round = rng.normal(0.0, model.round)
        for slug in slugs:
            visit(slug, round_number, of_round)

    visit_all(list(latencies_s), 1)
    racing = race.Race(race.Rules(), standing, enter_twin)
    round_number = 1
    for slugs in racing.rounds():
        round_number += 1
        visit_all(race.shuffled(slugs, seed, round_number), round_number)
    last = standing()
    return Result(last.levels, last.resolution, measurements(), visits * VISIT_S)


def _load(model: Model, rng: np.random.Generator) -> Callable[[float], float]:
    """Return what a load makes of the time that something takes, as a function of seconds since the start."""
    stretches: list[tuple[float, float, float]] = []  # start, end and factor of each
    end_s = 0.0
    while model.load and end_s < _LOADED_S:
        start_s = end_s + rng.uniform(0.3, 5.0) * (1 - model.load) / model.load
        end_s = start_s + rng.uniform(0.3, 5.0)
        stretches.append((start_s, end_s, rng.uniform(1.3, 2.0)))

    def slowed_at(at_s: float) -> float:
        begun = takewhile(lambda stretch: stretch[0] <= at_s, stretches)
        return next((factor for _, end_s, factor in begun if at_s < end_s), 1.0)

    return slowed_at
