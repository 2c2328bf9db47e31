"""The view of a job while it goes on, and the pieces that its run is made of. Pure functions."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from measure.machine import environment
from measure.run.run import BASE, DEFAULT_MEMORY, Replica, Run, Stage
from measure.subject.messages import Sampled

TWIN = "#twin"
# What figures depend on that are shown or measured together.
_SAME = (
    *("cpu_model", "cores_granted", "gpus", "gpu_driver", "cuda", "cudnn"),
    *("python", "tensorflow", "numpy", "start_method", "onednn", "flags", "threads_intra_used", "threads_inter_used"),
)


@dataclass(frozen=True)
class View:
    """A job as a watcher sees it: the run so far, the stage of each strategy, and a line on what happens now.
    ``version`` grows with each new result. ``started_s`` is on the monotonic clock. ``round_number``: of the round in
    which is sampled now. ``extended_s``: seconds from the start to the end at most, once the run takes longer than
    forecast."""

    run: Run
    stages: Mapping[str, Stage]
    message: str = ""
    version: int = 0
    started_s: float | None = None
    forecast_s: float = 0.0
    max_forecast_s: float = 0.0
    round_number: int | None = None
    extended_s: float | None = None


def original(slug: str) -> str:
    """The strategy that is entered once more under a slug; any other slug as it is."""
    return slug.removesuffix(TWIN).removesuffix(DEFAULT_MEMORY).removesuffix(BASE)


def seed_of(run_id: str) -> int:
    """The seed of a run's shuffling: another in each run, so that what an order does is not the same in all reruns."""
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:4])


def sampled(replica: Replica, round_number: int, at_s: float, turn: Sampled) -> Replica:
    """The replica with the samples of one more turn. ``at_s``: when the turn ended, in seconds from the run's start."""
    count = len(turn.seconds)
    return replace(
        replica,
        calls_per_sample=turn.calls,
        rounds=[*replica.rounds, *[round_number] * count],
        at_s=[*replica.at_s, *[round(at_s, 4)] * count],
        samples_s=[*replica.samples_s, *turn.seconds],
        faults=[*(replica.faults or []), *turn.faults],
        kernel_s=[*(replica.kernel_s or []), *turn.kernel_s],
        cpu_s=[*(replica.cpu_s or []), *turn.cpu_s],
        ended="done",
    )


def changes(run: Run, here: Mapping[str, Any]) -> str:
    """The facts that are others ``here``, in an environment, than where a run was measured: «python is 3.12, and was
    3.11»; empty where there are none. What either does not know says nothing."""
    words = []
    for key in _SAME:
        was, now = run.environment.get(key), here.get(key)
        if was is not None and now is not None and was != now:
            name, was, now = environment.label(key), environment.shown(key, was), environment.shown(key, now)
            words.append(f"{name} is {now}, and was {was}")
    return "; ".join(words)
