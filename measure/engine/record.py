"""The view of a job while it goes on, and the pieces that its run is made of. Pure functions."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

import strategies
from measure.run.run import DEFAULT_MEMORY, Code, Measurement, Replica, Run, Stage
from measure.subject.messages import Sampled

TWIN = "#twin"
# A clock of coarse resolution may not have moved; the analysis takes logarithms.
_LEAST_SAMPLE_S = 1e-9


@dataclass(frozen=True)
class View:
    """A job as a watcher sees it: the run so far, the stage of each strategy, and a line on what happens now.

    ``version`` grows with each new result. ``started_s`` is on the monotonic clock. ``round_number``: of the
    round in which is sampled now. ``rough_s``: seconds of a call of each strategy, as its memory subject has it.
    """

    run: Run
    stages: Mapping[str, Stage]
    message: str = ""
    version: int = 0
    started_s: float | None = None
    forecast_s: float = 0.0
    round_number: int | None = None
    rough_s: Mapping[str, float] = field(default_factory=dict)


def original(slug: str) -> str:
    """The strategy that is entered once more under a slug; any other slug as it is."""
    return slug.removesuffix(TWIN).removesuffix(DEFAULT_MEMORY)


def seed_of(run_id: str) -> int:
    """The seed of a run's shuffling: another in each run, so that what an order does is not the same in all reruns."""
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:4])


def unmeasured(slug: str, source: str) -> Measurement:
    """The measurement of a strategy, or of one that is entered once more, of which nothing is measured yet. ``source``:
    its script."""
    strategy = strategies.parse(original(slug))
    return Measurement(
        strategy=slug,
        mapper=strategy.mapper,
        mode=strategy.mode,
        options=dict(strategy.options),
        twin_of=None if slug == original(slug) else original(slug),
        code=Code(source=source, sha256=hashlib.sha256(source.encode()).hexdigest()),
    )


def sampled(replica: Replica, round_number: int, at_s: float, turn: Sampled) -> Replica:
    """The replica with the samples of one more turn. ``at_s``: when the last of these ended, in seconds from the run's
    start."""
    count = len(turn.seconds)
    # Only the end of the turn has a time: its samples are dated back from there, but not before those of the last turn.
    least_s = replica.at_s[-1] if replica.at_s else 0.0
    after_s = [turn.calls * sum(turn.seconds[place + 1 :]) for place in range(count)]
    return replace(
        replica,
        calls_per_sample=turn.calls,
        rounds=[*replica.rounds, *[round_number] * count],
        at_s=[*replica.at_s, *(max(least_s, round(at_s - later_s, 4)) for later_s in after_s)],
        samples_s=[*replica.samples_s, *(max(seconds, _LEAST_SAMPLE_S) for seconds in turn.seconds)],
        faults=[*(replica.faults or []), *turn.faults],
        kernel_s=[*(replica.kernel_s or []), *turn.kernel_s],
        cpu_s=[*(replica.cpu_s or []), *turn.cpu_s],
        ended="done",
    )
