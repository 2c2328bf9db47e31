"""Comparisons and sweeps without processes: samples come from a model of what real runs show.

A strategy's latency, a lasting effect of each process, what the machine does in a round to whoever takes a turn, and
the scatter of single samples, with now and then one that was disturbed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from measure.engine.record import TWIN
from measure.engine.turns import FIRST_ROUNDS, ROUNDS
from measure.judge.levels import Order, levels_of
from measure.run.run import Analysis, Axis, Measurement, Point, Replica
from measure.subject.timing import LONG_CALL_S, SAMPLE_S, WARM_S

SAMPLES_A_TURN, TURN_S = 2, 0.01


@dataclass(frozen=True)
class Model:
    """Relative standard deviations of processes, of samples, and of what a round does to all that take their turn; the
    share of samples that are disturbed, and by which factor; the drift of the machine in a minute (0.2: 20% slower),
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
    """One comparison of strategies with the given true latencies, in seconds, two processes each."""
    rng = np.random.default_rng(seed)
    rounds = FIRST_ROUNDS + ROUNDS
    paces = rng.normal(0.0, model.round, rounds)
    fastest = min(latencies_s, key=lambda slug: latencies_s[slug])
    measurements = []
    for slug, latency_s in [*latencies_s.items(), (fastest + TWIN, latencies_s[fastest])]:
        is_twin = slug not in latencies_s
        turns = [range(FIRST_ROUNDS, rounds)] * 2 if is_twin else [range(rounds)]
        turns += [range(FIRST_ROUNDS, rounds)] * (not is_twin)
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


# --- sweeps: latencies of a + b·n, and what processes, their samples and the machine add to them ----------------------

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


# --- other programs that come and go ---------------------------------------------------------------------------------


class Interference:
    """Other programs that use the processors 70% of the time, in bursts of 5 to 100 ms whose lengths are heavy-tailed
    (Pareto, with exponent 1): work takes ``factor`` times as long in them."""

    def __init__(self, rng: np.random.Generator, factor: float, seconds: float = 120.0) -> None:
        shortest_s, longest_s, share = 0.005, 0.1, 0.7
        count = int(seconds / shortest_s)
        bursts_s = shortest_s / (1 - rng.random(count) * (1 - shortest_s / longest_s))
        rests_s = rng.exponential(bursts_s.mean() * (1 - share) / share, count)
        self._at_s = np.concatenate([[0.0], np.cumsum(np.stack([rests_s, bursts_s], axis=1).ravel())])
        pace = np.tile([1.0, 1 / factor], count)
        self._done_s = np.concatenate([[0.0], np.cumsum(np.diff(self._at_s) * pace)])

    def end_s(self, begin_s: float, work_s: float) -> float:
        """When work ends that takes ``work_s`` on an idle machine."""
        done_s = np.interp(begin_s, self._at_s, self._done_s) + work_s
        return float(np.interp(done_s, self._done_s, self._at_s))


def interfered(
    latencies_s: Mapping[str, float], seed: int, *, factor: float = 2.0, rounds: int = ROUNDS
) -> list[Measurement]:
    """A comparison beside `Interference`: of each strategy two processes, which take slices in the rounds that
    `measure.engine.turns` gives them, in a random order."""
    rng = np.random.default_rng(seed)
    others, now_s = Interference(rng, factor), 0.0
    effects = {(slug, number): math.exp(rng.normal(0.0, 0.02)) for slug in latencies_s for number in range(2)}
    taken: dict[tuple[str, int], list[tuple[int, float]]] = {one: [] for one in effects}
    for round_number in range(1, 2 * FIRST_ROUNDS + rounds + 1):
        for slug, number in rng.permutation(np.array([*effects], dtype=object)).tolist():
            latency_s = latencies_s[slug] * effects[slug, number]
            is_slow = round_number > 2 * FIRST_ROUNDS and latency_s > TURN_S
            if is_slow or (number and round_number <= FIRST_ROUNDS):
                continue
            calls = max(1, round(SAMPLE_S / latency_s))
            now_s = others.end_s(now_s, WARM_S if latency_s < LONG_CALL_S else 0.0)
            for _ in range(SAMPLES_A_TURN if latency_s < SAMPLE_S else 1):
                begun_s, now_s = now_s, others.end_s(now_s, calls * latency_s)
                taken[slug, number].append((round_number, (now_s - begun_s) / calls))
    return [
        Measurement(
            strategy=slug, mapper=slug.partition(".")[0], mode="graph", outcome="ok",
            replicas=[
                Replica(id=number, calls_per_sample=1, rounds=[one for one, _ in samples], ended="done",
                        samples_s=[sample_s for _, sample_s in samples])
                for number in range(2) if (samples := taken[slug, number])
            ],
        )
        for slug in latencies_s
    ]  # fmt: skip
