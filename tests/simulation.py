"""A comparison without processes: samples come from a model, the race's own policy decides what is sampled next.

The model has the levels that real runs have: a strategy's latency, a lasting effect of each process, what a round does
to everybody in it, and the scatter of single samples, with now and then a sample that was disturbed.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from measure.engine import rounds
from measure.model.run import Analysis, Measurement, Replica
from measure.statistics import levels
from measure.statistics.intervals import Level
from measure.statistics.levels import levels_of


@dataclass(frozen=True)
class Model:
    """Relative standard deviations, the share of processes that are slow as a whole and by which factor, the drift of
    the machine from the first round to the last of ``rounds`` (0.3: 30 % slower), and how much longer everything takes
    once all have scouted (0.5: 50 %)."""

    process: float = 0.02
    sample: float = 0.03
    round: float = 0.02
    disturbed_share: float = 0.03
    disturbed_factor: float = 1.5
    slow_share: float = 0.0
    slow_factor: float = 1.7
    drift: float = 0.0
    rounds: int = 1
    step: float = 0.0

    def pace(self, number: int) -> float:
        """How long everything takes in a round, numbered from 1, of what it takes in the first."""
        step = 1 + self.step if number > rounds.Rules().scout_rounds else 1.0
        return step * (1 + self.drift * (number - 1) / max(1, self.rounds - 1))


@dataclass
class Result:
    """What one simulated comparison ended with."""

    levels: Mapping[str, Level]
    control_resolution: float
    measurements: list[Measurement]
    rounds: int
    reason: str


def simulate(latencies_s: Mapping[str, float], model: Model, seed: int, rules: rounds.Rules | None = None) -> Result:
    """One comparison of strategies with the given true latencies, racing included."""
    rules = rules or rounds.Rules()
    rng = np.random.default_rng(seed)
    analysis = Analysis()
    replicas: dict[str, list[dict]] = {slug: [] for slug in latencies_s}
    originals = {slug: slug for slug in latencies_s}
    living: dict[str, list[dict]] = {}
    number = 0

    def start(slug: str) -> None:
        process = {"effect": rng.normal(0.0, model.process), "rounds": [], "samples": []}
        if model.slow_share and rng.random() < model.slow_share:
            process["effect"] += math.log(model.slow_factor)
        replicas[slug].append(process)
        living.setdefault(slug, []).append(process)

    def sample() -> None:
        nonlocal number
        number += 1
        common = rng.normal(0.0, model.round) + math.log(model.pace(number))
        for slug, processes in living.items():
            for process in processes:
                noise = rng.normal(0.0, model.sample)
                if rng.random() < model.disturbed_share:
                    noise += math.log(model.disturbed_factor)
                process["rounds"].append(number)
                process["samples"].append(latencies_s[originals[slug]] * math.exp(process["effect"] + common + noise))

    def items() -> list[Measurement]:
        return [
            Measurement(
                strategy=slug,
                mapper=slug,
                mode="graph",
                twin_of=None if originals[slug] == slug else originals[slug],
                outcome="ok",
                replicas=[
                    Replica(id=index, calls_per_sample=1, rounds=each["rounds"], samples_s=each["samples"])
                    for index, each in enumerate(processes)
                ],
            )
            for slug, processes in replicas.items()
        ]

    @functools.cache
    def standing_after(number: int, started: int) -> rounds.Standing:
        measurements = items()
        found = levels_of(measurements)
        control = levels.control(measurements, found, analysis.confidence)
        ranked = {slug: level for slug, level in found.by_slug.items() if originals[slug] == slug}
        return rounds.Standing(ranked, levels.resolution(control, found, analysis.confidence), analysis)

    def standing() -> rounds.Standing:
        return standing_after(number, sum(map(len, replicas.values())))

    def enter_twin(slug: str) -> str:
        twin = f"{slug}#twin"
        replicas[twin], originals[twin] = [], slug
        return twin

    for slug in latencies_s:
        start(slug)
    for _ in range(rules.scout_rounds):
        sample()
    race = rounds.Race(rules, standing, enter_twin)
    for action in race.actions():
        match action:
            case rounds.Start(slugs):
                for slug in slugs:
                    start(slug)
            case rounds.Sample():
                sample()
            case rounds.Rest(slugs, anchor):
                for slug in slugs:
                    stays = living.pop(slug, [])[: slug == anchor]
                    if stays:
                        living[slug] = stays
    last = standing()
    return Result(last.levels, last.resolution, items(), number, race.reason)
